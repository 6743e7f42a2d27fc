#!/usr/bin/env python3
"""Train on rows in JSON lines, and compare losses with PyTorch's; needs only the standard library.

    jsonl.py --tmc build/bin/tmc [--target cpu] [--only SUBSTRING]

make_jsonl.py has made jsonl.runs. Each model is compiled as a whole batch and in two micro-batches, and trains five
steps from the same weights: three are an epoch, whose last batch is short. Losses differ by at most 1e-5 of their size.
A run in another order must differ by more. Ends with
one line `N passed, M failed`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from lora import Tally, write_safetensors
from run import HERE, ROOT

LOSS = 1e-5


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


class Model:
    def __init__(self, options, golden, name, more, scratch):
        self.golden, self.model = golden, golden["models"][name]
        self.scratch = os.path.join(scratch, f"{name}-{len(more)}")
        os.mkdir(self.scratch)
        self.step = os.path.join(self.scratch, "step")
        self.weights = os.path.join(self.scratch, "weights.safetensors")
        write_safetensors(self.weights, self.model, self.model["weights"])
        self.write("rows.jsonl", self.model["lines"])
        code, text = run([options.tmc, "compile", os.path.join(ROOT, self.model["graph"]), f"--target={options.target}",
                          "--optimizer=adamw(weight_decay=0)", "--effort=20", "-o", self.step, *more])
        if code:
            raise SystemExit(f"tmc compile ended with {code}\n{text}")

    def path(self, name):
        return os.path.join(self.scratch, name)

    def write(self, name, lines):
        with open(self.path(name), "w") as file:
            file.writelines(line + "\n" for line in lines)

    def losses(self, *flags, data="rows.jsonl", pad=None):
        """The losses of a run, or its output."""
        log = self.path("log.jsonl")
        code, text = run([self.step + "/train", "--weights", self.weights, "--data", self.path(data), f"--lr={self.golden['rate']}",
                          "--pad-id", str(self.golden["pad"] if pad is None else pad), "--log", log, "--quiet", *flags])
        if code:
            return text
        with open(log) as file:
            return [line["loss"] for line in map(json.loads, file) if line["kind"] == "step"]


def far(got, want):
    """A fault if losses differ."""
    if not isinstance(got, list) or len(got) != len(want):
        return got
    worst = max(abs(g - w) / abs(w) for g, w in zip(got, want))
    return f"off by {worst:.2g}" if not worst <= LOSS else ""


def test_model(tally, options, golden, name, more, scratch):
    model = Model(options, golden, name, more, scratch)
    runs, steps = model.model["runs"], len(model.model["runs"]["in order"])
    title = f"{name}{' in micro-batches' if more else ''}: "
    shuffled = ["--shuffle", str(golden["shuffle"])]
    tally.test(title + "in order", far(model.losses("--steps", str(steps)), runs["in order"]))
    tally.test(title + "shuffled", far(model.losses("--steps", str(steps), *shuffled), runs["shuffled"]))
    tally.test(title + "another order differs", "" if far(model.losses("--steps", str(steps)), runs["shuffled"]).startswith("off by") else "it doesn't")
    tally.test(title + "two epochs are six steps", "" if len(model.losses("--epochs", "2")) == 6 else "they aren't")
    model.write("a-1.jsonl", model.model["lines"][:5])
    model.write("a-2.jsonl", model.model["lines"][5:])
    tally.test(title + "two files", far(model.losses("--steps", str(steps), *shuffled, data="a-*.jsonl"), runs["shuffled"]))
    # Of a causal model no row sees what stands behind it, and a mask hides it from the others.
    tally.test(title + "the padding's token doesn't matter", far(model.losses("--steps", str(steps), pad=200), runs["in order"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(ROOT, "build", "bin", "tmc"))
    parser.add_argument("--target", default="cpu", help="what the steps are compiled for")
    parser.add_argument("--only", default="", help="run the models whose name holds this")
    options = parser.parse_args()
    with open(os.path.join(HERE, "jsonl.runs")) as file:
        golden = json.load(file)
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="jsonl-") as scratch:
        for name in golden["models"]:
            for more in ([], ["--micro-batches=2"]):
                if options.only in name:
                    test_model(tally, options, golden, name, more, scratch)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
