"""What weights.safetensors must hold of views.pt2, element by element."""

import json
import struct
import sys

with open(sys.argv[1], "rb") as file:
    data = file.read()
length = struct.unpack_from("<Q", data)[0]
header = json.loads(data[8:8 + length])


def floats(name, code, count):
    begin, end = header[name]["data_offsets"]
    values = struct.unpack(f"<{count}{code}", data[8 + length + begin:8 + length + end])
    return list(values)


storage = [i / 8 for i in range(24)]
assert floats("tall", "f", 12) == storage[:12]
assert floats("turned", "f", 12) == [storage[12 + i + 3 * j] for i in range(3) for j in range(4)]
assert floats("fixed", "f", 3) == [0.5, 0.25, 2.0]
assert floats("single", "e", 3) == [1.5, -2.0, 0.125]
assert floats("brain", "H", 3) == [0x3FC0, 0xC000, 0x3E00]
