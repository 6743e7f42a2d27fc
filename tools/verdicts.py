"""Keeps the counts of suites that passed in the build folder, by a hash of all that they
depend on; the standard library only.

A suite isn't run again in a build folder where it passed with the same

- programs and libraries of the build, by their content,
- files of the tree, by their names and content, but for those that the suite doesn't read
  (UNREAD of tools/check.py: folders, and patterns of names as fnmatch knows them),
- compilers, Python and LLVM, processor and kernel, and variables TMC_* and CXX*.

A file that changes while a suite runs spoils its verdict. Nothing is kept of a suite
with a failure, and a fresh clone has no verdicts.
"""

import fnmatch
import glob
import hashlib
import json
import os
import platform
import re
import subprocess
import sys

# Programs and libraries of the system that compile or run tests.
TOOLS = ["g++", "ld", "lit-22", "FileCheck-22", "nvcc"]
LIBRARIES = ["/usr/lib/llvm-22/lib/libMLIR.so", "/usr/lib/llvm-22/lib/libLLVM.so"]


def digest(path):
    with open(path, "rb") as file:
        made = hashlib.blake2b(digest_size=16)
        while block := file.read(1 << 20):
            made.update(block)
    return made.hexdigest()


def machine():
    """Lines that tell one machine and its tools from another."""
    lines = [sys.version, platform.release()]
    with open("/proc/cpuinfo") as info:
        lines += sorted(set(re.findall(r"^(?:model name|flags)\s*:.*", info.read(), re.M)))
    for tool in TOOLS:
        try:
            lines.append(subprocess.run([tool, "--version"], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True).stdout)
        except OSError:
            lines.append("no " + tool)
    for library in LIBRARIES:
        state = os.stat(library) if os.path.exists(library) else None
        lines.append("%s %s" % (library, state and (state.st_size, state.st_mtime_ns)))
    return lines + ["%s=%s" % each for each in sorted(os.environ.items())
                    if each[0].startswith(("TMC_", "CXX"))]


class Verdicts:
    def __init__(self, root, build):
        self.root, self.build = root, build
        self.folder = os.path.join(build, "verdicts")
        self.machine = machine()
        self.digests = {}  # By path and state, as suites share most files.

    def files(self, unread):
        """Sorted paths of all that a suite may read."""
        listed = subprocess.run(["git", "-C", self.root, "ls-files", "-co", "--exclude-standard"],
                                stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
        named = [(name, os.path.join(self.root, name)) for name in listed]
        for folder in "bin", "lib":
            named += [(os.path.relpath(path, self.build), path)
                      for path in glob.glob(os.path.join(self.build, folder, "*"))]
        named.append(("CMakeCache.txt", os.path.join(self.build, "CMakeCache.txt")))
        return sorted(path for name, path in named if os.path.isfile(path)
                      and not any(fnmatch.fnmatch(name, each) or name.startswith(each + "/")
                                  for each in unread))

    def states(self, unread):
        """Of each file its size and the time of its last change."""
        found = [(path, os.stat(path)) for path in self.files(unread)]
        return [(path, state.st_size, state.st_mtime_ns) for path, state in found]

    def key(self, suite, states):
        made = hashlib.blake2b("\n".join([suite, *self.machine]).encode(), digest_size=16)
        for state in states:
            if state not in self.digests:
                self.digests[state] = digest(state[0])
            made.update(("%s %s\n" % (state[0], self.digests[state])).encode())
        return made.hexdigest()

    def kept(self, suite, states):
        """The counts of `suite` that were kept for these files, or None."""
        try:
            with open(os.path.join(self.folder, suite + ".json")) as file:
                kept = json.load(file)
        except (OSError, ValueError):
            return None
        return kept["counts"] if kept["key"] == self.key(suite, states) else None

    def keep(self, suite, states, counts, unread):
        """Keeps `counts`, unless a file isn't as it was in `states`."""
        if self.states(unread) != states:
            return
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, suite + ".json"), "w") as file:
            json.dump({"key": self.key(suite, states), "counts": counts}, file)
