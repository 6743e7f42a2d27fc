#!/usr/bin/env python3
"""Planned tokens a second of a 13B model on one V100: ZeRO-Offload's rule beside our plans.

    zero_offload.py [--bin build/bin] [--target cuda:v100] [--budget 31GiB] [--shapes 1x512,1x1024,4x1024,8x1024] [-o FILE.md]

Exports a GPT-2 of 65 layers, 4,096 wide, without values (examples/export/gpt2.py; with PyTorch,
transformers and onnx installed) into a temporary directory, and plans a step of it in fp16 with
AdamW at each batch x sequence. The rule is DeepSpeed's published one (Ren et al., ZeRO-Offload,
2021): every optimizer state at home on the host, every update there, nothing recomputed by choice
(`tmc-solve offload --planner zero-offload`). Ours is `tmc plan --offload all`. Both plan the
same problem, at the same rates, within the same bytes. Nothing runs. Prints a table in Markdown.
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

EXPORT = os.path.join(ROOT, "examples", "export")
GIB = 1 << 30
BUDGET_UNMET = 3


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, BUDGET_UNMET):
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done


def export(path):
    """The graph, by a process of its own: PyTorch keeps what it took."""
    text = f"import sys; sys.path.insert(0, {EXPORT!r}); import gpt2; gpt2.run('gpt2-13b', {path!r}, dropout=False)"
    subprocess.run([sys.executable, "-c", text], check=True, stdout=subprocess.DEVNULL)


def by_rule(options, problem, result):
    """Of the rule's plan: seconds of a step and bytes of the device and the host; None where it doesn't fit."""
    done = run(os.path.join(options.bin, "tmc-solve"), "offload", problem, f"--budget={options.budget}", "--planner=zero-offload",
               f"--json={result}")
    if done.returncode == BUDGET_UNMET:
        return None
    with open(result) as file:
        plan = json.load(file)
    return plan["makespan"] * 1e-12, plan["peaks"][0], plan["peaks"][1]


def ours(options, model, shape, problem):
    done = run(os.path.join(options.bin, "tmc"), "plan", model, f"--target={options.target}", f"--budget={options.budget}",
               f"--batch={shape[0]}", f"--dim=sequence={shape[1]}", "--precision=fp16", "--offload=all", f"--problem={problem}",
               "--json")
    plan = json.loads(done.stdout)
    return None if done.returncode == BUDGET_UNMET else plan


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
    parser.add_argument("--target", default="cuda:v100")
    parser.add_argument("--budget", default="31GiB")
    parser.add_argument("--shapes", default="1x512,1x1024,4x1024,8x1024")
    parser.add_argument("-o", "--output", help="write the table there, too")
    options = parser.parse_args()
    lines = ["| batch x sequence | ZeRO-Offload's rule, s | tokens/s | ours, s | tokens/s | device, GiB | host, GiB "
             "| busiest engine | its load | launches again |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory(prefix="zero-offload-") as scratch:
        model = os.path.join(scratch, "gpt2-13b.onnx")
        export(model)
        for text in options.shapes.split(","):
            shape = tuple(int(number) for number in text.split("x"))
            tokens = shape[0] * shape[1]
            problem = os.path.join(scratch, "step.problem")
            plan = ours(options, model, shape, problem)
            rule = by_rule(options, problem, os.path.join(scratch, "rule.json"))
            row = [f"{shape[0]} x {shape[1]:,}"]
            row += [f"{rule[0]:.1f}", f"{tokens / rule[0]:.0f}"] if rule else ["doesn't fit", ""]
            if plan:
                seconds, spaces = plan["step_time_s"], plan["spaces"]
                busiest = max(spaces["busy_s"], key=spaces["busy_s"].get)
                row += [f"{seconds:.1f}", f"{tokens / seconds:.0f}", f"{plan['arena_bytes'] / GIB:.1f}",
                        f"{spaces['host']['arena_bytes'] / GIB:.0f}", busiest, f"{100 * spaces['busy_s'][busiest] / seconds:.0f} %",
                        str(plan["recomputed_ops"])]
            else:
                row += ["doesn't fit"] + [""] * 6
            lines.append("| " + " | ".join(row) + " |")
            print(lines[-1], file=sys.stderr, flush=True)
    publish(lines, options.output)


if __name__ == "__main__":
    main()
