#!/usr/bin/env python3
"""GPT-2 XL in 8 GiB of device and host together, with a file: one whole AdamW step on the cpu.

    gpt2_xl.py --build build --scratch DIR [--micro-batches N] [--steps N] [--budget SIZE] [--host-budget SIZE]

Compiles examples/gpt2-xl.onnx (micro-batches of 1, 1,024 tokens, f32) with what may leave allowed to, trains it
from random weights, and prints a table: what was planned in each space, the predicted and the
measured step, and the largest resident memory of the trainer's process, as the kernel says it
(VmHWM, read from outside while it runs). DIR needs 25 GB and must not be in memory.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
GIB = 1 << 30


def most_resident(pid):
    """Bytes; 0 where the process is gone."""
    try:
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--micro-batches", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--budget", default="4GiB")
    parser.add_argument("--host-budget", default="3600MiB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        step = os.path.join(directory, "step")
        begin = time.monotonic()
        subprocess.run([os.path.join(options.build, "bin", "tmc"), "compile", os.path.join(ROOT, "examples", "gpt2-xl.onnx"),
                        "--target=cpu", f"--batch={options.micro_batches}", f"--micro-batches={options.micro_batches}", "--dim=sequence=1024", f"--budget={options.budget}",
                        f"--host-budget={options.host_budget}", "--offload=all", f"--nvme={options.scratch}", "-o", step],
                       check=True, stderr=subprocess.DEVNULL)
        compiled = time.monotonic() - begin
        log = os.path.join(directory, "log.jsonl")
        train = subprocess.Popen([os.path.join(step, "train"), f"--data={os.path.join(ROOT, 'examples', 'data', 'text.u16.bin')}",
                                  f"--steps={options.steps}", "--init=random:1", "--lr=1e-4", f"--nvme={options.scratch}",
                                  f"--log={log}", "--quiet"])
        resident = 0
        while train.poll() is None:
            resident = max(resident, most_resident(train.pid))
            time.sleep(0.2)
        if train.returncode:
            sys.exit(f"the trainer ended with {train.returncode}")
        with open(os.path.join(step, "plan.json")) as file:
            plan = json.load(file)
        with open(log) as file:
            lines = [json.loads(line) for line in file]
    spaces = plan["spaces"]
    rows = [("device arena", f"{plan['arena_bytes'] / GIB:.2f} GiB"),
            ("host arena", f"{spaces['host']['arena_bytes'] / GIB:.2f} GiB"),
            ("file", f"{spaces['file']['arena_bytes'] / GIB:.2f} GiB"),
            ("largest resident memory of the process", f"{resident / GIB:.2f} GiB"),
            ("predicted step", f"{plan['step_time_s']:.1f} s"),
            ("measured step, the quickest", f"{min(line['seconds'] for line in lines):.1f} s"),
            ("losses", ", ".join(f"{line['loss']:.6f}" for line in lines)),
            ("compiled in", f"{compiled:.0f} s")]
    print("| what | figure |\n|---|---|")
    for name, value in rows:
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
