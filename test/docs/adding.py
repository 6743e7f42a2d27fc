"""Worked examples of docs/: the patch docs/adding-NAME.patch applies to the tree, takes no
line away, changes few files of the product, compiles, and is what docs/adding-NAME.md
quotes.

    adding.py NAME BUILD      an-op, a-lever, an-optimizer or an-engine; the standard
                              library only
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
PRODUCT = ("compiler", "dialects", "driver", "frontends", "passes", "runtime", "tools")
INC = {"dialects/nn/NN.td": [
           ("decls", "op", "NN.h.inc"), ("defs", "op", "NN.cpp.inc"),
           ("decls", "enum", "NNEnums.h.inc"), ("defs", "enum", "NNEnums.cpp.inc"),
           ("decls", "dialect", "NNDialect.h.inc"),
           ("defs", "dialect", "NNDialect.cpp.inc")],
       "dialects/train/Train.td": [
           ("decls", "op", "Train.h.inc"), ("defs", "op", "Train.cpp.inc")]}


class Example:
    """`product`: the most files of the product that may change; `lines`, `quotes`: the
    fewest that there are; `sources`: what is compiled, beside `kernels` of each backend."""

    def __init__(self, product, lines, quotes, record, sources, kernels=(), precompiled=True):
        self.product, self.lines, self.quotes = product, lines, quotes
        self.record, self.sources, self.kernels = record, sources, kernels
        self.precompiled = precompiled and not record  # No header of these changes.


EXAMPLES = {
    "an-op": Example(12, 200, 8, "dialects/nn/NN.td",
                     ["dialects/nn/Cumsum.cpp", "compiler/reference/Cumsum.cpp"],
                     ["runtime/cpu/Cumsum.cpp"]),
    "a-lever": Example(5, 15, 3, None,
                       ["driver/pipeline/Levers.cpp", "driver/pipeline/Candidate.cpp"]),
    "an-engine": Example(12, 80, 4, None,
                         ["driver/calibrate/MoveWork.cpp", "compiler/target/BuiltinHosts.cpp",
                          "compiler/planning/model/Problem.cpp"],
                         ["runtime/step/Homes.cpp", "runtime/step/Step.cpp",
                          "runtime/cpu/CpuDevice.cpp", "runtime/cuda/CudaDevice.cpp"],
                         precompiled=False),
    "an-optimizer": Example(8, 200, 5, "dialects/train/Train.td",
                            ["dialects/train/Updates.cpp", "passes/Optimizers.cpp",
                             "compiler/reference/Updates.cpp"],
                            ["runtime/cpu/Optimizer.cpp", "runtime/cuda/Optimizer.cu"]),
}


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        sys.exit("failed: %s\n%s" % (" ".join(command), done.stdout))


def compile_in(tree, inc, build, example):
    """Compiles what the patch changed, without code: the tree's own headers come first."""
    flags = ["-fsyntax-only", "-std=c++20", "-O2", "-Wall", "-Wextra",
             "-Wno-unused-parameter", "-Werror=missing-field-initializers"]
    if example.record:
        folder = os.path.dirname(example.record)
        os.makedirs(os.path.join(inc, folder))
        for what, kind, name in INC[example.record]:
            run(LLVM + "/bin/mlir-tblgen", "-gen-%s-%s" % (kind, what), "-I",
                tree, "-I", LLVM + "/include", os.path.join(tree, example.record),
                "-o", os.path.join(inc, folder, name), cwd=tree)
    # The build has compiled the headers of MLIR and of the dialects once.
    headers = ["-include", os.path.join(build, "CMakeFiles/TmcMlirHeaders.dir/cmake_pch.hxx")]
    for source in example.sources:
        run("c++", *flags, "-fPIC", "-pthread", "-fno-exceptions", "-fno-rtti",
            *(headers if example.precompiled else []), "-I", inc, "-I", tree, "-I", build,
            "-isystem", LLVM + "/include", os.path.join(tree, source))
    emulator = os.path.join(ROOT, "test/cuda/emulator")
    for source in example.kernels:
        path = os.path.join(tree, source)
        if source.endswith(".cu"):
            run("c++", *flags, "-Wno-unknown-pragmas", "-march=x86-64-v3",
                "-DTMC_CUDA_EMULATED", "-I", tree, "-I", ROOT, "-isystem", emulator + "/include",
                "-include", emulator + "/Emulator.h", "-x", "c++", path)
        else:
            run("c++", *flags, "-I", tree, path)


def main():
    name, build = sys.argv[1], os.path.abspath(sys.argv[2])
    example = EXAMPLES[name]
    patch = os.path.join(ROOT, "docs", "adding-%s.patch" % name)
    with open(patch) as file:
        lines = file.read().splitlines()
    taken = [l for l in lines if l.startswith("-") and not l.startswith("---")]
    if taken:
        sys.exit("the patch takes lines away: " + "; ".join(taken))
    added = [l[1:] for l in lines if l.startswith("+") and l[:3] != "+++"]
    if len(added) < example.lines:
        sys.exit("the patch adds only %d lines" % len(added))
    changed = [l[6:] for l in lines if l.startswith("+++ b/")]
    product = [path for path in changed if path.split("/")[0] in PRODUCT]
    if len(product) > example.product:
        sys.exit("%d files of the product change, at most %d may: %s" %
                 (len(product), example.product, " ".join(product)))

    with open(os.path.join(ROOT, "docs", "adding-%s.md" % name)) as file:
        quotes = re.findall(r"^```\w+\n(.*?)^```$", file.read(), re.M | re.S)
    text = "\n".join(added) + "\n"
    for quote in quotes:
        if quote not in text:
            sys.exit("not in the patch:\n" + quote)
    if len(quotes) < example.quotes:
        sys.exit("only %d quotations" % len(quotes))

    with tempfile.TemporaryDirectory() as place:
        tree, inc = os.path.join(place, "tree"), os.path.join(place, "inc")
        # Of test/ and docs/ only what the patch changes.
        for folder in PRODUCT:
            if os.path.exists(os.path.join(ROOT, folder)):
                shutil.copytree(os.path.join(ROOT, folder), os.path.join(tree, folder))
        for path in changed:
            old, new = os.path.join(ROOT, path), os.path.join(tree, path)
            if os.path.exists(old) and not os.path.exists(new):
                os.makedirs(os.path.dirname(new), exist_ok=True)
                shutil.copy(old, new)
        run("git", "apply", "-C1", patch, cwd=tree,
            env=dict(os.environ, GIT_CEILING_DIRECTORIES=place))
        compile_in(tree, inc, build, example)
    print("%d quotations, %d lines added in %d files of the product, none taken away" %
          (len(quotes), len(added), len(product)))


if __name__ == "__main__":
    main()
