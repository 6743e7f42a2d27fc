"""Runs the commands of docs/embedding.md in DIR and compares the output: embedding.py DIR."""

import os
import re
import subprocess
import sys

HERE = sys.argv[1]
ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

with open(os.path.join(ROOT, "docs", "embedding.md")) as file:
    blocks = re.findall(r"(?:^    .*\n)+", file.read(), re.M)
commands, shown = (re.sub(r"^    ", "", block, flags=re.M) for block in blocks)
# The page's commands run in the root of the repository, and write nothing there.
os.symlink(os.path.join(ROOT, "examples"), os.path.join(HERE, "examples"))
done = subprocess.run(["sh", "-e", "-c", commands], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                      cwd=HERE)
assert done.returncode == 0, done.stderr
assert done.stdout == shown, done.stdout
assert os.path.exists(os.path.join(HERE, "model", "model.safetensors"))
print("%d commands, %d lines" % (commands.count("\n"), shown.count("\n")))
