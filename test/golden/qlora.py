#!/usr/bin/env python3
"""Train adapters over a base in codes, and compare losses with PEFT's over bitsandbytes'; needs only the standard library.

    qlora.py --tmc build/bin/tmc [--target cpu:v3] [--only SUBSTRING] [--keep DIR]

make_qlora.py has made qlora.runs. Each case compiles the graph with its --base and trains ten steps from the same
weights. Losses differ by at most 1e-5 of their size in f32, and 3e-3 in bf16. The case over another storage than its
own must differ by more. Ends with one line `N passed, M failed`.
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
EXACT, BF16 = 1e-5, 3e-3
# Name: the run of the golden, flags, the bound. Nested maxima are those of its checkpoint, because ours are nearer.
CASES = {
    "nf4:plain": ("plain", ["--base=nf4:plain"], EXACT),
    "nf4": ("nested", ["--base=nf4"], EXACT),
    "int8": ("int8", ["--base=int8"], EXACT),
    "as it is": ("f32", [], EXACT),
    "f32": ("f32", ["--base=f32"], EXACT),
    "nf4:plain in bf16": ("plain bf16", ["--base=nf4:plain", "--precision=bf16"], BF16),
    "nf4 in bf16": ("nested bf16", ["--base=nf4", "--precision=bf16"], BF16),
}


def mix(h):
    h ^= h >> 16
    h = h * 0x85EBCA6B & 0xFFFFFFFF
    h ^= h >> 13
    h = h * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ h >> 16


def generate(name, count, scale, offset):
    """projection.py's values, without NumPy; scales are powers of two, so that one rounding is left to `pack`."""
    start = zlib.crc32(name.encode())
    return [offset + scale * (2 * ((mix(i * 0x9E3779B1 + start & 0xFFFFFFFF) >> 8) / 2 ** 24) - 1) for i in range(count)]


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, (shape, data) in tensors.items():
        header[name] = dict(dtype="F32", shape=shape, data_offsets=[at, at + len(data)])
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, data in tensors.values()))


def write_npy(path, rows):
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(b"".join(struct.pack(f"<{len(row)}q", *row) for row in rows))


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def weights_of(flags, scratch):
    """Files of weights: of nf4 with nested maxima, what isn't stored and a checkpoint of bitsandbytes."""
    if "--base=nf4" in flags:
        return ",".join([os.path.join(scratch, "others.safetensors"), os.path.join(HERE, "qlora.safetensors")])
    return os.path.join(scratch, "weights.safetensors")


def losses_of(options, golden, scratch, flags):
    """The losses of a compiled step, and an error."""
    step = os.path.join(scratch, "-".join(flags).replace("=", "").replace(":", "") or "step")
    code, text = run([options.tmc, "compile", os.path.join(ROOT, golden["graph"]), f"--target={options.target}",
                      "--optimizer=adamw(weight_decay=0)", "--effort=20", "-o", step, *flags])
    if code:
        return [], f"tmc compile ended with {code}\n{text}"
    log = os.path.join(step, "log.jsonl")
    code, text = run([os.path.join(step, "train"), "--weights", weights_of(flags, scratch),
                      "--data", "input_ids=" + os.path.join(scratch, "tokens.npy"),
                      "--data", "labels=" + os.path.join(scratch, "tokens.npy"), f"--lr={golden['rate']}",
                      f"--steps={len(golden['runs']['f32'])}", f"--threads={options.threads}", "--log", log, "--quiet"])
    if code:
        return [], f"train ended with {code}\n{text}"
    with open(log) as file:
        return [line["loss"] for line in map(json.loads, file) if line["kind"] == "step"], ""


def distance(losses, wanted):
    return max(abs(a - b) / abs(b) for a, b in zip(losses, wanted))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(ROOT, "build", "bin", "tmc"))
    parser.add_argument("--target", default="cpu", help="what the steps are compiled for")
    parser.add_argument("--only", default="", help="run the cases whose name holds this")
    parser.add_argument("--keep", help="leave the compiled steps in this directory")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    with open(os.path.join(HERE, "qlora.runs")) as file:
        golden = json.load(file)
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="qlora-") as scratch:
        scratch = options.keep or scratch
        os.makedirs(scratch, exist_ok=True)
        tensors = {}
        for name, (shape, scale, offset) in golden["weights"].items():
            values = generate(name, shape[0] * (shape[1] if len(shape) > 1 else 1), scale, offset)
            tensors[name] = (shape, struct.pack(f"<{len(values)}f", *values))
        write_safetensors(os.path.join(scratch, "weights.safetensors"), tensors)
        with open(os.path.join(HERE, "qlora.safetensors"), "rb") as file:
            coded = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        write_safetensors(os.path.join(scratch, "others.safetensors"),
                          {name: tensor for name, tensor in tensors.items() if name not in coded})
        write_npy(os.path.join(scratch, "tokens.npy"), golden["tokens"])
        for name, (key, flags, bound) in CASES.items():
            if options.only not in name:
                continue
            losses, fault = losses_of(options, golden, scratch, flags)
            wanted = golden["runs"][key]
            if not fault and len(losses) != len(wanted):
                fault = f"{len(losses)} losses"
            far = 0 if fault else distance(losses, wanted)
            if not fault and not far <= bound:
                fault = f"losses differ by {far:.2e}: {losses} instead of {wanted}"
            # Another storage is another run: a bound that doesn't tell them apart would say nothing.
            other = golden["runs"]["f32" if key != "f32" else "int8"]
            if not fault and distance(losses, other) <= bound:
                fault = "the run over another storage passes, too"
            passed, failed = passed + (not fault), failed + bool(fault)
            print(f"{'FAIL' if fault else 'PASS'}: {name} ({far:.1e})", flush=True)
            if fault:
                print("   ", fault)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
