#!/usr/bin/env python3
"""What each strategy of the planner gains: every row of its table off in turn.

    bench/planning/ablation.py DIR [--bin build/bin] [--steps FILE.json] [--effort 20]
                               [--results FILE.json] [--jobs 1] [--only ROW,...] [--scratch FOLDER] [--both] [--half]

DIR holds the public graphs (see remat.py), FILE.json more real steps (models.py writes
them). Four sets are planned:

    public   the public graphs, the order fixed (tmc-solve remat)
    seeds    generated graphs of seeds that nothing was tuned on, fixed and free
    steps    ten real steps, planned and packed as the compiler does (tmc-solve fit), the
             first near the smallest budget known, the second at half of what it could save,
             and so on in turn (--both: each at both budgets)
    moves    generated steps and graphs with a host beside them, some with a file (tmc-solve
             offload); only the rows of the search for moves, since the others are its parts

--half takes half of the seeds and every second step.

Public and generated graphs of up to 200 nodes get all of the counted work, larger ones
--effort percent of it; steps get what the compiler gives. Work is counted, so the table
is the same on every machine.

A row's gain is by how many points of overhead (cost above the cost without any
recomputation, in percent of the latter) the plans without it cost more, in the mean
over all instances that have a plan with and without it; an instance with a plan on one
side only counts as a plan won or lost. `proved` is the same for the lower bound, in
points that it falls. What gains under 0.05 points in the mean of each set, wins no plan
and raises no bound by as much isn't worth its code. `work` is the processor time of all
instances without the row, of that with every row.

--results keeps the answers: a run that was cut off goes on where it was.
"""
import argparse
import concurrent.futures
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from offload import EXAMPLES, STEPS  # noqa: E402
from remat import CASES  # noqa: E402

# Generated graphs: family, nodes, budget, order, how many.
SEEDS = [("transformer", 590, "0.5x", "fixed", 2), ("unet", 500, "0.4x", "fixed", 2), ("random-layered", 60, "0.8x", "fixed", 2),
         ("random-layered", 12, "0.75x", "fixed", 4), ("random-layered", 20, "0.75x", "fixed", 4),
         ("random-layered", 24, "0.8x", "fixed", 4), ("random-layered", 60, "0.7x", "free", 2), ("unet", 300, "0.5x", "free", 2),
         ("transformer", 20000, "0.2x", "fixed", 1), ("unet", 20000, "0.15x", "fixed", 1)]
FIRST_NEW_SEED = 101
SMALL_NODES = 200  # These get all of the work.
# The steps of offload.py whose plans differ in kind; models.py adds the last two of ten.
REAL = ["GPT-2 124M, 2 x 512", "GPT-2 124M, 2 x 512, bf16", "GPT-2 XL, 1 x 1024", "GPT-2 XL, 4 x 1024", "BERT, 4 x 128", "BERT, 32 x 512",
        "Mistral 7B, 1 x 2048", "Mistral 7B, 1 x 2048, bf16", "ResNet-50, 128 x 224", "Llama with 8 experts, 1 x 2048"]
# Where budgets of a step lie between the smallest known (0) and the arena without recomputation (1).
STEP_BUDGETS = [0.1, 0.45]
# Rows and stages that a set doesn't use. The order is fixed; nothing is packed; a graph has no
# variants and nothing expensive; steps have more instructions than a beam takes. What the
# bound's rows prove, graphs say: steps are left out to save time.
UNUSED = {"public": ["Order", "Fit", "switch", "hold-expensive", "Moves"], "seeds": ["Fit", "switch", "hold-expensive", "Moves"],
          "steps": ["beam", "Bound", "Moves"], "moves": ["Order", "Start", "Walk", "Move", "Fit", "Bound"]}
