"""Finds whoever prints a text of a file past the function of its language (compiler/support/Escape.h).

A text of a file reaches a reader in few places, and each has a rule:

    terminal   a statement that writes to standard output or errors passes each text through `visible`
    JSON       `parseJson` and `jsonText` alone call LLVM's parser and printer; the runtime has `jsonQuoted`
    C++        in compiler/emit, what comments and strings hold is of `inComment` and `cppString`, and nothing
               that gives a name of the model is printed otherwise
    HTML       in the report, what goes between tags is of `inHtml`
"""

import re

TERMINAL = re.compile(r"\b(?:outs\(\)|errs\(\)|std::c(?:out|err))\s*<<|(?<![\w.])(?:std::)?(?:printf|fprintf|fputs|puts|vfprintf)\(")
# Texts of our own, or in a language of their own: by file.
OWN = {
    "driver/pipeline/Compile.cpp": ["source->whole"],  # C++.
    "driver/pipeline/Show.cpp": ["planJson("],
    "driver/merge/Merge.cpp": ["merging: "],  # Percent, on one line.
    "compiler/emit/Emit.cpp": ["<< parts <<"],  # What has been printed.
    "compiler/emit/StepInterface.cpp": ["TMC_STEP_H", "_ARENA_BYTES"],  # A name of C, and digits.
    "runtime/step/Train.cpp": ["step %lld/%lld", "interrupted after"],  # Numbers and words.
    "tools/solve/OffloadCommand.cpp": ["plan.makespan"],
    "tools/solve/RematCommand.cpp": ["peak %lld"],
    "tools/CommandLine.cpp": ["program."],
    "tools/tmc.cpp": ["diagnosisTable("],  # In colours, of this machine.
    "tools/tmc-import.cpp": ["<< name <<", "<< *bytes", "<< encoded"],  # Operators; a model's bytes.
    "tools/tmc-solve.cpp": ["row.name", "name.c_str(), summary"],  # Commands and planners.
}
JSON = re.compile(r"json::parse\(|json::OStream|<<\s*json::Value|formatv\(\"\{0:2\}\"")
# What gives a name of the model to whoever prints a step.
MODELS = re.compile(r"\b(?:locationName|namesOf|sourceLine)\(|\.getOp\(\)|[bB]uffer\.getName\(\)|tensor\.(?:name|text)\(|options\.(?:model|target|fileDirectory)\b|"
                    r"\brow\.(?:name|location)\b(?! \+?=)")
LOOKUP = re.compile(r"\bindexOf\(")
ESCAPED = re.compile(r"\b(?:inComment|cppString)\(")
# Operands of a statement that prints a comment or a quote.
NUMBERS = re.compile(r"readableBytes\(|int64_t\(|\bmoment\b|shape\.\w+|\.size\(\)|storageType\(|\bmemberName\b|\bprefix\b|cuda \?|\bk[A-Z]\w*|\bmakers\b")


def statements(text):
    """(line, statement) of C++: comments blanked, strings kept."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|[;{}]|[^;{}"\'/]+|/', re.S)
    line, start, parts = 1, 1, []
    for match in token.finditer(text):
        each = match.group()
        if each in (";", "{", "}"):
            yield start, "".join(parts)
            parts = []
        elif not each.startswith(("//", "/*")):
            if not "".join(parts).strip():
                start = line + (len(each) - len(each.lstrip("\n ")) and each[:len(each) - len(each.lstrip())].count("\n"))
            parts.append(each)
        line += each.count("\n")


def strings(statement):
    return re.findall(r'"((?:[^"\\\n]|\\.)*)"', statement)


def without_strings(statement):
    return re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', statement)


def prints_text(statement):
    """Whether a statement that writes to a terminal writes something that is neither a number nor its own."""
    call = re.search(r"\b(printf|fprintf|vfprintf|fputs|puts)\(", statement)
    if call and call[1] in ("fputs", "puts"):
        argument = statement[call.end():].rpartition(",")[0]
        if call[1] == "fputs" and not re.search(r",\s*std(?:out|err)\)", statement):
            return False
        return not re.fullmatch(r'\s*(?:k[A-Z]\w*|"[^"]*")\s*\)?\s*', argument)
    if call:
        if call[1] == "fprintf" and not re.search(r"fprintf\(\s*std(?:out|err)", statement):
            return False
        return any(re.search(r"%[-+ #0-9.*]*s", each) for each in strings(statement))
    operands = without_strings(statement).split("<<")[1:]
    return any(re.search(r"[A-Za-z]", each) for each in operands)


def faults(files):
    """`files`: names and texts. What breaks a rule, as "file:line: why"."""
    found = []
    for name, text in files:
        if not name.endswith((".cpp", ".h", ".cu")) or name.startswith(("test/", "bench/")):
            continue
        names = set()  # Variables that hold a name of the model.
        for line, statement in statements(text):
            def fault(why, line=line, statement=statement):
                found.append(f"{name}:{line}: {why}: {' '.join(statement.split())[:120]}")
            if name not in ("compiler/support/Json.cpp",) and JSON.search(statement):
                fault("JSON is read by parseJson and written by jsonText")
            own = any(each in statement for each in OWN.get(name, []))
            if TERMINAL.search(statement) and not own and "visible(" not in statement and prints_text(statement):
                fault("a text goes to the terminal without visible()")
            if name.startswith("compiler/emit/") and not own:
                assigned = re.match(r"\s*(?:std::string|StringRef|auto) (\w+) = ", statement)
                if assigned and MODELS.search(statement):
                    names.add(assigned[1])
                    continue
                prints = "<<" in statement or re.search(r'"\s*\+|\+\s*"', statement)
                plain = without_strings(statement)
                gives = MODELS.search(plain) or any(re.search(r"\b%s\b(?!\.empty)" % each, plain) for each in names)
                if prints and gives and not ESCAPED.search(statement) and not LOOKUP.search(statement):
                    fault("a name of the model is printed without inComment() or cppString()")
                marks = any(re.search(r"//|/\*|\\\"", each) for each in strings(statement))
                operands = re.split(r"<<", without_strings(statement))[1:] if marks else []
                if any(re.search(r"[A-Za-z]", each) and not ESCAPED.search(each) and not NUMBERS.search(each) for each in operands):
                    fault("a comment or a string holds what isn't of inComment() or cppString()")
            if name == "compiler/report/Report.cpp":
                tags = any(re.search(r"<[a-z/!]", each) for each in strings(statement))
                if tags and re.search(r"\.(?:name|model|target|where)\b", statement) and "inHtml(" not in statement:
                    fault("a text goes into HTML without inHtml()")
    return found
