#!/usr/bin/env python3
"""Time, overhead and bound of tmc-solve on generated training graphs of growing size.

    bench/planning/scale.py [--solve build/bin/tmc-solve] [--sizes 100,1000,10000,100000] [--budget 0.5x]

Writes a table, and with --svg FILE a drawing of time over size.
"""
import argparse
import json
import subprocess
import tempfile

import chart

FAMILIES = ["transformer", "unet"]


def run(solve, family, size, budget, repeats):
    with tempfile.NamedTemporaryFile(suffix=".txt") as graph, tempfile.NamedTemporaryFile(suffix=".json") as out, \
            tempfile.NamedTemporaryFile() as usage:
        subprocess.run([solve, "generate", family, "--nodes", str(size), "-o", graph.name]
                       + (["--repeats"] if repeats else []), check=True)
        subprocess.run([solve, "remat", graph.name, "--budget", budget, "--json", out.name],
                       stderr=subprocess.DEVNULL, check=False)
        answer = json.load(open(out.name))
        answer["bound"] = max([answer["lower_bound_pct"]] + [b["lower_bound_pct"] for b in answer["other_bounds"]])
        return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solve", default="build/bin/tmc-solve")
    parser.add_argument("--sizes", default="100,1000,10000,100000")
    parser.add_argument("--budget", default="0.5x")
    parser.add_argument("--repeats", action="store_true")
    parser.add_argument("--svg")
    args = parser.parse_args()
    print("| family | nodes | overhead | bound | gap | seconds |\n|---|---|---|---|---|---|")
    points = {}
    for family in FAMILIES:
        for size in map(int, args.sizes.split(",")):
            answer = run(args.solve, family, size, args.budget, args.repeats)
            if not answer["feasible"]:
                print("| %s | %d | none | %.3f | | %.1f |" % (family, size, answer["bound"], answer["seconds"]))
                continue
            print("| %s | %d | %.3f | %.3f | %.3f | %.1f |" % (
                family, size, answer["overhead_pct"], answer["lower_bound_pct"],
                answer["overhead_pct"] - answer["bound"], answer["seconds"]), flush=True)
            points.setdefault(family, []).append((size, answer["seconds"]))
    if args.svg and points:
        chart.draw(args.svg, "tmc-solve remat, %s" % args.budget, "nodes", "seconds", points, log=True)


if __name__ == "__main__":
    main()
