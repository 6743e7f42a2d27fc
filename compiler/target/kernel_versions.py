#!/usr/bin/env python3
"""Prints the version of each family of kernels on cuda.

    kernel_versions.py ROOT [--json]

A version is a hash of the text that decides a family's speed: the file in
runtime/cuda that defines its `run`, and what that file includes from there, with
the sources that implement such a header. Comments and blank space don't count,
nor does what starts any kernel (queues, events, launches). Without --json it is a
list for C++ (KernelVersions.inc).
"""
import argparse
import hashlib
import json
import os
import re
import sys

# They start kernels and are none.
PLUMBING = {"Cuda.h", "CudaQueues.h", "EventTimer.h", "HostUpdates.h", "Launch.h", "LaunchText.h"}
# Generated kernels are these headers with a body.
FUSED = ["runtime/cuda/Fused.h", "runtime/kernels/Fused.h", "runtime/kernels/FusedShape.h",
         "runtime/kernels/Row.h"]


def plain(text):
    """Without comments and blank space. No string of a kernel holds "//" or "/*"."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"\s+", "", re.sub(r"//[^\n]*", "", text))


class Sources:
    def __init__(self, root):
        self.root = root
        folder = os.path.join(root, "runtime/cuda")
        self.names = sorted(n for n in os.listdir(folder) if n.endswith((".cu", ".cpp", ".h")))
        self.texts = {"runtime/cuda/" + n: self.read("runtime/cuda/" + n) for n in self.names}

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    def families(self):
        """By family, the file that defines its run."""
        found = {}
        for path, text in self.texts.items():
            for family in re.findall(r"^void (\w+)::run\(Stream &", text, re.M):
                found[family] = path
        return found

    def closure(self, path):
        """The file, the headers of runtime/cuda that it includes, and their sources."""
        files, todo = set(), [path]
        while todo:
            file = todo.pop()
            if file in files:
                continue
            files.add(file)
            for name in re.findall(r'#include "runtime/cuda/(\w+\.h)"', self.texts[file]):
                if name in PLUMBING:
                    continue
                todo.append("runtime/cuda/" + name)
                stem = name[:-len(".h")]
                todo += ["runtime/cuda/" + n for n in self.names
                         if n.startswith(stem) and not n.endswith(".h")]
        return sorted(files)

    def version(self, files):
        text = "\0".join(plain(self.texts.get(f) or self.read(f)) for f in files)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def versions(self):
        all = {family: self.version(self.closure(path)) for family, path in self.families().items()}
        all["Fused"] = self.version(FUSED)
        return dict(sorted(all.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    versions = Sources(arguments.root).versions()
    if arguments.json:
        json.dump(versions, sys.stdout, indent=1)
        print()
        return
    for family, version in versions.items():
        print('{"%s", "%s"},' % (family, version))


if __name__ == "__main__":
    main()
