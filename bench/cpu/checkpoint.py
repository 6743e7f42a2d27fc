#!/usr/bin/env python3
"""tmc beside every-block checkpointing: one step, one arena, one compiler, on this machine's CPU.

    checkpoint.py [--tmc build/bin/tmc] [--model MODEL.onnx] [--dim NAME=N ...] [--loss SPEC]
                  [--data FILE|NAME=FILE ...] [--steps 3] [--rounds 3] [--threads 1]
                  [--target FILE.json] [-o FILE.md]

Calibrates the machine first (unless --target is given). The step is planned by `--planner
blocks`: it keeps what enters each block and makes the rest again, and the arena that its plan is
packed into is the budget of tmc's. All steps are lowered, packed and emitted by the same code;
they run in turn. Twice: every-block checkpointing as people have it, with all logits at once,
beside tmc with them and as it plans unasked; and every-block checkpointing with the loss that tmc
takes unasked, beside tmc within that arena. ms/step is the sum of what each launch took when that
was fastest, as in predicted.py. The last column is what no plan with tmc's order of first runs
can be below.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from predicted import MIB, ROOT, Step, calibrated, publish  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(ROOT, "build", "bin", "tmc"))
    parser.add_argument("--model", default=os.path.join(ROOT, "examples", "gpt2-124m.onnx"))
    parser.add_argument("--data", action="append", default=[], help="passed to the step (default: the example's text)")
    parser.add_argument("--dim", action="append", default=[], help="passed to tmc (default: batch=2, sequence=512)")
    parser.add_argument("--loss")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--target", help="a calibration (default: one is made)")
    parser.add_argument("-o", "--output", help="write the table there, too")
    options = parser.parse_args()
    options.data = options.data or [os.path.join(ROOT, "examples", "data", "text.u16.bin")]
    options.flags = [f"--dim={dim}" for dim in options.dim or ["batch=2", "sequence=512"]]
    if options.loss:
        options.flags.append(f"--loss={options.loss}")
    with tempfile.TemporaryDirectory(prefix="checkpoint-") as scratch:
        steps, target = {}, calibrated(options, scratch)

        def step(name, *more):
            print(f"compiling: {name}", file=sys.stderr, flush=True)
            steps[name] = Step(options, target, os.path.join(scratch, str(len(steps))), *more)
            return steps[name].plan
        step("unconstrained")
        for loss, flags in ((", all logits", ["--loss-chunk=all"]), ("", [])):
            budget = f"--budget={step('every block' + loss, '--planner=blocks', *flags)['arena_bytes']}"
            step("tmc" + loss, budget, *flags)
            if flags:
                step("tmc within the same", budget)
        for turn in range(options.rounds):
            first = turn % len(steps)
            for name in [*steps, *steps][first:first + len(steps)]:
                print(f"round {turn + 1}, {name}: {steps[name].run(options):.3f} s", file=sys.stderr, flush=True)
    free, base = steps["unconstrained"].seconds, steps["unconstrained"].plan["unconstrained_time_s"]
    lines = ["| plan | arena, MiB | touched, MiB | launches again | ms/step | fastest whole step | median | overhead, % | predicted, % | proven at least, % |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for name, each in steps.items():
        figures, bound = each.plan, ""
        if name.startswith("tmc"):  # Of what that step itself takes without a budget.
            least = figures["unconstrained_time_s"] * (1 + figures["lower_bound_pct"] / 100)
            bound = f"{100 * (least / base - 1):.2f}"
        lines.append(f"| {name} | {figures['arena_bytes'] / MIB:.1f} | {each.high_water / MIB:.1f} | {figures['recomputed_ops']} "
                     f"| {1000 * each.seconds:.0f} | {1000 * min(each.whole):.0f} | {1000 * statistics.median(each.whole):.0f} "
                     f"| {100 * (each.seconds / free - 1):.1f} | {100 * (figures['step_time_s'] / base - 1):.2f} | {bound} |")
    publish(lines, options.output)


if __name__ == "__main__":
    main()
