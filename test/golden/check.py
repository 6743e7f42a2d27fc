#!/usr/bin/env python3
"""Compare a compiled step with golden values; needs only the standard library.

    check.py STEP_DIR GOLDEN.json --run adamw        losses, norms, parameters, states of ten steps
    check.py STEP_DIR GOLDEN.json --gradients        every gradient of the first step
    check.py --self-test GOLDEN.json                 the comparison itself finds planted faults

STEP_DIR holds libstep.so. For --run the step must have been compiled with that run's
optimizer; for --gradients with plain SGD (no momentum, no decay, no clipping): one step at
a large rate r moves each parameter by r times its gradient, which is read back from that.

A tensor's error is estimated from its projections as the root mean square of their
differences; README.md says how much is allowed and why. With --planted a step that passes is run
again with faults of 1 %, each of which must be found.
"""

import argparse
import array
import ast
import contextlib
import copy
import ctypes
import functools
import io
import json
import math
import os
import struct
import sys
import tempfile
import zlib

UNIT = 2.0 ** -24  # Half a unit in the last place of single precision, relative.
SIGMAS = 8  # How many standard deviations of accumulated rounding are allowed.
STEPS = 10
ROUNDING = SIGMAS * UNIT * math.sqrt(STEPS)  # Of a parameter that is rounded at each of the steps.
LOSS = 1e-5  # relative, of each loss: a mean over rows, whose errors average
FAULT = 1.01  # What is planted.
LEFT_OUT = 0.02  # The most elements whose movement rounding may decide, of all.


def tolerance(terms):
    """Relative, of a gradient: `terms` roundings on its way that are independent of each other."""
    return SIGMAS * UNIT * math.sqrt(terms)


RATE = 4096.0  # a power of two, so that dividing by it adds no rounding


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("threads", ctypes.c_int32), ("host_threads", ctypes.c_int32),
                ("guard_pages", ctypes.c_int32), ("poison", ctypes.c_int32), ("check_finite", ctypes.c_int32),
                ("no_graph", ctypes.c_int32), ("seed", ctypes.c_uint64), ("nvme_directory", ctypes.c_char_p),
                ("link_bytes_per_second", ctypes.c_double)]


class Statistics(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("arena_bytes", ctypes.c_int64), ("high_water_bytes", ctypes.c_int64), ("allocations", ctypes.c_int64),
                ("largest_allocation_bytes", ctypes.c_int64), ("steps", ctypes.c_int64),
                ("last_step_seconds", ctypes.c_double), ("grad_norm", ctypes.c_double),
                ("loss_scale", ctypes.c_double), ("skipped_steps", ctypes.c_int64),
                ("saturations", ctypes.c_int64)]


class Step:
    """A compiled step behind its C interface (runtime/tmc.h)."""

    def __init__(self, directory, threads=1, graph=True):
        self.api = ctypes.CDLL(os.path.join(directory, "libstep.so"))
        self.api.tmc_last_error.restype = ctypes.c_char_p
        options = Options()
        self.api.tmc_options_init(ctypes.byref(options), ctypes.sizeof(options))
        options.threads = threads
        options.no_graph = not graph
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

    def save_weights(self, directory):
        self.call("tmc_step_save_weights", directory.encode(), None)

    def run(self, rate):
        loss = ctypes.c_double()
        self.api.tmc_step_set_learning_rate(self.step, ctypes.c_double(rate))
        self.call("tmc_step_run", ctypes.byref(loss))
        return loss.value

    def statistics(self):
        statistics = Statistics(ctypes.sizeof(Statistics))
        self.call("tmc_step_get_statistics", ctypes.byref(statistics))
        return statistics

    def grad_norm(self):
        return self.statistics().grad_norm


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


def allowed_gradient(golden, name):
    """Of a gradient that is zero but for rounding, the terms that cancel are as large as all gradients."""
    norm = golden["gradient_norm"] if name in golden["zero_gradients"] else golden["gradients"][name]["norm"]
    return tolerance(golden["terms"]) * norm


def allowed_parameter(tensor):
    """What errors of the gradients move, and what rounding the parameter itself does."""
    return tensor["reach"] + ROUNDING * tensor["norm"]


def compare(kind, golden, read, allowed_of, without={}):
    """Name each tensor of `golden` that `read(name, count)` gives too different; returns their number.

    `allowed_of(name)` is the greatest error; elements in the runs `without[name]` count as zeros.
    """
    bad, worst = 0, (0.0, "none")
    for name, want in golden.items():
        values = read(name, math.prod(want["shape"]))
        for begin, end in without.get(name, ()):
            values[begin:end] = array.array(values.typecode, [0.0] * (end - begin))
        allowed = allowed_of(name)
        dots = [project(values, k) - dot for k, dot in enumerate(want["dots"])]
        error = math.sqrt(sum(d * d for d in dots) / len(dots))
        error = max([error, abs(math.sqrt(math.fsum(v * v for v in values)) - want["norm"]),
                     *(abs(values[i] - entry) for i, entry in zip(want["at"], want["entries"]))])
        worst = max(worst, (error / allowed if allowed else math.inf if error else 0.0, name))
        if not error <= allowed:  # Not a number fails too.
            print(f"{kind} of {name}: off by {error:.3g}, {allowed:.3g} allowed (norm {want['norm']:.3g})")
            bad += 1
    print(f"{kind}: {len(golden)} tensors, {bad} wrong; largest error {worst[0]:.2g} of what is allowed, in {worst[1]}")
    return bad


