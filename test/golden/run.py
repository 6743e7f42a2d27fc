#!/usr/bin/env python3
"""Compile every golden model and compare the step with PyTorch; needs only the standard library.

    run.py --tmc build/bin/tmc [--target cpu:v3] [--only SUBSTRING] [--planted] [--keep DIR] [-- OPTION ...]

One case is a graph and either its gradients or an optimizer's ten steps. Options after
-- go to tmc compile, such as --budget. Ends with one line `N passed, M failed`.
"""

import argparse
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))


# Other programs of the same models: what they are called, flags, and what plan.json then has. Of chunks
# and tiles of rows the last is a shorter one.
FORMS = [("loss in chunks", ["--loss-chunk=24"], {"loss_chunk": 24}), ("in tiles", ["--tiles=5"], {"tiles": 5})]
PIECES = [("in micro-batches", ["--micro-batches=2"], {"micro_batches": 2})]
FORMED = {"gpt2-tiny": FORMS, "llama-tiny": FORMS, "batch-first": PIECES}
# With --first its optimizers stand for those of all models: test/steps/run.py has updates of several models agree bit
# for bit with those of another instruction set.
UPDATED = "gpt2-tiny"


def spec(run):
    """The optimizer of a golden run, as --optimizer takes it."""
    if run["name"] == "sgd":
        keys = dict(momentum=run["momentum"])
    else:
        keys = dict(beta1=run["beta1"], beta2=run["beta2"], eps=run["epsilon"])
    keys.update(weight_decay=run["weight_decay"], decay=run["decay"])
    if run["clip"]:
        keys["clip"] = run["clip"]
    return f"{run['name']}({','.join(f'{k}={v}' for k, v in keys.items())})"


def cases(first):
    """(name, golden file, its content, graph, optimizer, options of check.py[, of tmc compile, what its plan.json has]); with
    `first` the gradients and forms of each golden's first graph, and the optimizers of UPDATED, alone."""
    for path in sorted(glob.glob(os.path.join(HERE, "*.json"))):
        with open(path) as file:
            golden = json.load(file)
        # Exported programs have sizes of their own: those of the inputs here.
        programs = [graph for graph in golden["graphs"] if graph.endswith(".pt2")]
        for graph in golden["graphs"][:1] if first else golden["graphs"]:
            stem = os.path.basename(graph).removesuffix(".onnx")
            if "lora" in golden:  # Another program of the same graph.
                stem = os.path.basename(path).removesuffix(".json")
                lora = [f"--lora={golden['lora']}"]
                yield f"{stem}/gradients", path, golden, graph, "sgd(momentum=0,weight_decay=0)", ["--gradients"], lora
                yield f"{stem}/adamw", path, golden, graph, spec(golden["runs"]["adamw"]), ["--run", "adamw"], lora
                continue
            yield f"{stem}/gradients", path, golden, graph, "sgd(momentum=0,weight_decay=0)", ["--gradients"]
            if graph in programs[:1]:
                name, run = next(iter(golden["runs"].items()))
                saved = ["--state-dict"] if "state_dict" in golden else []
                yield f"{stem}/{name}", path, golden, graph, spec(run), ["--run", name, *saved]
            if graph != golden["graphs"][0]:
                continue  # The optimizer doesn't depend on how the graph was exported.
            for name, run in golden["runs"].items() if not first or stem == UPDATED else ():
                yield f"{stem}/{name}", path, golden, graph, spec(run), ["--run", name]
            for form, flags, planned in FORMED.get(stem, []):
                name, run = next(iter(golden["runs"].items()))
                yield f"{stem}/{name}, {form}", path, golden, graph, spec(run), ["--run", name], flags, planned


def run_case(options, extra, directory, path, golden, graph, optimizer, check, more=(), planned={}):
    dims = [f"--dim={name}={value}" for name, value in golden["dims"].items() if not graph.endswith(".pt2")]
    compiled = subprocess.run(
        [options.tmc, "compile", os.path.join(ROOT, graph), f"--target={options.target}", *dims, f"--optimizer={optimizer}", "--emit=lib",
         "--effort=20", "-o", directory, *more, *extra], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if compiled.returncode:
        return False, f"tmc compile ended with {compiled.returncode}\n{compiled.stdout}"
    with open(os.path.join(directory, "plan.json")) as file:
        plan = json.load(file)
    if any(plan[key] != value for key, value in planned.items()):
        return False, f"the plan hasn't {planned}"
    checked = subprocess.run(
        [sys.executable, os.path.join(HERE, "check.py"), directory, path, f"--threads={options.threads}", *check,
         *(["--planted"] if options.planted else [])],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return checked.returncode == 0, checked.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(ROOT, "build", "bin", "tmc"))
    parser.add_argument("--target", default="cpu", help="what the steps are compiled for")
    parser.add_argument("--only", default="", help="run the cases whose name holds this")
    parser.add_argument("--first", action="store_true", help="leave out other exports of the same models, and optimizers but for those of " + UPDATED)
    parser.add_argument("--keep", help="leave the compiled steps in this directory")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--planted", action="store_true", help="find planted faults, too")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the figures of what passed, too")
    parser.add_argument("extra", nargs="*", help="options of tmc compile")
    options = parser.parse_args()
    passed = failed = 0

    def one(name, case):
        directory = os.path.join(options.keep or scratch, re.sub(r"\W", "-", name))
        start = time.monotonic()
        good, text = run_case(options, options.extra, directory, *case)
        return name, good, text, time.monotonic() - start

    with tempfile.TemporaryDirectory(prefix="golden-") as scratch, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        chosen = [(name, case) for name, *case in cases(options.first) if options.only in name]
        if options.list:
            for name, case in chosen:
                print(name, case[3])
            return 0
        for name, good, text, seconds in pool.map(lambda each: one(*each), chosen):
            passed, failed = passed + good, failed + (not good)
            print(f"{'PASS' if good else 'FAIL'}: {name} ({seconds:.1f} s)", flush=True)
            if options.verbose or not good:
                print("   ", text.strip().replace("\n", "\n    "), flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
