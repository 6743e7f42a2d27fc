#!/usr/bin/env python3
"""Train in each format of the optimizer and compare with PyTorch; needs only the standard library.

    formats.py --tmc build/bin/tmc [--target cpu:v3] [--only SUBSTRING] [--planted] [-- OPTION ...]

README.md ("Formats of the optimizer") says what is compared. Ends with `N passed, M failed`.
"""

import argparse
import array
import json
import math
import os
import subprocess
import sys
import tempfile

from check import Step, read_weights

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
NAME = "gpt2-tiny"
TEXT = os.path.join(ROOT, "examples", "data", "text.u16.bin")
BATCH = (4, 32)
STEPS = 200
WARMUP = 10

ADAMW = dict(lr=3e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.1)
RUNS = {
    "adamw": ADAMW,
    "adamw4bit": ADAMW,
    "adafactor": dict(lr=1e-2, beta2_decay=-0.8, eps2=1e-3, d=1.0, weight_decay=0.1),
    "lion": dict(lr=1e-3, beta1=0.9, beta2=0.99, weight_decay=0.1),
}
OFF = 0.01  # relative, of each loss from that of PyTorch
FIRST = 10  # steps, in which losses differ by rounding alone
ROUNDED = {"adamw": 1e-5, "adamw4bit": 1e-4, "adafactor": 1e-5, "lion": 1e-4}
FAULT = 1.01  # What is planted: by how much the rate is too large.


def rate_at(keys, step):
    """A rise of WARMUP steps, then half a cosine down to 0."""
    after = (step - WARMUP) / (STEPS - WARMUP)
    return keys["lr"] * ((step + 1) / WARMUP if step < WARMUP else (1 + math.cos(math.pi * after)) / 2)


def batches(count):
    """The tokens of each step, one batch after the other."""
    with open(TEXT, "rb") as file:
        text = array.array("H", file.read())
    size = BATCH[0] * BATCH[1]
    return [text[i * size:(i + 1) * size].tolist() for i in range(count)]


def losses_of(directory, keys, steps, fault=1.0):
    with open(os.path.join(HERE, NAME + ".json")) as file:
        golden = json.load(file)
    step = Step(directory)
    for name, values in read_weights(golden, HERE).items():
        step.write(name, array.array("f", values).tobytes())
    losses = []
    for i, tokens in enumerate(batches(steps)):
        data = array.array("q", tokens).tobytes()
        step.write("input_ids", data)
        step.write("labels", data)
        losses.append(step.run(rate_at(keys, i) * fault))
    return losses


def furthest(losses, wanted):
    return max(abs(mine / other - 1) for mine, other in zip(losses, wanted))


def check(options, name, wanted, scratch):
    keys = RUNS[name]
    spec = ",".join(f"{key}={value}" for key, value in keys.items() if key != "lr")
    directory = os.path.join(scratch, name)
    done = subprocess.run(
        [options.tmc, "compile", os.path.join(ROOT, "test", "models", NAME + ".onnx"), f"--target={options.target}",
         f"--dim=batch={BATCH[0]}", f"--dim=sequence={BATCH[1]}", f"--optimizer={name}({spec})", "--emit=lib",
         "-o", directory, *options.extra], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        return False, f"tmc compile ended with {done.returncode}\n{done.stdout}"
    losses = losses_of(directory, keys, STEPS)
    first, off = furthest(losses[:FIRST], wanted[name]), furthest(losses, wanted[name])
    text = f"losses off by {first:.2g} in {FIRST} steps, {off:.2g} in {STEPS}; the last is {losses[-1]:.5f}"
    good = first <= ROUNDED[name] and off <= OFF
    if good and options.planted:
        planted = furthest(losses_of(directory, keys, FIRST, FAULT), wanted[name])
        text += f"; by {planted:.2g} with a rate that is {FAULT} times as large"
        good = planted > ROUNDED[name]
    return good, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(ROOT, "build", "bin", "tmc"))
    parser.add_argument("--target", default="cpu", help="what the steps are compiled for")
    parser.add_argument("--only", default="", help="run those whose name holds this")
    parser.add_argument("--planted", action="store_true", help="find planted faults, too")
    parser.add_argument("extra", nargs="*", help="options of tmc compile")
    options = parser.parse_args()
    with open(os.path.join(HERE, "formats.runs")) as file:
        wanted = json.load(file)["runs"]
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="formats-") as scratch:
        for name in RUNS:
            if options.only not in name:
                continue
            good, text = check(options, name, wanted, scratch)
            passed, failed = passed + good, failed + (not good)
            print(f"{'PASS' if good else 'FAIL'}: {name}: {text}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
