#!/usr/bin/env python3
"""Compare steps in bf16 and fp16 with PyTorch's autocast (autocast.bf16, autocast.fp16), and those in
bf16 alone with PyTorch's of a model in bf16 (alone.bf16); needs only the standard library.

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
import concurrent.futures
import json
import math
import os
import subprocess
import sys
import tempfile

from check import FAULT, RATE, Step, feed, generate, read_weights, start
from run import ROOT, spec

HERE = os.path.dirname(os.path.abspath(__file__))
FACTOR = 1.25
LOSS = 1e-2
RUN = "adamw"
SGD = "sgd(momentum=0,weight_decay=0)"
EXPORTED = {"gpt2-tiny": "test/models/gpt2-tiny-nodropout-bfloat16.onnx"}
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
        graph = os.path.basename(self.golden["graphs"][0])
        directory = os.path.join(self.work, f"{graph}-{precision}-{optimizer[:5]}-{scale[-3:]}")
        dims = [f"--dim={name}={value}" for name, value in self.golden["dims"].items()]
        done = subprocess.run(
            [self.options.tmc, "compile", os.path.join(ROOT, self.golden["graphs"][0]), f"--target={self.options.target}", *dims,
             f"--optimizer={optimizer}", f"--precision={precision}", f"--loss-scale={scale}", "--emit=lib", "--effort=20",
             "-o", directory],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise SystemExit(f"FAIL: {self.name} in {precision}\n{done.stdout}")
        return directory

    def feed(self, step, draw):
        feed(step, self.golden, HERE)
        for name, count in self.kept["draws"]["inputs"].items() if draw is not None else ():
            step.write(name, generate(f"{name} {draw}", count, 1.0, 0.0).tobytes())

    def gradients(self, directory, draw=None, change=None, fault=1.0):
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


def rounded(values):
    """The nearest bf16, ties to even."""
    bits = array.array("I", values.tobytes())
    return array.array("f", array.array("I", (b + 0x7FFF + (b >> 16 & 1) & 0xFFFF0000 for b in bits)).tobytes())


class Alone(Model):
    """A model in bf16 alone; `graph` and `precision` say how it comes to be that."""

    def __init__(self, options, work, name, kept, graph, precision):
        with open(os.path.join(HERE, name + ".json")) as file:
            self.golden = json.load(file)
        self.options, self.work, self.name, self.format, self.kept = options, work, name, "bf16", kept
        self.weights = {n: rounded(values) for n, values in read_weights(self.golden, HERE).items()}
        wide = self.compile("f32", SGD)
        self.draws = [None]
        self.exact = [Model.gradients(self, wide, change=self.weights)]
        self.golden["graphs"], self.precision = [graph or self.golden["graphs"][0]], precision

    def fresh(self, directory, change=None):
        step = Step(directory)
        for name, values in dict(self.weights, **(change or {})).items():
            step.write(name, array.array("H", array.array("H", rounded(values).tobytes())[1::2]).tobytes())
        feed(step, self.golden, HERE)
        return step

    def gradients(self, directory, draw=None, change=None, fault=1.0):
        step = self.fresh(directory, change)
        step.run(0.0)
        return {name: [fault * g for g in step.read(name + ".momentum_buffer", len(self.weights[name]))]
                for name in self.golden["parameters"]}

    def wrong_losses(self, directory, fault=1.0):
        step = self.fresh(directory)
        losses, wide = [], self.golden["runs"][RUN]["losses"]
        for _ in wide:
            feed(step, self.golden, HERE)
            losses.append(step.run(fault * self.golden["runs"][RUN]["lr"]))
        apart = lambda a, b: [abs(x - y) for x, y in zip(a, b)]
        chance = apart(losses, self.kept["by_chance"])
        wrong = [f"loss of step {i + 1}: {losses[i]:.6g}, {self.kept['by_chance'][i]:.6g} in PyTorch"
                 for i, d in enumerate(chance) if not d <= LOSS]
        ours, others = max(apart(losses, wide)), max(apart(self.kept["losses"], wide))
        if not ours <= FACTOR * others:
            wrong.append(f"{ours:.2g} from the losses in f32, PyTorch's AdamW {others:.2g}")
        return wrong, (f"{max(chance):.2g} from PyTorch's losses at most, {LOSS:g} allowed; {ours:.2g} from those in f32, "
                       f"PyTorch's AdamW {others:.2g}; {max(apart(losses, self.kept['losses'])):.2g} from it")

    def cases(self):
        step = self.compile(self.precision, "sgd(momentum=0.9,weight_decay=0,master=none)")
        yield ("gradients", *self.wrong_gradients(step))
        run = self.compile(self.precision, spec(self.golden["runs"][RUN]).replace(")", ",master=none,moments=bf16)"))
        yield ("losses", *self.wrong_losses(run))
        if not self.options.planted:
            return
        first = next(n for n in self.golden["parameters"] if len(self.golden["gradients"][n]["shape"]) > 1)
        scaled = array.array("f", (FAULT**2 * v for v in self.weights[first]))
        faults = {"gradients of 1.01 times their size": dict(fault=FAULT), f"1.02 times {first}": dict(change={first: scaled}),
                  "weights of a bit less": dict(change={n: cut(v, 0xFFFE0000) for n, v in self.weights.items()})}
        for name, fault in faults.items():
            found, words = self.wrong_gradients(step, **fault)
            yield f"planted: {name}", [] if found else ["not found"], f"{len(found)} found; {words}"
        found, words = self.wrong_losses(run, FAULT**2)
        yield "planted: 1.02 times the learning rate", [] if found else ["not found"], f"{len(found)} found; {words}"


def models(options, work):
    """(the class of the model, what it is made of, what it is called)."""
    def read(name):
        with open(os.path.join(HERE, name)) as file:
            kept = json.load(file)
        del kept["torch"]
        return kept

    for format in FORMATS:
        kept = read(f"autocast.{format}")
        for name in kept:
            yield Model, (options, work, name, format, kept[name]), f"{name} in {format}"
    kept = read("alone.bf16")
    for name in kept:
        yield Alone, (options, work, name, kept[name], None, "bf16,gradients=bf16"), f"{name} in bf16 alone"
        if name in EXPORTED:
            yield Alone, (options, work, name, kept[name], EXPORTED[name], "f32"), f"{name} exported in bf16"


def rows(each):
    """In a process of its own: the cases of a model, compiled in a place of its own."""
    kind, (options, work, *what), name = each
    with tempfile.TemporaryDirectory(dir=work) as place:
        return [(name, *case) for case in kind(options, place, *what).cases()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(ROOT, "build", "bin", "tmc"))
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--planted", action="store_true")
    options = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="autocast-") as work, concurrent.futures.ProcessPoolExecutor() as pool:
        for found in pool.map(rows, models(options, work)):
            for name, case, wrong, words in found:
                passed, failed = passed + (not wrong), failed + bool(wrong)
                print(f"{'FAIL' if wrong else 'PASS'}: {name}, {case}", flush=True)
                for line in [words, *wrong]:
                    print("    " + line)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
