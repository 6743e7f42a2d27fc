"""Builds a step by make and by ninja in a directory whose name they could misread:
depfile.py TMC DIR BUILD. DIR holds beside.onnx and v.data.

Each builds twice, and again after each file that was read or written changes.
"""

import json
import os
import shutil
import subprocess
import sys
import time

TMC, HERE, BUILD = sys.argv[1:]
HERE = os.path.abspath(HERE)
PLACE = os.path.join(HERE, "a place $(shell touch INJECTED) of#its:own")
MODEL = os.path.join(PLACE, "$(shell touch INJECTED) 50% (1).onnx")
RATES = dict(latency_seconds=0, bytes_per_second=1e9)
ROOFLINE = dict(launch_seconds=0, flops_per_second=1e9, bytes_per_second=1e9)
TARGET = dict(schema=4, name="here", backend="cpu", arch="v3", memory_bytes=dict(device=None, host=None, file=None), reserved_bytes=0,
              arena_alignment=64, rooflines=dict(f32=ROOFLINE), families={},
              engines={"d2h": RATES, "h2d": RATES, "file-read": RATES, "file-write": RATES, "host": ROOFLINE})


def run(*command):
    done = subprocess.run(command, cwd=PLACE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


def quoted(word):
    return "'" + word.replace("'", "'\\''") + "'"


def command(*more, weights=("--weights", "other values.safetensors")):
    words = [TMC, "compile", MODEL, "--target", "the target.json", *weights, "--emit", "source", "-o", "my step", *more]
    return " ".join(map(quoted, words))


def write(name, text):
    with open(os.path.join(PLACE, name), "w") as file:
        file.write(text)


def make():
    text = run("make", "my step/plan.json")
    return "tmc compile" not in text.replace(TMC, "tmc") and "up to date" in text


def ninja():
    return "no work to do" in run("ninja")


def unescaped(words):
    """The names of a depfile's half, which ends lines with a backslash."""
    return [line.strip().replace("\\ ", " ").replace("\\#", "#").replace("\\:", ":").replace("$$", "$")
            for line in words.split(" \\\n")]


shutil.rmtree(PLACE, ignore_errors=True)
os.makedirs(PLACE)
shutil.copy(os.path.join(HERE, "beside.onnx"), MODEL)
shutil.copy(os.path.join(HERE, "v.data"), PLACE)
write("the target.json", json.dumps(TARGET))
write("Makefile", "my\\ step/plan.json:\n\t" + command("-MF", "step.d").replace("$", "$$") + "\n-include step.d\n")
rule = command("-MF", "ninja.d").replace("$", "$$")
files = "plan.json step.cpp step.h step.mlir tmc.h report.html plan-trace.json weights.json config.toml".split()
write("build.ninja", "rule step\n  command = %s\n  depfile = ninja.d\n  deps = gcc\nbuild %s: step\n" %
      (rule, " ".join("my$ step/" + each for each in files)))
sys.path.insert(0, os.path.dirname(__file__))
import safetensors
safetensors.write(os.path.join(PLACE, "other values.safetensors"), ["u:F32:1=2", "w:F32:2x1=9"])

assert not make(), "the first time there is all to do"
assert make(), "make's second time"
with open(os.path.join(PLACE, "step.d")) as file:
    written, read = file.read().rstrip("\n").split(": \\\n")
assert sorted(unescaped(written)) == sorted("my step/" + each for each in os.listdir(os.path.join(PLACE, "my step"))), written
assert set(unescaped(written)) == {"my step/" + each for each in files}, written
assert unescaped(written)[0] == "my step/plan.json"
read = unescaped(read)
own = [MODEL, "the target.json", "other values.safetensors"]
assert set(own) <= set(read), read
assert {os.path.basename(each) for each in read} >= {"tmc", "libtmc-runtime-cpu-v3.a", "libtmc-trainer.a", "tmc.h"}, read
assert all(os.path.exists(os.path.join(PLACE, each)) for each in read), read

assert not ninja(), "the first time there is all to do"
assert ninja(), "ninja's second time"
for each in own:
    time.sleep(0.02)
    os.utime(os.path.join(PLACE, each))
    assert not make() and make(), each
    assert not ninja() and ninja(), each
os.remove(os.path.join(PLACE, "my step", "step.h"))
assert not ninja() and ninja(), "a file that was written"

# Without other values those beside the model are read.
write("build.ninja", "rule step\n  command = %s\n  depfile = ninja.d\nbuild made: step\n" %
      (command("-MF", "ninja.d", "-MT", "made", weights=()) + " && touch made").replace("$", "$$"))
assert not ninja() and ninja(), "a target of another name"
time.sleep(0.02)
os.utime(os.path.join(PLACE, "v.data"))
assert not ninja() and ninja(), "external data"
assert not os.path.exists(os.path.join(PLACE, "INJECTED"))
