#!/usr/bin/env python3
"""What must hold of steps in micro-batches, the last of which may be smaller; needs only the
standard library.

    pieces.py --build build [--only SUBSTRING] [--jobs N] [--keep DIR]

Ten steps in micro-batches give the losses of the whole batch to 1e-6 and its parameters to 1e-5, with
dropout, and with labels that don't count. Of one number of micro-batches each plan gives the same bits:
in a budget near the smallest, in two threads, with all that may leaving the device; dead buffers
poisoned, and going on from a checkpoint. `tmc verify` agrees. Ends with one line
`N passed, M failed`.
"""

import json
import math
import os
import sys

import trained
from case import LOSS, PARAMETERS, Case, run_cases
from trained import ROOT, Run

TEN = 10
GPT2 = "test/models/gpt2-tiny-dropout.onnx"

# Of what all would take beyond the least, how much plans get.
PRESSED = 0.02
# Name: the step; numbers of micro-batches that are compared with the whole batch; those of which several plans are
# made; their share, if not PRESSED. Of 5 samples 2 pieces have 3 and 2, 3 pieces 2, 2 and 1, and 5 pieces 1 each.
CASES = {
    # Rounding is by the piece: only plans are compared. It begins, as it takes longest: in the least,
    # its small kernels are planned with moves for two minutes.
    "gpt2-tiny, 5 samples, fp8 delayed": (
        dict(graph=GPT2, options=["--batch=5", "--dim=sequence=32", "--precision=fp8:delayed,lm_head=bf16"], inputs={}), [], [3], 0.5),
    "gpt2-tiny, 64 samples": (dict(graph=GPT2, options=["--batch=64", "--dim=sequence=16"], inputs={}), [3, 64], []),
    "gpt2-tiny, 5 samples": (dict(graph=GPT2, options=["--batch=5", "--dim=sequence=32"], inputs={}), [2, 3, 5], [2]),
    "gpt2-tiny, 5 samples, no clipping": (
        dict(graph=GPT2, options=["--batch=5", "--dim=sequence=32"], inputs={}, optimizer="adamw"), [3], [3]),
    "bert-tiny, 5 samples": (
        dict(graph="test/models/bert-tiny-mlm.onnx", options=["--batch=5", "--dim=sequence=16"],
             inputs={"input_ids": ([60, 16], "below 128"), "labels": ([60, 16], "below 128"),
                     "attention_mask": ([60, 16], "mask")}), [3], [3]),
    "biased-tiny, 5 samples": (
        dict(graph="test/models/biased-tiny.onnx", options=["--batch=5"],
             inputs={"input_ids": ([60, 32], "below 128"), "labels": ([60, 32], "below 128"),
                     "attention_mask": ([60, 32], "mask")}), [3], [3]),
    # Time first inside, gates by places, and two inputs that belong to every piece.
    "batch-first, 5 samples": (
        dict(graph="test/models/batch-first.pt2", options=["--batch=5"],
             inputs={"x": ([20, 3, 8], "normal"), "label": ([20], "below 5"), "temperature": ([20], "positive"),
                     "share": ([20], "positive")}), [2, 3], [3]),
    "unet-tiny, 5 samples": (
        dict(graph="test/models/unet-tiny.onnx", options=["--batch=5"],
             inputs={"image": ([20, 3, 32, 32], "normal"), "target": ([20, 3, 32, 32], "normal")}), [3], [3]),
    # Each piece has statistics of its own; with the running ones the batch may be whole.
    "resnet-tiny, 8 samples, statistics of each piece": (
        dict(graph="examples/resnet-tiny.onnx", options=["--batch=8", "--batchnorm=per-micro-batch"],
             inputs={"image": ([32, 3, 24, 24], "normal"), "label": ([32], "below 8")}), [], [3]),
    "resnet-tiny, 8 samples, running statistics": (
        dict(graph="examples/resnet-tiny.onnx", options=["--batch=8", "--batchnorm=frozen"],
             inputs={"image": ([32, 3, 24, 24], "normal"), "label": ([32], "below 8")}), [3], []),
    "gpt2-tiny, 5 samples, logits kept": (
        dict(graph=GPT2, options=["--batch=5", "--dim=sequence=32", "--keep-output=logits"], inputs={}), [3], [3]),
}


