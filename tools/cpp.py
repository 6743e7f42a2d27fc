"""C++ as the rules read it, without a compiler: what is text of the program, and where brackets close."""

import re

CLOSING = {"(": ")", "{": "}", "[": "]"}
TOKEN = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|//[^\n]*|/\*(?:.|\n)*?\*/|"(?:\\.|[^"\\\n])*"'
                   r"|(?<!\w)'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)


def blanked(text):
    """`text` with spaces for what stands in comments, in quotes and in lines of the preprocessor. Each line keeps its
    number."""
    return TOKEN.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def end_of(text, start):
    """The place of the bracket that closes the one at `start`; the end of `text` if none does."""
    open_brackets = []
    for found in re.compile(r"[(){}\[\]]").finditer(text, start):
        if found.group() in CLOSING:
            open_brackets.append(CLOSING[found.group()])
        elif open_brackets.pop() != found.group() or not open_brackets:
            return found.start()
    return len(text)
