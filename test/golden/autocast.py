#!/usr/bin/env python3
"""Compare steps in bf16 with PyTorch's autocast (autocast.bf16); needs only the standard library.

    autocast.py --tmc build/bin/tmc [--target cpu:v3] [--planted]

Each gradient's distance from the exact one may be FACTOR times PyTorch's. The exact one is that of
the step in f32: the single-precision goldens hold it to PyTorch's, and its own distance from the
gradient in double is less than a thousandth of what bf16 costs. The losses of ten steps of AdamW
may be LOSS away from PyTorch's. With --planted, faults have to be found: gradients of 1.01 times
their size, one weight 1.01 times too large, one more rounding of the weights (to bf16 towards
zero, which leaves the step's own rounding nothing to do), 1.01 times the learning rate. Ends with
one line `N passed, M failed`.
"""

import argparse
import array
import json
import math
import os
import subprocess
import sys
import tempfile

from check import FAULT, RATE, read_weights, feed, start
from run import ROOT, spec

HERE = os.path.dirname(os.path.abspath(__file__))
FACTOR = 1.25
LOSS = 1e-2
RUN = "adamw"
SGD = "sgd(momentum=0,weight_decay=0)"


def cut(values):
    """Their upper 16 bits: rounded to bf16 towards zero."""
    bits = array.array("I", values.tobytes())
    return array.array("f", array.array("I", (b & 0xFFFF0000 for b in bits)).tobytes())


class Model:
    def __init__(self, options, work, name, kept):
        with open(os.path.join(HERE, name + ".json")) as file:
            self.golden = json.load(file)
        self.options, self.work, self.name, self.kept = options, work, name, kept
        self.weights = read_weights(self.golden, HERE)
        self.exact = self.gradients(self.compile("f32", SGD))

    def compile(self, precision, optimizer):
        directory = os.path.join(self.work, f"{self.name}-{precision}-{optimizer[:5]}")
        dims = [f"--dim={name}={value}" for name, value in self.golden["dims"].items()]
        done = subprocess.run(
            [self.options.tmc, "compile", os.path.join(ROOT, self.golden["graphs"][0]), f"--target={self.options.target}", *dims,
             f"--optimizer={optimizer}", f"--precision={precision}", "--emit=lib", "-o", directory],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise SystemExit(f"FAIL: {self.name} in {precision}\n{done.stdout}")
        return directory

    def gradients(self, directory, change=None, fault=1.0):
        """All gradients of the first step; `change` gives the weights that it has instead."""
        step = start(directory, self.golden, HERE, 1)
        weights = dict(self.weights, **(change or {}))
        for name, values in (change or {}).items():
            step.write(name, values.tobytes())
        feed(step, self.golden, HERE)
        step.run(fault * RATE)
        return {name: [(p - q) / RATE for p, q in zip(weights[name], step.read(name, len(weights[name])))]
                for name in self.golden["parameters"]}

    def wrong_gradients(self, directory, **fault):
        """What is too far from the exact gradients, as lines, and the largest share of what is allowed."""
        got = self.gradients(directory, **fault)
        wrong, worst = [], (0.0, "none")
        for name, other in self.kept["distance"].items():
            distance = math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(got[name], self.exact[name])))
            worst = max(worst, (distance / other, name))
            if not distance <= FACTOR * other:  # Not a number fails, too.
                wrong.append(f"gradient of {name}: {distance / other:.3g} times as far off as PyTorch's")
        return wrong, f"{worst[0]:.3g} times PyTorch's distance at most, in {worst[1]}"

    def wrong_losses(self, directory, fault=1.0):
        run = self.golden["runs"][RUN]
        step = start(directory, self.golden, HERE, 1)
        losses = []
        for _ in self.kept["losses"]:
            feed(step, self.golden, HERE)
            losses.append(step.run(fault * run["lr"]))
        apart = [abs(a - b) for a, b in zip(losses, self.kept["losses"])]
        wrong = [f"loss of step {i + 1}: {losses[i]:.6g}, {self.kept['losses'][i]:.6g} in PyTorch"
                 for i, d in enumerate(apart) if not d <= LOSS]
        return wrong, f"{max(apart):.2g} from PyTorch's losses at most, {LOSS:g} allowed"

    def cases(self):
        """(name, what is wrong, in words how much)."""
        step = self.compile("bf16", SGD)
        yield ("gradients", *self.wrong_gradients(step))
        run = self.compile("bf16", spec(self.golden["runs"][RUN]))
        yield ("losses", *self.wrong_losses(run))
        if not self.options.planted:
            return
        first = next(n for n in self.golden["parameters"] if len(self.golden["gradients"][n]["shape"]) > 1)
        scaled = array.array("f", (FAULT * v for v in self.weights[first]))
        faults = {"gradients of 1.01 times their size": dict(fault=FAULT), f"1.01 times {first}": dict(change={first: scaled}),
                  "weights rounded once more": dict(change={n: cut(v) for n, v in self.weights.items()})}
        for name, fault in faults.items():
            found, words = self.wrong_gradients(step, **fault)
            yield f"planted: {name}", [] if found else ["not found"], f"{len(found)} found; {words}"
        found, words = self.wrong_losses(run, FAULT)
        yield "planted: 1.01 times the learning rate", [] if found else ["not found"], f"{len(found)} found; {words}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(ROOT, "build", "bin", "tmc"))
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--planted", action="store_true")
    options = parser.parse_args()
    with open(os.path.join(HERE, "autocast.bf16")) as file:
        kept = json.load(file)
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="autocast-") as work:
        for name in kept:
            if name == "torch":
                continue
            for case, wrong, words in Model(options, work, name, kept[name]).cases():
                passed, failed = passed + (not wrong), failed + bool(wrong)
                print(f"{'FAIL' if wrong else 'PASS'}: {name} in bf16, {case}")
                for line in [words, *wrong]:
                    print("    " + line)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
