"""What tools/demo does once everything is built; the standard library only."""

import argparse
import json
import os
import subprocess
import sys

MODEL = "examples/gpt2-124m.onnx"
TEXT = "examples/data/text.u16.bin"
SHAPE = ["--target", "cpu", "--dim", "batch=4", "--dim", "sequence=128"]


def mib(count):
    return "%.1f MiB" % (count / 2**20)


def plan(tmc, *flags):
    out = subprocess.run([tmc, "plan", MODEL, *SHAPE, "--json", *flags],
                         stdout=subprocess.PIPE, check=False)
    return json.loads(out.stdout)


def train(directory, log, steps):
    """The log's lines, and of each launch the seconds that it took when it was
    fastest: other programs slow some of each step, but not always the same."""
    if os.path.exists(log):
        os.remove(log)
    profile = log + ".profile"
    command = [os.path.join(directory, "train"), "--data", TEXT,
               "--steps", str(steps), "--lr", "3e-4",
               "--lr-schedule", "cosine:warmup=5", "--init", "random:1",
               "--log", log, "--profile=" + profile]
    subprocess.run(command, check=True)
    with open(profile) as file:
        launches = json.load(file)["launches"]
    with open(log) as lines:
        return ([json.loads(line) for line in lines if '"loss"' in line],
                [launch["least_seconds"] for launch in launches])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tmc", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--budget-percent", type=float, required=True)
    args = parser.parse_args()

    free = plan(args.tmc)
    tight = plan(args.tmc, "--budget", "1")  # Fails, and says what would do.
    smallest, whole = tight["smallest_found_bytes"], free["arena_bytes"]
    budget = int(smallest + (whole - smallest) * args.budget_percent / 100)
    print("\nunconstrained the step needs %s; the smallest budget known to "
          "work is %s; this one is %s\n" % (mib(whole), mib(smallest),
                                            mib(budget)), flush=True)

    for name, flags in (("unconstrained", []),
                        ("budget", ["--budget", str(budget)])):
        subprocess.run([args.tmc, "compile", MODEL, *SHAPE, *flags, "-o",
                        os.path.join(args.work, name)], check=True)
    # The unconstrained step before and after: a machine isn't always as fast.
    seconds = {}
    for name, steps in (("unconstrained", 5), ("budget", args.steps),
                        ("unconstrained", 5)):
        directory = os.path.join(args.work, name)
        log, fastest = train(directory, directory + ".jsonl", steps)
        if name == "budget":
            rows = log
        seconds[name] = [min(pair) for pair
                         in zip(seconds.get(name, fastest), fastest)]

    def median(rows):
        times = sorted(row["seconds"] for row in rows)
        return times[len(times) // 2]

    with open(os.path.join(args.work, "budget", "plan.json")) as file:
        planned = json.load(file)
    print("""
loss               %.4f at the first step, %.4f at step %d
memory             %s planned, %s measured, budget %s
time per step      %.0f ms
overhead           %.1f %% over the unconstrained step, by each launch's fastest run
                   (predicted: %.1f %%, %d launches run again)"""
          % (rows[0]["loss"], rows[-1]["loss"], len(rows),
             mib(planned["arena_bytes"]), mib(rows[-1]["high_water_bytes"]),
             mib(budget), 1e3 * median(rows),
             100 * (sum(seconds["budget"]) / sum(seconds["unconstrained"])
                    - 1),
             planned["overhead_pct"], planned["recomputed_ops"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
