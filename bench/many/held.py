#!/usr/bin/env python3
"""Kernels hide a network of two ranks that is held to a rate: measured beside predicted.

    held.py [--bin build/bin] [--model examples/gpt2-124m.onnx] [--flags "--batch=8 --dim=sequence=64"] [--steps 12] [--rounds 3]
            [--part 0.5] [-o FILE.md]

Calibrates this machine (`tmc calibrate --threads 1`), compiles the step of two ranks and profiles
its kernels. Then it holds the network to the rate at which the step's traffic takes `part` of its
kernels' time (`train --network-bandwidth`), compiles for that rate with the profile's prices
(`--prices`), and trains. A round is a run with the network held and one with it free, in turn. Each
rank has one thread. `hidden` is the part of the traffic's time in which kernels didn't wait. Prints
a table in Markdown. Needs mpirun or Gloo as the trainer does; other work on the machine spoils it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bench"))
from tables import publish  # noqa: E402

RANKS = 2
DATA = os.path.join(ROOT, "examples", "data", "text.u16.bin")
LATENCY, ONE_RATE = 50e-6, 10**9


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stdout}")
    return done.stdout


def hold(target, rate):
    """The target's file with a network of that rate."""
    with open(target) as file:
        measured = json.load(file)
    measured["network"] = [dict(name="held", ranks=None, latency_seconds=LATENCY, bytes_per_second=rate)]
    with open(target, "w") as file:
        json.dump(measured, file)


def compile_step(options, target, directory, *flags):
    run([os.path.join(options.bin, "tmc"), "compile", options.model, f"--target={target}", f"--devices={RANKS}", "-o", directory,
         *options.flags.split(), *options.more.split(), *flags])
    with open(os.path.join(directory, "plan.json")) as file:
        return json.load(file)


def train(options, directory, *flags):
    """Medians of a step's seconds and of the waits of the rank with the most work, after the first two steps."""
    log = os.path.join(directory, "log.jsonl")
    text = run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(RANKS), os.path.join(directory, "train"), f"--data={DATA}",
                "--init=random:1", "--threads=1", "--quiet", f"--steps={options.steps}", f"--log={log}", *flags])
    with open(log) as file:
        lines = [line for line in map(json.loads, file) if "loss" in line][2:]
    return statistics.median(line["seconds"] for line in lines), statistics.median(
        line["seconds"] - line["slowest_rank_seconds"] for line in lines), text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
    parser.add_argument("--model", default=os.path.join(ROOT, "examples", "gpt2-124m.onnx"))
    parser.add_argument("--flags", default="--batch=8 --dim=sequence=64")
    parser.add_argument("--more", default="", help="further flags of tmc compile")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", type=float, default=0.5)
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        target, profile = os.path.join(scratch, "here.json"), os.path.join(scratch, "profile.json")
        run([os.path.join(options.bin, "tmc"), "calibrate", "-o", target, "--threads=1", "--rounds=1"])
        hold(target, ONE_RATE)
        first = os.path.join(scratch, "first")
        compile_step(options, target, first)
        train(options, first, f"--profile={profile}")
        busy = compile_step(options, target, first, f"--prices={profile}")["spaces"]["busy_s"]
        rate = int(ONE_RATE * busy["network"] / (options.part * busy["compute"]))
        hold(target, rate)
        held = os.path.join(scratch, "held")
        plan = compile_step(options, target, held, f"--prices={profile}")
        waits_for = plan["spaces"]["waits_s"]["network"]
        busy = plan["spaces"]["busy_s"]["network"]
        runs = {"held": [], "free": []}
        for _ in range(options.rounds):
            for name, flags in ("held", [f"--network-bandwidth={rate}"]), ("free", []):
                runs[name].append(train(options, held, *flags)[:2])
        step, waits = (statistics.median(values) for values in zip(*runs["held"]))
        free = statistics.median(seconds for seconds, _ in runs["free"])
    mesh = plan["mesh"]
    lines = [f"| {mesh['dp']} ranks, zero={mesh['zero']}, whole={mesh['whole']} | predicted | measured |", "|---|---|---|",
             f"| kernels of a step | {plan['spaces']['busy_s']['compute']:.3f} s | |",
             f"| traffic at {rate / 1e6:.0f} MB/s | {busy:.3f} s | |",
             f"| kernels wait | {waits_for:.3f} s | {waits:.3f} s |",
             f"| hidden | {100 * (1 - waits_for / busy):.0f} % | {100 * (1 - waits / busy):.0f} % |",
             f"| a step | {plan['step_time_s']:.3f} s | {step:.3f} s ({100 * (plan['step_time_s'] / step - 1):+.0f} %) |",
             f"| a step with the network free | | {free:.3f} s |"]
    publish(lines, options.output)


if __name__ == "__main__":
    main()
