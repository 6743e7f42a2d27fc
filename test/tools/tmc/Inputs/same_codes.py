"""Compares the codes that a step loads with those of bitsandbytes; the standard library only.

    same_codes.py STEP WEIGHTS GOLDEN

Prints how many bytes of codes differ, of all, and how many maxima in 8 bits do and by how much at most.
"""

import ctypes
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "golden"))
import check  # noqa: E402


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8:8 + length]), data[8 + length:]
    return {name: body[slice(*entry["data_offsets"])] for name, entry in header.items() if name != "__metadata__"}


directory, paths, golden = sys.argv[1:]
step = check.Step(directory, 1)
step.load(paths)


def loaded(name, size):
    data = ctypes.create_string_buffer(size)
    step.call("tmc_step_read", name.encode(), data, ctypes.c_int64(size))
    return data.raw


theirs = read(golden)
weights = [name for name in theirs if name + ".absmax" in theirs]
codes, maxima = [], []
for name in weights:
    codes += [a != b for a, b in zip(loaded(name, len(theirs[name])), theirs[name], strict=True)]
    most = theirs[name + ".absmax"]
    maxima += [abs(a - b) for a, b in zip(loaded(name + ".absmax", len(most)), most, strict=True)]
few = sum(map(bool, maxima)) <= 0.01 * len(maxima)
print(f"{len(weights)} weights, {sum(codes)} of {len(codes)} bytes, maxima {'within' if few else 'over'} 1 %, {max(maxima)} off")
