#!/usr/bin/env python3
"""The worked cases of docs/cases.md: what `tmc plan` chooses for them, beside recipes that people set by hand.

    run.py [--build build] [--bin BIN] [--models DIR] [--only CASE] [--json FILE] [-o FILE.md]

Prints the cases' sections in Markdown; CASE is a name in CASES. Nothing runs but the planner: all figures
are predictions, at the target's published rates. Only the standard library is needed where --models has
the graphs that examples/ doesn't hold (gpt2-13b.onnx, gpt2-100b.onnx, resnet50.onnx); they are exported there otherwise,
by --python, which has torch, torchvision, transformers and onnx.

A row is a plan. Those by hand are of rules (docs/planning/search.md, "Moves"): `tmc plan --problem` writes the
problem with its levers pinned, `tmc-solve offload --planner RULE` plans it within the same bytes. A rule
knows no budget: where its plan doesn't fit, it is planned without one, and the row says what it takes.
Its bytes are those alive; an arena takes that much or more.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
MIB, GIB = 1 << 20, 1 << 30
BUDGET_UNMET = 3
NO_BUDGET = "1000GiB"
FREE = ["--precision=auto", "--micro-batches=auto", "--offload=auto", "--optimizer=auto"]
HOST = "--host-budget=1TiB"  # More than any of these plans takes.
XL = [HOST, "--budget=12GiB", "--batch=64", "--dim=sequence=1024", "--target=cuda:rtx3060"]
MISTRAL = [HOST, "--batch=8", "--dim=sequence=1024"]
DECODER = [HOST, "--batch=8", "--dim=sequence=1024", "--target=cuda:v100"]
LARGE = ["--budget=79GiB", "--host-budget=1536GiB", "--nvme=.", "--batch=8", "--dim=sequence=1024", "--target=cuda:a100-80"]
RESNET = ["--batch=256", "--target=cuda:t4"]
BLOCKS = "zero-offload-blocks"
MIN_CUT = "mincut"
BY_HAND = "every block recomputed, states and updates on the host"


def levers(precision, pieces, optimizer):
    return [f"--precision={precision}", f"--micro-batches={pieces}", f"--optimizer={optimizer}", "--offload=all"]


# By name: title, model, options of all its plans, what a sample has, options that the levers are chosen with, and the
# other rows: a name, options, and the rule that plans (None: tmc).
CASES = {
    "gpt2-xl": ("GPT-2 XL, batch 64, on a 12 GB RTX 3060", "examples/gpt2-xl.onnx", XL, (1024, "tokens"), FREE, [
        ("all levers free, the host has 24 GiB", [*FREE, "--host-budget=24GiB"], None),
        ("16 x 4, fp16, `adamw8bit`, the rest free", levers("fp16", 16, "adamw8bit"), None),
        (f"by hand: 16 x 4, fp16, `adamw8bit`, {BY_HAND}", [*levers("fp16", 16, "adamw8bit"), "--narrow-copies=kept"], BLOCKS),
        ("by hand, 32 x 2", [*levers("fp16", 32, "adamw8bit"), "--narrow-copies=kept"], BLOCKS)]),
    "mistral-a100": ("Mistral 7B, batch 8, on an A100-80", "examples/mistral-7b.onnx", [*MISTRAL, "--target=cuda:a100-80"],
                     (1024, "tokens"), FREE, [
        (f"by hand: bf16, `adamw`, {BY_HAND}", [*levers("bf16", 1, "adamw"), "--narrow-copies=kept"], BLOCKS)]),
    "mistral-24gb": ("Mistral 7B, batch 8, on a 24 GB RTX 4090", "examples/mistral-7b.onnx", [*MISTRAL, "--target=cuda:rtx4090"],
                     (1024, "tokens"), FREE, [
        (f"by hand: bf16, `adamw8bit`, {BY_HAND}", [*levers("bf16", 1, "adamw8bit"), "--narrow-copies=kept"], BLOCKS),
        ("by hand, batch 4", [*levers("bf16", 1, "adamw8bit"), "--narrow-copies=kept", "--batch=4"], BLOCKS)]),
    "decoder-13b": ("A decoder of 13B on a 32 GB V100", "gpt2-13b.onnx", DECODER, (1024, "tokens"), FREE, [
        ("fp16, `adamw`, the rest free", ["--precision=fp16", "--optimizer=adamw", "--micro-batches=1", "--offload=all"], None),
        (f"by hand: fp16, `adamw`, {BY_HAND}", [*levers("fp16", 1, "adamw"), "--narrow-copies=kept"], BLOCKS),
        ("by hand, batch 1", [*levers("fp16", 1, "adamw"), "--narrow-copies=kept", "--batch=1"], BLOCKS)]),
    "decoder-100b": ("A decoder of 98B, batch 8, on an A100-80 beside 1.5 TiB and a file", "gpt2-100b.onnx", LARGE, (1024, "tokens"), FREE, [
        (f"by hand: bf16, `adamw8bit`, {BY_HAND}", [*levers("bf16", 1, "adamw8bit"), "--narrow-copies=kept"], BLOCKS)]),
    "resnet50": ("ResNet-50, batch 256, on a 16 GB T4", "resnet50.onnx", RESNET, (1, "images"),
                 [*FREE, "--batchnorm=per-micro-batch"], [
        ("f32, `adamw`, batch norms over the whole batch, the rest free",
         ["--precision=f32", "--optimizer=adamw", "--offload=auto"], None),
        ("f32, `adamw`, by PyTorch's min cut", ["--precision=f32", "--optimizer=adamw"], MIN_CUT)]),
}

EXPORT = {
    "gpt2-13b.onnx": "import gpt2; gpt2.run('gpt2-13b', path, dropout=False)",
    "gpt2-100b.onnx": "import gpt2; gpt2.run('gpt2-100b', path, dropout=False)",
    "resnet50.onnx": """
