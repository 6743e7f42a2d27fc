#!/usr/bin/env python3
"""What run.sh compares and prints; needs only the standard library.

    report.py losses LOG.jsonl GOLDEN.json      the log's losses and gradient norms are the stored ones
    report.py memory MIB.txt PLAN.json              the driver's samples, the first one from before, and the plan
    report.py table NAME=PLAN.json=LOG.jsonl ...    a row each; PLAN.json may be left out
"""

import json
import statistics
import sys

# Relative, of a loss and of a gradient norm: another order of additions over ten steps, beside which
# a product of fewer bits rounds to another neighbour here and there.
ALLOWED = {"f32": (1e-4, 1e-3), "bf16": (5e-4, 2e-2), "fp16": (1e-4, 5e-3), "fp8": (2e-3, 1e-1)}
WARM = 5  # steps that aren't timed, of short runs the first half: kernels are loaded, clocks rise


def read_log(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def losses(log, golden):
    """The number of figures that are too far off."""
    bad = 0
    loss, norm = ALLOWED[golden.get("precision", "f32").split(":")[0]]
    for field, kept, tolerance in (("loss", "losses", loss), ("grad_norm", "grad_norms", norm)):
        want = golden.get(kept, [])
        got = [entry[field] for entry in log]
        if len(got) < len(want):
            print(f"{field}: {len(got)} steps in the log, {len(want)} stored")
            bad += 1
        for step, (a, b) in enumerate(zip(got, want), 1):
            if b is None:
                continue
            if a is None or not abs(a - b) <= tolerance * abs(b):
                worst = "" if a is None else f" ({abs(a - b) / abs(b):.1e})"
                print(f"{field} at step {step}: {a}, {b} stored, {tolerance:g} relative allowed{worst}")
                bad += 1
    return bad


def memory(samples, plan):
    """Whether what the driver saw taken is within arena and reserve; says both."""
    before, *during = [int(line) for line in open(samples) if line.strip().isdigit()]
    with open(plan) as file:
        plan = json.load(file)
    planned, reserved = (plan[name] / 2**20 for name in ("arena_bytes", "reserved_bytes"))
    taken = max(during, default=before) - before
    print(f"{taken} MiB taken of {planned:.0f}, {taken - planned + reserved:.0f} beside the arena of {reserved:.0f}")
    return taken > planned


def number(value, text, scale=1):
    """What isn't known (null in a plan or a log) is an empty cell."""
    return "" if value is None else format(value * scale, text)


def table(rows):
    print("| case | ms/step (median) | least | per second | arena MiB | overhead planned % | predicted ms |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        name, plan, log = row.split("=", 2)
        if plan:
            with open(plan) as file:
                plan = json.load(file)
        entries = read_log(log)
        entries = entries[WARM if len(entries) > WARM else len(entries) // 2:]
        if not entries:
            print(f"| {name} | no steps after the first {WARM} | | | | | |")
            continue
        timed = [entry for entry in entries if entry.get("seconds")]
        seconds = [entry["seconds"] for entry in timed] or [None]
        middle = statistics.median(seconds) if timed else None
        rate = next((f"{timed[0][key] * timed[0]['seconds'] / middle:.0f} {key.split('_')[0]}"
                     for key in ("tokens_per_second", "samples_per_second") if timed and timed[0].get(key)), "")
        plan = plan or {}
        print(f"| {name} | {number(middle, '.2f', 1e3)} | {number(min(seconds), '.2f', 1e3)} | {rate} | "
              f"{number(entries[0].get('arena_bytes'), '.1f', 2**-20)} | "
              f"{number(plan.get('overhead_pct'), '.2f')} | {number(plan.get('step_time_s'), '.2f', 1e3)} |")


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "losses":
        with open(arguments[2]) as file:
            return 1 if losses(read_log(arguments[1]), json.load(file)) else 0
    if len(arguments) == 3 and arguments[0] == "memory":
        return 1 if memory(arguments[1], arguments[2]) else 0
    if arguments and arguments[0] == "table":
        table(arguments[1:])
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
