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
its instructions. A calibration knows what is expensive, and planning takes it. Planted faults are
found.

`--bench MODEL.onnx` does the same for one model given by `--batch`, `--dim`, `--data` and `--option`, and
prints what it measured (bench/same/README.md). Ends with one line `N passed, M failed`.
"""

import argparse
import array
import concurrent.futures
import json
import math
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
TEXT = os.path.join(ROOT, "examples", "data", "text.u16.bin")

STEPS = 20
BUDGETS = {"75 %": 0.75, "50 %": 0.5, "2 %": 0.02}
LOSS = 1e-6  # relative, of micro-batches against one
PARAMETERS = 1e-5  # relative, the norm over all
ADAMW = "adamw(weight_decay=0.1,clip=1.0)"

# Name: graph, options of tmc compile, inputs (name: shape, kind), budgets, micro-batches, optimizer.
# Kinds: `text` tokens, `below N` integers, `mask` ones with some zeros, `normal` floats.
MODELS = {
    "gpt2-tiny": dict(
        graph="test/models/gpt2-tiny-dropout.onnx", options=["--batch=4", "--dim=sequence=32"],
        inputs={}, budgets=list(BUDGETS), micro=[2, 4], weights=True),
    "llama-tiny": dict(
        graph="test/models/llama-tiny.onnx", options=["--batch=2", "--dim=sequence=32"],
        inputs={}, budgets=["2 %"], micro=[]),
    "bert-tiny": dict(
        graph="test/models/bert-tiny-mlm.onnx", options=["--batch=4", "--dim=sequence=16"],
        inputs={"input_ids": ([64, 16], "below 128"), "labels": ([64, 16], "below 128"),
                "attention_mask": ([64, 16], "mask")}, budgets=["2 %"], micro=[2]),
    "unet-tiny": dict(
        graph="test/models/unet-tiny.onnx", options=["--batch=2"],
        inputs={"image": ([8, 3, 32, 32], "normal"), "target": ([8, 3, 32, 32], "normal")}, budgets=["2 %"], micro=[]),
    "resnet-tiny": dict(
        graph="examples/resnet-tiny.onnx", options=["--batch=8"],
        inputs={"image": ([32, 3, 24, 24], "normal"), "label": ([32], "below 8")}, budgets=["2 %"], micro=[]),
    "gpt2-tiny, moments in 8 bits": dict(
        graph="test/models/gpt2-tiny-dropout.onnx", options=["--batch=4", "--dim=sequence=32"],
        inputs={}, budgets=["2 %"], micro=[], optimizer="adamw8bit(weight_decay=0.1,clip=1.0)"),
    "gpt2-tiny, moments in 4 bits": dict(
        graph="test/models/gpt2-tiny-dropout.onnx", options=["--batch=4", "--dim=sequence=32"],
        inputs={}, budgets=["2 %"], micro=[], optimizer="adamw4bit(weight_decay=0.1,clip=1.0)",
        long=["--lr=3e-3", "--lr-schedule=cosine:warmup=10"]),
    "gpt2-tiny, adafactor": dict(
        graph="test/models/gpt2-tiny-dropout.onnx", options=["--batch=4", "--dim=sequence=32"],
        inputs={}, budgets=["2 %"], micro=[2], optimizer="adafactor(weight_decay=0.1,clip=1.0)", as_adamw=False),
    "resnet-tiny, adafactor without masters": dict(
        graph="examples/resnet-tiny.onnx", options=["--batch=8"],
        inputs={"image": ([32, 3, 24, 24], "normal"), "label": ([32], "below 8")}, budgets=["2 %"], micro=[],
        optimizer="adafactor(master=none)", as_adamw=False),
    "gpt2-tiny, lion": dict(
        graph="test/models/gpt2-tiny-dropout.onnx", options=["--batch=4", "--dim=sequence=32"],
        inputs={}, budgets=["2 %"], micro=[], optimizer="lion(weight_decay=0.1,clip=1.0)", as_adamw=False),
    "gpt2-tiny, bf16": dict(
        graph="test/models/gpt2-tiny-dropout.onnx",
        options=["--batch=4", "--dim=sequence=32", "--precision=bf16"],
        inputs={}, budgets=list(BUDGETS), micro=[]),
    "gpt2-tiny, bf16 alone": dict(
        graph="test/models/gpt2-tiny-dropout.onnx",
        options=["--batch=4", "--dim=sequence=32", "--precision=bf16,gradients=bf16"],
        inputs={}, budgets=["2 %"], micro=[], optimizer="adamw(master=none,moments=bf16,clip=1.0)"),
    # Steps 1, 6, 11 and 16 overflow and are skipped.
    "gpt2-tiny, fp16": dict(
        graph="test/models/gpt2-tiny-dropout.onnx",
        options=["--batch=4", "--dim=sequence=32", "--precision=fp16",
                 "--loss-scale=dynamic(start=4294967296,growth=65536,backoff=0.0000152587890625,interval=4)"],
        inputs={}, budgets=["50 %", "2 %"], micro=[]),
    "gpt2-tiny, exported in 16 bits": dict(
        graph="test/models/gpt2-tiny-half.onnx", options=["--batch=4", "--dim=sequence=32"], inputs={}, budgets=["2 %"],
        micro=[]),
    "gpt2-tiny, fp8": dict(
        graph="test/models/gpt2-tiny-dropout.onnx",
        options=["--batch=4", "--dim=sequence=32", "--precision=fp8,lm_head=bf16"],
        inputs={}, budgets=list(BUDGETS), micro=[]),
    "gpt2-tiny, fp8 delayed": dict(
        graph="test/models/gpt2-tiny-dropout.onnx",
        options=["--batch=4", "--dim=sequence=32", "--precision=fp8:delayed,lm_head=bf16"],
        inputs={}, budgets=["50 %", "2 %"], micro=[]),
    "llama-tiny, fp8 in blocks": dict(
        graph="test/models/llama-tiny.onnx", options=["--batch=2", "--dim=sequence=32", "--precision=fp8:block"],
        inputs={}, budgets=["2 %"], micro=[]),
    "llama-tiny, bf16": dict(
        graph="test/models/llama-tiny.onnx", options=["--batch=2", "--dim=sequence=32", "--precision=bf16,lm_head=f32"],
        inputs={}, budgets=["2 %"], micro=[]),
    "unet-tiny, bf16": dict(
        graph="test/models/unet-tiny.onnx", options=["--batch=2", "--precision=bf16"],
        inputs={"image": ([8, 3, 32, 32], "normal"), "target": ([8, 3, 32, 32], "normal")}, budgets=["2 %"], micro=[]),
    # A few numbers that rounding puts on the other side of a ReLU decide what bf16 gives: `tmc verify`
    # has to say so. (test/golden holds the gradients to PyTorch's.)
    "resnet-tiny, bf16": dict(
        graph="examples/resnet-tiny.onnx", options=["--batch=8", "--precision=bf16"], decided=False,
        inputs={"image": ([32, 3, 24, 24], "normal"), "label": ([32], "below 8")}, budgets=["2 %"], micro=[]),
    # Two tables of 5 and 7 rows: `tmc verify` draws each column below its own limit.
    "noted-tiny": dict(
        graph="test/models/noted-tiny.onnx", options=[],
        inputs={"cats": ([24, 2], "below 5"), "label": ([24], "below 6")}, budgets=[], micro=[]),
}

# Of more rows than the chunks that a loss is taken in unasked, and without and with a bias.
CHUNKED = {
    "gpt2-tiny, 320 rows": dict(
        graph="test/models/gpt2-tiny-dropout.onnx", options=["--batch=10", "--dim=sequence=32"], inputs={}),
    "bert-tiny, 320 rows": dict(
        graph="test/models/bert-tiny-mlm.onnx", options=["--batch=20", "--dim=sequence=16"],
        inputs={"input_ids": ([60, 16], "below 128"), "labels": ([60, 16], "below 128"),
                "attention_mask": ([60, 16], "mask")}),
}


# Targets by the kernels that their library is made of.
KERNELS = {"cpu:v3": "v3", "cpu:v4": "v4", "cpu:v4-bf16": "v4", "cpu:v4-amx": "v4"}
TILES = "cpu:v4-amx"  # The bits of its products of bf16 are its own.
ASKED = {"cpu:v3": "avx2 fma f16c bmi1 bmi2 abm movbe", "cpu:v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
         "cpu:v4-bf16": "avx512_bf16", "cpu:v4-amx": "amx_tile amx_bf16"}


def runs_here(target):
    """By what the system says of the processor; each target asks for what those before it do."""
    with open("/proc/cpuinfo") as file:
        flags = set(re.search(r"^flags\s*:(.*)$", file.read(), re.M).group(1).split())
    names = list(ASKED)
    return all(set(ASKED[name].split()) <= flags for name in names[:names.index(target) + 1])


class Tally:
    def __init__(self):
        self.passed, self.failed = 0, 0

    def skip(self, why):
        print(f"SKIP: {why}", flush=True)

    def test(self, name, fault, figures=""):
        """`fault` is "" where all is well."""
        self.passed, self.failed = self.passed + (not fault), self.failed + bool(fault)
        print(f"{'FAIL' if fault else 'PASS'}: {name}{': ' + figures if figures else ''}", flush=True)
        if fault:
            print("    " + fault.strip().replace("\n", "\n    "), flush=True)


def npy(path, shape, kind, seed):
    """An array of random numbers, of float32 or int64."""
    draw = random.Random(seed)
    count = math.prod(shape)
    if kind == "normal":
        data, descr = array.array("f", (draw.gauss(0, 1) for _ in range(count))), "<f4"
    elif kind == "mask":
        data, descr = array.array("q", (int(i % shape[-1] == 0 or draw.random() < 0.8) for i in range(count))), "<i8"
    else:
        data, descr = array.array("q", (draw.randrange(int(kind.split()[1])) for _ in range(count))), "<i8"
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data.tobytes())


def run(command, stderr=subprocess.STDOUT):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
    return done.returncode, done.stdout


def narrow(data, kind):
    """The bytes of floats rounded to 16 bits, to nearest, ties to even."""
    values = array.array("f", data)
    if kind == "F16":
        return struct.pack(f"<{len(values)}e", *values)
    bits = array.array("I", data)
    return array.array("H", (b + 0x7FFF + (b >> 16 & 1) >> 16 for b in bits)).tobytes()


def widen(data, kind):
    """Back to floats of 32 bits, which hold them."""
    if kind == "F16":
        return array.array("f", struct.unpack(f"<{len(data) // 2}e", data)).tobytes()
    return array.array("I", (b << 16 for b in array.array("H", data))).tobytes()


class Checkpoint:
    """A safetensors file: the bytes of each tensor, and what the metadata says."""

    def __init__(self, directory, name="checkpoint.safetensors"):
        with open(os.path.join(directory, name), "rb") as file:
            data = file.read()
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + length])
        self.metadata = header.pop("__metadata__")
        self.types = {n: e["dtype"] for n, e in header.items()}
        self.tensors = {n: data[8 + length + e["data_offsets"][0]:8 + length + e["data_offsets"][1]] for n, e in header.items()}

    def difference(self, other):
        """Names what isn't the same bit for bit; "" where all is."""
        if self.tensors.keys() != other.tensors.keys():
            return "the checkpoints hold different tensors"
        wrong = [n for n in self.tensors if self.tensors[n] != other.tensors[n]]
        if wrong:
            return f"{len(wrong)} of {len(self.tensors)} tensors differ: {', '.join(wrong[:4])}"
        if self.metadata != other.metadata:
            return f"the checkpoints say {self.metadata} and {other.metadata}"
        return ""

    def distance(self, other):
        """The norm of the difference over the norm, over all parameters."""
        moments = re.compile(r"\.(exp_avg|exp_avg_sq|momentum_buffer)$")
        square = norm = 0.0
        for name, data in self.tensors.items():
            if moments.search(name) or self.types[name] != "F32":
                continue
            a, b = array.array("f", data), array.array("f", other.tensors[name])
            square += math.fsum((x - y) ** 2 for x, y in zip(a, b))
            norm += math.fsum(x * x for x in a)
        return math.sqrt(square / norm)


