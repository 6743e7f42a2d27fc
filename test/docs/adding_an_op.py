"""The worked example of docs/adding-an-op.md holds: its patch applies to the tree,
takes no line away, compiles, and is what the text quotes.

    adding_an_op.py BUILD      the standard library only
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                     "..", ".."))
LLVM = "/usr/lib/llvm-22"
INC = [("decls", "op", "NN.h.inc"), ("defs", "op", "NN.cpp.inc"),
       ("decls", "enum", "NNEnums.h.inc"), ("defs", "enum", "NNEnums.cpp.inc"),
       ("decls", "dialect", "NNDialect.h.inc"),
       ("defs", "dialect", "NNDialect.cpp.inc")]


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        sys.exit("failed: %s\n%s" % (" ".join(command), done.stdout))


def main():
    build = os.path.abspath(sys.argv[1])
    patch = os.path.join(ROOT, "docs", "adding-an-op.patch")
    with open(patch) as file:
        lines = file.read().splitlines()
    taken = [l for l in lines if l.startswith("-") and not l.startswith("---")]
    if taken:
        sys.exit("the patch takes lines away: " + "; ".join(taken))
    added = [l[1:] for l in lines if l.startswith("+") and l[:3] != "+++"]
    if len(added) < 200:
        sys.exit("the patch adds only %d lines" % len(added))

    with open(os.path.join(ROOT, "docs", "adding-an-op.md")) as file:
        quotes = re.findall(r"^```\w+\n(.*?)^```$", file.read(), re.M | re.S)
    text = "\n".join(added) + "\n"
    for quote in quotes:
        if quote not in text:
            sys.exit("not in the patch:\n" + quote)
    if len(quotes) < 8:
        sys.exit("only %d quotations" % len(quotes))

    with tempfile.TemporaryDirectory() as place:
        tree, inc = os.path.join(place, "tree"), os.path.join(place, "inc")
        os.makedirs(os.path.join(inc, "dialects/nn"))
        for name in ("dialects", "compiler", "runtime", "test/unit",
                     "test/dialects"):
            shutil.copytree(os.path.join(ROOT, name), os.path.join(tree, name))
        run("git", "apply", "-C1", patch, cwd=tree,
            env=dict(os.environ, GIT_CEILING_DIRECTORIES=place))
        for what, kind, name in INC:
            run(LLVM + "/bin/mlir-tblgen", "-gen-%s-%s" % (kind, what), "-I",
                tree, "-I", LLVM + "/include", tree + "/dialects/nn/NN.td",
                "-o", inc + "/dialects/nn/" + name, cwd=tree)
        flags = ["-fsyntax-only", "-std=c++20", "-I", inc, "-I", tree]
        for source in ("dialects/nn/Cumsum.cpp", "compiler/reference/Cumsum.cpp"):
            run("c++", *flags, "-I", build, "-isystem", LLVM + "/include",
                "-fno-rtti", "-fno-exceptions", os.path.join(tree, source))
        run("c++", *flags, os.path.join(tree, "runtime/cpu/Cumsum.cpp"))
    print("%d quotations, %d lines added, none taken away" %
          (len(quotes), len(added)))


if __name__ == "__main__":
    main()
