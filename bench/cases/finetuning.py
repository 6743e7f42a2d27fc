#!/usr/bin/env python3
"""The table of fine-tuning in docs/cases.md: what `tmc plan` says of adapters over a base in 16 or 4 bits, on small cards.

    finetuning.py [--build build] [--bin BIN] [--models DIR] [--only ROW ...] [--json FILE] [-o FILE.md]

Prints the table in Markdown; ROW is a name in ROWS. Nothing runs but the planner: all figures are predictions. The graphs
are looked for in --models, and exported there otherwise by --python, which has torch and transformers. A plan has two
sizes: with room for all the card's memory it takes what makes it quickest, and the smallest one is the least budget
for which a plan is known. The second table has plans at the lengths of other people's longest contexts.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.dirname(HERE))
from run import EXPORT, GIB, ROOT, Run, model_path  # noqa: E402
from tables import publish  # noqa: E402

EXPORT.update({f"{name}.pt2": f"import llama; llama.run('{name}', path)"
               for name in ("mistral-7b", "llama-3.1-8b", "llama-13b", "llama-65b")})
ATTENTION = "--lora=r=16,alpha=32,targets=q_proj,k_proj,v_proj,o_proj"
ALL = "--lora=r=32,alpha=32,targets=all-linear"
NF4 = ["--precision=bf16", "--base=nf4", "--loss-chunk=256"]
# A process sees less of a card than its name says (docs/targets.md): of 8 GB 7.7 GiB, by the share of a card of 12 GB.
GB8, GB12 = ["--target=cuda:rtx3060", "--budget=7.7GiB"], ["--target=cuda:rtx3060"]


def row(model, card, batch, length, *options, wanted, fits=None, small=None, speed=None, over=None, seconds=60):
    """Bounds in GiB, tokens a second, and per cent over the step's time where all stays."""
    return dict(model=model, card=card, batch=batch, length=length, options=options, wanted=wanted, fits=fits, small=small,
                speed=speed, over=over, seconds=seconds)


ROWS = {
    "mistral-bf16": row("mistral-7b", "A100 80", 1, 1024, "--target=cuda:a100-80", "--precision=bf16", "--loss-chunk=256", fits=18.5,
                        small=14.4, wanted="at most 18.5 GiB, smallest 14.4"),
    "mistral-bf16-streamed": row("mistral-7b", "12 GB", 1, 1024, *GB12, "--precision=bf16", "--budget=7.9GiB", "--offload=auto",
                                 over=1, fits=7.9, wanted="at most +1 % at 7.9 GiB"),
    "mistral-nf4-12": row("mistral-7b", "12 GB", 1, 1024, *GB12, *NF4, fits=11.7, small=5.0, wanted="fits, smallest 5.0 GiB"),
    "mistral-nf4-8": row("mistral-7b", "8 GB", 1, 1024, *GB8, *NF4, fits=7.7, small=5.0, wanted="fits, smallest 5.0 GiB"),
    # torchtune's 7.4 GiB are those of PyTorch's allocator. What is reserved for the driver comes on top of them.
    "llama8-nf4": row("llama-3.1-8b", "24 GB", 2, 2048, "--target=cuda:rtx4090", "--budget=7.9GiB", *NF4, "--micro-batches=2",
                      fits=7.9, speed=2413, wanted="at most 7.4 GiB and 0.5 reserved, 2,413 tokens/s (torchtune)"),
    # The same within the host's memory, too: updates, and activations while kernels run.
    "llama8-nf4-moves": row("llama-3.1-8b", "24 GB", 2, 2048, "--target=cuda:rtx4090", "--budget=7.9GiB", *NF4, "--micro-batches=2",
                            "--offload=auto", "--host-budget=16GiB", fits=7.9, speed=2413, wanted="the same, with moves"),
    "llama13-nf4": row("llama-13b", "12 GB", 1, 1024, *GB12, *NF4, small=8.6, wanted="at most 8.6 GiB"),
    "llama65-nf4": row("llama-65b", "48 GB", 1, 1024, "--target=cuda:l40s", *NF4, small=37, seconds=180, wanted="at most 37 GiB"),
    "llama65-nf4-streamed": row("llama-65b", "24 GB", 4, 1024, "--target=cuda:rtx4090", *NF4, "--offload=auto",
                                "--host-budget=80GiB", over=15, seconds=180, wanted="at most +15 %"),
}
# Llama-3.1 8B, r=32 on all linears, batch 1: a card, its options, and the tokens of Unsloth's longest context there
# (docs.unsloth.ai), which keeps layers' inputs in host memory: these plans may move values, too. The longest one computes
# the rows of its MLPs in tiles.
CONTEXTS = {"context-8": ("8 GB", GB8, 2972), "context-12": ("12 GB", GB12, 21848),
            "context-16": ("16 GB", ["--target=cuda:rtx4090", "--budget=15.6GiB"], 40724),
            "context-24": ("24 GB", ["--target=cuda:rtx4090", "--tiles=2"], 78475)}

CONTEXT_SECONDS = 60  # Of planning.


def plan(options, scratch, model, batch, length, arguments):
    """(the run, plan.json or None where the budget isn't met)"""
    path = model_path(options, scratch, f"{model}.pt2")
    run = Run(os.path.join(options.bin, "tmc"), "plan", path, f"--batch={batch}", f"--dim=input_ids.1={length}", *arguments, "--json")
    return run, json.loads(run.output) if run.fits else None


