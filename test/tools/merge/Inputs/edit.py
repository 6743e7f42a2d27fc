"""Changes copies of models and adapters for the tests. The standard library only.

    edit.py rename FROM TO s/PATTERN/NEW/           names in FROM/model.safetensors
    edit.py rename-adapter FROM TO s/PATTERN/NEW/   names in FROM/adapter_model.safetensors
    edit.py shape FROM TO NAME 2x3                  zeros of another shape in FROM/adapter_model.safetensors
    edit.py fill FROM TO NAME NUMBER                all numbers of an F32 tensor there
    edit.py drop FROM TO NAME                       without a tensor there
    edit.py config FROM TO KEY=JSON ...             keys of FROM/adapter_config.json
"""

import json
import os
import re
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tmc", "Inputs"))
import safetensors  # noqa: E402


def get(path):
    header, body = safetensors.get(path)
    return {name: [each["dtype"], each["shape"], body[slice(*each["data_offsets"])]] for name, each in header.items()}


def put(path, tensors):
    header, body = {"__metadata__": {"format": "pt"}}, b""
    for name, (kind, shape, data) in tensors.items():
        header[name] = dict(dtype=kind, shape=shape, data_offsets=[len(body), len(body) + len(data)])
        body += data
    safetensors.put(path, header, body)


def main():
    what, source, target, *words = sys.argv[1:]
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    if what == "config":
        path = os.path.join(target, "adapter_config.json")
        with open(path) as file:
            config = json.load(file)
        for word in words:
            key, value = word.split("=", 1)
            config[key] = json.loads(value)
        with open(path, "w") as file:
            json.dump(config, file)
        return
    path = os.path.join(target, "model.safetensors" if what == "rename" else "adapter_model.safetensors")
    tensors = get(path)
    if what.startswith("rename"):
        _, pattern, new, _ = re.split(r"(?<!\\)/", words[0])
        tensors = {re.sub(pattern, new, name): each for name, each in tensors.items()}
    elif what == "shape":
        shape = [int(size) for size in words[1].split("x")]
        count = 1
        for size in shape:
            count *= size
        tensors[words[0]] = ["F32", shape, b"\0\0\0\0" * count]
    elif what == "fill":
        each = tensors[words[0]]
        each[2] = struct.pack("<f", float(words[1])) * (len(each[2]) // 4)
    else:
        del tensors[words[0]]
    put(path, tensors)


main()
