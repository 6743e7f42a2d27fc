#!/usr/bin/env python3
"""Compare a compiled step with golden values; needs only the standard library.

    check.py STEP_DIR GOLDEN.json --run adamw        losses, norms, parameters, states of ten steps
    check.py STEP_DIR GOLDEN.json --gradients        every gradient of the first step
    check.py --self-test GOLDEN.json                 the comparison itself finds planted faults

STEP_DIR holds libstep.so. For --run the step must have been compiled with that run's
optimizer; for --gradients with plain SGD (no momentum, no decay, no clipping): one step at
a large rate r moves each parameter by r times its gradient, which is read back from that.

A tensor's error is estimated from its projections as the root mean square of their
differences (README.md); it may be 1e-4 of the tensor's norm or 1e-6 of the global one,
whichever is more, plus what single precision does to PyTorch itself.
"""

import argparse
import array
import ast
import copy
import ctypes
import json
import math
import os
import struct
import sys
import zlib

RELATIVE = 1e-4  # of a tensor's own norm
GLOBAL = 1e-6  # of the norm over all tensors compared
LOSS = 1e-5  # relative, of each loss
NOISE = 8  # times PyTorch's own rounding
RATE = 4096.0  # a power of two, so that dividing by it adds no rounding


class Options(ctypes.Structure):
    _fields_ = [("threads", ctypes.c_int32), ("guard_pages", ctypes.c_int32), ("poison", ctypes.c_int32),
                ("check_finite", ctypes.c_int32), ("seed", ctypes.c_uint64)]


class Statistics(ctypes.Structure):
    _fields_ = [("arena_bytes", ctypes.c_int64), ("high_water_bytes", ctypes.c_int64), ("allocations", ctypes.c_int64),
                ("largest_allocation_bytes", ctypes.c_int64), ("steps", ctypes.c_int64),
                ("last_step_seconds", ctypes.c_double), ("grad_norm", ctypes.c_double)]


class Step:
    """A compiled step behind its C interface (runtime/tmc.h)."""

    def __init__(self, directory, threads=1):
        self.api = ctypes.CDLL(os.path.join(directory, "libstep.so"))
        self.api.tmc_last_error.restype = ctypes.c_char_p
        options = Options()
        self.api.tmc_options_init(ctypes.byref(options))
        options.threads = threads
        self.step = ctypes.c_void_p()
        self.call("tmc_step_create", ctypes.byref(options), ctypes.byref(self.step), bare=True)

    def call(self, name, *arguments, bare=False):
        if getattr(self.api, name)(*(() if bare else (self.step,)), *arguments):
            raise SystemExit(f"{name}: {self.api.tmc_last_error().decode()}")

    def load(self, path):
        self.call("tmc_step_load", path.encode())

    def write(self, name, data):
        self.call("tmc_step_write", name.encode(), data, ctypes.c_int64(len(data)))

    def read(self, name, count):
        values = array.array("f", bytes(4 * count))
        address, _ = values.buffer_info()
        self.call("tmc_step_read", name.encode(), ctypes.c_void_p(address), ctypes.c_int64(4 * count))
        return values

    def run(self, rate):
        loss = ctypes.c_double()
        self.api.tmc_step_set_learning_rate(self.step, ctypes.c_double(rate))
        self.call("tmc_step_run", ctypes.byref(loss))
        return loss.value

    def grad_norm(self):
        statistics = Statistics()
        self.call("tmc_step_get_statistics", ctypes.byref(statistics))
        return statistics.grad_norm


def read_npy(path):
    """The raw little-endian data of a .npy file of version 1."""
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode())
    if header["fortran_order"] or header["descr"] not in ("<f4", "<i8"):
        raise SystemExit(f"{path}: unexpected layout {header}")
    return data[10 + length:]


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            tensors[name] = array.array("f", data[8 + length + begin:8 + length + end])
    return tensors


def mix(h):
    """MurmurHash3's finalizer, modulo 2^32."""
    h &= 0xFFFFFFFF
    h ^= h >> 16
    h = (h * 0x85EBCA6B) & 0xFFFFFFFF
    h ^= h >> 13
    h = (h * 0xC2B2AE35) & 0xFFFFFFFF
    return h ^ h >> 16


SIGNS = []


def signs(count, k):
    """The first `count` signs of projection `k`, as projection.py defines them; 1 is negative."""
    while len(SIGNS) <= k:
        SIGNS.append(bytearray())
    known = SIGNS[k]
    for i in range(len(known), count):
        known.append(mix(0x9E3779B1 * i + 0x85EBCA77 * (k + 1)) >> 31)
    return known


def generate(name, count, scale, offset):
    """A tensor that is in no file, as projection.py defines it."""
    start = zlib.crc32(name.encode())
    return array.array("f", (offset + scale * ((mix(0x9E3779B1 * i + start) >> 8) / (1 << 23) - 1) for i in range(count)))


def read_weights(golden, here):
    if isinstance(golden["weights"], str):
        return read_safetensors(os.path.join(here, golden["weights"]))
    return {n: generate(n, math.prod(shape), scale, offset) for n, (shape, scale, offset) in golden["weights"].items()}


def project(values, k):
    return math.fsum(-v if negative else v for v, negative in zip(values, signs(len(values), k)))


