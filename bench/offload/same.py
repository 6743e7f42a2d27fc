#!/usr/bin/env python3
"""A step whose values move beside the one that moves nothing: the same bits, and the bytes that were planned.

    same.py [--build build] [--steps 50] [--budget 600MiB] [--threads 1] [--scratch DIR] [--nvme] [--host-budget SIZE]

Compiles GPT-2 124M (with dropout, 2 x 512 tokens) for the cpu without a budget and with --budget --offload auto, trains
both from the same random weights, and compares each step's loss and gradient norm and the checkpoint after the last,
byte by byte. Prints a table: the arenas as planned and as touched, predicted and measured seconds of a step. Ends
with an error where a bit differs or more was touched than planned. With --nvme what leaves may go to a file in DIR.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
MODEL = os.path.join(ROOT, "examples", "gpt2-124m.onnx")
TEXT = os.path.join(ROOT, "examples", "data", "text.u16.bin")
MIB = 1 << 20
PIECE = 1 << 24
PAGE = os.sysconf("SC_PAGE_SIZE")  # In which what is touched is counted.


class Trained:
    def __init__(self, options, directory, *flags):
        subprocess.run([os.path.join(options.build, "bin", "tmc"), "compile", MODEL, "--target=cpu", "--batch=2",
                        "--dim=sequence=512", *flags, "-o", directory], check=True, stderr=subprocess.DEVNULL)
        log, self.saved = os.path.join(directory, "log.jsonl"), os.path.join(directory, "saved")
        subprocess.run([os.path.join(directory, "train"), f"--data={TEXT}", "--init=random:1", "--lr=3e-4", "--quiet",
                        f"--steps={options.steps}", f"--threads={options.threads}", f"--log={log}", f"--save={self.saved}"],
                       check=True)
        with open(os.path.join(directory, "plan.json")) as file:
            self.plan = json.load(file)
        with open(log) as file:
            self.lines = [line for line in map(json.loads, file) if line["kind"] == "step"]
        spaces, last = self.plan["spaces"], self.lines[-1]
        # By space: planned and touched.
        self.bytes = {"device": (self.plan["arena_bytes"], last["high_water_bytes"])}
        if spaces:
            self.bytes["host"] = (spaces["host"]["arena_bytes"], last["host_high_water_bytes"])
        if spaces and spaces["file"]["arena_bytes"]:
            self.bytes["file"] = (spaces["file"]["arena_bytes"], last["file_arena_bytes"])

    def results(self):
        return [(line["loss"], line["grad_norm"]) for line in self.lines]

    def row(self, name):
        spaces = ", ".join(f"{space} {planned / MIB:.1f} / {touched / MIB:.1f}" for space, (planned, touched) in self.bytes.items()
                           if planned)
        seconds = statistics.median(line["seconds"] for line in self.lines[1:])
        return f"| {name} | {spaces} | {self.plan['step_time_s']:.2f} | {seconds:.2f} | {self.lines[-1]['loss']:.6f} |"


def same(one, other):
    with open(os.path.join(one, "checkpoint.safetensors"), "rb") as a, open(os.path.join(other, "checkpoint.safetensors"), "rb") as b:
        while True:
            left, right = a.read(PIECE), b.read(PIECE)
            if left != right:
                return False
            if not left:
                return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--budget", default="600MiB")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--host-budget")
    parser.add_argument("--nvme", action="store_true")
    parser.add_argument("--scratch")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="same-", dir=options.scratch) as scratch:
        flags = [f"--budget={options.budget}", "--offload=auto"]
        if options.host_budget:
            flags.append(f"--host-budget={options.host_budget}")
        if options.nvme:
            flags.append(f"--nvme={scratch}")
        stays = Trained(options, os.path.join(scratch, "stays"))
        moves = Trained(options, os.path.join(scratch, "moves"), *flags)
        print("| step | planned / touched, MiB | predicted, s | measured, s | last loss |\n|---|---|---:|---:|---:|")
        print(stays.row("all stays"))
        print(moves.row(" ".join(flag for flag in flags if not flag.startswith("--nvme"))))
        faults = [f"the {space} has {touched} bytes touched of {planned}" for run in (stays, moves)
                  for space, (planned, touched) in run.bytes.items() if touched > (planned + PAGE - 1) // PAGE * PAGE]
        if stays.results() != moves.results():
            faults.append("losses or gradient norms differ")
        if not same(stays.saved, moves.saved):
            faults.append("the checkpoints differ")
        if faults:
            sys.exit("; ".join(faults))
        print(f"\nLosses and gradient norms of {options.steps} steps and the checkpoint are the same, bit for bit.")


if __name__ == "__main__":
    main()
