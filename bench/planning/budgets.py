"""Plans a model under many budgets through the whole pipeline and checks what a plan
promises of them; the standard library only.

    python3 bench/planning/budgets.py --tmc build/bin/tmc [--count 200] -- MODEL [flags]

Budgets run from the smallest that tmc names (with --offload, from the one below which none
is possible) to a quarter more than the step needs that moves and recomputes nothing.
Checked: each arena fits its budget, predicted time never rises by more than a tenth of
a point as budgets grow, the smallest budget named works when given, one byte below the
impossible one doesn't. Prints CSV; ends with 1 where a check fails.
"""

import argparse
import json
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tmc", default="build/bin/tmc")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--tolerance", type=float, default=0.1,
                        help="percentage points by which time may rise")
    parser.add_argument("model", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    model = [word for word in args.model if word != "--"]

    def plan(budget=None):
        flags = [] if budget is None else ["--budget", str(budget)]
        done = subprocess.run([args.tmc, "plan", *model, "--json", *flags],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, 3):
            sys.exit(done.stderr)
        return done.returncode == 0, json.loads(done.stdout)

    wrong = []
    _, free = plan()
    impossible = free["impossible_below_bytes"]
    named, high = free["smallest_found_bytes"], free["arena_bytes"]
    low = named
    if named is None: # With moves no smallest one is sought.
        low, high = impossible, (free["unconstrained_bytes"] + free["reserved_bytes"]) * 5 // 4
    if plan(impossible - 1)[0]:
        wrong.append("%d bytes were called impossible, and work" % (impossible - 1))
    print("budget_bytes,arena_bytes,host_bytes,step_time_s,overhead_pct,lower_bound_pct,plan_seconds")
    least, worst, begun = None, 0, named is not None
    for i in range(args.count):
        budget = low + (high - low) * i // max(args.count - 1, 1)
        fits, told = plan(budget)
        if not fits:
            if begun:
                wrong.append("%d bytes don't work, fewer do" % budget)
            continue
        begun = True
        host = (told["spaces"] or {}).get("host", {}).get("arena_bytes", 0)
        print("%d,%d,%d,%.9f,%.4f,%.4f,%.2f" % (
            budget, told["arena_bytes"], host, told["step_time_s"], told["overhead_pct"],
            told["lower_bound_pct"] or 0, told["plan_seconds"]), flush=True)
        if told["arena_bytes"] > budget:
            wrong.append("%d bytes need %d" % (budget, told["arena_bytes"]))
        smallest = told["smallest_found_bytes"]
        if smallest is not None and named is not None and smallest < named and not plan(smallest)[0]:
            wrong.append("%d bytes don't work, named at %d" % (smallest, budget))
        overhead = told["overhead_pct"]
        worst = worst if least is None else max(worst, overhead - least)
        least = overhead if least is None else min(least, overhead)
    if worst > args.tolerance:
        wrong.append("time rises by %.3f points as memory grows" % worst)
    print("# largest rise: %.4f points" % worst)
    for line in wrong:
        print("# WRONG: " + line)
    sys.exit(1 if wrong else 0)


main()
