"""Writes weights of the tiny Llama of test/golden/qlora.py for the tests; the standard library only.

    coded.py GOLDENS FOLDER

others.safetensors has what isn't in codes, floats.safetensors all in f32. Each other file is the checkpoint of
bitsandbytes with one change.
"""

import json
import os
import struct
import sys

goldens, folder = sys.argv[1:]
sys.path.insert(0, goldens)
from qlora import generate, write_safetensors

with open(os.path.join(goldens, "qlora.runs")) as file:
    weights = json.load(file)["weights"]
with open(os.path.join(goldens, "qlora.safetensors"), "rb") as file:
    data = file.read()
length = struct.unpack("<Q", data[:8])[0]
header, body = json.loads(data[8:8 + length]), data[8 + length:]
header.pop("__metadata__", None)
stored = {name: (entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])]) for name, entry in header.items()}
FIRST = "base_model.model.model.layers.0.self_attn.q_proj.base_layer.weight"
STATE = FIRST + ".quant_state.bitsandbytes__nf4"


def put(name, tensors):
    head, at = {}, 0
    for key, (kind, shape, data) in tensors.items():
        head[key] = dict(dtype=kind, shape=shape, data_offsets=[at, at + len(data)])
        at += len(data)
    text = json.dumps(head).encode()
    with open(os.path.join(folder, name + ".safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def changed(name, key, kind=None, shape=None, data=None):
    tensors = dict(stored)
    before = tensors[key]
    tensors[key] = (kind or before[0], shape or before[1], before[2] if data is None else data)
    put(name, tensors)


def state(name, **changes):
    values = {**json.loads(stored[STATE][2]), **changes}
    text = json.dumps({key: value for key, value in values.items() if value is not None}).encode()
    changed(name, STATE, shape=[len(text)], data=text)


os.makedirs(folder, exist_ok=True)
floats = {}
for name, (shape, scale, offset) in weights.items():
    values = generate(name, shape[0] * (shape[1] if len(shape) > 1 else 1), scale, offset)
    floats[name] = (shape, struct.pack(f"<{len(values)}f", *values))
write_safetensors(os.path.join(folder, "floats.safetensors"), floats)
infinite = dict(floats)
infinite[FIRST] = (floats[FIRST][0], struct.pack("<f", float("inf")) + floats[FIRST][1][4:])
write_safetensors(os.path.join(folder, "infinite.safetensors"), infinite)
write_safetensors(os.path.join(folder, "others.safetensors"), {name: each for name, each in floats.items() if name not in stored})
put("sound", stored)
count = len(stored[FIRST + ".quant_map"][2])
changed("map", FIRST + ".quant_map", data=b"\0" * count)
changed("nested-map", FIRST + ".nested_quant_map", data=b"\0" * len(stored[FIRST + ".nested_quant_map"][2]))
state("block", blocksize=128)
state("kind", quant_type="fp4")
state("shape", shape=[64, 256])
state("offset", nested_offset=1e39)
state("no-offset", nested_offset=None)
changed("json", STATE, shape=[3], data=b"{\"a")
changed("maxima", FIRST + ".absmax", shape=[128, 2])
put("lacks", {key: each for key, each in stored.items() if key != FIRST + ".absmax"})
put("plain", {key: each for key, each in stored.items() if not key.startswith(FIRST + ".nested")})
