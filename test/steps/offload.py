#!/usr/bin/env python3
"""What must hold of steps whose values leave the device; needs only the standard library.

    offload.py --build build [--only SUBSTRING] [--jobs N] [--keep DIR]

Each case is a small step, planned with what its class may move and nearly the smallest budget that
is known to work so. 20 steps give the losses, gradient norms, parameters, states and moments of the
step that moves nothing, bit for bit; so do two threads, a trace, dead buffers poisoned, and going on from the
other's checkpoint in the middle. The arenas are as large as planned, in each space, and the class
moves something. `tmc verify` agrees. Ends with one line `N passed, M failed`.
"""

import json
import math
import os
import sys

import trained
from case import Case, run_cases
from trained import ROOT, STEPS, Run

GPT2 = dict(graph="test/models/gpt2-tiny-dropout.onnx", options=["--batch=4", "--dim=sequence=32"], inputs={})
# Of predicted seconds in a trace, which has them to a thousandth of a microsecond, and in the plan.
LANE_TOLERANCE = 0.01
OVERFLOWS = "--loss-scale=dynamic(start=4294967296,growth=65536,backoff=0.0000152587890625,interval=4)"

# Name: the step, --offload, more flags of its compilation.
CASES = {
    "activations": (GPT2, "activations", []),
    "optimizer": (GPT2, "optimizer", []),
    "parameters": (GPT2, "parameters", []),
    "states": (GPT2, "optimizer,parameters", []),
    "all": (GPT2, "all", []),
    "all, auto": (GPT2, "auto", []),
    "all, 2 micro-batches": (dict(GPT2, options=GPT2["options"] + ["--micro-batches=2"]), "all", []),
    "all, 4 micro-batches": (dict(GPT2, options=GPT2["options"] + ["--micro-batches=4"]), "all", []),
    "all, fp16 with scaling": (dict(GPT2, options=GPT2["options"] + ["--precision=fp16", OVERFLOWS]), "all", []),
    "all, fp8 with delayed scales": (
        dict(GPT2, options=GPT2["options"] + ["--precision=fp8:delayed,lm_head=bf16"]), "all", []),
    "optimizer, moments in 8 bits": (dict(GPT2, optimizer="adamw8bit(weight_decay=0.1,clip=1.0)"), "optimizer", []),
    "optimizer, moments in 4 bits": (dict(GPT2, optimizer="adamw4bit(weight_decay=0.1,clip=1.0)"), "optimizer", []),
    "all, adafactor": (dict(GPT2, optimizer="adafactor(weight_decay=0.1)"), "all", []),
    "all, lion, fp16 with scaling": (dict(GPT2, options=GPT2["options"] + ["--precision=fp16", OVERFLOWS],
                                          optimizer="lion(weight_decay=0.1,moments=bf16)"), "all", []),
    "parameters, most of them frozen": (dict(GPT2, options=GPT2["options"] + ["--freeze=*.h.*"]), "parameters", []),
    "parameters, a base in nf4": (dict(GPT2, options=GPT2["options"] + ["--freeze=*.h.*", "--base=nf4"]), "parameters", []),
    "all, a base in int8, with a file": (
        dict(GPT2, options=GPT2["options"] + ["--freeze=*.h.*", "--base=int8", "--micro-batches=2"]), "all",
        ["--host-budget=500KiB", "--nvme=swap"]),
    "all, adapters": (dict(GPT2, options=GPT2["options"] + ["--lora=r=4,targets=c_attn,c_fc,dropout=0.1"]), "all", []),
    "all, with a file": (GPT2, "all", ["--host-budget=900KiB", "--nvme=swap"]),
    "all, 4 micro-batches, with a file": (dict(GPT2, options=GPT2["options"] + ["--micro-batches=4"]), "all",
                                          ["--host-budget=600KiB", "--nvme=swap"]),
    "all, sgd": (dict(GPT2, optimizer="sgd(momentum=0.9)"), "all", []),
}
# Left to tools/check --full, unless asked for by --only: test/steps/pieces.py moves all in micro-batches, too, and
# one case here goes on to a file.
LEFT = ["all, 2 micro-batches", "all, 4 micro-batches"]


