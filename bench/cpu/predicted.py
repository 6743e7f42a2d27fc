#!/usr/bin/env python3
"""Predicted against measured: step times of one model under ten budgets, on this machine's CPU.

    predicted.py [--tmc build/bin/tmc] [--model examples/gpt2-124m.onnx] [--dim NAME=N ...]
                 [--budgets 10] [--steps 3] [--rounds 2] [--target FILE.json] [-o FILE.md]

Calibrates the machine first (unless --target is given), plans each budget with that file, and
runs the compiled steps in turn, on one thread. Budgets are spread evenly from the smallest that
works to the unconstrained need. Other programs only add to a launch's time: a step's is the sum of
what each of its launches took when that was fastest (the fastest whole step stands beside it).
Overheads are over the unconstrained step, predicted and measured.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bench"))
from tables import publish  # noqa: E402

MIB = 1 << 20


def plan(options, target, budget=None):
    command = [options.tmc, "plan", options.model, "--json", f"--target={target}", *options.flags]
    if budget:
        command.append(f"--budget={budget}")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return json.loads(done.stdout)


def compile_step(options, target, directory, *more):
    subprocess.run([options.tmc, "compile", options.model, f"--target={target}", *options.flags, *more, "-o", directory],
                   check=True, stderr=subprocess.DEVNULL)
    with open(os.path.join(directory, "plan.json")) as file:
        return json.load(file)


class Step:
    """A compiled step and what has been measured of it, the first step of each run left out."""

    def __init__(self, options, target, directory, *more):
        self.directory = directory
        self.plan = compile_step(options, target, directory, *more)
        self.whole = []  # Seconds of each step.
        self.launches = []  # Of each launch, the least.

    def run(self, options):
        """Seconds of the fastest step of this run."""
        log, profile = (os.path.join(self.directory, name) for name in ("log.jsonl", "profile.json"))
        subprocess.run([os.path.join(self.directory, "train"), *(f"--data={data}" for data in options.data), "--init=random:0",
                        f"--threads={options.threads}", f"--steps={options.steps + 1}", f"--log={log}", f"--profile={profile}",
                        "--quiet"], check=True, stdout=subprocess.DEVNULL)
        with open(log) as file:
            lines = [line for line in map(json.loads, file) if line["kind"] == "step"]
        with open(profile) as file:
            least = [launch["least_seconds"] for launch in json.load(file)["launches"]]
        os.remove(log)
        self.high_water = lines[-1]["high_water_bytes"]
        self.launches = [min(pair) for pair in zip(self.launches or least, least)]
        seconds = [line["seconds"] for line in lines[1:]]
        self.whole += seconds
        return min(seconds)

    @property
    def seconds(self):
        return sum(self.launches)


def calibrated(options, scratch):
    """The target to plan for: the one that was given, or this machine as it is now."""
    if options.target:
        return options.target
    path = os.path.join(scratch, "here.json")
    subprocess.run([options.tmc, "calibrate", "-o", path, f"--threads={options.threads}"], check=True)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(ROOT, "build", "bin", "tmc"))
    parser.add_argument("--model", default=os.path.join(ROOT, "examples", "gpt2-124m.onnx"))
    parser.add_argument("--data", nargs="+", default=[os.path.join(ROOT, "examples", "data", "text.u16.bin")])
    parser.add_argument("--dim", action="append", default=[], help="passed to tmc (default: batch=2, sequence=512)")
    parser.add_argument("--budgets", type=int, default=10)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--target", help="a calibration (default: one is made)")
    parser.add_argument("-o", "--output", help="write the table there, too")
    options = parser.parse_args()
    options.flags = [f"--dim={dim}" for dim in options.dim or ["batch=2", "sequence=512"]]
    with tempfile.TemporaryDirectory(prefix="predicted-") as scratch:
        target = calibrated(options, scratch)
        whole = plan(options, target)
        least, most = plan(options, target, 1)["smallest_found_bytes"], whole["arena_bytes"]
        budgets = [most - (most - least) * i // (options.budgets - 1) for i in range(options.budgets)]
        steps = []
        for i, budget in enumerate(budgets):
            directory = os.path.join(scratch, f"step{i}")
            steps.append(Step(options, target, directory, f"--budget={budget}"))
            print(f"compiled {i + 1} of {len(budgets)}", file=sys.stderr, flush=True)
        for turn in range(options.rounds):
            for step in steps[::-1] if turn % 2 else steps:
                print(f"round {turn + 1}: {step.run(options):.3f} s", file=sys.stderr, flush=True)
    free = steps[0].seconds
    lines = ["| budget, MiB | arena, MiB | touched, MiB | predicted, s | measured, s | ratio | fastest whole step, s | overhead predicted, % | measured, % | apart |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for budget, step in zip(budgets, steps):
        figures = step.plan
        overhead = 100 * (step.seconds / free - 1)
        lines.append(f"| {budget / MIB:.0f} | {figures['arena_bytes'] / MIB:.1f} | {step.high_water / MIB:.1f} "
                     f"| {figures['step_time_s']:.3f} | {step.seconds:.3f} | {figures['step_time_s'] / step.seconds:.2f} "
                     f"| {min(step.whole):.3f} | {figures['overhead_pct']:.1f} | {overhead:.1f} | {figures['overhead_pct'] - overhead:+.1f} |")
    publish(lines, options.output)


if __name__ == "__main__":
    main()