class Run:
    """One call of a trainer: its log and its checkpoint."""

    def __init__(self, step, name, data, *flags, steps=STEPS, init=True):
        self.directory = os.path.join(step, "runs", name)
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)
        log = os.path.join(self.directory, "log.jsonl")
        start = ["--init", "random:1", "--seed", "7"] if init else []
        rate = [] if any(flag.startswith("--lr=") for flag in flags) else ["--lr=1e-3"]
        begin = time.monotonic()
        self.code, self.text = run(
            [os.path.join(step, "train"), *[f"--data={d}" for d in data], f"--steps={steps}", *rate, "--quiet",
             f"--save={self.directory}", f"--log={log}", *start, *flags])
        self.seconds = time.monotonic() - begin
        self.lines = []
        if self.code == 0:
            with open(log) as file:
                self.lines = [json.loads(line) for line in file]
            self.checkpoint = Checkpoint(self.directory)

    def losses(self):
        return [(line["step"], line["loss"], line["grad_norm"]) for line in self.lines]

    def difference(self, other):
        for each in (self, other):
            if each.code:
                return f"the trainer ended with {each.code}: {each.text}"
        mine, others = self.losses(), other.losses()[-len(self.losses()):]
        if mine != others:
            first = next((m, o) for m, o in zip(mine, others) if m != o)
            return f"step, loss and gradient norm are {first[0]} and {first[1]}"
        return self.checkpoint.difference(other.checkpoint)


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
                          f"--optimizer={optimizer or self.optimizer}", *self.model["options"], *flags, "-o", directory])
        return directory, f"tmc compile ended with {code}\n{text}" if code else ""

    def smallest(self):
        """The smallest budget for which a plan is known, its arena packed."""
        code, text = run([self.tmc, "plan", os.path.join(ROOT, self.model["graph"]), f"--target={self.options.target}",
                          f"--optimizer={self.optimizer}", *self.model["options"], "--budget=1", "--json"], stderr=subprocess.DEVNULL)
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
                   "" if bad.code == 2 and "--save-weights takes f32, bf16 or f16, not 'f8'" in bad.text else f"{bad.code}\n{bad.text}")

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


