#!/usr/bin/env python3
"""What `auto` chooses beside its whole grid: thirteen steps, each setting of the levers planned in full.

    grid.py [--bin build/bin] [--only CASE ...] [--jobs 2] [--log FILE] [--json FILE] [-o FILE.md]

A case is a model, a target and a budget. With all levers free (`--micro-batches auto --precision auto
--optimizer auto --loss-chunk auto --offload auto`) tmc looks at few settings, coarsely; here every setting of the
grid is pinned and planned in full, with `--offload auto`, within the same budget, those first whose kernels take least.
Left out is a setting whose kernels alone take a quarter longer than the best plan so far: only updates can leave the
device, and they are a smaller part of these steps. A step with adapters has the storage of its base as a lever in
place of precision and optimizer (`--base auto`), and a minute is enough for it. The table has both times and their ratio, and ends with the worst.
Nothing runs but the planner; all figures are predictions. Needs only the standard library, and some hours of a
processor: with `--log`, what was planned before isn't again.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import subprocess
import sys
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bench"))
from tables import publish  # noqa: E402

BUDGET_UNMET = 3
OPTIMIZERS, CHUNKS = ["adamw", "adamw8bit", "adamw4bit"], [None, "256"]
BF16, FP16 = ["f32", "tf32", "bf16"], ["f32", "fp16"]
GPT2, XL, BERT, MISTRAL = (f"examples/{name}.onnx" for name in ("gpt2-124m", "gpt2-xl", "bert-base", "mistral-7b"))
RESNET, MLP = "examples/resnet-tiny.onnx", "examples/mlp.onnx"
NORM = "--batchnorm=per-micro-batch"
USELESS = 1.25  # Times the best plan: kernels that take longer can't win by updates on the host.
NO_BUDGET = "1024TiB"
ONE = [None]  # A lever without a flag.
HOST = "--host-budget=1TiB"  # More than any of these plans takes.
FIGURES = ["step_time_s", "unconstrained_time_s", "chosen_levers"]  # Of plan.json.


def case(model, target, budget, batch, precisions, *options, chunks=CHUNKS, optimizers=OPTIMIZERS, bases=ONE):
    grid = {"micro-batches": [str(n) for n in pieces_of(batch)], "precision": precisions, "optimizer": optimizers, "loss-chunk": chunks,
            "base": bases}
    return dict(model=model, target=target, budget=budget, batch=batch, options=options,
                grid={lever: values for lever, values in grid.items() if values != ONE})


def pieces_of(batch):
    """Powers of two that divide it, and the whole batch."""
    return [n for n in range(1, batch + 1) if n == batch or (n & (n - 1) == 0 and batch % n == 0)]


CASES = {
    "gpt2-rtx3060": case(GPT2, "cuda:rtx3060", "2GiB", 16, BF16, "--dim=sequence=512"),
    "gpt2-t4": case(GPT2, "cuda:t4", "4GiB", 32, FP16, "--dim=sequence=1024"),
    "gpt2-a100": case(GPT2, "cuda:a100-40", "1200MiB", 8, BF16, "--dim=sequence=1024"),
    "gpt2-cpu": case(GPT2, "cpu:v3", "1600MiB", 8, ["f32", "bf16"], "--dim=sequence=512"),
    "bert-t4": case(BERT, "cuda:t4", "2GiB", 64, FP16, "--dim=sequence=128"),
    "bert-rtx3060": case(BERT, "cuda:rtx3060", "1500MiB", 32, BF16, "--dim=sequence=512"),
    "resnet-v100": case(RESNET, "cuda:v100", "600MiB", 256, FP16, NORM, chunks=ONE),
    "mlp-cpu": case(MLP, "cpu:v3", "20MiB", 4096, ["f32", "bf16"], chunks=ONE),
    "gpt2-xl-rtx3060": case(XL, "cuda:rtx3060", "12GiB", 64, BF16, "--dim=sequence=1024"),
    "gpt2-xl-v100": case(XL, "cuda:v100", "16GiB", 16, FP16, "--dim=sequence=1024"),
    "mistral-rtx4090": case(MISTRAL, "cuda:rtx4090", "24GiB", 8, BF16, "--dim=sequence=1024"),
    "mlp-adapters": case(MLP, "cpu:v3", "1400KiB", 64, ONE, "--lora=r=8,targets=all-linear", chunks=ONE, optimizers=ONE,
                         bases=["keep", "int8", "nf4"]),
    "mistral-a100": case(MISTRAL, "cuda:a100-80", "80GiB", 8, BF16, "--dim=sequence=1024"),
}


def plan(options, known, levers, offload="auto", effort=100):
    """(FIGURES or None where the budget isn't met, seconds)."""
    command = [os.path.join(options.bin, "tmc"), "plan", os.path.join(ROOT, known["model"]), f"--target={known['target']}",
               f"--budget={known['budget']}", f"--batch={known['batch']}", *known["options"],
               *([HOST] if offload != "none" else []), f"--offload={offload}", f"--effort={effort}", "--json",
               *[f"--{lever}={value}" for lever, value in levers.items() if value]]
    key = " ".join(command[2:])
    if key in options.known:
        return options.known[key]
    begin = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, BUDGET_UNMET):
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    figures = json.loads(done.stdout) if not done.returncode else None
    if figures:
        figures = {name: figures.get(name) for name in FIGURES}
    answer = figures, time.monotonic() - begin
    if options.log:
        with open(options.log, "a") as log:
            log.write(json.dumps([key, *answer]) + "\n")
    return answer


