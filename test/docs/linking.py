"""Runs the commands of docs/runtime.md that link a step: linking.py TMC BUILD DIR."""

import os
import re
import subprocess
import sys

TMC, BUILD, HERE = sys.argv[1:]
ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def run(*words, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    assert done.returncode == 0, (words, done.stdout)
    return done.stdout


with open(os.path.join(ROOT, "docs", "runtime.md")) as file:
    text = file.read()
# Blocks are indented; FLAGS are named in what follows.
block = next(b for b in re.findall(r"(?:^    .*\n)+", text, re.M) if "step.cpp -o train" in b)
after = text[text.index(block) + len(block):].split("\n\n")[0]
flags = " ".join(re.findall(r"`(-[^`]*)`", after)).replace("\n", " ")
assert flags.startswith("-O3") and flags.endswith("v3"), flags
include, library = ROOT, os.path.join(BUILD, "lib")
data = os.path.join(ROOT, "examples/data/digits-")
train = ["--data", "image=" + data + "image.npy", "--data", "label=" + data + "label.npy", "--steps", "2",
         "--init", "random:1"]
run(TMC, "compile", os.path.join(ROOT, "examples/mlp.onnx"), "--target", "cpu:v3", "--emit", "source", "-o", HERE)
script = block.replace("FLAGS", flags).replace("INCLUDE", include).replace("LIBRARY", library)
run("sh", "-e", "-c", script, cwd=HERE)
assert "loss" in run(os.path.join(HERE, "train"), *train)
exported = run("nm", "--dynamic", "--defined-only", "--format=just-symbols", os.path.join(HERE, "libstep.so")).split()
assert "tmc_step_create" in exported and all(each.startswith("tmc_") for each in exported), exported
print(len(re.findall(r"^    \S", block, re.M)), "commands")
