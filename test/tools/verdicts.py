"""Verdicts are kept for the same files alone: verdicts.py TOOLS SCRATCH."""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, sys.argv[1])
import verdicts

root = sys.argv[2]
shutil.rmtree(root, ignore_errors=True)
build = os.path.join(root, "build")


def write(name, text):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def count(unread=["docs", "bin/*-tests"]):
    keeper = verdicts.Verdicts(root, build)
    return keeper.kept("unit", keeper.states(unread))


def keep(meanwhile=lambda: None, unread=["docs", "bin/*-tests"]):
    keeper = verdicts.Verdicts(root, build)
    states = keeper.states(unread)
    meanwhile()
    keeper.keep("unit", states, {"passed": 3}, unread)


write(".gitignore", "/build/\n")
for name in "docs/page.md", "test/case", "build/CMakeCache.txt", "build/bin/program", "build/bin/some-tests":
    write(name, "one")
subprocess.run(["git", "init", "-q", root], check=True)
assert count() is None
keep()
assert count() == {"passed": 3}
# Another time, and files that aren't read, change no verdict.
for name in "test/case", "docs/page.md", "build/bin/some-tests":
    write(name, "one" if name == "test/case" else "two")
assert count() == {"passed": 3}
for name in "test/case", "test/new", "build/bin/program", "build/CMakeCache.txt":
    keep()
    write(name, "two")
    assert count() is None, name
keep()
os.environ["TMC_TEST"] = "1"
assert count() is None
# A file that changes meanwhile.
keep(lambda: write("build/bin/program", "three"))
assert count() is None
print("verdicts are honest")
