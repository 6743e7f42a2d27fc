"""Counts the functions of each class, without a compiler.

    python3 tools/classes.py [--most N] FILE ...

A function of a class is one that the class's body declares: constructors, operators and
functions of instances and of the class alike. Not counted are functions that the compiler
writes (`= default`, `= delete`), friends, and the functions of a class inside of the
class, which is a class of its own. Counts files as clang-format lays them out and as
tools/check.py --only rules needs them.
"""

import argparse
import re

from cpp import blanked, end_of

# A class has at most as many.
MOST_FUNCTIONS = 25


def members(body):
    """The declarations of a class's body, each without what stands in its braces."""
    start = place = round_brackets = 0
    kept = ""
    while place < len(body):
        letter = body[place]
        if letter == "{" and round_brackets == 0:
            place = end_of(body, place) + 1
            kept += "{}"
            # A braced initializer of a member is followed by the rest of the declaration.
            following = body[place:].lstrip()[:1]
            if following not in (",", "{", ";"):
                yield kept
                kept = ""
            continue
        round_brackets += (letter == "(") - (letter == ")")
        kept += letter
        place += 1
        if letter == ";" and round_brackets == 0:
            yield kept
            kept = ""


def is_function(member):
    member = re.sub(r"^(\s*(public|private|protected)\s*:)+", "", member).strip()
    member = re.sub(r"^template\s*", "", re.sub(r"\b(alignas|decltype|noexcept|explicit)\s*\([^()]*\)", " ", member))
    member = re.sub(r"operator\s*(\(\)|[^\w\s(]+)", "operator_", member)
    # Arguments of templates, the innermost first: a function's type may stand there.
    before = None
    while before != member:
        before, member = member, re.sub(r"<[^<>]*>", " ", member)
    if re.match(r"(using|typedef|friend|static_assert|enum|class|struct|union)\b|[A-Z_]+\s*\(", member):
        return False
    if re.search(r"=\s*(default|delete)\s*;", member):
        return False
    head = re.match(r"[^={]*?[\w~]\s*\(", member)
    return head is not None


def classes(text):
    """(line, name, functions) of each class that `text` defines."""
    text = blanked(text)
    heads = re.finditer(r"(?<![\w<,])(?<!enum )(?:class|struct)\s+(?:\[\[\w+\]\]\s*|alignas\([^)]*\)\s*|[A-Z_]+\s+)*"
                        r"([\w:]+(?:<[^;{()]*>)?)\s*(?:final\s*)?(?::(?!:)[^;{()]*(?:\([^()]*\)[^;{()]*)*)?\{", text)
    for head in heads:
        open_brace = head.end() - 1
        body = text[open_brace + 1:end_of(text, open_brace)]
        yield (text.count("\n", 0, head.start()) + 1, head.group(1),
               sum(is_function(member) for member in members(body)))


def too_many(name, text, most=MOST_FUNCTIONS):
    """The classes of `text`, the file `name`, that have too many functions."""
    bad = []
    for line, of, count in classes(text):
        if count > most:
            bad.append("%s:%d: %s has %d functions, at most %d" % (name, line, of, count, most))
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=MOST_FUNCTIONS)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    for name in args.files:
        with open(name) as text:
            print("".join(fault + "\n" for fault in too_many(name, text.read(), args.most)), end="")


if __name__ == "__main__":
    main()
