"""Finds calls with two arguments that each create operations; the standard library only.

C++ doesn't say in which order the arguments of a call are computed, and g++ and clang compute them in opposite orders:

    nn::mul(b, loc, nn::scale(b, loc, x, c), nn::add(b, loc, x, y))

creates the sum first with one and the product first with the other, and the plan of a step follows. One of the two is
named before the call. Elements of a braced list are computed from left to right, and aren't found. The rule goes by
names. It takes to create operations

    Op::create(...), replaceOpWithNewOp<Op>(...)
    a function that takes a builder (BUILDERS) and returns what RESULTS says
    a member function of a class that holds a builder, with such a result
    a lambda with one of these in its body, within its file

and knows functions of other files by their headers.
"""

import re

from cpp import CLOSING, blanked, end_of

BUILDERS = r"(?:OpBuilder|ImplicitLocOpBuilder|RewriterBase|PatternRewriter|IRRewriter|Site|Call|Node)"
RESULTS = r"(?:[\w:]*Value|\w+Op|Grads|Parts|(?:mlir::)?FailureOr<[^;(){}]*?Val(?:ue)?>+|(?:llvm::|mlir::)?SmallVector<(?:mlir::)?Val(?:ue)?(?:, \d+)?>|std::pair<[^;(){}]*Value[^;(){}]*>)"
FUNCTION = re.compile(r"(?<![\w:<])(%s)\s+(?:\w+::)*(\w+)\s*\(([^(){};]*)\)" % RESULTS)
CLASS = re.compile(r"\b(?:struct|class)\s+\w+[^;{}()]*\{")
MEMBER = re.compile(r"\b%s\s*&?\s+&?\w+\s*;" % BUILDERS)
LAMBDA = re.compile(r"\bauto\s+(\w+)\s*=\s*\[[^\]]*\]")
# What stands before a parenthesis that is no call.
WORDS = {"if", "for", "while", "switch", "return", "catch", "sizeof", "decltype", "alignof", "noexcept", "requires"}


def makers(text):
    """Names of functions that create operations, of those that `text` declares."""
    names = {match[2] for match in FUNCTION.finditer(text) if re.search(r"\b%s\s*&" % BUILDERS, match[3])}
    for match in CLASS.finditer(text):
        body = text[match.end():end_of(text, match.end() - 1)]
        if MEMBER.search(body):
            names |= {each[2] for each in FUNCTION.finditer(body)}
    return names


def without_lambdas(text):
    """`text` with spaces for bodies of lambdas, which are run by whom they are given to."""
    for match in reversed(list(re.finditer(r"\[[^\[\]]*\]\s*(?:\([^()]*\)\s*)?(?:mutable\s*)?(?:->\s*[\w:<>]+\s*)?\{", text))):
        end = end_of(text, match.end() - 1)
        text = text[:match.end()] + " " * (end - match.end()) + text[end:]
    return text


def arguments(text, start):
    """The arguments of the call whose parenthesis stands at `start`. Commas of template arguments part them, too, which
    is no harm: nothing is created there."""
    end, parts, first, place = end_of(text, start), [], start + 1, start + 1
    while place < end:
        if text[place] in CLOSING:
            place = end_of(text, place)
        elif text[place] == ",":
            parts.append(text[first:place])
            first = place + 1
        place += 1
    return parts + [text[first:end]]


def creates(names):
    return re.compile(r"::create\s*\(|\breplaceOpWithNewOp<\w+>\s*\(|(?<![\w])(?:%s)\s*\(" % "|".join(sorted(names) or ["(?!)"]))


def faults(files):
    """`files`: names and texts. Calls that break the rule, as "file:line: why"."""
    files = [(name, blanked(text)) for name, text in files]
    # Headers declare what other files call. Tests have functions of their own.
    shared = {"test/": set(), "": set()}
    for name, text in files:
        if name.endswith(".h"):
            shared["test/" if name.startswith("test/") else ""] |= makers(text)
    bad = []
    for name, text in files:
        names = shared[""] | makers(text) | (shared["test/"] if name.startswith("test/") else set())
        before = None
        while before != len(names):
            before, pattern = len(names), creates(names)
            for match in LAMBDA.finditer(text):
                body = text.find("{", match.end())
                if pattern.search(text, body, end_of(text, body)):
                    names.add(match[1])
        for match in re.finditer(r"(\w+)(?:<[\w:, ]*>)?\s*\(", text):
            start = match.end() - 1
            if match[1] in WORDS or len(pattern.findall(text, start, end_of(text, start))) < 2:
                continue
            found = [part for part in arguments(text, start) if pattern.search(without_lambdas(part))]
            if len(found) > 1:
                bad.append("%s:%d: two arguments of %s create operations: %s" % (
                    name, text.count("\n", 0, match.start()) + 1, match[1],
                    " and ".join(" ".join(each.split()) for each in found)))
    return bad
