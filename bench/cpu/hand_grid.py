#!/usr/bin/env python3
"""What tmc chooses within a budget beside a grid that people try by hand, measured on this machine's CPU.

    hand_grid.py [--tmc build/bin/tmc] [--model MODEL.onnx] [--batch 64] [--dim NAME=N ...] [--budget 2560MiB]
                 [--rounds 2] [--threads 1] [--target FILE.json] [-o FILE.md]

Calibrates the machine first (unless --target is given). The grid: the batch in 1, 2, 4, ... micro-batches, each
with everything kept and with every block made again (`--planner=blocks`). What takes more than the budget is left
out; the rest, and `--budget --micro-batches auto`, are compiled by the same code and run in turn: two steps, of
which the second counts, in the first round, and in later rounds those that came within a tenth of the best again, in
the other order. What is predicted to take a fifth longer than the grid's best isn't run. A step's time is that of
the fastest one. Where tmc's choice is a step of the grid, bit by bit, the table says so.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from predicted import MIB, ROOT, Step, calibrated, publish  # noqa: E402

CLOSE, HOPELESS = 1.1, 1.2
KEEPING = {"all kept": [], "every block again": ["--planner=blocks"]}


def grid(batch):
    """(name, flags) of what is tried by hand."""
    pieces = 1
    while pieces <= batch:
        for name, flags in KEEPING.items():
            yield f"{pieces} micro-batches, {name}", [f"--micro-batches={pieces}", *flags]
        pieces *= 2


def planned(options, target, flags):
    """plan.json of such a step, without a budget."""
    done = subprocess.run([options.tmc, "plan", options.model, "--json", f"--target={target}", *options.flags, *flags],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True)
    return json.loads(done.stdout)


def text(step):
    """What it runs."""
    with open(os.path.join(step.directory, "step.cpp")) as file:
        return [line for line in file if not line.startswith("//")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(ROOT, "build", "bin", "tmc"))
    parser.add_argument("--model", default=os.path.join(ROOT, "examples", "gpt2-124m.onnx"))
    parser.add_argument("--data", action="append", default=[], help="passed to the step (default: the example's text)")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--dim", action="append", default=[], help="passed to tmc (default: sequence=256)")
    parser.add_argument("--budget", type=int, default=2560, help="MiB")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--target", help="a calibration (default: one is made)")
    parser.add_argument("-o", "--output", help="write the table there, too")
    options = parser.parse_args()
    options.data = options.data or [os.path.join(ROOT, "examples", "data", "text.u16.bin")]
    options.flags = [f"--batch={options.batch}", *[f"--dim={dim}" for dim in options.dim or ["sequence=256"]]]
    options.steps = 1
    budget = options.budget * MIB
    with tempfile.TemporaryDirectory(prefix="hand-grid-") as scratch:
        target, rows, steps = calibrated(options, scratch), [], {}
        wanted = [("tmc", [f"--budget={budget}", "--micro-batches=auto"])]
        for name, flags in grid(options.batch):
            rows.append((name, flags, planned(options, target, flags)))
        fits = [row for row in rows if row[2]["arena_bytes"] <= budget]
        least = min(plan["step_time_s"] for _, _, plan in fits)
        wanted += [(name, flags) for name, flags, plan in fits if plan["step_time_s"] <= HOPELESS * least]
        for name, flags in wanted:
            print(f"compiling: {name}", file=sys.stderr, flush=True)
            steps[name] = Step(options, target, os.path.join(scratch, str(len(steps))), *flags)
        for turn in range(options.rounds):
            close = [name for name, step in steps.items() if not turn or min(step.whole) <= CLOSE * best]
            for name in close[::-1] if turn % 2 else close:
                print(f"round {turn + 1}, {name}: {steps[name].run(options):.3f} s", file=sys.stderr, flush=True)
            best = min(min(step.whole) for name, step in steps.items() if name != "tmc")
        ours = steps["tmc"]
        title = f"tmc: {ours.plan['micro_batches']} micro-batches, {ours.plan['recomputed_ops']} launches again"
        title += "".join(f"; the same step as {name}" for name, step in steps.items() if step != ours and text(step) == text(ours))
    lines = [f"Within {options.budget} MiB:", "", "| step | arena, MiB | touched, MiB | predicted, s | measured, s | of the grid's best |",
             "|---|---:|---:|---:|---:|---:|"]
    for name, _, plan in [("tmc", [], ours.plan), *rows]:
        line = f"| {title if name == 'tmc' else name} | {plan['arena_bytes'] / MIB:.0f} "
        if name in steps:
            step = steps[name]
            line += f"| {step.high_water / MIB:.0f} | {plan['step_time_s']:.1f} | {min(step.whole):.1f} | {min(step.whole) / best:.3f} |"
        else:
            line += f"| {'not run' if plan['arena_bytes'] <= budget else 'too large'} | {plan['step_time_s']:.1f} | | |"
        lines.append(line)
    publish(lines, options.output)


if __name__ == "__main__":
    main()