class Calibration:
    """This machine as a target: measured once round, and planned with."""

    def __init__(self, options, scratch):
        self.tmc = os.path.join(options.build, "bin", "tmc")
        self.scratch, self.path = scratch, os.path.join(scratch, "here.json")

    def check(self, tally):
        code, text = run([self.tmc, "calibrate", "-o", self.path, "--threads=1", "--rounds=1", f"--nvme={self.scratch}"])
        tally.test("calibration: measured", text if code else self.fault(text))
        if code:
            return
        code, text = run([self.tmc, "plan", os.path.join(ROOT, MODELS["gpt2-tiny"]["graph"]), f"--target={self.path}",
                          *MODELS["gpt2-tiny"]["options"], "--json"], stderr=subprocess.DEVNULL)
        with open(self.path) as file:
            name = json.load(file)["name"]
        tally.test("calibration: planned with", "" if code == 0 and json.loads(text)["target"] == name else text or f"ended with {code}")

    def fault(self, table):
        """Coarse on purpose: rates differ by the moment, but not by the orders of magnitude between kernels."""
        with open(self.path) as file:
            target = json.load(file)
        families = target["families"]
        missing = {"AdamW", "Attention", "Conv", "Fused", "LinearCrossEntropyWithGrad", "Matmul"} - families.keys()
        if missing:
            return f"not measured: {missing}\n{table}"

        def seconds(family, flops, moved):
            rates = families[family]["f32"]
            return rates["launch_seconds"] + max(flops / rates["flops_per_second"], moved / rates["bytes_per_second"])
        for name, rates in ((name, by_type["f32"]) for name, by_type in families.items()):
            if not (0 <= rates["launch_seconds"] < 1 and min(rates["flops_per_second"], rates["bytes_per_second"]) > 1e3):
                return f"{name} has {rates}"
        host, file = target["host"], target["file"]
        channels = {"to_host": host["to_host"], "to_device": host["to_device"], "updates": host["updates"],
                    "write": file["write"], "read": file["read"]}
        for name, rates in channels.items():
            if not 1e6 < rates["bytes_per_second"] < 1e13:
                return f"{name} has {rates}\n{table}"
        if not host["memory_bytes"] or not file["bytes"]:
            return f"the host has {host['memory_bytes']} bytes, the file {file['bytes']}"
        if table.count("all at once") != 1 or "products beside" not in table:
            return f"no rates of all engines at once:\n{table}"
        # A product of 512 x 768 x 3072 takes longer than dropping out a row of it.
        if seconds("Matmul", 2 * 512 * 768 * 3072, 4 * (512 * 768 + 768 * 3072 + 512 * 3072)) < seconds("Fused", 3072, 8 * 3072):
            return f"a product is cheaper than one of its rows\n{table}"
        return ""


