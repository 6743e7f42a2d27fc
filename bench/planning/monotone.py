#!/usr/bin/env python3
"""Is a larger budget ever dearer? Overheads over many budgets between the frontiers.

    bench/planning/monotone.py GRAPH [--solve build/bin/tmc-solve] [--points 200] [--effort 100] [--svg FILE]

Plans at evenly spaced budgets from the smallest with a known plan to the peak
without recomputation, and prints the largest rise of the overhead, in points,
over all pairs of budgets.
"""
import argparse
import json
import subprocess
import tempfile

import chart


def solve(args, budget, frontier=False):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [args.solve, "remat", args.graph, "--budget", budget, "--effort", str(args.effort), "--json", out.name]
        subprocess.run(command + (["--frontier"] if frontier else []), stderr=subprocess.DEVNULL, check=False)
        return json.load(open(out.name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("--solve", default="build/bin/tmc-solve")
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--effort", type=int, default=100)
    parser.add_argument("--svg")
    args = parser.parse_args()
    whole = solve(args, "1x")["budget"]
    least = solve(args, "0.9x", frontier=True)["smallest_found_bytes"]
    points, missing = [], 0
    for i in range(args.points):
        budget = least + (whole - least) * i // max(1, args.points - 1)
        answer = solve(args, str(budget))
        if not answer["feasible"]:
            missing += 1
            continue
        bound = max([answer["lower_bound_pct"]] + [b["lower_bound_pct"] for b in answer["other_bounds"]])
        points.append((budget, answer["overhead_pct"], bound))
    rise, violations, best = 0.0, 0, float("inf")
    gaps = sorted(p[1] - p[2] for p in points)
    for budget, overhead, _ in points:
        rise = max(rise, overhead - best)
        violations += overhead - best > 0.1
        best = min(best, overhead)
    print("%s: %d budgets from %d to %d, %d without a plan; largest rise %.3f points, %d above 0.1; gap median %.3f, most %.3f" % (
        args.graph.split("/")[-1], len(points), least, whole, missing, rise, violations, gaps[len(gaps) // 2], gaps[-1]))
    if args.svg:
        chart.draw(args.svg, "%s, %d budgets" % (args.graph.split("/")[-1], len(points)), "budget, GB", "overhead, %",
                   {"plan": [(p[0] / 1e9, p[1]) for p in points], "proved at least": [(p[0] / 1e9, p[2]) for p in points]})


if __name__ == "__main__":
    main()
