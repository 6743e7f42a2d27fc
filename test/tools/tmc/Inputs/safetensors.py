"""Writes and shows safetensors files for the tests; the standard library only.

    safetensors.py write FILE NAME:F32:2x3=VALUE ...     each filled with one value
    safetensors.py show FILE                             name, type, shape, first element
"""

import json
import struct
import sys

FORMATS = {"F32": "f", "F16": "e", "F64": "d", "I32": "i"}


def write(path, entries):
    header, body = {}, b""
    for entry in entries:
        described, value = entry.rsplit("=", 1)
        name, kind, dims = described.rsplit(":", 2)
        shape = [int(d) for d in dims.split("x") if d]
        count = 1
        for dim in shape:
            count *= dim
        number = int(value) if kind == "I32" else float(value)
        data = struct.pack("<" + FORMATS[kind], number) * count
        header[name] = dict(dtype=kind, shape=shape,
                            data_offsets=[len(body), len(body) + len(data)])
        body += data
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


def show(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        at = 8 + length + entry["data_offsets"][0]
        first = struct.unpack_from("<" + FORMATS[entry["dtype"]], data, at)[0]
        print(name, entry["dtype"], entry["shape"], "%g" % first)


if __name__ == "__main__":
    write(sys.argv[2], sys.argv[3:]) if sys.argv[1] == "write" else show(sys.argv[2])
