#!/usr/bin/env python3
"""What has to stand of the planner, in one table from one run.

    python3 bench/planning/standing.py DIR [--bin build/bin] [--parts public,packing,compiler,budgets,large]
        [--seeds 5] [--budgets 200] [--results FILE.json] > bench/planning/standing.md

DIR holds the folders remat (see remat.py) and pack (see pack.py) of public instances.

    public     the public graphs, order fixed: the worst of the seeds
    packing    MiniMalloc's challenging instances, two seeds each: the slower
    compiler   `tmc plan` of GPT-2 XL and Mistral 7B: overhead, and the least seconds of four
    budgets    200 budgets of GPT-2 124M through the whole pipeline: how much the overhead
               rises as memory grows
    large      a million nodes: of one space, and of a device with a host

Each figure stands beside the one before, which is README.md's. It stands if it is no more
than 0.1 points worse; a packing if one is found in MiniMalloc's own time; GPT-2 XL if it is
planned in 2 s; a million nodes in 300 s and 8 GiB. Ends with 1 where something falls.

--results keeps the rows of a part, once it is through: a run that was cut off goes on there.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pack  # noqa: E402
from offload import EXAMPLES  # noqa: E402
from remat import CASES, simulate  # noqa: E402

POINTS = 0.1  # What an overhead may be worse by.
NONE = "none"

# Overhead in percent, the worst of seeds 1 to 5; a number of seeds without a plan where some have one.
PUBLIC = {
    ("RL_n100", "0.9"): 0.7892, ("RL_n100", "0.8"): 2.2965, ("RL_n100", "0.5"): NONE,
    ("RL_n1000", "0.9"): 0.6894, ("RL_n1000", "0.8"): 2.7297, ("RL_n1000", "0.5"): "none (2 of 5)",
    ("fcn_8_vgg_train", "0.9"): 0.0294, ("fcn_8_vgg_train", "0.8"): 0.1361,
    ("ResNet50_train", "0.9"): 0.1085, ("ResNet50_train", "0.8"): 0.2786,
    ("ResNet50_train", "0.5"): 1.4988, ("ResNet50_train", "0.3"): 3.7383,
    ("vgg_unet_train", "0.9"): 1.1289, ("vgg_unet_train", "0.8"): 1.9836, ("vgg_unet_train", "0.5"): 6.9666,
    ("VGG16_train", "0.9"): 1.9677, ("VGG16_train", "0.8"): NONE,
}
# Seconds before, and those of MiniMalloc itself.
PACKING = {"A": (0.01, 3.5), "B": (0.01, 2.6), "C": (0.02, 0.5), "D": (0.03, 1.9), "E": (0.01, 2.8), "F": (0.02, 4.8)}
# Model, flags, budget, overhead and seconds before, seconds allowed.
COMPILER = [
    ("GPT-2 XL", "gpt2-xl.onnx", ["--target", "cpu"], "19GiB", 12.49, 1.5, 2),
    ("GPT-2 XL", "gpt2-xl.onnx", ["--target", "cpu"], "20GiB", 4.64, 1.5, 2),
    ("GPT-2 XL", "gpt2-xl.onnx", ["--target", "cpu"], "21GiB", 0.28, 1.6, 2),
    ("GPT-2 XL", "gpt2-xl.onnx", ["--target", "cpu"], "22GiB", 0.07, 1.4, 2),
    ("GPT-2 XL", "gpt2-xl.onnx", ["--target", "cuda:sm_90"], "19GiB", 16.23, 2.2, None),
    ("GPT-2 XL", "gpt2-xl.onnx", ["--target", "cuda:sm_90"], "20GiB", 8.94, 1.7, None),
    ("GPT-2 XL", "gpt2-xl.onnx", ["--target", "cuda:sm_90"], "22GiB", 0.32, 1.6, None),
    ("Mistral 7B", "mistral-7b.onnx", ["--target", "cuda:sm_90"], "84GiB", 21.55, 1.9, None),
    ("Mistral 7B", "mistral-7b.onnx", ["--target", "cuda:sm_90"], "85GiB", 18.81, 1.9, None),
    ("Mistral 7B", "mistral-7b.onnx", ["--target", "cuda:sm_90"], "90GiB", 7.49, 2.4, None),
]
COMPILER_RUNS = 4
LARGEST_RISE = 0.033  # In points, over 200 budgets of GPT-2 124M.
TRANSFORMER = dict(nodes=1_000_000, overhead=6.960, seconds=178, gib=1.6)
STEP = dict(layers=333_333, seconds=128, gib=3.2)
MOST_SECONDS, MOST_GIB = 300, 8


def measured(command):
    """Exit code, what is printed on stdout, processor seconds and GiB of one command."""
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return child.returncode, out.read(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024 ** 2


def row(what, now, before, stands):
    return [what, now, before, "stands" if stands else "FALLS"]


def points(what, now, before, more=True):
    """A row of an overhead in percent; `more`: what else has to hold."""
    if isinstance(now, str) or isinstance(before, str):
        # One of none has fallen, and so has one with more seeds without a plan.
        text = [x if isinstance(x, str) else "%.4f %%" % x for x in (now, before)]
        lacking = [int(x.split("(")[1].split()[0]) if "(" in x else 99 if x == NONE else 0 for x in text]
        return row(what, *text, more and lacking[0] <= lacking[1])
    return row(what, "%.4f %%" % now, "%.4f %%" % before, more and now <= before + POINTS)


def public_rows(args):
    for graph, budget, _, _ in CASES:
        path = os.path.join(args.directory, "remat", graph + ".txt")
        overheads = []
        for seed in range(1, args.seeds + 1):
            with tempfile.NamedTemporaryFile(suffix=".json") as out:
                measured([args.solve, "remat", path, "--budget", budget + "x", "--seed", str(seed), "--json", out.name])
                answer = json.load(open(out.name))
            if answer["feasible"]:
                peak, cost = simulate(path, answer["sequence"])
                assert peak == answer["peak"] <= answer["budget"] and cost == answer["cost"], (graph, budget, seed)
                overheads.append(answer["overhead_pct"])
        missing = args.seeds - len(overheads)
        worst = NONE if not overheads else "none (%d of %d)" % (missing, args.seeds) if missing else max(overheads)
        yield points("%s at %s, worst of %d seeds" % (graph, budget, args.seeds), worst, PUBLIC[graph, budget])


def packing_rows(args):
    how = argparse.Namespace(solve=args.solve, limit=20)
    for name, (before, others) in PACKING.items():
        path = os.path.join(args.directory, "pack", "%s.%d.csv" % (name, pack.CAPACITY))
        times = [pack.pack(how, path, seed) for seed in (1, 2)]
        slowest = None if None in times else max(times)
        yield row("packing %s, the slower of two seeds" % name, NONE if slowest is None else "%.2f s" % slowest,
                  "%.2f s" % before, slowest is not None and slowest <= others)


def compiler_rows(args):
    for name, model, flags, budget, overhead, seconds, most in COMPILER:
        plans = []
        for _ in range(COMPILER_RUNS):
            code, out, _, _ = measured([args.tmc, "plan", os.path.join(EXAMPLES, model), *flags, "--budget", budget, "--json"])
            if code:
                sys.exit("tmc plan %s %s ends with %d" % (model, budget, code))
            plans.append(json.loads(out))
        where = "%s, %s, %s" % (name, flags[1], budget)
        yield points(where + ": overhead", plans[0]["overhead_pct"], overhead)
        least = min(plan["plan_seconds"] for plan in plans)
        yield row(where + ": seconds", "%.1f s" % least, "%.1f s" % seconds, most is None or least <= most)


def budgets_rows(args):
    code, out, _, _ = measured([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "budgets.py"), "--tmc", args.tmc,
                                "--count", str(args.budgets), "--", os.path.join(EXAMPLES, "gpt2-124m.onnx"), "--batch=2",
                                "--dim=sequence=512"])
    rise = next(line.split()[3] for line in out.splitlines() if line.startswith("# largest rise"))
    rows = sum(line[0].isdigit() for line in out.splitlines() if line)
    yield row("GPT-2 124M, %d budgets: plans" % args.budgets, str(rows), str(args.budgets), code == 0 and rows == args.budgets)
    yield row("GPT-2 124M, %d budgets: largest rise" % args.budgets, "%.4f points" % float(rise), "%.4f points" % LARGEST_RISE,
              float(rise) <= POINTS)


def large_rows(args):
    with tempfile.TemporaryDirectory() as folder:
        path, answer = os.path.join(folder, "problem"), os.path.join(folder, "answer.json")
        was = TRANSFORMER
        subprocess.run([args.solve, "generate", "transformer", "--nodes", str(was["nodes"]), "-o", path], check=True)
        _, _, seconds, gib = measured([args.solve, "remat", path, "--budget", "0.5x", "--json", answer])
        told = json.load(open(answer))
        yield points("transformer of a million nodes at 0.5: overhead", told["overhead_pct"] if told["feasible"] else NONE, was["overhead"])
        yield row("transformer of a million nodes: processor seconds", "%.0f s" % seconds, "%.0f s" % was["seconds"], seconds <= MOST_SECONDS)
        yield row("transformer of a million nodes: memory", "%.1f GiB" % gib, "%.1f GiB" % was["gib"], gib <= MOST_GIB)
        was = STEP
        subprocess.run([args.solve, "generate", "step", "--nodes", str(was["layers"]), "-o", path], check=True)
        code, _, seconds, gib = measured([args.solve, "offload", path, "--budget", "0.6x", "--coarse", "--json", answer])
        yield row("a million kernels with a host at 0.6: a plan", "yes" if code == 0 else NONE, "yes", code == 0)
        yield row("a million kernels with a host: processor seconds", "%.0f s" % seconds, "%.0f s" % was["seconds"], seconds <= MOST_SECONDS)
        yield row("a million kernels with a host: memory", "%.1f GiB" % gib, "%.1f GiB" % was["gib"], gib <= MOST_GIB)


PARTS = {"public": public_rows, "packing": packing_rows, "compiler": compiler_rows, "budgets": budgets_rows, "large": large_rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budgets", type=int, default=200)
    parser.add_argument("--results")
    args = parser.parse_args()
    args.solve, args.tmc = os.path.join(args.bin, "tmc-solve"), os.path.join(args.bin, "tmc")
    known = {}
    if args.results and os.path.exists(args.results):
        with open(args.results) as file:
            known = json.load(file)
    print("| what | now | before | |\n|---|---|---|---|")
    fell = 0
    for part in args.parts.split(","):
        rows = known.get(part) or []
        for cells in rows or PARTS[part](args):
            print("| %s |" % " | ".join(cells), flush=True)
            fell += cells[-1] != "stands"
            if part not in known:
                rows.append(cells)
        known[part] = rows
        if args.results:
            with open(args.results, "w") as file:
                json.dump(known, file, indent=1)
    sys.exit(1 if fell else 0)


if __name__ == "__main__":
    main()
