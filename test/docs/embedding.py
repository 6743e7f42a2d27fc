"""Compiles and runs the programs of docs/embedding.md in DIR and compares what they print: embedding.py DIR."""

import os
import re
import subprocess
import sys

HERE = sys.argv[1]
ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

with open(os.path.join(ROOT, "docs", "embedding.md")) as file:
    page = file.read()
programs = re.findall(r"^```c\n(/\* (\w+\.c): .*?)^```$", page, re.M | re.S)
for text, name in programs:
    with open(os.path.join(HERE, name), "w") as file:
        file.write(text)
# Blocks with commands and blocks with what the last of these print take turns.
blocks = [re.sub(r"^    ", "", block, flags=re.M)
          for block in re.findall(r"(?:^    .*\n)+", re.sub(r"^```c\n.*?^```$", "", page, flags=re.M | re.S), re.M)]
assert len(blocks) == 2 * (len(programs) + 1), blocks
# The page's commands run in the root of the repository, and write nothing there.
os.symlink(os.path.join(ROOT, "examples"), os.path.join(HERE, "examples"))
for commands, shown in zip(blocks[::2], blocks[1::2]):
    done = subprocess.run(["sh", "-e", "-c", commands], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          cwd=HERE, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout == shown, done.stdout
for made in "model/model.safetensors", "run/checkpoint.safetensors":
    assert os.path.exists(os.path.join(HERE, made)), made
print("%d programs, %d commands, %d lines" % (len(programs) + 1, "".join(blocks[::2]).count("\n"),
                                              "".join(blocks[1::2]).count("\n")))
