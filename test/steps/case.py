"""One model's compiled steps, and what must hold of them (run.py says what)."""

import argparse
import array
import concurrent.futures
import json
import math
import os
import re
import shutil
import subprocess
import tempfile
import time

from models import ADAMW, BUDGETS
from targets import KERNELS, TILES, runs_here
from trained import EFFORT, ROOT, STEPS, TEXT, Checkpoint, Run, Tally, narrow, npy, run, widen

LOSS = 1e-6  # relative, of micro-batches against one
PARAMETERS = 1e-5  # relative, the norm over all


class Case:
    """One model: its compiled steps and what is asked of them."""

    def __init__(self, name, model, options, scratch):
        self.name, self.model, self.options = name, model, options
        self.tmc = os.path.join(options.build, "bin", "tmc")
        self.optimizer = model.get("optimizer", ADAMW)
        self.directory = os.path.join(scratch, name)
        os.makedirs(self.directory, exist_ok=True)
        self.data = list(model.get("data", []))
        for i, (each, (shape, kind)) in enumerate(model["inputs"].items()):
            path = os.path.join(self.directory, f"{each}.npy")
            npy(path, shape, kind, i)
            self.data.append(f"{each}={path}")
        if not self.data:
            self.data.append(TEXT)

    def compile(self, name, *flags, optimizer=None):
        """The directory of a step, and the output where there is none."""
        directory = os.path.join(self.directory, name)
        code, text = run([self.tmc, "compile", os.path.join(ROOT, self.model["graph"]), f"--target={self.options.target}",
                          f"--optimizer={optimizer or self.optimizer}", *self.model["options"], *EFFORT, *flags, "-o", directory])
        return directory, f"tmc compile ended with {code}\n{text}" if code else ""

    def smallest(self):
        """The smallest budget for which a plan is known, its arena packed."""
        code, text = run([self.tmc, "plan", os.path.join(ROOT, self.model["graph"]), f"--target={self.options.target}",
                          f"--optimizer={self.optimizer}", *self.model["options"], *EFFORT, "--budget=1", "--json"],
                         stderr=subprocess.DEVNULL)
        return json.loads(text)["smallest_found_bytes"] if code == 3 else None

    def plan(self, directory):
        with open(os.path.join(directory, "plan.json")) as file:
            return json.load(file)

    def check(self, tally):
        base, fault = self.compile("unconstrained")
        if fault:
            return tally.test(f"{self.name}: compile", fault)
        if not self.options.bench:
            code, text = run([self.tmc, "verify", "--threads=1", base])
            is_right = code == 0 if self.model.get("decided", True) else code == 1 and "rounding alone decides" in text
            tally.test(f"{self.name}: verify", "" if is_right else text)
        first = Run(base, "one-thread", self.data, "--threads=1")
        tally.test(f"{self.name}: {STEPS} steps", first.difference(first) or self.memory(first, base), self.figures(first, base))
        if first.code:
            return
        if any("delayed" in option for option in self.model["options"]):
            counts = [line.get("saturations", -1) for line in first.lines]
            tally.test(f"{self.name}: saturations are counted",
                       "" if counts[0] >= 0 and counts == sorted(counts) and counts[-1] > 0 else f"they are {counts}")
        self.check_same(tally, base, first)
        if not self.options.bench:
            self.check_targets(tally, base, first)
            if self.model.get("weights"):
                self.check_weights(tally, base)
        self.check_budgets(tally, base, first)
        self.check_micro_batches(tally, first)
        if self.model.get("as_adamw", self.optimizer != ADAMW) and not self.options.bench:
            self.check_rule(tally, base)

    def memory(self, done, directory):
        """The arena is what was planned, and nothing is outside it."""
        plan = self.plan(directory)
        page = os.sysconf("SC_PAGE_SIZE")
        for line in done.lines:
            if line["arena_bytes"] != plan["arena_bytes"]:
                return f"the arena has {line['arena_bytes']} bytes, {plan['arena_bytes']} were planned"
            if plan["budget_bytes"] is not None and line["arena_bytes"] > plan["budget_bytes"]:
                return f"the arena of {line['arena_bytes']} bytes is over the budget of {plan['budget_bytes']}"
            if line["allocations"] not in (0, None):
                return f"step {line['step']} allocates {line['allocations']} times outside the arena"
        # A kernel may leave pages of its scratch alone: it is planned for 16 workers.
        touched, most = done.lines[-1]["high_water_bytes"], -(-plan["arena_bytes"] // page) * page
        if not most - plan["peak_by_class"]["workspace"] <= touched <= most:
            return f"{touched} bytes are touched, {plan['arena_bytes']} were planned"
        return ""

    def figures(self, done, directory):
        if done.code:
            return ""
        plan = self.plan(directory)
        seconds = min(line["seconds"] for line in done.lines)
        touched = done.lines[-1]["high_water_bytes"]
        return (f"{plan['arena_bytes'] / 2**20:.2f} MiB planned, {touched / 2**20:.2f} touched, {plan['recomputed_ops']} recomputed, "
                f"{seconds:.3g} s a step, loss {done.lines[0]['loss']} -> {done.lines[-1]['loss']}")

    def check_same(self, tally, base, first):
        two = Run(base, "two-threads", self.data, "--threads=2")
        tally.test(f"{self.name}: two threads", two.difference(first))
        half = Run(base, "half", self.data, "--threads=1", steps=STEPS // 2)
        rest = Run(base, "resumed", self.data, "--threads=1", f"--resume={half.directory}", steps=STEPS - STEPS // 2, init=False)
        tally.test(f"{self.name}: saved and resumed at step {STEPS // 2}", rest.difference(first))
        poisoned = Run(base, "poisoned", self.data, "--threads=1", "--poison", steps=STEPS if not self.options.bench else 2)
        if self.options.bench:
            tally.test(f"{self.name}: dead buffers poisoned, 2 steps", "" if poisoned.losses() == first.losses()[:2] else "losses differ")
        else:
            tally.test(f"{self.name}: dead buffers poisoned", poisoned.difference(first))

    def check_weights(self, tally, base):
        """--save-weights writes the parameters alone, rounded; --weights reads them."""
        for kind in "BF16", "F16":
            label = f"{self.name}: weights in {kind.lower()}"
            saved = Run(base, f"weights-{kind}", self.data, "--threads=1", f"--save-weights={kind.lower()}", steps=3)
            if saved.code:
                tally.test(label, saved.text)
                continue
            weights, kept = Checkpoint(saved.directory, "model.safetensors"), saved.checkpoint
            moments = [n for n in kept.tensors if re.search(r"\.exp_avg(_sq)?$", n)]
            wrong = [n for n, data in weights.tensors.items() if weights.types[n] != kind or data != narrow(kept.tensors[n], kind)]
            wrong += sorted(weights.tensors.keys() ^ (kept.tensors.keys() - set(moments)))
            wrong += [] if moments and weights.metadata == {"format": "pt"} else [f"metadata {weights.metadata}"]
            tally.test(label, f"{len(wrong)} wrong: {', '.join(wrong[:4])}" if wrong else "", f"{len(weights.tensors)} tensors")
            # At a rate of 0 a step leaves what it has read; the sign of a zero is the update's.
            back = Run(base, f"weights-{kind}-read", self.data, "--threads=1", "--lr=0", "--seed=7",
                       f"--weights={os.path.join(saved.directory, 'model.safetensors')}", steps=1, init=False)
            wrong = [n for n, data in weights.tensors.items()
                     if back.code or array.array("f", back.checkpoint.tensors[n]) != array.array("f", widen(data, kind))]
            tally.test(f"{label}, read", f"{len(wrong)} differ: {', '.join(wrong[:4])}\n{back.text}" if wrong else "")
        bad = Run(base, "weights-bad", self.data, "--save-weights=f8", steps=1)
        tally.test(f"{self.name}: weights in an unknown type",
                   "" if bad.code == 2 and "--save-weights takes f32, bf16, f16 and trained, not 'f8'" in bad.text else f"{bad.code}\n{bad.text}")

    def check_rule(self, tally, base):
        """After 200 steps the loss is that of AdamW with moments in f32, to 1 %."""
        other, fault = self.compile("adamw", optimizer=ADAMW)
        if fault:
            return tally.test(f"{self.name}: adamw", fault)
        runs = [Run(each, "long", self.data, "--threads=1", *self.model.get("long", []), steps=200) for each in (base, other)]
        label = f"{self.name}: 200 steps as with adamw"
        if any(each.code for each in runs):
            return tally.test(label, "".join(each.text for each in runs))
        mine, wanted = (each.lines[-1]["loss"] for each in runs)
        tally.test(label, "" if abs(mine / wanted - 1) < 0.01 else "the losses differ", f"loss {mine} and {wanted}")

    def check_targets(self, tally, base, first):
        """The same bits from the code for another instruction set, where this processor has one. Tiles
        add up products of bf16 in an order of their own: then the instruction set before them."""
        mine = self.plan(base)["compiled_for"]
        if mine == TILES and re.search("bf16|bfloat16|fp8", " ".join(self.model["options"]) + self.model["graph"]):
            mine = "cpu:v4-bf16"
            directory, fault = self.compile("without-tiles", f"--target={mine}")
            if fault:
                return tally.test(f"{self.name}: {mine}", fault)
            first = Run(directory, "two-threads", self.data, "--threads=2")
        for target, kernels in KERNELS.items():
            if kernels == KERNELS[mine] or not runs_here(target):
                continue
            directory, fault = self.compile(target.replace(":", "-"), f"--target={target}")
            label = f"{self.name}: {target} as {mine}"
            if fault:
                tally.test(label, fault)
                continue
            done = Run(directory, "two-threads", self.data, "--threads=2")
            tally.test(label, done.difference(first))
            break

    def check_budgets(self, tally, base, first):
        low, high = self.smallest(), self.plan(base)["arena_bytes"]
        if low is None:
            return tally.test(f"{self.name}: smallest budget", "a budget of one byte doesn't end with code 3")
        for name in self.model["budgets"]:
            budget = math.ceil(low + BUDGETS[name] * (high - low))
            label = f"{self.name}: budget {budget} ({name} between {low} and {high})"
            directory, fault = self.compile(f"budget-{name.split()[0]}", f"--budget={budget}")
            if fault:
                tally.test(label, fault)
                continue
            done = Run(directory, "one-thread", self.data, "--threads=1")
            tally.test(label, done.difference(first) or self.memory(done, directory), self.figures(done, directory))
            if not self.options.bench:
                poisoned = Run(directory, "poisoned", self.data, "--threads=2", "--poison", steps=3)
                tally.test(f"{label}, poisoned", "" if poisoned.losses() == first.losses()[:3] else f"losses differ {poisoned.text}")

    def check_chunks(self, tally):
        """A loss in chunks, beside the whole one: without a budget, and in the smallest, where it may run twice."""
        runs, chunks = [], []
        for name, *flags in [("whole", "--loss-chunk=all"), ("chunks",), ("small", f"--budget={self.smallest()}")]:
            directory, fault = self.compile(name, *flags)
            if fault:
                return tally.test(f"{self.name}: {name}", fault)
            chunks.append(self.plan(directory)["loss_chunk"])
            runs.append(Run(directory, "two-threads", self.data, "--threads=2", steps=3))
        unlike = "" if chunks == [None, 256, 256] else f"the steps hold {chunks} rows of logits"
        tally.test(f"{self.name}: a loss in chunks", unlike or runs[1].difference(runs[0]))
        tally.test(f"{self.name}: a loss in chunks, the smallest budget", runs[2].difference(runs[0]))

    def check_micro_batches(self, tally, first):
        ten = None
        for count in self.model["micro"]:
            directory, fault = self.compile(f"micro-{count}", f"--micro-batches={count}")
            name = f"{self.name}: {count} micro-batches"
            if fault:
                tally.test(name, fault)
                continue
            if not self.options.bench:
                code, text = run([self.tmc, "verify", "--threads=1", directory])
                tally.test(f"{name}: verify", "" if code == 0 else text)
            ten = ten or Run(os.path.join(self.directory, "unconstrained"), "ten", self.data, "--threads=1", steps=10)
            done = Run(directory, "ten", self.data, "--threads=1", steps=10)
            if done.code:
                tally.test(name, done.text)
                continue
            loss = max(abs(a["loss"] - b["loss"]) / abs(b["loss"]) for a, b in zip(done.lines, ten.lines))
            distance = ten.checkpoint.distance(done.checkpoint)
            fault = self.memory(done, directory)
            if not (loss <= LOSS and distance <= PARAMETERS):
                fault += f"losses may be off by {LOSS}, parameters by {PARAMETERS}"
            tally.test(name, fault, f"losses off by {loss:.2g}, parameters by {distance:.2g} after ten steps")


def run_cases(description, name, make_cases, add_options=lambda parser: None, at_end=lambda options, cases: None):
    """The main program of a script whose cases are like those here: `make_cases(options, scratch)` lists them, and
    `at_end` sees them once they are done. Returns the exit code."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", help="a directory for the compiled steps")
    add_options(parser)
    options = parser.parse_args()
    options.build, options.bench = os.path.abspath(options.build), None
    os.environ["XDG_CACHE_HOME"] = os.path.join(options.build, "cache")  # Not the user's.
    tally = Tally()

    def check(case):
        begin = time.monotonic()
        case.check(tally)
        print(f"TIME: {case.name} ({time.monotonic() - begin:.1f} s)", flush=True)

    scratch = options.keep or tempfile.mkdtemp(prefix=f"tmc-{name}-")
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            cases = make_cases(options, scratch)
            for done in [pool.submit(check, case) for case in cases]:
                done.result()
        at_end(options, cases)
    finally:
        if not options.keep:
            shutil.rmtree(scratch, ignore_errors=True)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed or not tally.passed else 0
