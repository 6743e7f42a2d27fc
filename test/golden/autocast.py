#!/usr/bin/env python3
"""Compare steps in bf16 and fp16 with PyTorch's autocast (autocast.bf16, autocast.fp16); needs only
the standard library.

    autocast.py --tmc build/bin/tmc [--target cpu:v3] [--planted]

Each gradient's distance from the exact one may be FACTOR times PyTorch's. The exact one is that of
the step in f32: the single-precision goldens hold it to PyTorch's, and its own distance from the
gradient in double is less than a thousandth of what 16 bits cost. The losses of ten steps of AdamW
may be LOSS away from PyTorch's. In fp16 the scale after each of them is GradScaler's: the first and
the sixth overflow and are skipped. With --planted, faults have to be found: gradients of 1.01 times
their size, one weight 1.01 times too large, one more rounding of the weights (towards zero, which
leaves the step's own rounding nothing to do), 1.02 times the learning rate, a scale that grows a
step too early. Ends with one line `N passed, M failed`.
"""

import argparse
import array
import json
import math
import os
import subprocess
import sys
import tempfile

from check import FAULT, RATE, feed, generate, read_weights, start
from run import ROOT, spec

HERE = os.path.dirname(os.path.abspath(__file__))
FACTOR = 1.25
LOSS = 1e-2
RUN = "adamw"
SGD = "sgd(momentum=0,weight_decay=0)"
FORMATS = {"bf16": 0xFFFF0000, "fp16": 0xFFFFE000}  # The bits that it keeps.
# As make_autocast.py has it.
SCALER = "dynamic(start=4294967296,growth=65536,backoff=0.0000152587890625,interval=4)"


def cut(values, mask):
    """Without their lower bits: rounded towards zero."""
    bits = array.array("I", values.tobytes())
    return array.array("f", array.array("I", (b & mask for b in bits)).tobytes())


