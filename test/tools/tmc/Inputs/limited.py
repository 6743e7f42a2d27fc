"""Runs a command with at most so many MiB of memory, on a model that takes a gigabyte to import.

    limited.py MIB FOLDER-OF-WIRE.PY MODEL COMMAND...
"""

import os
import resource
import struct
import sys

sys.path.insert(0, sys.argv[2])
import wire  # noqa: E402

LARGE = 8  # Constants of 128 MiB.


def number(name, value):
    return wire.tensor(name, kind=7, raw_data=struct.pack("<q", value))


ranges = [wire.node("Range", ["a%d" % i, "b", "d"], ["c%d" % i]) for i in range(LARGE)]
starts = [number("a%d" % i, i) for i in range(LARGE)]
with open(sys.argv[3], "wb") as file:
    file.write(wire.model([*ranges, wire.node("Relu", ["x"], ["y"])], tensors=[*starts, number("b", (1 << 24) - 1), number("d", 1)]))
limit = int(sys.argv[1]) << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
os.execvp(sys.argv[4], sys.argv[4:])