def smallest(run, made):
    """Bytes of the smallest budget known to work, or None."""
    if made:
        return made["smallest_found_bytes"]
    found = re.search(r"a plan is known is [^(]*\((\d+) bytes\)", run.errors)
    return int(found.group(1)) if found else None


def judged(known, run, made, least):
    """The bounds that a row misses."""
    missed = []
    if not made:
        return ["doesn't fit"]
    taken = made["arena_bytes"] / GIB  # What is reserved counts.
    if known["fits"] and taken > known["fits"]:
        missed.append(f"{taken:.2f} GiB")
    if known["small"] and (least is None or least / GIB > known["small"]):
        missed.append("the smallest")
    if known["speed"] and known["batch"] * known["length"] / made["step_time_s"] < known["speed"]:
        missed.append("tokens/s")
    if known["over"] is not None and 100 * (made["step_time_s"] / made["unconstrained_time_s"] - 1) > known["over"]:
        missed.append("time")
    if run.user > known["seconds"]:  # The clock's depend on what else runs.
        missed.append("seconds of planning")
    return missed


def table_row(options, scratch, name):
    known = ROWS[name]
    run, made = plan(options, scratch, known["model"], known["batch"], known["length"], [ATTENTION, *known["options"]])
    least = smallest(run, made)
    missed = judged(known, run, made, least)
    size = "" if least is None else f"{least / GIB:.2f}"
    figures = dict(name=name, wall=run.wall, user=run.user, smallest=least, plan=made, missed=missed)
    cells = [known["model"], "nf4" if "--base=nf4" in known["options"] else "bf16", known["card"],
             f"{known['batch']} x {known['length']}"]
    if made:
        spaces = made["spaces"]
        taken = made["arena_bytes"]
        cells += [f"{taken / GIB:.2f}", f"{(spaces['host']['arena_bytes'] if spaces else 0) / GIB:.1f}", size,
                  f"{made['step_time_s']:.3g}", f"{known['batch'] * known['length'] / made['step_time_s']:,.0f}",
                  f"{100 * (made['step_time_s'] / made['unconstrained_time_s'] - 1):+.1f} %"]
    else:
        cells += ["doesn't fit", "", size, "", "", ""]
    cells += [f"{run.wall:.0f} ({run.user:.0f})", known["wanted"], "yes" if not missed else "no: " + ", ".join(missed)]
    return "| " + " | ".join(cells) + " |", figures


def context_row(options, scratch, name):
    card, arguments, length = CONTEXTS[name]
    run, made = plan(options, scratch, "llama-3.1-8b", 1, length, [ALL, *NF4, "--offload=auto", *arguments])
    cells = [card, f"{length:,}"]
    if made:
        cells += [f"{made['arena_bytes'] / GIB:.2f}", f"{made['spaces']['host']['arena_bytes'] / GIB if made['spaces'] else 0:.1f}",
                  f"{made['step_time_s']:.3g}", f"{100 * (made['step_time_s'] / made['unconstrained_time_s'] - 1):+.1f} %"]
    else:
        least = smallest(run, made)
        cells += ["doesn't fit" + (f", smallest {least / GIB:.2f}" if least else ""), "", "", ""]
    met = "no" if not made else "yes" if run.user <= CONTEXT_SECONDS else "no: seconds of planning"
    cells += [f"{run.wall:.0f} ({run.user:.0f})", met]
    return "| " + " | ".join(cells) + " |", dict(name=name, wall=run.wall, user=run.user, plan=made)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--bin", help="the folder of tmc (default: that of the build)")
    parser.add_argument("--models", help="where exported graphs are, or are put")
    parser.add_argument("--python", default=sys.executable, help="a Python to export with")
    parser.add_argument("--only", action="append", choices=[*ROWS, *CONTEXTS], help="a row (may be given several times)")
    parser.add_argument("--json", help="write all figures there, too")
    parser.add_argument("-o", "--output", help="write the tables there, too")
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin or os.path.join(options.build, "bin"))
    wanted = options.only or [*ROWS, *CONTEXTS]
    heads = {table_row: ["model", "base", "card", "batch", "device, GiB", "host, GiB", "smallest, GiB", "step, s", "tokens/s",
                         "over all kept", "planned in, s (of the processors')", "wanted", "met"],
             context_row: ["card", "tokens", "device, GiB", "host, GiB", "step, s", "over all kept", "planned in, s (of the processors')", "met"]}
    lines, results = [], []
    with tempfile.TemporaryDirectory(prefix="cases-") as scratch:
        for table, names in ((table_row, ROWS), (context_row, CONTEXTS)):
            if not set(names) & set(wanted):
                continue
            lines += ["", "| " + " | ".join(heads[table]) + " |", "|" + "---|" * len(heads[table])]
            for name in names:
                if name not in wanted:
                    continue
                line, figures = table(options, scratch, name)
                print(line, file=sys.stderr, flush=True)
                lines.append(line)
                results.append(figures)
                if options.json:
                    with open(options.json, "w") as file:
                        json.dump(results, file, indent=1)
    publish(lines[1:], options.output)


if __name__ == "__main__":
    main()