import torch
from common import export
from models import ResNet
inputs = dict(image=torch.zeros(4, 3, 224, 224), label=torch.zeros(4, dtype=torch.int64))
export(ResNet().train(), inputs, path, outputs=["loss", "logits"], dims=dict(image={0: "batch"}, label={0: "batch"}))
""",
}


def model_path(options, scratch, name):
    if os.sep in name:
        return name
    folder = options.models or scratch
    path = os.path.abspath(os.path.join(folder, name))
    if not os.path.exists(path):
        text = "import sys; sys.path[:0] = sys.argv[1:3]; path = sys.argv[3]\n" + EXPORT[name]
        subprocess.run([options.python, "-c", text, os.path.join(ROOT, "examples", "export"),
                        os.path.join(ROOT, "bench", "planning"), path], check=True, stdout=subprocess.DEVNULL)
    return path


class Run:
    """A command that plans: its seconds by the clock and of the processor, its exit code, its lines."""

    def __init__(self, *command):
        print(" ".join(command), file=sys.stderr, flush=True)
        before, begin = os.times(), time.monotonic()
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        after = os.times()
        self.wall = time.monotonic() - begin
        self.user = after.children_user - before.children_user
        self.output, self.errors = done.stdout, done.stderr
        self.fits = done.returncode == 0
        if done.returncode not in (0, BUDGET_UNMET):
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")


def figures(name, seconds, free, device, host, again, run, fits=True):
    return dict(name=name, seconds=seconds, free=free, device=device, host=host, again=again, fits=fits,
                wall=run.wall, user=run.user)


def by_tmc(options, name, arguments):
    run = Run(os.path.join(options.bin, "tmc"), "plan", *arguments, "--json")
    if not run.fits:
        return dict(name=name, fits=False, why=run.errors, wall=run.wall, user=run.user), None
    plan = json.loads(run.output)
    spaces = plan["spaces"]
    return figures(name, plan["step_time_s"], plan["unconstrained_time_s"], plan["arena_bytes"],
                   spaces["host"]["arena_bytes"] if spaces else 0, plan["recomputed_ops"], run), plan


def problem_of(options, scratch, arguments, *more):
    """The problem of a step: the same whatever the budget, and without one nothing is searched for."""
    problem = os.path.join(scratch, "step.problem")
    arguments = [argument for argument in arguments if not argument.startswith(("--budget=", "--offload="))]
    Run(os.path.join(options.bin, "tmc"), "plan", *arguments, f"--budget={NO_BUDGET}", *more, f"--problem={problem}", "--json")
    return problem


def by_rule(options, scratch, name, arguments, rule, budget):
    if rule == MIN_CUT:
        return by_min_cut(options, scratch, name, arguments, budget)
    result = os.path.join(scratch, "rule.json")
    problem = problem_of(options, scratch, arguments, "--offload=auto")
    solve = [os.path.join(options.bin, "tmc-solve"), "offload", problem, f"--planner={rule}", f"--json={result}"]
    run = Run(*solve, f"--budget={budget}")
    fits = run.fits
    if not fits:
        run = Run(*solve, f"--budget={NO_BUDGET}")
    with open(result) as file:
        plan = json.load(file)
    again = [int(word.split()[0]) for word in run.errors.split(";") if "kernels again" in word]
    return figures(name, plan["makespan"] * 1e-12, plan["base_makespan"] * 1e-12, plan["peaks"][0], plan["peaks"][1],
                   again[0], run, fits)


def by_min_cut(options, scratch, name, arguments, budget):
    """A rule of recomputation alone."""
    result = os.path.join(scratch, "rule.json")
    problem = problem_of(options, scratch, arguments)
    run = Run(os.path.join(options.bin, "tmc-solve"), "remat", problem, f"--planner={MIN_CUT}", f"--budget={budget}",
              f"--json={result}")
    if not run.fits:
        return dict(name=name, fits=False, why=run.errors, wall=run.wall, user=run.user)
    with open(result) as file:
        plan = json.load(file)
    return figures(name, plan["cost"] * 1e-12, plan["base_cost"] * 1e-12, plan["peak"], 0, plan["recomputed_ops"], run)


def merged(common, more):
    """Options, of which the last of a name holds."""
    return list({option.rsplit("=", 1)[0]: option for option in [*common, *more]}.values())


def row(case, item):
    work = case[3][0] * item["batch"]
    if "seconds" not in item:
        return f"| {item['name']} | doesn't fit | | | | | |"
    device = f"{item['device'] / GIB:.2f}" + ("" if item["fits"] else ": doesn't fit")
    return (f"| {item['name']} | {device} | {item['host'] / GIB:.1f} | {item['seconds']:.3g} | {work / item['seconds']:,.0f} "
            f"| {100 * (item['seconds'] / item['free'] - 1):+.1f} % | {item['again']} |")


def chosen(plan):
    """The table of levers, and what moves."""
    step = plan["step_time_s"]
    lines = [f"| lever | chosen, {step:.3g} s | the best with another value |", "|---|---|---|"]
    for lever in plan["chosen_levers"]["levers"]:
        other = "none is known that fits"
        if lever["instead"]:
            seconds, least = lever["instead_step_time_s"], lever["instead_at_least_s"]
            bound = " at least" if seconds is None else ""
            seconds = least if seconds is None else seconds
            other = f"{lever['instead']}:{bound} {seconds:.3g} s, {100 * (seconds / step - 1):+.1f} %"
        lines.append(f"| {lever['lever']} | {lever['value']} | {other} |")
    parts = []
    for name, text in (("recompute", "recomputing"), ("activations_moved", "activations that move"),
                       ("optimizer_moved", "moments that are away"), ("parameters_moved", "parameters that are away")):
        taken, seconds = plan["levers"][f"{name}_bytes"], plan["levers"][f"{name}_s"]
        if taken:
            size = f"{taken / GIB:.2f} GiB" if taken >= MIB else f"{taken / MIB:.2f} MiB"
            parts.append(f"{text} {size} for {seconds:+.3g} s")
    unconstrained = f"{(plan['unconstrained_bytes'] + plan['reserved_bytes']) / GIB:.1f} GiB and {plan['unconstrained_time_s']:.3g} s where all of it stays"
    lines += ["", f"The step with these levers takes {unconstrained}."]
    if parts:
        lines[-1] += f" Off the peak: {'; '.join(parts)}."
    seen = plan["chosen_levers"]
    return lines, f"{seen['settings_seen']} of {seen['settings']} settings planned coarsely"


def section(options, scratch, name):
    case = CASES[name]
    title, model, common, (_, unit), free, others = case
    path = model_path(options, scratch, model)
    command = f"tmc plan {model} {' '.join(common)} \\\n        {' '.join(free)}"
    best, plan = by_tmc(options, "all levers free", [path, *common, *free])
    lines = [f"## {title}", "", "    " + command, ""]
    rows = [best]
    if plan:
        table, seen = chosen(plan)
        below = plan["impossible_below_bytes"]  # Unknown where a search leaves out settings.
        least = "" if below is None else f", no plan below {below / GIB:.2f} GiB"
        lines += table + ["", f"Budget {plan['budget_bytes'] / GIB:.2f} GiB, {seen}{least}. Planned in {best['wall']:.0f} s "
                          f"({best['user']:.0f} s of the processors').", ""]
    for other, arguments, rule in others:
        arguments = [path, *merged(common, arguments)]
        rows.append(by_rule(options, scratch, other, arguments, rule, plan["budget_bytes"]) if rule
                    else by_tmc(options, other, arguments)[0])
    for item, more in zip(rows, [[], *(arguments for _, arguments, _ in others)]):
        item["batch"] = next(int(option[8:]) for option in merged(common, more) if option.startswith("--batch="))
    lines += [f"| plan | device, GiB | host, GiB | step, s | {unit}/s | over all kept | launches again |", "|---|---|---|---|---|---|---|"]
    lines += [row(case, item) for item in rows]
    return "\n".join(lines) + "\n", dict(plan=plan, rows=rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--bin", help="the folder of tmc and tmc-solve (default: that of the build)")
    parser.add_argument("--models", help="where exported graphs are, or are put")
    parser.add_argument("--python", default=sys.executable, help="a Python to export with")
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--json", help="write all figures there, too")
    parser.add_argument("-o", "--output", help="write the sections there, too")
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin or os.path.join(options.build, "bin"))
    sections, results = [], {}
    with tempfile.TemporaryDirectory(prefix="cases-") as scratch:
        for name in [options.only] if options.only else CASES:
            text, results[name] = section(options, scratch, name)
            sections.append(text)
            print(text, flush=True)
    if options.output:
        with open(options.output, "w") as file:
            file.write("\n".join(sections))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