def compare_numbers(kind, golden, got, relative):
    bad = 0
    for i, (want, value) in enumerate(zip(golden, got)):
        if not abs(value - want) <= relative * abs(want):
            print(f"{kind} at step {i}: {value:.9g}, {want:.9g} expected, {relative * abs(want):.2g} allowed")
            bad += 1
    worst = max(abs(v - w) / abs(w) for w, v in zip(golden, got))
    print(f"{kind}: {len(got)} steps, {bad} wrong, largest relative error {worst:.2g}")
    return bad


def start(directory, golden, here, threads, scaled=None, graph=True):
    """The step at its start; every weight of the tensor `scaled` is FAULT times too large."""
    step = Step(directory, threads, graph)
    if isinstance(golden["weights"], str):
        step.load(os.path.join(here, golden["weights"]))
    else:
        for name, values in read_weights(golden, here).items():
            step.write(name, values.tobytes())
    if scaled:
        count = math.prod(golden["gradients"][scaled]["shape"])
        step.write(scaled, array.array("f", (FAULT * v for v in step.read(scaled, count))).tobytes())
    return step


def feed(step, golden, here):
    for name, path in golden["inputs"].items():
        step.write(name, read_npy(os.path.join(here, path)))


def check_run(directory, golden, here, name, threads, state_dict=False, fault=1.0):
    """`fault` times the learning rate; with `state_dict` what is saved is checked, too."""
    run = golden["runs"][name]
    step = start(directory, golden, here, threads)
    losses, norms = [], []
    for _ in run["losses"]:
        feed(step, golden, here)
        losses.append(step.run(fault * run["lr"]))
        norms.append(step.grad_norm())
    bad = compare_numbers("loss", run["losses"], losses, LOSS)
    if not any(math.isnan(n) for n in norms):
        bad += compare_numbers("gradient norm", run["gradient_norms"], norms, tolerance(golden["terms"]))
    bad += compare("parameter", run["parameters"], step.read, lambda n: allowed_parameter(run["parameters"][n]),
                   run["left_out"])
    if state_dict:
        bad += check_state_dict(step, golden, len(run["losses"]))
    bad += compare_states(run["states"], golden, step)
    return bad + (check_overflow(step, golden, here) if run["clip"] else 0)


def check_overflow(step, golden, here):
    """With weights of which no gradient is a number, a step that clips moves nothing. Returns the number of faults."""
    counts = {name: math.prod(tensor["shape"]) for name, tensor in golden["gradients"].items()}
    counts.update((name, math.prod(tensor["shape"])) for name, tensor in golden["states_after_forward"].items())
    for name in golden["parameters"]:
        step.write(name, array.array("f", (1e30 * v for v in step.read(name, counts[name]))).tobytes())
    before = {name: step.read(name, count).tobytes() for name, count in counts.items()}
    feed(step, golden, here)
    step.run(RATE)
    norm, skipped = step.grad_norm(), step.statistics().skipped_steps
    bad = [name for name, count in counts.items() if step.read(name, count).tobytes() != before[name]]
    print(f"overflow: norm {norm}, {skipped} skipped, {len(bad)} moved {bad[:3]}")
    return len(bad) + (math.isfinite(norm) or skipped != 1)


