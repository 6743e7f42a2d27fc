"""What tmc and trainers are called with, and what they leave."""

import array
import json
import math
import os
import random
import re
import shutil
import struct
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
TEXT = os.path.join(ROOT, "examples", "data", "text.u16.bin")
STEPS = 20
# What must hold of any plan holds of quick ones; tools/check --full has the planner do all of its work.
EFFORT = [] if os.environ.get("TMC_TEST_FULL") else ["--effort=20"]


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
    elif kind == "positive":
        data, descr = array.array("f", (0.5 + draw.random() for _ in range(count))), "<f4"
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
        moments = re.compile(r"\.(exp_avg|exp_avg_sq|momentum_buffer)$|^loss_scale$")
        square = norm = 0.0
        for name, data in self.tensors.items():
            if moments.search(name) or self.types[name] != "F32":
                continue
            a, b = array.array("f", data), array.array("f", other.tensors[name])
            square += math.fsum((x - y) ** 2 for x, y in zip(a, b))
            norm += math.fsum(x * x for x in a)
        return math.sqrt(square / norm)


def has_base(step):
    """True if the step has parameters that aren't trained: no checkpoint has them."""
    with open(os.path.join(step, "plan.json")) as file:
        return json.load(file)["values"]["frozen"]["count"] > 0


class Run:
    """One call of a trainer: its log and its checkpoint."""

    def __init__(self, step, name, data, *flags, steps=STEPS, init=True):
        self.directory = os.path.join(step, "runs", name)
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)
        log = os.path.join(self.directory, "log.jsonl")
        start = ["--init", "random:1", "--seed", "7"] if init else []
        if not init and any(flag.startswith("--resume") for flag in flags) and has_base(step):
            start = ["--init", "random:1"]
        rate = [] if any(flag.startswith("--lr=") for flag in flags) else ["--lr=1e-3"]
        begin = time.monotonic()
        self.code, self.text = self.call(
            [os.path.join(step, "train"), *[f"--data={d}" for d in data], f"--steps={steps}", *rate, "--quiet",
             f"--save={self.directory}", f"--log={log}", *start, *flags])
        self.seconds = time.monotonic() - begin
        # Of the log: steps, and evaluations.
        self.lines, self.evaluations = [], []
        if self.code == 0:
            with open(log) as file:
                lines = [json.loads(line) for line in file]
            self.lines = [line for line in lines if line["kind"] == "step"]
            self.evaluations = [line for line in lines if line["kind"] == "eval"]
            self.checkpoint = Checkpoint(self.directory)

    def call(self, command):
        return run(command)

    def losses(self):
        return [(line["step"], line["loss"], line["grad_norm"]) for line in self.lines]

    def difference(self, other):
        for each in (self, other):
            if each.code:
                return f"the trainer ended with {each.code}: {each.text}"
        mine, others = self.losses(), other.losses()[-len(self.losses()):]
        if len(mine) != len(others):
            return f"there are {len(mine)} steps and {len(others)}"
        if mine != others:
            first = next((m, o) for m, o in zip(mine, others) if m != o)
            return f"step, loss and gradient norm are {first[0]} and {first[1]}"
        return self.checkpoint.difference(other.checkpoint)
