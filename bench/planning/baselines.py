#!/usr/bin/env python3
"""Overheads of tmc and of its peers, every plan measured by the same checker.

    bench/planning/baselines.py [DIR] [--solve build/bin/tmc-solve] [--milp-seconds 600]

Rows: the public graphs in DIR, if one is given (see remat.py), and generated ones.
Columns: keeping all, segments of sqrt(n), every-block checkpointing, XLA's greedy,
PyTorch's min cut with knapsack, Checkmate's MILP through CBC (graphs of up to 100
nodes), and tmc, each by one call of `tmc-solve remat --planner`. A plan counts if it
fits the budget; "-" means that the planner's smallest doesn't, and says how much of
the peak without recomputation it needs. Sequences are simulated again here.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from remat import simulate  # noqa: E402

PLANNERS = ["none", "sqrt", "blocks", "greedy", "mincut", "milp", "tmc"]
PUBLIC = [("VGG16_train", "0.9"), ("vgg_unet_train", "0.8"), ("vgg_unet_train", "0.5"), ("fcn_8_vgg_train", "0.8"),
          ("ResNet50_train", "0.8"), ("ResNet50_train", "0.5"), ("ResNet50_train", "0.3"),
          ("RL_n100", "0.9"), ("RL_n100", "0.8"), ("RL_n1000", "0.9")]
GENERATED = [("transformer", 90, "0.5"), ("transformer", 1000, "0.5"), ("transformer", 1000, "0.3"),
             ("unet", 800, "0.5"), ("unet", 800, "0.3")]
MILP_NODES = 100


def plan(args, path, planner, budget, peak):
    """A cell of the table, and the processor seconds that it took."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [args.solve, "remat", path, "--budget", budget + "x", "--planner", planner, "--json", out.name]
        if planner == "milp":
            command += ["--time-limit", str(args.milp_seconds)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        if done.returncode == 4:
            return "", seconds
        if done.returncode not in (0, 3):
            sys.exit("%s: %s" % (planner, done.stderr))
        answer = json.load(open(out.name))
    if not answer["feasible"]:
        # What isn't tmc's own says nothing of what it can't do.
        return "- (%.3f)" % (answer["smallest_found_bytes"] / peak), seconds
    measured, cost = simulate(path, answer["sequence"])
    assert measured == answer["peak"] <= answer["budget"] and cost == answer["cost"], (path, planner, budget)
    return "%.4g" % answer["overhead_pct"], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?")
    parser.add_argument("--solve", default="build/bin/tmc-solve")
    parser.add_argument("--milp-seconds", type=float, default=600)
    parser.add_argument("--only", default="")
    parser.add_argument("--times", action="store_true", help="processor seconds beside each overhead")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [(name, os.path.join(args.directory, name + ".txt"), budget) for name, budget in PUBLIC] if args.directory else []
        for family, size, budget in GENERATED:
            path = os.path.join(folder, "%s%d.txt" % (family, size))
            if not os.path.exists(path):
                subprocess.run([args.solve, "generate", family, "--nodes", str(size), "-o", path], check=True)
            rows.append((family, path, budget))
        print("| graph | nodes | budget | " + " | ".join(PLANNERS) + " |\n" + "|---" * (len(PLANNERS) + 3) + "|")
        for name, path, budget in rows:
            if args.only not in name:
                continue
            numbers = open(path).readline().split()
            nodes = int(numbers[0])
            peak, _ = simulate(path, list(range(nodes)))
            cells = []
            for planner in PLANNERS:
                if planner == "milp" and nodes > MILP_NODES:
                    cells.append("")
                    continue
                cell, seconds = plan(args, path, planner, budget, peak)
                cells.append(cell + (" (%.1f s)" % seconds if args.times and cell else ""))
            print("| %s | %d | %s | %s |" % (name, nodes, budget, " | ".join(cells)), flush=True)


if __name__ == "__main__":
    main()