class Targets:
    """A step runs where its instructions are, and refuses where they aren't; its check runs anywhere."""

    def __init__(self, options, scratch):
        self.options, self.directory = options, os.path.join(scratch, "targets")
        self.tmc = os.path.join(options.build, "bin", "tmc")
        self.libraries = os.path.join(options.build, "lib")
        digits = os.path.join(ROOT, "examples", "data", "digits-")
        self.data = [f"image={digits}image.npy", f"label={digits}label.npy"]

    def check(self, tally):
        steps = {}
        for target in KERNELS:
            if not os.path.exists(os.path.join(self.libraries, f"libtmc-runtime-{target.replace(':', '-')}.a")):
                tally.skip(f"targets: the compiler doesn't know {target}")
                continue
            directory = os.path.join(self.directory, target.replace(":", "-"))
            code, text = run([self.tmc, "compile", os.path.join(ROOT, "examples/mlp.onnx"), f"--target={target}", "-o", directory])
            tally.test(f"targets: {target} compiles", text if code else "")
            steps[target] = directory
        for target, directory in steps.items():
            done = Run(directory, "here", self.data, "--threads=1", steps=2)
            if runs_here(target):
                tally.test(f"targets: {target} runs here", "" if done.code == 0 else f"ended with {done.code}: {done.text}")
            else:
                tally.test(f"targets: {target} refuses this processor", self.refusal(target, done.code, done.text))
        self.check_objects(tally)
        self.check_emulated(tally, steps)

    def refusal(self, target, code, text):
        good = code == 74 and f"the step was compiled for {target}; this processor, or its operating system, lacks " in text
        return "" if good else f"ended with {code}: {text}"

    def check_objects(self, tally):
        """Nothing of a set runs before the check: no static initializer, and the check itself is for any x86-64."""
        wrong = []
        for library in sorted(os.listdir(self.libraries)):
            if not re.fullmatch(r"libtmc-(runtime-cpu-.*|trainer)\.a", library):
                continue
            path = os.path.join(self.libraries, library)
            code, text = run(["readelf", "-SW", path])
            if code or re.search(r"\.(init_array|ctors|preinit_array)", text):
                wrong.append(f"{library} has static initializers")
            code, text = run(["objdump", "-d", "--no-show-raw-insn", path])
            for part in re.split(r"^(?=\S+\.o:)", text, flags=re.M):
                name = part.split(".", 1)[0]
                if name in ("Api", "StartCheck", "Processor", "Train", "AllocationHook") and re.search(r"%[yz]mm|\sv\w+ps", part):
                    wrong.append(f"{name} of {library} has vectors of a set")
        tally.test("targets: nothing runs before the check", "\n".join(wrong))

    def check_emulated(self, tally, steps):
        emulator = shutil.which("qemu-x86_64")
        if not emulator:
            return tally.skip("targets: other processors: no qemu-x86_64 (Debian: qemu-user)")
        if "cpu:v4" not in steps:
            return tally.skip("targets: other processors: no cpu:v4")
        words = [f"--data={d}" for d in self.data] + ["--steps=2", "--init=random:1", "--threads=1", "--seed=7", "--lr=1e-3"]
        for processor, target in [("Nehalem", "cpu:v3"), ("Haswell", "cpu:v4")]:
            code, text = run([emulator, "-cpu", processor, os.path.join(steps[target], "train"), *words])
            tally.test(f"targets: {target} refuses a {processor}", self.refusal(target, code, text))
            script = ("import ctypes, sys; api = ctypes.CDLL(sys.argv[1]); step = ctypes.c_void_p(); "
                      "api.tmc_last_error.restype = ctypes.c_char_p; code = api.tmc_step_create(None, ctypes.byref(step)); "
                      "print(api.tmc_last_error().decode()); sys.exit(code)")
            code, text = run([emulator, "-cpu", processor, os.path.realpath(sys.executable), "-c", script,
                              os.path.join(steps[target], "libstep.so")])
            tally.test(f"targets: libstep.so for {target} refuses a {processor}", self.refusal(target, code, text))
        if not runs_here("cpu:v3"):
            return tally.skip("targets: the bits of another processor: this one has no AVX2")
        saved = os.path.join(self.directory, "haswell")
        here = Run(steps["cpu:v3"], "again", self.data, "--threads=1", steps=2)
        code, text = run([emulator, "-cpu", "Haswell", os.path.join(steps["cpu:v3"], "train"), *words, f"--save={saved}"])
        tally.test("targets: cpu:v3 has the same bits on a Haswell",
                   text if code else here.text if here.code else Checkpoint(saved).difference(here.checkpoint))


