"""What tools/demo does once everything is built; the standard library only."""

import argparse
import json
import os
import subprocess
import sys

MODEL = "examples/gpt2-124m.onnx"
TEXT = "examples/data/text.u16.bin"
SHAPE = ["--target", "cpu", "--dim", "batch=4", "--dim", "sequence=128"]
# For the comparison of the two steps.
TURNS, STEPS_A_TURN = 3, 3


def mib(count):
    return "%.1f MiB" % (count / 2**20)


def plan(tmc, *flags):
    out = subprocess.run([tmc, "plan", MODEL, *SHAPE, "--json", *flags],
                         stdout=subprocess.PIPE, check=False)
    return json.loads(out.stdout)


def train(directory, log, steps, quiet=False):
    """The log's lines, and of each launch the seconds that it took when it was
    fastest: other programs slow some of each step, but not always the same."""
    if os.path.exists(log):
        os.remove(log)
    profile = log + ".profile"
    command = [os.path.join(directory, "train"), "--data", TEXT,
               "--steps", str(steps), "--lr", "3e-4",
               "--lr-schedule", "cosine:warmup=5", "--init", "random:1",
               "--log", log, "--profile=" + profile]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL if quiet else None)
    with open(profile) as file:
        launches = json.load(file)["launches"]
    with open(log) as lines:
        return ([line for line in map(json.loads, lines) if line["kind"] == "step"],
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
    steps = args.steps + 2 * TURNS * STEPS_A_TURN
    print("two steps are compiled, a few seconds each; then %d steps of about %.1f s are run:"
          " %.0f s on an idle machine like the target's\n"
          % (steps, free["step_time_s"], steps * free["step_time_s"]), flush=True)

    for name, flags in (("unconstrained", []),
                        ("budget", ["--budget", str(budget)])):
        subprocess.run([args.tmc, "compile", MODEL, *SHAPE, *flags, "-o",
                        os.path.join(args.work, name)], check=True)
    directories = {name: os.path.join(args.work, name) for name in ("unconstrained", "budget")}
    rows, _ = train(directories["budget"], directories["budget"] + ".jsonl", args.steps)
    # A machine isn't always as fast: the two steps take turns, equally often.
    print("\ncomparing the two steps: %d turns of %d steps each" % (TURNS, STEPS_A_TURN), flush=True)
    fastest = {}
    for _ in range(TURNS):
        for name, directory in directories.items():
            _, launches = train(directory, directory + "-turn.jsonl", STEPS_A_TURN, quiet=True)
            fastest[name] = [min(pair) for pair in zip(fastest.get(name, launches), launches)]
    seconds = {name: sum(launches) for name, launches in fastest.items()}

    times = sorted(row["seconds"] for row in rows)
    with open(os.path.join(args.work, "budget", "plan.json")) as file:
        planned = json.load(file)
    print("""
loss               %.4f at the first step, %.4f at step %d
memory             %s planned, %s measured, budget %s
time per step      %.0f ms
overhead           %.1f %% over the unconstrained step in turns, by each launch's fastest run
                   (predicted: %.1f %%, %d launches run again)"""
          % (rows[0]["loss"], rows[-1]["loss"], len(rows),
             mib(planned["arena_bytes"]), mib(rows[-1]["high_water_bytes"]),
             mib(budget), 1e3 * times[len(times) // 2],
             100 * (seconds["budget"] / seconds["unconstrained"] - 1),
             planned["overhead_pct"], planned["recomputed_ops"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
