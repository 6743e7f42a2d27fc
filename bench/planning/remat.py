#!/usr/bin/env python3
"""Overheads of tmc-solve on public rematerialization instances, as a table.

    bench/planning/remat.py DIR [--solve build/bin/tmc-solve] [--seeds 5] [--order fixed|free]

DIR holds the graphs (RL_n100.txt, ...): those published with Checkmate
(MLSys 2020) and MOCCASIN (ICML 2023), rewritten as plain text. Every answer is
simulated again here. "known" is the best overhead known to us from a plain
annealer of one core and 60 s or, where marked, the optimum of a MILP in which
a node runs at most once per stage.
"""
import argparse
import json
import os
import subprocess
import tempfile
import time

CASES = [  # graph, budget, best known overhead in percent, optimal
    ("RL_n100", "0.9", 0.789, True), ("RL_n100", "0.8", 2.296, True), ("RL_n100", "0.5", None, False),
    ("RL_n1000", "0.9", 0.749, False), ("RL_n1000", "0.8", 2.954, False), ("RL_n1000", "0.5", None, False),
    ("fcn_8_vgg_train", "0.9", 0.029, True), ("fcn_8_vgg_train", "0.8", 0.136, True),
    ("ResNet50_train", "0.9", 0.108, True), ("ResNet50_train", "0.8", 0.279, True),
    ("ResNet50_train", "0.5", 1.517, False), ("ResNet50_train", "0.3", 3.786, False),
    ("vgg_unet_train", "0.9", 1.129, True), ("vgg_unet_train", "0.8", 1.984, True), ("vgg_unet_train", "0.5", 6.967, True),
    ("VGG16_train", "0.9", 1.968, True), ("VGG16_train", "0.8", None, False),
]


def simulate(path, sequence):
    """Peak and cost of a sequence by the rules of the format; fails if a node runs before its inputs."""
    numbers = list(map(int, open(path).read().split()))
    n, m = numbers[:2]
    size, cost = numbers[2:2 + 2 * n:2], numbers[3:3 + 2 * n:2]
    reads = [[] for _ in range(n)]
    for i in range(m):
        a, b = numbers[2 + 2 * n + 2 * i:4 + 2 * n + 2 * i]
        reads[b].append(a)
    last, delta = {}, [0] * (len(sequence) + 1)
    for t, v in enumerate(sequence):
        for u in reads[v]:
            last[u][1] = t
        if v in last:
            delta[last[v][0]] += size[v]
            delta[last[v][1] + 1] -= size[v]
        last[v] = [t, t]
    assert len(last) == n, "a node never runs"
    for v, (begin, end) in last.items():
        delta[begin] += size[v]
        delta[end + 1] -= size[v]
    live = peak = 0
    for d in delta:
        live += d
        peak = max(peak, live)
    return peak, sum(cost[v] for v in sequence)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--solve", default="build/bin/tmc-solve")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--order", default="fixed")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    print("| graph | budget | known | worst | best | bound | gap | smallest / impossible | worst time |")
    print("|---|---|---|---|---|---|---|---|---|")
    for graph, budget, known, optimal in CASES:
        if args.only not in graph:
            continue
        path = os.path.join(args.directory, graph + ".txt")
        overheads, bounds, slowest, ratio = [], [], 0.0, None
        for seed in range(1, args.seeds + 1):
            with tempfile.NamedTemporaryFile(suffix=".json") as out:
                start = time.time()
                subprocess.run([args.solve, "remat", path, "--budget", budget + "x", "--seed", str(seed),
                                "--order", args.order, "--json", out.name], stderr=subprocess.DEVNULL, check=False)
                slowest = max(slowest, time.time() - start)
                answer = json.load(open(out.name))
            bounds.append(max([answer["lower_bound_pct"]] + [b["lower_bound_pct"] for b in answer["other_bounds"]]))
            ratio = "%d / %d" % (answer["smallest_found_bytes"], answer["impossible_below_bytes"])
            if answer["feasible"]:
                peak, cost = simulate(path, answer["sequence"])
                assert peak == answer["peak"] <= answer["budget"] and cost == answer["cost"], (graph, budget, seed)
                overheads.append(answer["overhead_pct"])
        missing = args.seeds - len(overheads)
        worst = "%.4f" % max(overheads) if overheads and not missing else "none (%d of %d seeds)" % (missing, args.seeds)
        best = "%.4f" % min(overheads) if overheads else "none"
        gap = "%.4f" % (max(overheads) - max(bounds)) if overheads else ""
        print("| %s | %s | %s%s | %s | %s | %.4f | %s | %s | %.1f s |" % (
            graph, budget, known if known is not None else "none", " opt" if optimal else "", worst, best,
            max(bounds), gap, ratio, slowest), flush=True)


if __name__ == "__main__":
    main()
