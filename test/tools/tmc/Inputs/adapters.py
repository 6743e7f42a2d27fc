"""Broken copies of an adapter: `adapters.py ADAPTER DIR` writes DIR/alpha, DIR/nan, ..., each with one fault."""

import json
import os
import shutil
import struct
import sys

FIRST = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"


def read(folder):
    with open(os.path.join(folder, "adapter_model.safetensors"), "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + length]), bytearray(data[8 + length:])


def copy(source, folder, config=None, header=None, body=None):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    if config is not None:
        with open(os.path.join(folder, "adapter_config.json"), "w") as file:
            file.write(config)
    if header is None:
        return
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "adapter_model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


def main():
    source, out = sys.argv[1:]
    with open(os.path.join(source, "adapter_config.json")) as file:
        config = json.load(file)
    for name, keys in dict(alpha=dict(lora_alpha=16), pattern=dict(alpha_pattern={"q_proj": 4}), kind=dict(peft_type="IA3"),
                           dora=dict(use_dora=True), text=dict(r="4")).items():
        copy(source, os.path.join(out, name), json.dumps({**config, **keys}))
    header, body = read(source)
    renamed = {("base_model.model.other.lora_A.weight" if name == FIRST else name): entry for name, entry in header.items()}
    copy(source, os.path.join(out, "renamed"), None, renamed, body)
    more = dict(header, **{"base_model.model.more": dict(dtype="F32", shape=[1], data_offsets=[len(body), len(body) + 4])})
    copy(source, os.path.join(out, "more"), None, more, body + b"\0\0\0\0")
    shape = dict(header, **{FIRST: dict(header[FIRST], shape=header[FIRST]["shape"][::-1])})
    copy(source, os.path.join(out, "shape"), None, shape, body)
    begin = header[FIRST]["data_offsets"][0]
    body[begin + 8:begin + 12] = struct.pack("<f", float("nan"))
    copy(source, os.path.join(out, "nan"), None, header, body)


main()
