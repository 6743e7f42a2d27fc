#!/usr/bin/env python3
"""What run.sh compares and prints; needs only the standard library.

    report.py losses LOG.jsonl GOLDEN.json      the log's losses and gradient norms are the stored ones
    report.py table NAME=PLAN.json=LOG.jsonl ...    a row each; PLAN.json may be left out
"""

import json
import statistics
import sys

LOSS = 1e-4  # relative: another order of additions over ten steps
NORM = 1e-3
WARM = 5  # steps that aren't timed: kernels are loaded, clocks rise


def read_log(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def losses(log, golden):
    """The number of figures that are too far off."""
    bad = 0
    for field, kept, tolerance in (("loss", "losses", LOSS), ("grad_norm", "grad_norms", NORM)):
        want = golden.get(kept, [])
        got = [entry[field] for entry in log]
        if len(got) < len(want):
            print(f"{field}: {len(got)} steps in the log, {len(want)} stored")
            bad += 1
        for step, (a, b) in enumerate(zip(got, want), 1):
            if b is None:
                continue
            if a is None or not abs(a - b) <= tolerance * abs(b):
                print(f"{field} at step {step}: {a}, {b} stored, {tolerance:g} relative allowed")
                bad += 1
    return bad


def mebibytes(count):
    return "" if count is None else f"{count / 2**20:.1f}"


def table(rows):
    print("| case | ms/step (median) | least | per second | arena MiB | overhead planned % | predicted ms |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        name, plan, log = row.split("=", 2)
        if plan:
            with open(plan) as file:
                plan = json.load(file)
        entries = read_log(log)[WARM:]
        if not entries:
            print(f"| {name} | no steps after the first {WARM} | | | | | |")
            continue
        seconds = [entry["seconds"] for entry in entries]
        middle = statistics.median(seconds)
        rate = next((f"{entries[0][key] * entries[0]['seconds'] / middle:.0f} {key.split('_')[0]}"
                     for key in ("tokens_per_second", "samples_per_second") if key in entries[0]), "")
        planned = f"{plan['overhead_pct']:.2f} | {plan['step_time_s'] * 1e3:.2f}" if plan else " | "
        print(f"| {name} | {middle * 1e3:.2f} | {min(seconds) * 1e3:.2f} | {rate} | "
              f"{mebibytes(entries[0].get('arena_bytes'))} | {planned} |")


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "losses":
        with open(arguments[2]) as file:
            return 1 if losses(read_log(arguments[1]), json.load(file)) else 0
    if arguments and arguments[0] == "table":
        table(arguments[1:])
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