def kernels_of(options, known, levers):
    """Seconds that a setting's kernels take where all fits."""
    free = dict(known, budget=NO_BUDGET)
    return plan(options, free, levers, offload="none", effort=1)[0]["unconstrained_time_s"]


def whole_grid(options, known, settings):
    """(plan or None, seconds) of every setting that may be the best."""
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        floors = list(pool.map(lambda levers: kernels_of(options, known, levers), settings))
        plans = [(None, 0.0)] * len(settings)
        best = [float("inf")]

        def visit(i):
            if floors[i] > best[0] * USELESS:
                return
            plans[i] = plan(options, known, settings[i])
            if plans[i][0]:
                best[0] = min(best[0], plans[i][0]["step_time_s"])

        list(pool.map(visit, sorted(range(len(settings)), key=floors.__getitem__)))
    return plans


def words(levers):
    return ", ".join(f"{lever} {value}" for lever, value in levers.items() if value)


def against_grid(options, name):
    known = CASES[name]
    free = dict.fromkeys(known["grid"], "auto")
    settings = [dict(zip(free, values)) for values in itertools.product(*known["grid"].values())]
    chosen, took = plan(options, known, free)
    if not chosen:
        sys.exit(f"{name}: tmc finds no setting that fits {known['budget']}")
    plans = whole_grid(options, known, settings)
    fitting = [(planned["step_time_s"], words(levers)) for (planned, _), levers in zip(plans, settings) if planned]
    seconds, best = min(fitting)
    picked = chosen["chosen_levers"]
    result = dict(case=name, batch=known["batch"], target=known["target"], budget=known["budget"], settings=len(settings),
                  fit=len(fitting), best=best, best_s=seconds, chosen={one["lever"]: one["value"] for one in picked["levers"]},
                  chosen_s=chosen["step_time_s"], ratio=chosen["step_time_s"] / seconds, seen=picked["settings_seen"],
                  took_s=took, grid_s=sum(each for _, each in plans))
    print(f"{name}: {result['ratio']:.4f}, {took:.1f} s beside {result['grid_s']:.0f} s", file=sys.stderr, flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
    parser.add_argument("--only", action="append", help="a case (may be given several times)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--log", help="add each plan to this file, and take from it what it has")
    parser.add_argument("--json", help="write all figures there")
    parser.add_argument("-o", "--output", help="write the table there, too")
    options = parser.parse_args()
    options.known = {}
    if options.log and os.path.exists(options.log):
        with open(options.log) as log:
            options.known = {key: (figures, seconds) for key, figures, seconds in map(json.loads, log)}
    results = []
    for name in options.only or CASES:
        results.append(against_grid(options, name))
        if options.json:
            with open(options.json, "w") as file:
                json.dump(results, file, indent=1)
    lines = ["| case | budget | batch | chosen | step, s | the grid's best | step, s | chosen over best "
             "| settings seen | planned in full and fitting | planned in, s | the grid, s |", "|---|---|--:|---|--:|---|--:|--:|--:|--:|--:|--:|"]
    for one in results:
        lines.append(f"| {one['case']} | {one['budget']} | {one['batch']} | {', '.join(one['chosen'].values())} | {one['chosen_s']:.4g} "
                     f"| {one['best']} | {one['best_s']:.4g} | {one['ratio']:.4f} | {one['seen']} of {one['settings']} | {one['fit']} "
                     f"| {one['took_s']:.1f} | {one['grid_s']:.0f} |")
    worst = max(results, key=lambda one: one["ratio"])
    lines += ["", f"The worst is {worst['case']}: {worst['ratio']:.4f} of its grid's best."]
    publish(lines, options.output)


if __name__ == "__main__":
    main()
