#!/usr/bin/env python3
"""Time, overhead and bound of tmc-solve on generated training graphs of growing size.

    bench/planning/scale.py [--solve build/bin/tmc-solve] [--sizes 100,1000,10000,100000] [--budget 0.5x]

Writes a table, and with --svg FILE a drawing of time and overhead over size.
"""
import argparse
import json
import math
import subprocess
import tempfile

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


def draw(points, path):
    """points: {family: [(nodes, seconds, overhead)]}."""
    width, height, pad = 640, 400, 50
    rows = [p for list_ in points.values() for p in list_]
    x0, x1 = math.log10(min(p[0] for p in rows)), math.log10(max(p[0] for p in rows))
    y0, y1 = math.log10(min(max(p[1], 1e-3) for p in rows)), math.log10(max(max(p[1], 1e-3) for p in rows))
    place = lambda n, s: (pad + (math.log10(n) - x0) / max(x1 - x0, 1e-9) * (width - 2 * pad),
                          height - pad - (math.log10(max(s, 1e-3)) - y0) / max(y1 - y0, 1e-9) * (height - 2 * pad))
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">' % (width, height),
           '<text x="%d" y="20">planning time in seconds over nodes, both logarithmic; overhead in percent beside the points</text>' % pad]
    for colour, (family, list_) in zip(["#1b6ca8", "#c0504d", "#4f8f4f"], points.items()):
        places = [place(n, s) for n, s, _ in list_]
        out.append('<polyline fill="none" stroke="%s" points="%s"/>' % (colour, " ".join("%.1f,%.1f" % p for p in places)))
        for (x, y), (n, s, overhead) in zip(places, list_):
            out.append('<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/><text x="%.1f" y="%.1f">%s %.2f%%, %.1f s</text>'
                       % (x, y, colour, x + 5, y - 5, family, overhead, s))
    open(path, "w").write("\n".join(out + ["</svg>\n"]))


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
            points.setdefault(family, []).append((size, answer["seconds"], answer["overhead_pct"]))
    if args.svg and points:
        draw(points, args.svg)


if __name__ == "__main__":
    main()
