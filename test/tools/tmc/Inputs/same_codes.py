"""Compares a checkpoint of a step with one of bitsandbytes; the standard library only.

    same_codes.py CHECKPOINT GOLDEN

Prints how many bytes of codes differ, of all, and how many maxima in 8 bits do and by how much at most.
"""

import json
import struct
import sys


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8:8 + length]), data[8 + length:]
    return {name: body[slice(*entry["data_offsets"])] for name, entry in header.items() if name != "__metadata__"}


ours, theirs = read(sys.argv[1]), read(sys.argv[2])
weights = [name for name in theirs if name + ".absmax" in theirs]
codes = [a != b for name in weights for a, b in zip(ours[name], theirs[name], strict=True)]
maxima = [abs(a - b) for name in weights for a, b in zip(ours[name + ".absmax"], theirs[name + ".absmax"], strict=True)]
few = sum(map(bool, maxima)) <= 0.01 * len(maxima)
print(f"{len(weights)} weights, {sum(codes)} of {len(codes)} bytes, maxima {'within' if few else 'over'} 1 %, {max(maxima)} off")
