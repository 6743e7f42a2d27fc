"""What a step says of damaged records of its weights, and what a stopped copy leaves; the standard library only.

    records.py header FILE                          renames a tensor of a safetensors file, its bytes stay
    records.py damage STEP DIR FLAG ...             STEP with damaged weights.json, in DIR; FLAGS are the trainer's
    records.py bytes TMC MODEL WEIGHTS DIR          weights in a folder whose name isn't UTF-8
    records.py stop TMC MODEL WEIGHTS DIR           Ctrl-C in the middle of a copy
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import safetensors

STOPPER = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t write(int fd, const void *data, size_t count) {
  if (!strcmp(program_invocation_short_name, "tmc") && count > 30000) {
    syscall(SYS_write, fd, data, count / 2);
    kill(getpid(), SIGINT);
    sleep(60);
  }
  return syscall(SYS_write, fd, data, count);
}
"""


def header(path):
    entries, body = safetensors.get(path)
    name = sorted(entries)[0]
    safetensors.put(path, {("other" if each == name else each): entry for each, entry in entries.items()}, body)


def damage(step, place, *flags):
    with open(os.path.join(step, "weights.json")) as file:
        text = file.read()
    said = json.loads(text)
    one = said["files"][0]

    def changed(**more):
        return json.dumps({**said, **more})

    cases = {
        "cut": (text[:len(text) // 2], "isn't a sound record of weights"),
        "trailing": (text + "{}", "something follows the record's object"),
        "stranger": (changed(made_by="me"), "isn't made by 'tmc compile'"),
        "number": (changed(files=7), "'[' expected"),
        "pathless": (changed(files=[{"header": one["header"]}]), "a file without its path and its header's hash"),
        "hash": (changed(files=[{"path": one["path"], "header": "xyz"}]), "a file without its path and its header's hash"),
        "twice": (changed(files=[one, one]), "is in '"),
        "fewer": (changed(files=[one]), "isn't of this model"),
        "many": (changed(files=[one] * 1001), "1001 files; at most 1000 are allowed"),
        "device": (changed(files=[{**one, "path": "/dev/zero"}]), "'/dev/zero'"),
        "prefix": (changed(prefix={"in_file": "\x01", "in_model": ""}), "the name '"),
        "renamed": (changed(prefix={"in_file": "", "in_model": "m."}), "isn't of this model"),
        "long": (changed(padding="x" * (1 << 20)), "at most 1048576 are allowed"),
    }
    for name, (bad, message) in cases.items():
        copy = os.path.join(place, name)
        shutil.copytree(step, copy)
        with open(os.path.join(copy, "weights.json"), "w") as file:
            file.write(bad)
        done = subprocess.run([os.path.join(copy, "train"), *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 1 and message in done.stdout and done.stdout.count("error:") == 1, (name, done.returncode, done.stdout)


def stop(tmc, model, weights, place):
    with tempfile.TemporaryDirectory() as scratch:
        library = os.path.join(scratch, "stopper.so")
        source = os.path.join(scratch, "stopper.c")
        with open(source, "w") as file:
            file.write(STOPPER)
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
        done = subprocess.run([tmc, "compile", model, "--target", "cpu", "--batch", "4", "--emit", "source", "--weights", weights,
                               "--copy-weights", "-o", place], env=dict(os.environ, LD_PRELOAD=library),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode in (130, -signal.SIGINT), (done.returncode, done.stdout)


def raw(tmc, model, weights, place):
    folder = os.fsencode(place) + b"-\xff"
    shutil.copytree(os.fsencode(weights), folder)
    command = [tmc, "compile", model, "--target", "cpu", "--batch", "4", "--emit", "source", "--weights", folder, "-o", place]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 2 and b"--copy-weights copies them" in done.stdout, (done.returncode, done.stdout)
    assert not os.path.exists(place)
    subprocess.run([*command, "--copy-weights"], check=True, stderr=subprocess.DEVNULL)
    assert os.path.exists(os.path.join(place, "weights.safetensors"))


{"header": header, "damage": damage, "bytes": raw, "stop": stop}[sys.argv[1]](*sys.argv[2:])
