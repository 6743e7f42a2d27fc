#!/usr/bin/env python3
"""What each strategy of the planner gains: every row of its table off in turn.

    bench/planning/ablation.py DIR [--steps FOLDER] [--solve build/bin/tmc-solve]
                               [--effort 10] [--seeds 2] [--jobs 1] [--only ROW,...]

DIR holds the public graphs (see remat.py); FOLDER the problems of real steps, as
`tmc plan MODEL --problem FILE` writes them, one *.txt each. Three sets are planned:

    public   the public graphs, the order fixed (tmc-solve remat)
    seeds    generated graphs of seeds that nothing was tuned on, fixed and free
    steps    real steps, planned and packed as the compiler does (tmc-solve fit), at
             two budgets between the smallest known and the arena without recomputation

A row's gain is by how many points of overhead the plans without it cost more, in the
mean over all instances that have a plan with and without it; an instance with a plan
on one side only counts as a plan won or lost. `proved` is the same for the lower
bound, in points that it falls. Work is counted, so the table is the same on every
machine. What gains under 0.05 points in the mean of each set, wins no plan and raises
no bound by as much isn't worth its code.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from remat import CASES  # noqa: E402

SEEDS = [("transformer", 590, "0.5x", "fixed"), ("unet", 500, "0.4x", "fixed"), ("random-layered", 60, "0.8x", "fixed"),
         ("random-layered", 24, "0.75x", "fixed"), ("random-layered", 120, "0.7x", "free"), ("unet", 300, "0.5x", "free")]
FIRST_NEW_SEED = 101
# Where a step's budgets lie between the smallest known (0) and the arena without recomputation (1).
STEP_BUDGETS = [0.1, 0.45]
# Rows that a set can't use: the order is fixed, or nothing is packed.
UNUSED = {"public": ["Order", "Fit"], "seeds": ["Fit"], "steps": []}


def call(command):
    """The answer of tmc-solve: overhead and bound in percent, None where there is no plan."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        done = subprocess.run(command + ["--json", out.name], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, 3):
            sys.exit("%s: %s" % (" ".join(command), done.stderr))
        answer = json.load(open(out.name))
    bounds = [answer["lower_bound_pct"]] + [b["lower_bound_pct"] for b in answer.get("other_bounds", [])]
    return answer, answer["overhead_pct"] if answer["feasible"] else None, max(bounds)


def rows_of(solve):
    """Names and stages of the table, as tmc-solve tells them."""
    text = subprocess.run([solve, "strategies"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [tuple(line.split()[:2]) for line in text.splitlines()]


def instances(args, folder):
    """(set, command) of everything that is planned."""
    out = []
    for graph, budget, _, _ in CASES:
        path = os.path.join(args.directory, graph + ".txt")
        out.append(("public", ["remat", path, "--budget", budget + "x", "--effort", str(args.effort)]))
    for family, nodes, budget, order in SEEDS:
        for seed in range(FIRST_NEW_SEED, FIRST_NEW_SEED + args.seeds):
            path = os.path.join(folder, "%s-%d-%d.txt" % (family, nodes, seed))
            subprocess.run([args.solve, "generate", family, "--nodes", str(nodes), "--seed", str(seed), "-o", path], check=True)
            out.append(("seeds", ["remat", path, "--budget", budget, "--order", order, "--effort", str(args.effort), "--seed", str(seed)]))
    for path in sorted(glob.glob(os.path.join(args.steps, "*.txt"))) if args.steps else []:
        least = call([args.solve, "fit", path, "--budget", "1"])[0]["smallest_found_bytes"]
        most = max(call([args.solve, "fit", path, "--budget", "1x"])[0]["arena_bytes"], least)
        for share in STEP_BUDGETS:
            out.append(("steps", ["fit", path, "--budget", str(least + int((most - least) * share))]))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--steps")
    parser.add_argument("--solve", default="build/bin/tmc-solve")
    parser.add_argument("--effort", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    rows = [r for r in rows_of(args.solve) if not args.only or r[0] in args.only.split(",")]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        every = instances(args, folder)

        def run_all(row, stage):
            return list(pool.map(lambda each: None if stage in UNUSED[each[0]] else
                                 call([args.solve, *each[1]] + (["--without", row] if row else []))[1:], every))

        whole = run_all(None, None)
        counts = {kind: sum(each[0] == kind for each in every) for kind in UNUSED}
        print("Instances: %s." % ", ".join("%d %s" % (n, kind) for kind, n in counts.items()))
        print("\n| strategy | stage | " + " | ".join("%s, mean | most | least" % kind for kind in UNUSED) + " | plans won | lost | proved |")
        print("|" + "---|" * (2 + 3 * len(UNUSED) + 3), flush=True)
        for name, stage in rows:
            gains, proved = {kind: [] for kind in UNUSED}, []
            won = lost = 0
            for (kind, _), with_it, without in zip(every, whole, run_all(name, stage)):
                if without is None:
                    continue
                proved.append(with_it[1] - without[1])
                if with_it[0] is None or without[0] is None:
                    won += without[0] is None and with_it[0] is not None
                    lost += with_it[0] is None and without[0] is not None
                else:
                    gains[kind].append(without[0] - with_it[0])
            cells = []
            for kind in UNUSED:
                g = gains[kind]
                cells += ["%.3f" % (sum(g) / len(g)), "%.3f" % max(g), "%.3f" % min(g)] if g else ["", "", ""]
            print("| %s | %s | %s | %d | %d | %.3f |" % (name, stage, " | ".join(cells), won, lost, sum(proved) / max(1, len(proved))), flush=True)


if __name__ == "__main__":
    main()