class Pieces(Case):
    def __init__(self, name, model, counts, planned, options, scratch, share=PRESSED):
        super().__init__(name, model, options, scratch)
        self.counts, self.planned, self.share = counts, planned, share

    def check(self, tally):
        first = None
        if self.counts:
            whole, fault = self.compile("whole")
            if fault:
                return tally.test(f"{self.name}: compile", fault)
            first = Run(whole, "ten", self.data, "--threads=1", steps=TEN)
        for count in sorted({*self.counts, *self.planned}):
            label = f"{self.name}: {count} micro-batches"
            directory, fault = self.compile(f"{count}", f"--micro-batches={count}")
            if fault:
                tally.test(label, fault)
                continue
            done = Run(directory, "ten", self.data, "--threads=1", steps=TEN)
            fault = done.text if done.code else self.memory(done, directory)
            figures = ""
            if not fault and count in self.counts:
                loss = max(abs(a["loss"] - b["loss"]) / abs(b["loss"]) for a, b in zip(done.lines, first.lines))
                distance = first.checkpoint.distance(done.checkpoint)
                figures = f"losses off by {loss:.2g}, parameters by {distance:.2g} after ten steps"
                if not (loss <= LOSS and distance <= PARAMETERS):
                    fault = f"losses may be off by {LOSS}, parameters by {PARAMETERS}"
            tally.test(label, fault, figures)
            if done.code == 0:
                self.check_again(tally, label, count, directory, done)

    def check_again(self, tally, label, count, directory, done):
        code, text = trained.run([self.tmc, "verify", "--threads=1", directory])
        tally.test(f"{label}: verify", "" if code == 0 else text)
        if count not in self.planned:
            return
        tally.test(f"{label}: two threads", Run(directory, "two", self.data, "--threads=2", steps=TEN).difference(done))
        for name, *flags in [("budget",), ("moves", "--offload=all")]:
            low, high = self.least(count, *flags), self.plan(directory)["arena_bytes"]
            if low is None or low > high:
                tally.test(f"{label}, {name}: the smallest budget", f"{low} are known to work, {high} are taken")
                continue
            budget = math.ceil(low + self.share * (high - low))
            small, fault = self.compile(f"{count}-{name}", f"--micro-batches={count}", f"--budget={budget}", *flags)
            if fault:
                tally.test(f"{label}, {name}", fault)
                continue
            plan, again = self.plan(small), Run(small, "ten", self.data, "--threads=1", steps=TEN)
            fault = again.difference(done) or ("" if plan["arena_bytes"] <= budget else f"takes {plan['arena_bytes']}")
            if flags and not (plan["spaces"] and plan["spaces"]["moved_bytes"]["d2h"]):
                fault = fault or "nothing moves"
            tally.test(f"{label}, {name}", fault, f"{budget} bytes, {high} without, {plan['recomputed_ops']} recomputed")
            tally.test(f"{label}, {name}: dead buffers poisoned",
                       Run(small, "poisoned", self.data, "--threads=2", "--poison", steps=TEN).difference(done))
            half = Run(small, "half", self.data, "--threads=1", steps=TEN // 2)
            rest = Run(directory, f"rest-{name}", self.data, "--threads=1", f"--resume={half.directory}", steps=TEN - TEN // 2, init=False)
            tally.test(f"{label}, {name}: resumed", rest.difference(done))

    def least(self, count, *flags):
        code, text = trained.run([self.tmc, "plan", os.path.join(ROOT, self.model["graph"]), f"--target={self.options.target}",
                                f"--optimizer={self.optimizer}", *self.model["options"], *trained.EFFORT,
                                f"--micro-batches={count}", *flags, "--budget=1", "--json"], stderr=trained.subprocess.DEVNULL)
        return json.loads(text)["smallest_found_bytes"] if code == 3 else None


def cases(options, scratch):
    return [Pieces(name, model, counts, planned, options, scratch, *share)
            for name, (model, counts, planned, *share) in CASES.items() if options.only in name]


if __name__ == "__main__":
    sys.exit(run_cases(__doc__, "pieces", cases))
