"""Compares a merged model with base + s B A in double, rounded once, element by element. The standard library only.

    check.py BASE ADAPTER MERGED [TYPE] [MOST BYTES OF A SHARD]

Prints how many tensors are as they should be. A second model of PEFT's rules: names, ranks and scales by patterns (with
Python's `re`), orientation by the flag.
"""

import json
import math
import os
import re
import struct
import sys

SIZES = dict(F32=4, BF16=2, F16=2, F64=8)
TYPES = dict(f32="F32", bf16="BF16", f16="F16")


def read_file(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__", {})
    body = data[8 + length:]
    return {name: (each["dtype"], each["shape"], body[slice(*each["data_offsets"])]) for name, each in header.items()}, metadata


def read_model(folder):
    """The tensors of a folder, and those of each file."""
    index = os.path.join(folder, "model.safetensors.index.json")
    if not os.path.exists(index):
        tensors, metadata = read_file(os.path.join(folder, "model.safetensors"))
        assert metadata == {"format": "pt"}, metadata
        return tensors, [tensors]
    with open(index) as file:
        index = json.load(file)
    files, all_tensors = [], {}
    for name in sorted(set(index["weight_map"].values())):
        tensors, metadata = read_file(os.path.join(folder, name))
        assert metadata == {"format": "pt"}, metadata
        assert set(tensors) == {key for key, file in index["weight_map"].items() if file == name}, name
        files.append(tensors)
        all_tensors.update(tensors)
    assert index["metadata"]["total_size"] == sum(len(each[2]) for each in all_tensors.values())
    for number, name in enumerate(sorted(set(index["weight_map"].values()))):
        assert name == "model-%05d-of-%05d.safetensors" % (number + 1, len(files)), name
    return all_tensors, files


def numbers(tensor):
    kind, _, data = tensor
    if kind == "BF16":
        return [struct.unpack("<f", b"\0\0" + data[at:at + 2])[0] for at in range(0, len(data), 2)]
    return [each for each, in struct.iter_unpack("<" + dict(F32="f", F16="e", F64="d")[kind], data)]


def rounded(value, kind):
    """The bytes of a finite double in a type; ties to even."""
    if kind != "BF16":
        return struct.pack("<" + dict(F32="f", F16="e", F64="d")[kind], value)
    exponent = max(math.frexp(value)[1] - 8, -133)  # The last of eight bits.
    return struct.pack("<f", math.ldexp(round(math.ldexp(value, -exponent)), exponent))[2:]


def by_pattern(patterns, module, otherwise):
    return next((value for key, value in patterns.items() if re.match(r"(.*\.)?(%s)$" % key, module)), otherwise)


def delta(adapter, config, name):
    """The change of one tensor as a function of row and column, in double; None if there is none."""
    module = name[:-len(".weight")]
    prefix = "base_model.model." + module
    for first, second, is_table in ((".lora_A.weight", ".lora_B.weight", False), (".lora_embedding_A", ".lora_embedding_B", True)):
        if prefix + first not in adapter:
            continue
        a, b = adapter.pop(prefix + first), adapter.pop(prefix + second)
        rank, columns = a[1]
        assert rank == by_pattern(config["rank_pattern"], module, config["r"]), module
        alpha = by_pattern(config["alpha_pattern"], module, config["lora_alpha"])
        scale = alpha / (math.sqrt(rank) if config["use_rslora"] else rank)
        a, b = numbers(a), numbers(b)
        plain = lambda i, j: scale * math.fsum(b[i * rank + k] * a[k * columns + j] for k in range(rank))
        return (lambda i, j: plain(j, i)) if is_table or config["fan_in_fan_out"] else plain
    return None


def main():
    base, _ = read_model(sys.argv[1])
    adapter, _ = read_file(os.path.join(sys.argv[2], "adapter_model.safetensors"))
    with open(os.path.join(sys.argv[2], "adapter_config.json")) as file:
        config = json.load(file)
    merged, files = read_model(sys.argv[3])
    wanted = TYPES.get(sys.argv[4]) if len(sys.argv) > 4 else None
    assert set(base) == set(merged), set(base) ^ set(merged)
    for tensors in files:
        if len(sys.argv) > 5:
            assert len(tensors) == 1 or sum(len(each[2]) for each in tensors.values()) <= int(sys.argv[5])
    changed = 0
    for name, tensor in base.items():
        kind, shape, data = merged[name]
        assert shape == tensor[1] and kind == (wanted or tensor[0]), (name, kind, shape)
        change = delta(adapter, config, name)
        whole = adapter.pop("base_model.model." + name, None)
        changed += change is not None or whole is not None
        values = numbers(whole or tensor)
        for at, value in enumerate(values):
            exact = value + change(at // shape[1], at % shape[1]) if change else value
            size = SIZES[kind]
            if rounded(exact, kind) != data[at * size:(at + 1) * size]:
                sys.exit("%s at %d of %s: not %.17g" % (name, at, shape, exact))
    assert not adapter, list(adapter)
    print("%d of %d tensors changed, all as they should be" % (changed, len(base)))


main()