class Model:
    def __init__(self, options, work, name, format, kept):
        with open(os.path.join(HERE, name + ".json")) as file:
            self.golden = json.load(file)
        self.options, self.work, self.name, self.format, self.kept = options, work, name, format, kept
        self.weights = read_weights(self.golden, HERE)
        # Batches: the golden's, or its labels with generated images.
        self.draws = range(kept["draws"]["count"]) if "draws" in kept else [None]
        exact = self.compile("f32", SGD)
        self.exact = [self.gradients(exact, draw) for draw in self.draws]

    def compile(self, precision, optimizer, scale="auto"):
        directory = os.path.join(self.work, f"{self.name}-{precision}-{optimizer[:5]}-{scale[-3:]}")
        dims = [f"--dim={name}={value}" for name, value in self.golden["dims"].items()]
        done = subprocess.run(
            [self.options.tmc, "compile", os.path.join(ROOT, self.golden["graphs"][0]), f"--target={self.options.target}", *dims,
             f"--optimizer={optimizer}", f"--precision={precision}", f"--loss-scale={scale}", "--emit=lib", "-o", directory],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise SystemExit(f"FAIL: {self.name} in {precision}\n{done.stdout}")
        return directory

    def feed(self, step, draw):
        feed(step, self.golden, HERE)
        for name, count in self.kept["draws"]["inputs"].items() if draw is not None else ():
            step.write(name, generate(f"{name} {draw}", count, 1.0, 0.0).tobytes())

    def gradients(self, directory, draw, change=None, fault=1.0):
        """All gradients of the first step; `change` gives the weights that it has instead."""
        step = start(directory, self.golden, HERE, 1)
        weights = dict(self.weights, **(change or {}))
        for name, values in (change or {}).items():
            step.write(name, values.tobytes())
        self.feed(step, draw)
        step.run(fault * RATE)
        return {name: [(p - q) / RATE for p, q in zip(weights[name], step.read(name, len(weights[name])))]
                for name in self.golden["parameters"]}

    def wrong_gradients(self, directory, **fault):
        """What is too far from the exact gradients, as lines, and the largest share of what is allowed."""
        all = [self.gradients(directory, draw, **fault) for draw in self.draws]
        wrong, worst = [], (0.0, "none")
        for name, other in self.kept["distance"].items():
            squares = [(a - b) ** 2 for got, exact in zip(all, self.exact) for a, b in zip(got[name], exact[name])]
            distance = math.sqrt(math.fsum(squares) / len(all))
            worst = max(worst, (distance / other, name))
            if not distance <= FACTOR * other:  # Not a number fails, too.
                wrong.append(f"gradient of {name}: {distance / other:.3g} times as far off as PyTorch's")
        return wrong, f"{worst[0]:.3g} times PyTorch's distance at most, in {worst[1]}"

    def wrong_losses(self, directory, fault=1.0):
        run = self.golden["runs"][RUN]
        step = start(directory, self.golden, HERE, 1)
        losses, scales = [], []
        for _ in self.kept["losses"]:
            feed(step, self.golden, HERE)
            losses.append(step.run(fault * run["lr"]))
            if "scales" in self.kept:
                scales += step.read("loss_scale", 1)
        apart = [abs(a - b) for a, b in zip(losses, self.kept["losses"])]
        wrong = [f"loss of step {i + 1}: {losses[i]:.6g}, {self.kept['losses'][i]:.6g} in PyTorch"
                 for i, d in enumerate(apart) if not d <= LOSS]
        wrong += [f"scale after step {i + 1}: {a:g}, {b:g} in PyTorch"
                  for i, (a, b) in enumerate(zip(scales, self.kept.get("scales", []))) if a != b]
        return wrong, f"{max(apart):.2g} from PyTorch's losses at most, {LOSS:g} allowed"

    def cases(self):
        """(name, what is wrong, in words how much)."""
        step = self.compile(self.format, SGD)
        yield ("gradients", *self.wrong_gradients(step))
        optimizer = spec(self.golden["runs"][RUN])
        run = self.compile(self.format, optimizer, SCALER if "scales" in self.kept else "none")
        yield ("losses", *self.wrong_losses(run))
        if not self.options.planted:
            return
        if "scales" in self.kept:
            other = self.compile(self.format, optimizer, SCALER.replace("interval=4", "interval=3"))
            found, words = self.wrong_losses(other)
            yield "planted: the scale grows too early", [] if found else ["not found"], f"{len(found)} found; {words}"
        # No filter: a norm behind it takes its scale away.
        first = next(n for n in self.golden["parameters"] if len(self.golden["gradients"][n]["shape"]) == 2)
        scaled = array.array("f", (FAULT * v for v in self.weights[first]))
        faults = {"gradients of 1.01 times their size": dict(fault=FAULT), f"1.01 times {first}": dict(change={first: scaled}),
                  "weights rounded once more": dict(change={n: cut(v, FORMATS[self.format]) for n, v in self.weights.items()})}
        for name, fault in faults.items():
            found, words = self.wrong_gradients(step, **fault)
            yield f"planted: {name}", [] if found else ["not found"], f"{len(found)} found; {words}"
        found, words = self.wrong_losses(run, FAULT**2)
        yield "planted: 1.02 times the learning rate", [] if found else ["not found"], f"{len(found)} found; {words}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(ROOT, "build", "bin", "tmc"))
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--planted", action="store_true")
    options = parser.parse_args()
    passed = failed = 0
    for format in FORMATS:
        with open(os.path.join(HERE, f"autocast.{format}")) as file:
            kept = json.load(file)
        del kept["torch"]
        with tempfile.TemporaryDirectory(prefix="autocast-") as work:
            for name in kept:
                for case, wrong, words in Model(options, work, name, format, kept[name]).cases():
                    passed, failed = passed + (not wrong), failed + bool(wrong)
                    print(f"{'FAIL' if wrong else 'PASS'}: {name} in {format}, {case}")
                    for line in [words, *wrong]:
                        print("    " + line)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