def check_state_dict(step, golden, steps):
    """What the step saves is the exported module's state_dict: its names and no others, with their types and shapes,
    batches counted. Returns the number of faults."""
    with tempfile.TemporaryDirectory() as directory:
        step.save_weights(directory)
        with open(os.path.join(directory, "model.safetensors"), "rb") as file:
            data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    entries = json.loads(data[8:8 + length])
    entries.pop("__metadata__")
    got = {name: [entry["dtype"], entry["shape"]] for name, entry in entries.items()}
    bad = 0
    for name in sorted(set(got) | set(golden["state_dict"])):
        if got.get(name) != golden["state_dict"].get(name):
            print(f"state_dict: {name} is {got.get(name)}, {golden['state_dict'].get(name)} expected")
            bad += 1
    for name, entry in entries.items():
        value = data[8 + length + entry["data_offsets"][0]:8 + length + entry["data_offsets"][1]]
        good = True
        if name.endswith("num_batches_tracked"):
            good = struct.unpack("<q", value)[0] == golden["batches_before"] + steps
        elif name in golden["parameters"] + golden["states"] and entry["dtype"] == "F32":
            good = value == step.read(name, len(value) // 4).tobytes()
        if not good:
            print(f"state_dict: {name} has another value than the step")
            bad += 1
    print(f"state_dict: {len(got)} tensors, {bad} wrong")
    return bad


def check_gradients(directory, golden, here, threads, fault=1.0, scaled=None):
    """`fault` times the gradients; or one tensor of weights is too large."""
    before = read_weights(golden, here)
    step = start(directory, golden, here, threads, scaled)
    if scaled:
        before[scaled] = step.read(scaled, len(before[scaled]))
    feed(step, golden, here)
    loss = step.run(fault * RATE)
    bad = compare_numbers("loss", [golden["loss"]], [loss], LOSS)

    def gradient(name, count):
        after = step.read(name, count)
        return array.array("d", ((p - q) / RATE for p, q in zip(before[name], after)))

    bad += compare("gradient", golden["gradients"], gradient, lambda n: allowed_gradient(golden, n))
    return bad + compare_states(golden["states_after_forward"], golden, step)


def compare_states(states, golden, step):
    return compare("state", states, step.read, lambda n: tolerance(golden["terms"]) * states[n]["norm"]) if states else 0


def check_planted(golden, what, check, **fault):
    """`check` with a fault must find something wrong; says nothing of what."""
    with contextlib.redirect_stdout(io.StringIO()):
        bad = check(**fault)
    print(f"planted: {what}: {bad} wrong")
    return not bad


def self_test(golden, here):
    """The weights stand for a result: unchanged they pass, with one planted fault they fail. A fault of
    1 % of any one gradient, or of any one parameter's movement, is more than what is allowed."""
    weights = read_weights(golden, here)
    summary = {}
    for name, values in weights.items():
        summary[name] = dict(
            shape=[len(values)], norm=math.sqrt(math.fsum(v * v for v in values)), at=[0], entries=[values[0]],
            dots=[project(values, k) for k in range(4)])
    allowed = lambda name: tolerance(golden["terms"]) * summary[name]["norm"]
    wrong = compare("unchanged", summary, lambda name, _: weights[name], allowed)
    for name in list(summary)[:3]:
        def swapped(other, _):
            values = copy.copy(weights[other])
            if other == name:  # Exchange two elements: no norm sees it.
                values[1], values[2] = values[2], values[1]
            return values

        def scaled(other, _):
            return array.array("f", (1.001 * v for v in weights[other])) if other == name else weights[other]

        wrong += compare(f"swapped in {name}", summary, swapped, allowed) != 1
        wrong += compare(f"scaled {name}", summary, scaled, allowed) != 1
    wrong += compare_numbers("loss", [1.0, 2.0], [1.0, 2.0001], LOSS) != 1
    for name, tensor in golden["gradients"].items():
        if name not in golden["zero_gradients"] and allowed_gradient(golden, name) >= (FAULT - 1) * tensor["norm"]:
            print(f"gradient of {name}: 1 % wouldn't be found")
            wrong += 1
    for label, run in golden["runs"].items():
        left_out = sum(end - begin for runs in run["left_out"].values() for begin, end in runs)
        if left_out > LEFT_OUT * sum(math.prod(t["shape"]) for t in run["parameters"].values()):
            print(f"{label}: {left_out} elements are left out")
            wrong += 1
        for name, tensor in run["parameters"].items():
            if tensor["moved"] and allowed_parameter(tensor) >= (FAULT - 1) * tensor["moved"]:
                print(f"{label}: 1 % of the movement of {name} wouldn't be found: "
                      f"{allowed_parameter(tensor) / tensor['moved']:.2g} of it is allowed")
                wrong += 1
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", nargs="?", help="directory of a compiled step")
    parser.add_argument("golden", help="a .json file of this folder")
    parser.add_argument("--run")
    parser.add_argument("--state-dict", action="store_true", help="the graph is an exported program: look at what is saved")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--planted", action="store_true", help="then find planted faults")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    with open(options.golden) as file:
        golden = json.load(file)
    here = os.path.dirname(os.path.abspath(options.golden))
    bad = 0
    if options.self_test:
        bad += self_test(golden, here)
    if options.gradients:
        check = functools.partial(check_gradients, options.step, golden, here, options.threads)
        bad += check()
        if options.planted:
            matrix = next(n for n in golden["parameters"] if len(golden["gradients"][n]["shape"]) > 1)
            bad += check_planted(golden, "gradients of 1.01 times their size", check, fault=FAULT)
            bad += check_planted(golden, f"a product with 1.01 times {matrix}", check, scaled=matrix)
    if options.run:
        check = functools.partial(check_run, options.step, golden, here, options.run, options.threads, options.state_dict)
        bad += check()
        if options.planted:
            bad += check_planted(golden, "1.01 times the learning rate", check, fault=FAULT)
    if not (options.self_test or options.gradients or options.run):
        parser.error("nothing to check: give --run, --gradients or --self-test")
    print("FAILED" if bad else "PASSED")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