class Offloaded(Case):
    def __init__(self, name, model, classes, flags, options, scratch):
        super().__init__(name, model, options, scratch)
        self.swap = os.path.join(scratch, name, "swap")
        os.makedirs(self.swap, exist_ok=True)
        self.flags = [f"--offload={classes}", *[f"--nvme={self.swap}" if f == "--nvme=swap" else f for f in flags]]
        self.has_file = "--nvme=swap" in flags

    def smallest(self):
        code, text = trained.run([self.tmc, "plan", os.path.join(ROOT, self.model["graph"]), f"--target={self.options.target}",
                                f"--optimizer={self.optimizer}", *self.model["options"], *trained.EFFORT, *self.flags,
                                "--budget=1", "--json"],
                               stderr=trained.subprocess.DEVNULL)
        return json.loads(text)["smallest_found_bytes"] if code == 3 else None

    def check(self, tally):
        base, fault = self.compile("stays")
        if fault:
            return tally.test(f"{self.name}: compile what stays", fault)
        first = Run(base, "one-thread", self.data, "--threads=1")
        low, high = self.smallest(), self.plan(base)["arena_bytes"]
        if low is None or low >= high:
            return tally.test(f"{self.name}: smallest budget", f"{low} are known to work, {high} without moves")
        budget = math.ceil(low + 0.02 * (high - low))
        moved, fault = self.compile("moves", f"--budget={budget}", *self.flags)
        label = f"{self.name}: {budget} bytes, {high} without moves"
        if fault:
            return tally.test(label, fault)
        # The file is where tmc compile said.
        done = Run(moved, "one-thread", self.data, "--threads=1")
        spaces = self.plan(moved)["spaces"]
        over = f"takes {self.plan(moved)['arena_bytes']}" if self.plan(moved)["arena_bytes"] > budget else ""
        tally.test(label, over or done.difference(first) or self.memory(done, moved) or self.beside(done, spaces),
                   "" if done.code else
                   f"{spaces['moved_bytes']['d2h']} bytes to the host, {spaces['moved_bytes']['h2d']} back, "
                   f"{spaces['host']['arena_bytes']} there"
                   + (f"; {spaces['moved_bytes']['file-write']} written, {spaces['moved_bytes']['file-read']} read" if self.has_file else ""))
        if done.code:
            return
        two = Run(moved, "two-threads", self.data, "--threads=2", "--host-threads=2")
        tally.test(f"{self.name}: two threads", two.difference(first))
        traced = os.path.join(moved, "trace.json")
        tally.test(f"{self.name}: traced", Run(moved, "traced", self.data, "--threads=1", f"--trace={traced}").difference(first)
                   or self.lanes(traced, self.plan(moved)))
        poisoned = Run(moved, "poisoned", self.data, "--threads=1", "--poison")
        tally.test(f"{self.name}: dead buffers poisoned", poisoned.difference(first))
        for name, begins, ends in ("from what stays", base, moved), ("to what stays", moved, base):
            half = Run(begins, f"half {name}", self.data, "--threads=1", steps=STEPS // 2)
            rest = Run(ends, f"rest {name}", self.data, "--threads=1", f"--resume={half.directory}",
                       steps=STEPS - STEPS // 2, init=False)
            tally.test(f"{self.name}: resumed {name}", rest.difference(first))
        code, text = trained.run([self.tmc, "verify", "--threads=1", moved])
        tally.test(f"{self.name}: verify", "" if code == 0 else text)

    def beside(self, done, spaces):
        """What is beside the device is as large as planned, and something moves."""
        if not spaces or not any(spaces["moved_bytes"].values()):
            return "nothing moves"
        if self.has_file and not min(spaces["moved_bytes"]["file-write"], spaces["moved_bytes"]["file-read"]) > 0:
            return "nothing goes to the file"
        for line in done.lines:
            if self.has_file and line["file_arena_bytes"] != spaces["file"]["arena_bytes"]:
                return f"the file has {line['file_arena_bytes']} bytes, {spaces['file']['arena_bytes']} were planned"
            if line["host_arena_bytes"] != spaces["host"]["arena_bytes"]:
                return f"the host's arena has {line['host_arena_bytes']} bytes, {spaces['host']['arena_bytes']} were planned"
        return ""

    def lanes(self, path, plan):
        """Measured and predicted lanes are side by side: each engine of the plan runs the same entries in both, and the
        predicted ones take as long as planned."""
        with open(path) as file:
            events = json.load(file)["traceEvents"]
        named = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        process = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
        lanes, busy, end = {}, {}, 0
        for event in events:
            if event["ph"] == "X":
                lane = named[event["pid"], event["tid"]]
                lanes.setdefault(lane, {}).setdefault(event["pid"], []).append(event["name"])
                if event["pid"] == process["predicted"]:
                    busy[lane] = busy.get(lane, 0) + event["dur"] * 1e-6
                    end = max(end, (event["ts"] + event["dur"]) * 1e-6)
        works = {name for name, seconds in plan["spaces"]["busy_s"].items() if seconds > 0}
        if set(lanes) != works:
            return f"the lanes are {sorted(lanes)}, {sorted(works)} work"
        for lane, each in lanes.items():
            if each.get(process["measured"]) != each.get(process["predicted"]):
                return f"{lane} has other work measured than predicted"
            planned = plan["spaces"]["busy_s"][lane]
            if not math.isclose(busy[lane], planned, rel_tol=LANE_TOLERANCE):
                return f"{lane} is predicted to work {busy[lane]:.9f} s, {planned:.9f} s in the plan"
        if not math.isclose(end, plan["step_time_s"], rel_tol=LANE_TOLERANCE):
            return f"the predicted lanes end at {end:.9f} s, the plan's step takes {plan['step_time_s']:.9f} s"
        return ""


def cases(options, scratch):
    return [Offloaded(name, model, classes, flags, options, scratch)
            for name, (model, classes, flags) in CASES.items()
            if options.only in name and (options.only or name not in LEFT or os.environ.get("TMC_TEST_FULL"))]


if __name__ == "__main__":
    sys.exit(run_cases(__doc__, "offload", cases))
