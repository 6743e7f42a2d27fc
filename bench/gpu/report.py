#!/usr/bin/env python3
"""What run.sh compares and prints; needs only the standard library.

    report.py losses LOG.jsonl GOLDEN.json      the log's losses and gradient norms are the stored ones
    report.py memory MIB.txt PLAN.json              the driver's samples, the first one from before, and the plan
    report.py table NAME=PLAN.json=LOG.jsonl ...    a row each; PLAN.json may be left out
    report.py profile PROFILE.json[.gz] ...         a trainer's profiles, added up by family and device launch
"""

import collections
import gzip
import json
import statistics
import sys

# Relative, of a loss and of a gradient norm: another order of additions over ten steps, beside which
# a product of fewer bits rounds to another neighbour here and there.
ALLOWED = {"f32": (1e-4, 1e-3), "bf16": (5e-4, 2e-2), "fp16": (1e-4, 5e-3), "fp8": (2e-3, 1e-1)}
WARM = 5  # steps that aren't timed, of short runs the first half: kernels are loaded, clocks rise


def read_log(path):
    with open(path) as file:
        return [line for line in map(json.loads, file) if line.get("kind", "step") == "step"]


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


def profile(path):
    """The time of a step by family of kernels, and by the device launches of each."""
    with (gzip.open if path.endswith(".gz") else open)(path) as file:
        kept = json.load(file)
    steps = kept["steps"]
    families, launches = collections.defaultdict(lambda: [0, 0, 0, 0]), collections.defaultdict(lambda: [0, 0])
    for entry in kept["launches"]:
        each = entry["runs"] / steps
        for i, value in enumerate((each, entry["seconds"] / steps, entry["bytes"] * each, entry["flops"] * each)):
            families[entry["family"]][i] += value
        for launch in entry.get("device_launches", ()):
            row = launches[entry["family"], launch["name"]]
            row[0] += launch["runs"] / steps
            row[1] += launch["seconds"] / steps
    busy = sum(family[1] for family in families.values())
    name = path.rpartition("/")[2].partition(".profile")[0]
    print(f"### {name}: {kept['wall_seconds'] / steps * 1e3:.2f} ms a step, {busy * 1e3:.2f} of them in kernels")
    print()
    print("| kernels | a step | ms | GB/s | TFLOP/s |")
    print("|---|---|---|---|---|")
    for family, (count, seconds, moved, flops) in sorted(families.items(), key=lambda item: -item[1][1]):
        if not seconds:
            continue
        print(f"| {family} | {count:.0f} | {seconds * 1e3:.2f} | {moved / seconds * 1e-9:.0f} | {flops / seconds * 1e-12:.1f} |")
        own = sorted(((row, key[1]) for key, row in launches.items() if key[0] == family), key=lambda item: -item[0][1])
        if len(own) > 1:
            for (count, seconds), launch in own:
                print(f"| - {launch} | {count:.0f} | {seconds * 1e3:.2f} | | |")
    print()


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "losses":
        with open(arguments[2]) as file:
            return 1 if losses(read_log(arguments[1]), json.load(file)) else 0
    if len(arguments) == 3 and arguments[0] == "memory":
        return 1 if memory(arguments[1], arguments[2]) else 0
    if arguments and arguments[0] == "table":
        table(arguments[1:])
        return 0
    if len(arguments) > 1 and arguments[0] == "profile":
        for path in arguments[1:]:
            profile(path)
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
