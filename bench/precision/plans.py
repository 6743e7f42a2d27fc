#!/usr/bin/env python3
"""What a precision buys large models on GPUs, by `tmc plan`: writes plans.md.

    plans.py [--only SUBSTRING]

One row for each model, target and precision: bytes without a budget, the smallest budget
known to work, predicted seconds of a step, seconds of planning. No GPU is needed. What tmc
refuses is listed with the reason, so that the table fills itself as kernels learn more
types. Needs only the standard library.
"""

import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
MODELS = {
    "GPT-2 XL, 1 x 1024": ["examples/gpt2-xl.onnx", "--batch=1", "--dim=sequence=1024"],
    "Mistral 7B, 1 x 1024": ["examples/mistral-7b.onnx", "--batch=1", "--dim=sequence=1024"],
}
TARGETS = ["cuda:a100-40", "cuda:h200"]
# Options of `tmc plan` by the name of the row.
PRECISIONS = {
    "f32": ["--precision=f32"],
    "tf32": ["--precision=tf32"],
    "bf16": ["--precision=bf16"],
    "bf16, casts": ["--precision=bf16", "--narrow-copies=cast"],
    "fp16": ["--precision=fp16"],
    "fp16, casts": ["--precision=fp16", "--narrow-copies=cast"],
    "fp8": ["--precision=fp8"],
    "fp8 delayed": ["--precision=fp8:delayed"],
    "fp8 in blocks": ["--precision=fp8:block"],
    "bf16 alone": ["--precision=bf16,gradients=bf16", "--optimizer=adamw(master=none,moments=bf16)"],
}
MINUTES = 10  # Of planning, at most.


def row(tmc, model, target, precision):
    command = [tmc, "plan", *MODELS[model], f"--target={target}", *PRECISIONS[precision], "--json"]
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=60 * MINUTES)
    except subprocess.TimeoutExpired:
        return f"no plan in {MINUTES} minutes | | | |"
    if done.returncode:
        lines = [line.split("error: ", 1)[1] for line in done.stderr.splitlines() if "error: " in line]
        why = lines[0].split(" [")[0] if lines else done.returncode  # Less the place in the file.
        return f"refused: {why} | | | |"
    plan = json.loads(done.stdout)
    products = ", ".join(f"{count} {kind}" for kind, count in plan["precision"]["products"].items())
    gib = lambda count: "-" if count is None else f"{count / 2**30:.2f} GiB"
    return (f"{products} | {gib(plan['arena_bytes'])} | {gib(plan['smallest_found_bytes'])} | "
            f"{plan['step_time_s']:.3f} s | {plan['plan_seconds']:.1f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(ROOT, "build", "bin", "tmc"))
    parser.add_argument("--only", default="", help="rows whose text holds this; prints them, writes nothing")
    options = parser.parse_args()
    lines = ["| model | target | precision | products | without a budget | smallest budget known | predicted step | planning |",
             "|---|---|---|---|---|---|---|---|"]
    for model in MODELS:
        for target in TARGETS:
            for precision in PRECISIONS:
                head = f"| {model} | {target} | {precision} | "
                if options.only in head:
                    lines.append(head + row(os.path.abspath(options.tmc), model, target, precision) + " |")
                    print(lines[-1], flush=True)
    if not options.only:
        with open(os.path.join(HERE, "plans.md"), "w") as file:
            file.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
