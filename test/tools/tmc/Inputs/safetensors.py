"""Writes and shows safetensors files for the tests; the standard library only.

    safetensors.py write FILE NAME:F32:2x3=VALUE ...     each filled with one value
    safetensors.py show FILE                             name, type, shape, first element
    safetensors.py shard FILE DIR COUNT                  its tensors by turns in files of DIR, and the index
"""

import json
import os
import struct
import sys

FORMATS = {"F32": "f", "F16": "e", "F64": "d", "I32": "i"}


def put(path, header, body):
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


def get(path):
    """The header, without metadata, and the bytes behind it."""
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return header, data[8 + length:]


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
    put(path, header, body)


def show(path):
    header, body = get(path)
    for name, entry in header.items():
        first = struct.unpack_from("<" + FORMATS[entry["dtype"]], body, entry["data_offsets"][0])[0]
        print(name, entry["dtype"], entry["shape"], "%g" % first)


def shard(path, folder, count):
    header, body = get(path)
    os.makedirs(folder, exist_ok=True)
    files = ["model-%05d-of-%05d.safetensors" % (i + 1, count) for i in range(count)]
    index = dict(metadata=dict(total_size=len(body)), weight_map={})
    for number, file in enumerate(files):
        part, bytes_of_part = {}, b""
        for name in list(header)[number::count]:
            begin, end = header[name]["data_offsets"]
            part[name] = dict(header[name], data_offsets=[len(bytes_of_part), len(bytes_of_part) + end - begin])
            bytes_of_part += body[begin:end]
            index["weight_map"][name] = file
        put(os.path.join(folder, file), part, bytes_of_part)
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
        json.dump(index, file, indent=2)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], sys.argv[3:])
    elif sys.argv[1] == "shard":
        shard(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        show(sys.argv[2])
