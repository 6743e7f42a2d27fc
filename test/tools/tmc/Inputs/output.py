"""What a step directory holds: output.py TMC DIR. DIR holds model.onnx.

Two compilations of one input differ in the seconds that planning took. Files of two
compilations beside each other, as one that was killed leaves them, are refused where a step
starts; killed for real, by a library that counts renames, the next compilation mends all.
"""

import os
import re
import shutil
import subprocess
import sys

import safetensors
from plan_alone import alone, page_alone

TMC, HERE = sys.argv[1:]
HERE = os.path.abspath(HERE)
MODEL = os.path.join(HERE, "model.onnx")
KILLER = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static int done;
int renameat(int from, const char *name, int to, const char *new_name) {
  const char *last = getenv("RENAMES");
  /* Not of the cache, whose names are hashes. */
  if (last && !strcmp(program_invocation_short_name, "tmc") && strlen(new_name) < 64 && done++ == atoi(last))
    kill(getpid(), SIGKILL);
  return syscall(SYS_renameat2, from, name, to, new_name, 0);
}
"""
PROGRAM = r"""
#include "step.h"
#include <stdio.h>
int main(void) {
  tmc_step *step = 0;
  int code = tmc_step_create(0, &step);
  puts(code ? tmc_last_error() : "created");
  return code;
}
"""


def path(*names):
    return os.path.join(HERE, *names)


def run(*words, code=0, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    assert done.returncode == code, (words, done.returncode, done.stdout)
    return done.stdout


def compile(name, *flags, **more):
    return run(TMC, "compile", MODEL, "--target", "cpu", "-o", path(name), *flags, **more)


def files(name):
    result = {}
    for each in sorted(os.listdir(path(name))):
        with open(path(name, each), "rb") as file:
            result[each] = file.read()
    return result


def bare(step):
    """The files of a step without what says who made them and when."""
    return {name: {"plan.json": alone, "report.html": page_alone}.get(name, bytes)(text) for name, text in step.items()}


def losses(text):
    return tuple(re.findall(r"loss (\S+)", text))


def train(name, *flags, code=0):
    """The losses of two steps, or what the trainer says."""
    text = run(path(name, "train"), "--data", "x=" + path("x.npy"), "--steps", "2", *flags, code=code)
    return text if code else losses(text)


def create(name, code=0):
    """What a program says that is compiled and linked in the directory."""
    with open(path(name + ".c"), "w") as file:
        file.write(PROGRAM)
    run("cc", "-I", path(name), path(name + ".c"), "-o", path(name + ".exe"), "-L" + path(name), "-lstep",
        "-Wl,-rpath," + path(name))
    return run(path(name + ".exe"), code=code)


def mixed(name, of, **parts):
    """The files of the step `of`, but each of `parts` of another."""
    shutil.copytree(path(of), path(name))
    for part, other in parts.items():
        shutil.copy(path(other, part.replace("__", ".")), path(name))


header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }".ljust(117) + "\n"
with open(path("x.npy"), "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + b"\0\0\x80\x3f" * 8)
safetensors.write(path("values.safetensors"), ["w:F32:2x1=9", "v:F32:1=2"])

# The same input, the same files.
compile("one")
compile("same", "--no-cache")
one, same = files("one"), files("same")
assert one.keys() == same.keys() and {"train", "libstep.so", "weights.safetensors", "report.html"} <= one.keys()
assert bare(one) == bare(same)

# Other values alone, and another step: neither goes with a file of the first.
compile("values", "--weights", path("values.safetensors"), "--copy-weights")
compile("recorded", "--weights", path("values.safetensors"))
compile("other", "--optimizer", "sgd")
assert train("one") != train("values")
for other in "values", "other":
    name = "mixed-" + other
    mixed(name, other, weights__safetensors="one", step__h="one", step__mlir="one")
    said = train(name, code=1)
    assert "is of another compilation than this trainer: compile the model again" in said, said
    assert train(name, "--weights", path("values.safetensors")) == train(other, "--weights", path("values.safetensors"))
    said = create(name, code=2)
    assert "step.h of another compilation than this library" in said, said
    said = run(TMC, "verify", path(name), code=1)
    assert "step.mlir beside it are of two compilations" in said, said
    assert create(other) == "created\n"

mixed("mixed-recorded", "recorded", train="one")
assert "is of another compilation than this trainer" in train("mixed-recorded", code=1)

# Killed at any rename, it leaves what starts as one of the two or says why not.
with open(path("killer.c"), "w") as file:
    file.write(KILLER)
run("cc", "-shared", "-fPIC", path("killer.c"), "-o", path("killer.so"))
whole = files("recorded")
assert train("recorded") == train("values") and "weights.json" in whole and "weights.safetensors" not in whole
expected = {train("one"), train("values")}
outcomes = set()
for last in range(20):
    shutil.rmtree(path("killed"), ignore_errors=True)
    shutil.copytree(path("one"), path("killed"))
    done = subprocess.run([TMC, "compile", MODEL, "--target", "cpu", "-o", path("killed"), "--weights", path("values.safetensors")],
                          env=dict(os.environ, LD_PRELOAD=path("killer.so"), RENAMES=str(last)), stderr=subprocess.DEVNULL)
    if done.returncode == 0:
        break
    assert done.returncode == -9, done.returncode
    said = subprocess.run([path("killed", "train"), "--data", "x=" + path("x.npy"), "--steps", "2"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    outcomes.add(said.returncode)
    assert losses(said.stdout) in expected if said.returncode == 0 else "of another compilation" in said.stdout, said.stdout
assert last == len(whole) and outcomes == {0, 1}, (last, outcomes)
shutil.copytree(path("one"), path("killed again"))
subprocess.run([TMC, "compile", MODEL, "--target", "cpu", "-o", path("killed again"), "--weights", path("values.safetensors")],
               env=dict(os.environ, LD_PRELOAD=path("killer.so"), RENAMES="3"), stderr=subprocess.DEVNULL)
assert any(each.startswith(".tmc-") for each in os.listdir(path("killed again")))
compile("killed again", "--weights", path("values.safetensors"))
again = files("killed again")
assert bare(again) == bare(whole)