def compare(kind, golden, read):
    """Name each tensor of `golden` that `read(name, count)` gives too different; returns their number."""
    total = math.sqrt(sum(g["norm"] ** 2 for g in golden.values()))
    bad, worst = 0, (0.0, "none")
    for name, want in golden.items():
        values = read(name, math.prod(want["shape"]))
        allowed = max(RELATIVE * want["norm"], GLOBAL * total) + NOISE * want["noise"]
        dots = [project(values, k) - dot for k, dot in enumerate(want["dots"])]
        error = math.sqrt(sum(d * d for d in dots) / len(dots))
        error = max([error, abs(math.sqrt(math.fsum(v * v for v in values)) - want["norm"]),
                     *(abs(values[i] - entry) for i, entry in zip(want["at"], want["entries"]))])
        worst = max(worst, (error / allowed, name))
        if not error <= allowed:  # Not a number fails too.
            print(f"{kind} of {name}: off by {error:.3g}, {allowed:.3g} allowed (norm {want['norm']:.3g})")
            bad += 1
    print(f"{kind}: {len(golden)} tensors, {bad} wrong; largest error {worst[0]:.2g} of what is allowed, in {worst[1]}")
    return bad


def compare_numbers(kind, golden, got, relative, noise=None):
    bad = 0
    for i, (want, value) in enumerate(zip(golden, got)):
        allowed = relative * abs(want) + NOISE * abs(noise[i] if noise else 0)
        if not abs(value - want) <= allowed:
            print(f"{kind} at step {i}: {value:.9g}, {want:.9g} expected, {allowed:.2g} allowed")
            bad += 1
    worst = max(abs(v - w) / abs(w) for w, v in zip(golden, got))
    print(f"{kind}: {len(got)} steps, {bad} wrong, largest relative error {worst:.2g}")
    return bad


def start(directory, golden, here, threads):
    step = Step(directory, threads)
    if isinstance(golden["weights"], str):
        step.load(os.path.join(here, golden["weights"]))
    else:
        for name, values in read_weights(golden, here).items():
            step.write(name, values.tobytes())
    return step


def feed(step, golden, here):
    for name, path in golden["inputs"].items():
        step.write(name, read_npy(os.path.join(here, path)))


def check_run(directory, golden, here, name, threads):
    run = golden["runs"][name]
    step = start(directory, golden, here, threads)
    losses, norms = [], []
    for _ in run["losses"]:
        feed(step, golden, here)
        losses.append(step.run(run["lr"]))
        norms.append(step.grad_norm())
    bad = compare_numbers("loss", run["losses"], losses, LOSS, run["losses_noise"])
    if not any(math.isnan(n) for n in norms):
        bad += compare_numbers("gradient norm", run["gradient_norms"], norms, RELATIVE)
    bad += compare("parameter", run["parameters"], step.read)
    return bad + (compare("state", run["states"], step.read) if run["states"] else 0)


def check_gradients(directory, golden, here, threads):
    before = read_weights(golden, here)
    step = start(directory, golden, here, threads)
    feed(step, golden, here)
    loss = step.run(RATE)
    bad = compare_numbers("loss", [golden["loss"]], [loss], LOSS)

    def gradient(name, count):
        after = step.read(name, count)
        return array.array("d", ((p - q) / RATE for p, q in zip(before[name], after)))

    bad += compare("gradient", golden["gradients"], gradient)
    return bad + (compare("state", golden["states_after_forward"], step.read) if golden["states"] else 0)


def self_test(golden, here):
    """The weights stand for a result: unchanged they pass, with one planted fault they fail."""
    weights = read_weights(golden, here)
    summary = {}
    for name, values in weights.items():
        summary[name] = dict(
            shape=[len(values)], norm=math.sqrt(math.fsum(v * v for v in values)), at=[0], entries=[values[0]],
            dots=[project(values, k) for k in range(4)], noise=0.0)
    wrong = compare("unchanged", summary, lambda name, _: weights[name])
    for name in list(summary)[:3]:
        def swapped(other, _):
            values = copy.copy(weights[other])
            if other == name:  # Exchange two elements: no norm sees it.
                values[1], values[2] = values[2], values[1]
            return values

        def scaled(other, _):
            return array.array("f", (1.001 * v for v in weights[other])) if other == name else weights[other]

        wrong += compare(f"swapped in {name}", summary, swapped) != 1
        wrong += compare(f"scaled {name}", summary, scaled) != 1
    wrong += compare_numbers("loss", [1.0, 2.0], [1.0, 2.0001], LOSS) != 1
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", nargs="?", help="directory of a compiled step")
    parser.add_argument("golden", help="a .json file of this folder")
    parser.add_argument("--run")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    with open(options.golden) as file:
        golden = json.load(file)
    here = os.path.dirname(os.path.abspath(options.golden))
    bad = 0
    if options.self_test:
        bad += self_test(golden, here)
    if options.gradients:
        bad += check_gradients(options.step, golden, here, options.threads)
    if options.run:
        bad += check_run(options.step, golden, here, options.run, options.threads)
    if not (options.self_test or options.gradients or options.run):
        parser.error("nothing to check: give --run, --gradients or --self-test")
    print("FAILED" if bad else "PASSED")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
