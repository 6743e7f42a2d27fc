#!/usr/bin/env python3
"""What must hold of compiled steps; needs only the standard library.

    run.py --build build [--only SUBSTRING] [--jobs N] [--keep DIR]

For each model of MODELS: `tmc verify` agrees; 20 steps with dropout under budgets of 75 %,
50 % and 2 % of the way from the smallest workable one to the unconstrained need give the
unconstrained step's losses, gradient norms, parameters, states and moments bit for bit, as do
two threads, the code for another instruction set, saving and resuming in the middle, and poisoning
dead buffers; the arena's touched pages are the planned bytes, and no step allocates. Cutting the
batch into micro-batches changes losses by less than 1e-6 and parameters by less than 1e-5. A step compiled in one piece is the
same as one in several. Weights are written and read in 16 bits. Moments in 8 bits train as those in f32. A loss that is taken in chunks unasked has the bits of the whole one. A step refuses a processor without
its instructions. A calibration measures all kernels and transfers, and planning takes it. Planted faults are
found.

`--bench MODEL.onnx` does the same for one model given by `--batch`, `--dim`, `--data` and `--option`, and
prints what it measured (bench/same/README.md). Ends with one line `N passed, M failed`.
"""

import argparse
import concurrent.futures
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile

from case import Case
from models import ADAMW, BUDGETS, CHUNKED, MODELS
from planted import Faults
from targets import Targets
from trained import EFFORT, ROOT, Tally, run
from worlds import MPIRUN


class Calibration:
    """This machine as a target: measured once round, and planned with."""

    def __init__(self, options, scratch):
        self.tmc = os.path.join(options.build, "bin", "tmc")
        self.scratch, self.path = scratch, os.path.join(scratch, "here.json")

    def check(self, tally):
        ranks = ["--devices=2"] if MPIRUN and shutil.which("mpicxx") else []
        if not ranks:
            tally.skip("calibration of the network: there is no MPI")
        code, text = run([self.tmc, "calibrate", "-o", self.path, "--threads=1", "--rounds=1",
                          "--patience=0", f"--nvme={self.scratch}", *ranks])
        tally.test("calibration: measured", text if code else self.fault(text, ranks))
        if code:
            return
        code, text = run([self.tmc, "plan", os.path.join(ROOT, MODELS["gpt2-tiny"]["graph"]), f"--target={self.path}",
                          *MODELS["gpt2-tiny"]["options"], "--json"], stderr=subprocess.DEVNULL)
        with open(self.path) as file:
            name = json.load(file)["name"]
        tally.test("calibration: planned with", "" if code == 0 and json.loads(text)["target"] == name else text or f"ended with {code}")

    def fault(self, table, ranks):
        """All that is measured is there and is a number. How large it is says how busy the machine is: a fit's own
        tests have times of their own (test/unit/calibrate)."""
        with open(self.path) as file:
            target = json.load(file)
        families = target["families"]
        missing = {"AdamW", "Attention", "Conv", "Fused", "LinearCrossEntropyWithGrad", "Matmul"} - families.keys()
        if missing:
            return f"not measured: {missing}\n{table}"
        for name, rates in ((name, by_type["f32"]) for name, by_type in families.items()):
            if not (rates["launch_seconds"] >= 0 and min(rates["flops_per_second"], rates["bytes_per_second"]) > 0):
                return f"{name} has {rates}"
        for name, rates in target["engines"].items():
            if not rates["bytes_per_second"] > 0:
                return f"{name} has {rates}\n{table}"
        level = target["network"][-1]
        if ranks and not (level["name"] == "this machine by mpi" and level["latency_seconds"] >= 0 and level["bytes_per_second"] > 0
                          and "network of 2 ranks by mpi" in target["name"] and "64 MiB" in table):
            return f"the network is {level}:\n{table}"
        if not target["memory_bytes"]["host"] or not target["memory_bytes"]["file"]:
            return f"the memories have {target['memory_bytes']} bytes"
        if table.count("all at once") != 1 or "products beside" not in table:
            return f"no rates of all engines at once:\n{table}"
        if not importlib.util.find_spec("jsonschema"):
            return ""
        code, text = run([sys.executable, os.path.join(ROOT, "test", "tools", "tmc", "Inputs", "schemas.py"), "target", self.path])
        return text if code else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--only", default="", help="the models, `calibration`, `targets` or `faults`, whose name holds this")
    parser.add_argument("--target", default="cpu", help="what the models are compiled for")
    parser.add_argument("--keep", help="leave the compiled steps in this directory")
    parser.add_argument("--jobs", type=int, default=2, help="models at a time")
    parser.add_argument("--bench", help="a model file, instead of the small ones")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--data", action="append", default=[])
    parser.add_argument("--micro", type=int, action="append", default=[])
    parser.add_argument("--option", action="append", default=[], help="of `tmc compile`: --option=--precision=bf16")
    parser.add_argument("--optimizer", default=ADAMW)
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    os.environ["XDG_CACHE_HOME"] = os.path.join(options.build, "cache")  # Not the user's.
    tally = Tally()
    scratch = options.keep or tempfile.mkdtemp(prefix="steps-")
    try:
        if options.bench:
            EFFORT.clear()
            flags = ([f"--batch={options.batch}"] if options.batch else []) + [f"--dim={d}" for d in options.dim]
            model = dict(graph=os.path.abspath(options.bench), options=flags + options.option, inputs={},
                         data=options.data, budgets=list(BUDGETS), micro=options.micro, optimizer=options.optimizer)
            case = Case(os.path.basename(options.bench).removesuffix(".onnx"), model, options, scratch)
            case.check(tally)
            if case.plan(os.path.join(case.directory, "unconstrained"))["loss_chunk"]:
                case.check_chunks(tally)
        else:
            # What is short comes last, so that nothing waits for long at the end.
            work = [Calibration(options, scratch).check] if options.only in "calibration" else []
            work += [Case(n, m, options, scratch).check for n, m in MODELS.items() if options.only in n]
            work += [Case(n, m, options, scratch).check_chunks for n, m in CHUNKED.items() if options.only in n]
            if options.only in "targets":
                work.append(Targets(options, scratch).check)
            if options.only in "faults":
                work.append(Faults(options, scratch).check)
            with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                for done in [pool.submit(each, tally) for each in work]:
                    done.result()
    finally:
        if not options.keep:
            shutil.rmtree(scratch, ignore_errors=True)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
