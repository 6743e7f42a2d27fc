#!/usr/bin/env python3
"""Runs CudnnTest.cpp's program where there is no card and no driver.

    ask_cudnn.py PROGRAM CXX OUT FOLDER... [-- ARGUMENT...]

FOLDER are the toolkit's and cuDNN's folders of libraries. cuDNN compiles the kernels
of a plan and loads them into the driver before it says the plan's workspace. So the
program finds a driver that takes kernels and does nothing else, with the functions of
the toolkit's own stand-in for links (stubs/libcuda.so). Exits with 77 where the toolkit
lacks it, or nm or the libraries are missing.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

# Functions that give a handle or a number back.
RESULTS = """
static long something[64];
int cuLibraryLoadData(void **out) { *out = something; return 0; }
int cuLibraryGetKernel(void **out) { *out = something; return 0; }
int cuLibraryGetModule(void **out) { *out = something; return 0; }
int cuKernelGetFunction(void **out) { *out = something; return 0; }
int cuModuleLoadData(void **out) { *out = something; return 0; }
int cuModuleLoadDataEx(void **out) { *out = something; return 0; }
int cuModuleGetFunction(void **out) { *out = something; return 0; }
int cuKernelGetAttribute(int *out) { *out = 0; return 0; }
int cuFuncGetAttribute(int *out) { *out = 0; return 0; }
"""
# What succeeds without a result; all else fails as the toolkit's stand-in does.
QUIET = re.compile(r"cu(Library|Kernel|Func|Module)(Unload|Set)")
STUB_LIBRARY = 34  # CUDA_ERROR_STUB_LIBRARY


def make_driver(stub, compiler, out):
    """An empty libcuda.so.1 in `out`."""
    listed = subprocess.run(["nm", "-D", "--defined-only", stub], capture_output=True, text=True, check=True).stdout
    names = sorted({line.split()[-1].split("@")[0] for line in listed.splitlines() if line.split()[-2] in "TW"})
    made = set(re.findall(r"^int (\w+)\(", RESULTS, re.M))
    source = os.path.join(out, "driver.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(RESULTS)
        for name in names:
            if name not in made:
                file.write(f"int {name}(void) {{ return {0 if QUIET.match(name) else STUB_LIBRARY}; }}\n")
    subprocess.run([compiler, "-x", "c", "-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", source,
                    "-o", os.path.join(out, "libcuda.so.1")], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("compiler")
    parser.add_argument("out")
    parser.add_argument("folders", nargs="+")
    given = sys.argv[1:]
    words = given[given.index("--") + 1:] if "--" in given else []
    options = parser.parse_args(given[:given.index("--")] if "--" in given else given)
    stubs = [path for folder in options.folders
             if os.path.exists(path := os.path.join(folder, "stubs", "libcuda.so"))]
    if not stubs or not shutil.which("nm"):
        print("no stubs/libcuda.so, or no nm", file=sys.stderr)
        return 77
    os.makedirs(options.out, exist_ok=True)
    make_driver(stubs[0], options.compiler, options.out)
    path = os.pathsep.join([options.out, *options.folders, os.environ.get("LD_LIBRARY_PATH", "")])
    done = subprocess.run([options.program, *words], check=False, env={**os.environ, "LD_LIBRARY_PATH": path})
    return 77 if done.returncode == 127 else done.returncode


if __name__ == "__main__":
    sys.exit(main())