class Faults:
    """Faults that are planted in a step; each must be found."""

    def __init__(self, options, scratch):
        self.options, self.directory = options, os.path.join(scratch, "faults")
        self.tmc = os.path.join(options.build, "bin", "tmc")
        with open(os.path.join(options.build, "CMakeCache.txt")) as file:
            cache = dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.M))
        self.compiler, self.flags = cache["CMAKE_CXX_COMPILER"], re.split("[; ]", cache["TMC_RUNTIME_CPU_FLAGS"])

    def compile(self, name, *flags):
        directory = os.path.join(self.directory, name)
        code, text = run([self.tmc, "compile", os.path.join(ROOT, "examples/mlp.onnx"), "--target=cpu:v3", "--batch=4",
                          "--emit=lib", *flags, "-o", directory])
        if code:
            raise SystemExit(text)
        return directory

    def link(self, directory, text):
        """Makes libstep.so anew from changed text."""
        with open(os.path.join(directory, "step.cpp"), "w") as file:
            file.write(text)
        self.build(directory, "-fPIC", "-shared", "-Wl,--whole-archive", self.runtime(), "-Wl,--no-whole-archive",
                   output="libstep.so")

    def runtime(self):
        return os.path.join(self.options.build, "lib", "libtmc-runtime-cpu-v3.a")

    def build(self, directory, *words, output):
        """Compiles step.cpp as it stands, in one piece."""
        flags = [f for f in self.flags if not f.startswith("-march=")] + ["-march=x86-64-v3"]
        code, out = run([self.compiler, "-std=c++20", *flags, "-I", ROOT, os.path.join(directory, "step.cpp"), *words,
                         "-o", os.path.join(directory, output), "-pthread"])
        if code:
            raise SystemExit(out)

    def verify(self, directory, message):
        code, text = run([self.tmc, "verify", "--threads=1", directory])
        return "" if code == 1 and re.search(message, text) else f"tmc verify ended with {code}\n{text}"

    def own_weights(self):
        """`tmc verify` takes the directory's weights: an infinite one is found."""
        directory = os.path.join(self.directory, "weights")
        code, text = run([self.tmc, "compile", os.path.join(ROOT, "test/models/mlp-small.onnx"), "--target=cpu", "--batch=4",
                          "--emit=lib", "--weights", os.path.join(ROOT, "test/golden/mlp-small.safetensors"), "-o", directory])
        if code:
            return text
        path = os.path.join(directory, "weights.safetensors")
        code, text = run([self.tmc, "verify", "--threads=1", directory])
        if code or f"weights of {path}" not in text:
            return f"tmc verify ended with {code}\n{text}"
        with open(path, "r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.write(struct.pack("<f", math.inf))
        return self.verify(directory, "the reference's loss isn't finite")

    def check(self, tally):
        good = self.compile("good")
        with open(os.path.join(good, "step.cpp")) as file:
            text = file.read()
        other = self.compile("other", "--optimizer=adamw(beta2=0.998)")
        shutil.copy(os.path.join(other, "libstep.so"), os.path.join(good, "libstep.so"))
        tally.test("faults: another beta2 is found", self.verify(good, r"error: the compiled step isn't what .* off by"))
        # Each launch that takes a bias takes the bytes 64 further on.
        offsets = re.findall(r"run\(s, \{at\(0x[0-9a-f]+\), at\(0x[0-9a-f]+\), at\((0x[0-9a-f]+)\)", text)
        if not offsets:
            return tally.test("faults: a launch to change", "the emitted text has no launch of the expected form")
        moved = hex(int(offsets[0], 16) + 64)
        self.link(good, re.sub(rf"(run\(s, \{{at\(0x[0-9a-f]+\), at\(0x[0-9a-f]+\), at\(){offsets[0]}\)", rf"\g<1>{moved})", text, count=1))
        tally.test("faults: a wrong offset is found", self.verify(good, r"error: the compiled step isn't what .* off by"))
        small = self.compile("small", "--batch=2")
        shutil.copy(os.path.join(small, "libstep.so"), os.path.join(good, "libstep.so"))
        tally.test("faults: a step of another batch is found", self.verify(good, r"isn't of step.mlir: .* is 2x784"))
        self.check_comparison(tally)
        tally.test("faults: weights of the directory are read", self.own_weights())

    def check_comparison(self, tally):
        """One changed bit of a checkpoint, and one of a log, are differences."""
        base, fault = Case("faults", MODELS["gpt2-tiny"], self.options, self.directory).compile("base")
        one = Run(base, "one", [TEXT], "--threads=1", steps=2)
        self.build(base, os.path.join(self.options.build, "lib", "libtmc-trainer.a"), self.runtime(), output="train")
        whole = Run(base, "whole", [TEXT], "--threads=1", steps=2)
        tally.test("faults: a step compiled in one piece is the same", whole.difference(one))
        same = Run(base, "two", [TEXT], "--threads=1", steps=2)
        other = Run(base, "other", [TEXT], "--threads=1", "--seed=8", steps=2)
        tally.test("faults: two runs are the same", one.difference(same))
        tally.test("faults: another seed of dropout isn't", "" if "loss" in one.difference(other) else "not found")
        name = next(n for n in same.checkpoint.tensors if n.endswith("exp_avg_sq"))
        data = bytearray(same.checkpoint.tensors[name])
        data[8] ^= 1
        same.checkpoint.tensors[name] = bytes(data)
        tally.test("faults: one bit of a moment isn't", "" if name in one.difference(same) else "not found")


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
    scratch = options.keep or tempfile.mkdtemp(prefix=f"tmc-{name}-")
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            cases = make_cases(options, scratch)
            for done in [pool.submit(case.check, tally) for case in cases]:
                done.result()
        at_end(options, cases)
    finally:
        if not options.keep:
            shutil.rmtree(scratch, ignore_errors=True)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed or not tally.passed else 0


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
