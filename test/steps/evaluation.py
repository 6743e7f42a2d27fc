#!/usr/bin/env python3
"""What must hold of a step that evaluates between its steps; needs only the standard library.

    evaluation.py --build build [--only SUBSTRING] [--jobs N] [--keep DIR]

Each case trains EVALUATED steps with an evaluation after every second one, over data of its own. Losses, gradient norms and
checkpoints are those of the run that evaluates nothing, bit for bit; so they are with dead buffers poisoned, with a
trace and a profile. Evaluations of runs that go on from a checkpoint are those of the whole run. The mean is that of
training losses of the same model exported without dropout, where nothing moves. Ends with one line `N passed, M failed`.
"""

import math
import os
import sys

from case import Case, run_cases
from trained import Run

EVALUATED = 6
NEAR = 1e-6  # Relative: sums of other programs.
# The last batch of each is half one.
GPT2 = dict(graph="test/models/gpt2-tiny-dropout.onnx", options=["--batch=4", "--dim=sequence=32"], batch=4, samples=10,
            inputs={"input_ids": ((10, 32), "below 256"), "labels": ((10, 32), "below 256")})
PLAIN = dict(GPT2, graph="test/models/gpt2-tiny.onnx")
RESNET = dict(graph="examples/resnet-tiny.onnx", options=["--batch=8"], batch=8, samples=20,
              inputs={"image": ((20, 3, 24, 24), "normal"), "label": ((20,), "below 8")})
SCALED = "--loss-scale=dynamic(start=65536,growth=2,backoff=0.5,interval=2)"

# Name: the step, flags, the share of the room between the smallest budget and all memory, the step without dropout.
CASES = {
    "dropout": (GPT2, [], None, PLAIN),
    "dropout, 2 micro-batches": (GPT2, ["--micro-batches=2"], None, PLAIN),
    "dropout, a tight budget": (GPT2, [], 0.1, PLAIN),
    "dropout, all moves": (GPT2, ["--offload=all"], 0.1, PLAIN),
    "dropout, all moves in micro-batches": (GPT2, ["--offload=all", "--micro-batches=2"], 0.1, PLAIN),
    "dropout in bf16": (GPT2, ["--precision=bf16"], None, PLAIN),
    "dropout of adapters": (GPT2, ["--lora=r=4,targets=c_attn,c_fc,dropout=0.1"], None, None),
    "plain": (PLAIN, [], None, PLAIN),
    "plain in fp16 with scaling": (PLAIN, ["--precision=fp16", SCALED], None, None),
    "plain in fp8 with delayed scales": (PLAIN, ["--precision=fp8:delayed,lm_head=bf16"], None, None),
    "plain, the loss in chunks": (PLAIN, ["--loss-chunk=24"], None, PLAIN),
    "plain, a base in nf4": (PLAIN, ["--freeze=*.h.*", "--base=nf4"], None, None),
    "batch statistics": (RESNET, [], None, RESNET),
    "batch statistics, a tight budget": (RESNET, [], 0.1, RESNET),
}


class Evaluated(Case):
    def __init__(self, name, model, flags, share, plain, options, scratch):
        super().__init__(name, model, options, scratch)
        self.flags, self.share, self.plain = flags, share, plain

    def budget(self, base):
        """The flag of a budget between the smallest one and what `base` takes."""
        if self.share is None:
            return []
        own, self.model = self.model, dict(self.model, options=[*self.model["options"], *self.flags])
        low, high = self.smallest(), self.plan(base)["arena_bytes"]
        self.model = own
        return [f"--budget={math.ceil(low + self.share * (high - low))}"]

    def check(self, tally):
        step, fault = self.compile("step", *([f for f in self.flags if "offload" not in f] if self.share else self.flags))
        if not fault and self.share is not None:
            step, fault = self.compile("tight", *self.flags, *self.budget(step))
        if fault:
            return tally.test(f"{self.name}: compile", fault)
        first = Run(step, "without", self.data, "--threads=1", steps=EVALUATED)
        evaluated = [f"--eval={data}" for data in self.data] + ["--eval-every=2"]

        def same(title, *more):
            run = Run(step, title.replace(" ", "-"), self.data, "--threads=1", *evaluated, *more, steps=EVALUATED)
            found = run.evaluations
            fault = run.difference(first)
            if not fault and [line["step"] for line in found] != [2, 4, 6]:
                fault = f"evaluations are {found}"
            tally.test(f"{self.name}: {title}", fault)
            return [] if fault else [line["eval_loss"] for line in found]

        losses = same("as without evaluations")
        for title, more in ("dead buffers poisoned", ["--poison"]), ("traced and profiled", [
                f"--trace={step}/trace.json", f"--profile={step}/profile.json"]):
            other = same(title, *more)
            if losses and other:
                tally.test(f"{self.name}: {title}, the losses", "" if other == losses else f"{other} instead of {losses}")
        half = Run(step, "half", self.data, "--threads=1", steps=3)
        rest = Run(step, "rest", self.data, "--threads=2", *evaluated, f"--resume={half.directory}", steps=3, init=False)
        found = [line["eval_loss"] for line in rest.evaluations]
        tally.test(f"{self.name}: resumed", rest.text if rest.code else "" if found == losses[1:] else f"{found} instead of {losses[1:]}")
        if self.plain:
            self.check_value(tally, step)

    def check_value(self, tally, step):
        """Losses of training steps at a learning rate of zero, weighed by the samples of their batches."""
        model, self.model = self.model, self.plain
        plain, fault = self.compile("plain", *[f for f in self.flags if f.startswith("--precision")])
        self.model = model
        if fault:
            return tally.test(f"{self.name}: compile without dropout", fault)
        alone = Run(step, "alone", self.data, "--threads=1", *[f"--eval={data}" for data in self.data], steps=0)
        batch, samples = model["batch"], model["samples"]
        sizes = [min(batch, samples - first) for first in range(0, samples, batch)]
        trained = Run(plain, "plain", self.data, "--threads=1", "--lr=0", steps=len(sizes))
        for run in alone, trained:
            if run.code:
                return tally.test(f"{self.name}: the loss without dropout", run.text)
        got = alone.evaluations[0]["eval_loss"]
        want = sum(line["loss"] * size for line, size in zip(trained.lines, sizes)) / samples
        tally.test(f"{self.name}: the loss without dropout", "" if abs(got - want) <= NEAR * want else f"{got} instead of {want}",
                   f"{got:.6f}, off by {abs(got / want - 1):.1e}")


def cases(options, scratch):
    return [Evaluated(name, model, flags, share, plain, options, scratch)
            for name, (model, flags, share, plain) in CASES.items() if options.only in name]


if __name__ == "__main__":
    sys.exit(run_cases(__doc__, "evaluation", cases))
