"""Compares a base that a trainer saved with the files that it was loaded from; the standard library only.

    same_base.py SAVED FILE ...

Each tensor of the files must be there, with its type, its shape and its bytes; the texts about codes must say the same. Prints
how many tensors are alike, and how many more the saved file has.
"""

import json
import struct
import sys

STATE = ".quant_state.bitsandbytes__nf4"


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8:8 + length]), data[8 + length:]
    return {name: (entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])])
            for name, entry in header.items() if name != "__metadata__"}


def meaning(name, tensor):
    """A text in JSON counts by its meaning; a float in it by its 32 bits."""
    if not name.endswith(STATE):
        return tensor
    state = json.loads(tensor[2])
    if "nested_offset" in state:
        state["nested_offset"] = struct.pack("<f", state["nested_offset"])
    return state


saved, wanted = read(sys.argv[1]), {}
for path in sys.argv[2:]:
    wanted.update(read(path))
for name, tensor in wanted.items():
    if name not in saved:
        sys.exit(f"{name} is missing")
    if meaning(name, saved[name]) != meaning(name, tensor):
        sys.exit(f"{name} differs: {meaning(name, saved[name])} and {meaning(name, tensor)}"[:400])
print(f"{len(wanted)} tensors alike, {len(saved) - len(wanted)} more")
