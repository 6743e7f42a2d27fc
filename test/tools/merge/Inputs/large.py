"""A base of 128 MiB: the memory of its merge, and what a merge leaves that is stopped or killed. The standard library only.

    large.py TMC FOLDER
"""

import json
import os
import signal
import struct
import subprocess
import sys
import time

ROWS, COLUMNS, RANK = 4096, 8192, 4
MOST_BYTES = 24 << 20  # Two pieces of 4 MiB, the adapter's two matrices twice, and what an allocator keeps.


def put(path, tensors):
    """Files of zeros with holes, which take no disk."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors.items():
        size = 4 * shape[0] * shape[1]
        header[name] = dict(dtype="F32", shape=shape, data_offsets=[end, end + size])
        end += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)


def peak(command):
    """The most memory that a command has, in bytes."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0, command
    return usage.ru_maxrss * 1024


def stopped(command, folder, number):
    """Ends a merge once it writes; returns the code and the names that are left."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while child.poll() is None and not any(".tmp." in name for name in os.listdir(folder)):
        time.sleep(0.001)
    child.send_signal(number)
    return child.wait(), sorted(set(os.listdir(folder)) - {"base", "adapter"})


def main():
    tmc, folder = sys.argv[1:]
    for name in ("base", "adapter"):
        os.makedirs(os.path.join(folder, name))
    put(os.path.join(folder, "base/model.safetensors"), {"m.w.weight": [ROWS, COLUMNS]})
    put(os.path.join(folder, "adapter/adapter_model.safetensors"),
        {"base_model.model.m.w.lora_A.weight": [RANK, COLUMNS], "base_model.model.m.w.lora_B.weight": [ROWS, RANK]})
    with open(os.path.join(folder, "adapter/adapter_config.json"), "w") as file:
        json.dump(dict(peft_type="LORA", r=RANK, lora_alpha=RANK), file)
    command = [tmc, "merge", "--base", os.path.join(folder, "base"), "--adapter", os.path.join(folder, "adapter"), "-o", os.path.join(folder, "out"),
               "--type", "bf16"]
    code, left = stopped(command, folder, signal.SIGTERM)
    assert (code, left) == (128 + signal.SIGTERM, []), (code, left)
    code, left = stopped(command, folder, signal.SIGKILL)
    assert code == -signal.SIGKILL and len(left) == 1 and left[0].startswith(".out.tmp."), (code, left)
    more = peak(command) - peak([tmc, "--version"])
    assert more < MOST_BYTES, "%d bytes" % more
    left = sorted(set(os.listdir(folder)) - {"base", "adapter"})
    assert left == ["out"], left
    assert os.path.getsize(os.path.join(folder, "out/model.safetensors")) > 2 * ROWS * COLUMNS
    print("bounded, and nothing is left")


main()
