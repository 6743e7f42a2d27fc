#!/usr/bin/env python3
"""tmc beside every-block checkpointing: one step, one arena, one compiler, on this machine's CPU.

    checkpoint.py [--tmc build/bin/tmc] [--model MODEL.onnx] [--dim NAME=N ...] [--loss SPEC]
                  [--data FILE|NAME=FILE ...] [--steps 3] [--rounds 3] [--threads 1]
                  [--loss-chunk ROWS] [--target FILE.json] [-o FILE.md]

The step is planned by `--planner blocks` first: it keeps what enters each block and makes the
rest again, and the arena that its plan is packed into is the budget of tmc's. Both steps and the
unconstrained one are lowered, packed and emitted by the same code; they run in turn. With
--loss-chunk there is one more within that arena: the step whose loss never holds all logits. The
last column is what no plan with tmc's order of first runs can be below.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from predicted import MIB, ROOT, compile_step, publish, run_steps  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(ROOT, "build", "bin", "tmc"))
    parser.add_argument("--model", default=os.path.join(ROOT, "examples", "gpt2-124m.onnx"))
    parser.add_argument("--data", action="append", default=[], help="passed to the step (default: the example's text)")
    parser.add_argument("--dim", action="append", default=[], help="passed to tmc (default: batch=2, sequence=512)")
    parser.add_argument("--loss")
    parser.add_argument("--loss-chunk", type=int, metavar="ROWS")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--target", default="cpu", help="what is planned for (default: cpu's own figures)")
    parser.add_argument("-o", "--output", help="write the table there, too")
    options = parser.parse_args()
    options.data = options.data or [os.path.join(ROOT, "examples", "data", "text.u16.bin")]
    options.flags = [f"--dim={dim}" for dim in options.dim or ["batch=2", "sequence=512"]]
    if options.loss:
        options.flags.append(f"--loss={options.loss}")
    with tempfile.TemporaryDirectory(prefix="checkpoint-") as scratch:
        def step(name, *more):
            print(f"compiling: {name}", file=sys.stderr, flush=True)
            directory = os.path.join(scratch, name.replace(" ", "-"))
            return dict(name=name, directory=directory, seconds=[],
                        plan=compile_step(options, options.target, directory, *more))
        blocks = step("every block", "--planner=blocks")
        budget = f"--budget={blocks['plan']['arena_bytes']}"
        steps = [step("unconstrained"), blocks, step("tmc", budget)]
        if options.loss_chunk:
            steps.append(step("tmc, loss in chunks", budget, f"--loss-chunk={options.loss_chunk}"))
        for turn in range(options.rounds):
            first = turn % len(steps)
            for each in steps[first:] + steps[:first]:
                seconds, each["high_water"] = run_steps(options, each["directory"])
                each["seconds"] += seconds
                print(f"round {turn + 1}, {each['name']}: {min(seconds):.3f} s", file=sys.stderr, flush=True)
    free = min(steps[0]["seconds"])
    lines = ["| plan | arena, MiB | touched, MiB | launches again | ms/step (median) | least | overhead by the least, % | predicted, % | proven at least, % |",
             "|---|---|---|---|---|---|---|---|---|"]
    base = steps[0]["plan"]["unconstrained_time_s"]

    def over(seconds):
        return 100 * (seconds / base - 1)
    for each in steps:
        figures, least = each["plan"], min(each["seconds"])
        bound = ""
        if each["name"].startswith("tmc"):
            bound = f"{over(figures['unconstrained_time_s'] * (1 + figures['lower_bound_pct'] / 100)):.2f}"
        lines.append(f"| {each['name']} | {figures['arena_bytes'] / MIB:.1f} | {each['high_water'] / MIB:.1f} | {figures['recomputed_ops']} "
                     f"| {1000 * statistics.median(each['seconds']):.0f} | {1000 * least:.0f} | {100 * (least / free - 1):.1f} "
                     f"| {over(figures['step_time_s']):.2f} | {bound} |")
    publish(lines, options.output)


if __name__ == "__main__":
    main()
