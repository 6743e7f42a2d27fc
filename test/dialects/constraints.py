"""Names each constraint C1, C2, ... of an op's description that no negative test
has: a function <op>_c<N> below test/dialects/<dialect>."""

import glob
import os
import re
import sys

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.join(here, "..", "..")
missing, found = [], 0
for dialect in ("nn", "train"):
    tests = ""
    for path in glob.glob(os.path.join(here, dialect, "*.mlir")):
        with open(path) as file:
            tests += file.read()
    names = set(re.findall(r"func @(\w+)", tests))
    text = ""
    for path in glob.glob(os.path.join(root, "dialects", dialect, "*.td")):
        with open(path) as file:
            text += file.read()
    # A record begins with its mnemonic; its constraints follow, up to the next.
    for record in re.split(r"\n(?=def \w+Op\b)", text)[1:]:
        mnemonic = re.search(r'"(\w+)"', record).group(1)
        for number in re.findall(r"^\s*- C(\d+):", record, re.MULTILINE):
            found += 1
            prefix = "%s_c%s" % (mnemonic, number)
            if not any(n == prefix or n.startswith(prefix + "_") for n in names):
                missing.append("%s.%s C%s" % (dialect, mnemonic, number))
if missing:
    sys.exit("no negative test for: " + ", ".join(missing))
if found < 40:
    sys.exit("found only %d constraints: has the td files' form changed?" % found)
print("%d constraints, each with a test" % found)