# With moves: family, nodes, flags of generate, budget, flags of offload.
MOVES = [("step", 6, ["--bandwidth", "6"], "0.6x", []), ("step", 6, ["--bandwidth", "25"], "0.2x", []),
         ("step", 12, ["--bandwidth", "25"], "0.35x", []), ("step", 6, ["--bandwidth", "6", "--micro-batches", "4"], "0.45x", []),
         ("step", 6, ["--bandwidth", "25", "--micro-batches", "4"], "0.7x", []),
         ("step", 6, ["--bandwidth", "25", "--file-bandwidth", "6"], "0.3x", ["--host-budget", "256MiB"]),
         ("transformer", 150, [], "0.5x", ["--bandwidth", "1"]), ("transformer", 450, [], "0.4x", ["--bandwidth", "1"]),
         ("unet", 150, [], "0.6x", ["--bandwidth", "4"]), ("random-layered", 60, [], "0.7x", ["--bandwidth", "1"])]


class Answers:
    """What tmc-solve says, kept in a file by the command without its folders."""

    def __init__(self, solve, path):
        self.solve, self.path, self.known, self.lock = solve, path, {}, threading.Lock()
        if path and os.path.exists(path):
            with open(path) as file:
                self.known = json.load(file)

    def of(self, command):
        key = " ".join(os.path.basename(word) for word in command)
        if key not in self.known:
            answer = self.call(command)
            with self.lock:
                self.known[key] = answer
                if self.path:
                    with open(self.path + ".new", "w") as file:
                        json.dump(self.known, file, indent=0, sort_keys=True)
                    os.replace(self.path + ".new", self.path)
        return self.known[key]

    def call(self, command):
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            child = subprocess.Popen([self.solve, *command, "--json", out.name], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            errors = child.stderr.read()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode not in (0, 3):
                sys.exit("%s: %s" % (" ".join(command), errors))
            told = json.load(open(out.name))
        if command[0] == "offload":
            base = told["base_makespan"]
            return {"overhead": 100 * (told["makespan"] / base - 1) if told["feasible"] else None,
                    "bound": 100 * (told["lower_bound"] / base - 1), "seconds": usage.ru_utime}
        bounds = [told["lower_bound_pct"]] + [b["lower_bound_pct"] for b in told.get("other_bounds", [])]
        return {"overhead": told["overhead_pct"] if told["feasible"] else None, "bound": max(bounds), "seconds": usage.ru_utime,
                "smallest": told["smallest_found_bytes"], "arena": told.get("arena_bytes")}


def rows_of(solve):
    """Names and stages of the table, as tmc-solve tells them."""
    text = subprocess.run([solve, "strategies"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [tuple(line.split()[:2]) for line in text.splitlines()]


def problems_of_steps(args, folder):
    """The problems of the real steps, planned where everything fits: they don't depend on a budget."""
    models = dict(STEPS)
    if args.steps:
        with open(args.steps) as file:
            models.update(json.load(file))
    paths = []
    for name in REAL:
        if name not in models:
            continue
        model, *flags = models[name]
        paths.append(os.path.join(folder, name.replace(" ", "-").replace(",", "") + ".txt"))
        if os.path.exists(paths[-1]):
            continue
        done = subprocess.run([os.path.join(args.bin, "tmc"), "plan", os.path.join(EXAMPLES, model), "--target", "cuda:a100-40", *flags,
                               "--budget", "4TiB", "--problem", paths[-1]], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(done.stderr)
    return paths


def instances(args, answers, folder):
    """(set, command) of everything that is planned."""
    out = []

    def add(kind, path, budget, *more):
        with open(path) as file:
            nodes = int(file.read(64).split()[0])
        out.append((kind, ["remat", path, "--budget", budget, "--effort", "100" if nodes <= SMALL_NODES else str(args.effort), *more]))

    for graph, budget, _, _ in CASES if args.directory else []:
        add("public", os.path.join(args.directory, graph + ".txt"), budget + "x")
    for family, nodes, budget, order, count in SEEDS if args.directory else []:
        for seed in range(FIRST_NEW_SEED, FIRST_NEW_SEED + (max(1, count // 2) if args.half else count)):
            path = os.path.join(folder, "%s-%d-%d.txt" % (family, nodes, seed))
            subprocess.run([answers.solve, "generate", family, "--nodes", str(nodes), "--seed", str(seed), "-o", path], check=True)
            add("seeds", path, budget, "--order", order, "--seed", str(seed))
    for i, (family, nodes, flags, budget, more) in enumerate(MOVES):
        path = os.path.join(folder, "moves-%d.txt" % i)
        subprocess.run([answers.solve, "generate", family, "--nodes", str(nodes), *flags, "--seed", str(FIRST_NEW_SEED), "-o", path],
                       check=True)
        out.append(("moves", ["offload", path, "--budget", budget, *more]))
    if not args.directory:
        return [each for each in out if each[0] == "moves"]
    for i, path in enumerate(problems_of_steps(args, folder)):
        if args.half and i % 2 == 0:
            continue
        least = answers.of(["fit", path, "--budget", "1"])["smallest"]
        most = max(answers.of(["fit", path, "--budget", "1x"])["arena"], least)
        for share in STEP_BUDGETS if args.both else [STEP_BUDGETS[i % 2]]:
            out.append(("steps", ["fit", path, "--budget", str(least + int((most - least) * share))]))
    return out


def row_of_table(name, stage, every, whole, without):
    """What the table says of one strategy."""
    gains, proved = {kind: [] for kind in UNUSED}, []
    won = lost = 0
    seconds = [0.0, 0.0]
    for (kind, _), with_it, lacking in zip(every, whole, without):
        if lacking is None:
            continue
        seconds[0] += lacking["seconds"]
        seconds[1] += with_it["seconds"]
        proved.append(with_it["bound"] - lacking["bound"])
        if with_it["overhead"] is None or lacking["overhead"] is None:
            won += lacking["overhead"] is None and with_it["overhead"] is not None
            lost += with_it["overhead"] is None and lacking["overhead"] is not None
        else:
            gains[kind].append(lacking["overhead"] - with_it["overhead"])
    cells = []
    for kind in UNUSED:
        g = gains[kind]
        cells += ["%.3f" % (sum(g) / len(g)), "%.3f" % max(g), "%.3f" % min(g)] if g else ["", "", ""]
    return "| %s | %s | %s | %d | %d | %.3f | %.2f |" % (name, stage, " | ".join(cells), won, lost, sum(proved) / max(1, len(proved)),
                                                    seconds[0] / max(seconds[1], 1e-9))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", help="without it: the set `moves` alone")
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--steps")
    parser.add_argument("--effort", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--results")
    parser.add_argument("--half", action="store_true", help="half of the seeds and steps")
    parser.add_argument("--both", action="store_true", help="each step at both budgets")
    parser.add_argument("--scratch", help="keep generated graphs and problems here")
    args = parser.parse_args()
    answers = Answers(os.path.join(args.bin, "tmc-solve"), args.results)
    rows = [r for r in rows_of(answers.solve) if not args.only or r[0] in args.only.split(",")]
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        every = instances(args, answers, args.scratch or temporary)

        def run_all(row, stage):
            return list(pool.map(lambda each: None if {row, stage} & set(UNUSED[each[0]]) else
                                 answers.of(each[1] + (["--without", row] if row else [])), every))

        whole = run_all(None, None)
        counts = {kind: sum(each[0] == kind for each in every) for kind in UNUSED}
        print("Instances: %s.\n" % ", ".join("%d %s" % (n, kind) for kind, n in counts.items()))
        print("| strategy | stage | " + " | ".join("%s, mean | most | least" % kind for kind in UNUSED) + " | plans won | lost | proved | work |")
        print("|" + "---|" * (2 + 3 * len(UNUSED) + 4), flush=True)
        for name, stage in rows:
            without = run_all(name, stage)
            if any(without):
                print(row_of_table(name, stage, every, whole, without), flush=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print("\n%.0f processor seconds." % (used.ru_utime + used.ru_stime), file=sys.stderr)


if __name__ == "__main__":
    main()
