#!/usr/bin/env python3
"""What must hold of steps of several ranks; needs only the standard library, and MPI or Gloo.

    ranks.py --build build [--only SUBSTRING] [--jobs N] [--keep DIR] [--kills N]

Ten steps of two and four ranks give the losses of one device to 1e-6 and its parameters to 1e-5, with
dropout, clipping, scaled losses, moments in 8 bits, micro-batches, labels that don't count, and a short
last batch. Of one number of ranks each run gives the same bits: by MPI and by Gloo, on a slow network, in
one thread and in two, whatever each rank keeps, in a budget near the smallest, with all that may leaving the device, and going on
from a checkpoint. One device goes on from a checkpoint of ranks, and ranks from one of a device. A rank
with another seed, a killed rank and one that stands still are named, all end with 74, and the checkpoint
stays whole. That holds of kills of drawn ranks at drawn moments, and the same command then goes on to the
bytes of a run that was never killed. A directory with steps for two numbers of ranks starts that of its
world. Ranks that share heads and hidden columns (tp) do what ranks that share a batch do, alone and with
them. Ends with one line `N passed, M failed`. The machine may lack a
library: its tests are skipped by name.
"""

import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import trained
from case import Case, run_cases
from rankfiles import RankFiles
from trained import Checkpoint, Run
from worlds import RankRun, Ranks, libraries

TEN = 10
# Relative, of losses and of parameters, of ranks against one device: each rank rounds its own sums to 16 bits, and a last
# bit may decide a code of 8 bits.
EXACT, CODES, FP16, BF16 = (1e-6, 1e-5), (1e-6, 1e-3), (1e-4, 1e-3), (1e-3, 1e-2)
WORLD = 74
GPT2 = "test/models/gpt2-tiny-dropout.onnx"
HELD_SECONDS = 0.05  # In which the network moves each gradient once.
PRESSED = 0.02  # Of what all would take beyond the least, how much plans get.
# Name: the step; numbers of ranks; whether several plans and libraries are compared.
CASES = {
    "gpt2-tiny": (dict(graph=GPT2, options=["--batch=4", "--dim=sequence=32"], inputs={}), [2, 4], True),
    "gpt2-tiny, micro-batches, 8 bits": (
        dict(graph=GPT2, options=["--batch=8", "--dim=sequence=32", "--micro-batches=2"], inputs={}, bounds=CODES,
             optimizer="adamw8bit(weight_decay=0.1,clip=1.0)"), [2], True),
    "gpt2-tiny, micro-batches that add shards": (
        dict(graph=GPT2, options=["--batch=8", "--dim=sequence=32", "--micro-batches=2", "--parallel=sums=shards"], inputs={}), [2], False),
    # Steps 1 and 6 overflow and are skipped.
    "gpt2-tiny, fp16": (
        dict(graph=GPT2, inputs={}, bounds=FP16,
             options=["--batch=4", "--dim=sequence=32", "--precision=fp16",
                      "--loss-scale=dynamic(start=4294967296,growth=65536,backoff=0.0000152587890625,interval=4)"]), [2], True),
    "gpt2-tiny, gradients in bf16": (
        dict(graph=GPT2, inputs={}, bounds=BF16, options=["--batch=4", "--dim=sequence=32", "--precision=bf16,gradients=bf16"]), [2], True),
    "llama-tiny": (dict(graph="test/models/llama-tiny.onnx", options=["--batch=4", "--dim=sequence=32"], inputs={}), [2], True),
    "gpt2-tiny, adapters": (
        dict(graph=GPT2, inputs={},
             options=["--batch=4", "--dim=sequence=32", "--lora=r=4,alpha=8,targets=c_attn,c_proj,dropout=0.1"]), [2], False),
    # 27 samples: the last batch of an epoch has 3 of 4. Each rank counts other labels.
    "bert-tiny": (
        dict(graph="test/models/bert-tiny-mlm.onnx", options=["--batch=4", "--dim=sequence=16"],
             inputs={"input_ids": ([27, 16], "below 128"), "labels": ([27, 16], "below 128"),
                     "attention_mask": ([27, 16], "mask")}), [2, 4], False),
    "resnet-tiny, running statistics": (
        dict(graph="examples/resnet-tiny.onnx", options=["--batch=8", "--batchnorm=frozen"],
             inputs={"image": ([32, 3, 24, 24], "normal"), "label": ([32], "below 8")}), [2], True),
    "mlp-small": (
        dict(graph="test/models/mlp-small.onnx", options=["--batch=4"], optimizer="adamw",
             inputs={"image": ([32, 64], "normal"), "label": ([32], "below 10")}), [2, 4], True),
}


# Name: the step; how ranks share heads, columns and the batch.
CUT_CASES = {
    "mlp-small": (CASES["mlp-small"][0], ["tp=2", "dp=2,tp=2"]),
    "gpt2-tiny": (CASES["gpt2-tiny"][0], ["tp=2", "dp=2,tp=2"]),
    "gpt2-tiny, micro-batches": (
        dict(graph=GPT2, options=["--batch=8", "--dim=sequence=32", "--micro-batches=2"], inputs={}), ["dp=2,tp=2"]),
    "resnet-tiny": (CASES["resnet-tiny, running statistics"][0], ["tp=2"]),
    "llama-tiny": (CASES["llama-tiny"][0], ["tp=2", "dp=2,tp=2"]),
    "bert-tiny": (CASES["bert-tiny"][0], ["tp=2"]),
}


def small_budget(plan):
    least = plan["smallest_found_bytes"]
    return least + int(PRESSED * (plan["unconstrained_bytes"] - least))


class RanksCase(Case):
    def __init__(self, name, model, ranks, several, options, scratch):
        super().__init__(name, model, options, scratch)
        self.ranks, self.several = ranks, several

    def losses(self, one, many):
        """The largest relative difference of losses; a fault where a run failed."""
        for each in (one, many):
            if each.code:
                return math.inf, f"the trainer ended with {each.code}: {each.text}"
        pairs = [(a["loss"], b["loss"]) for a, b in zip(one.lines, many.lines)]
        if len(pairs) != TEN or len(many.lines) != TEN:
            return math.inf, f"there are {len(one.lines)} and {len(many.lines)} steps"
        return max(abs(a - b) / max(abs(a), 1e-30) for a, b in pairs), ""

    def check(self, tally):
        alone, fault = self.compile("one device")
        if fault:
            return tally.test(f"{self.name}: one device", fault)
        one = Run(alone, "all", self.data, steps=TEN)
        for ranks in self.ranks:
            self.check_ranks(tally, ranks, alone, one)

    def check_ranks(self, tally, ranks, alone, one):
        name = f"{self.name}, {ranks} ranks"
        step, fault = self.compile(f"{ranks} ranks", f"--devices={ranks}")
        if fault:
            return tally.test(name, fault)
        code, text = trained.run([self.tmc, "verify", "--threads=1", step])
        is_right = code == 0 if self.model.get("decided", True) else code == 1 and "rounding alone decides" in text
        tally.test(f"{name}: verify", "" if is_right else text)
        there = libraries(step)
        if not there:
            return tally.skip(f"{name}: there is neither mpirun nor Gloo")
        first = RankRun(there[0], ranks, step, "all", self.data, "--threads=1", steps=TEN)
        if not self.check_close(tally, name, one, first):
            return
        self.check_resumes(tally, name, ranks, there[0], step, first, alone, one)
        self.check_evaluation(tally, name, ranks, there[0], step, first, alone)
        if self.several and ranks == self.ranks[0]:
            self.check_bits(tally, name, ranks, there, step, first)
        elif self.several:
            self.check_modes(tally, name, ranks, there[0], first, ["zero=0", "zero=3"])

    def check_close(self, tally, name, one, first):
        """False if a run failed."""
        loss, parameters = self.model.get("bounds", EXACT)
        apart, fault = self.losses(one, first)
        if fault:
            tally.test(f"{name}: losses and parameters of one device", fault)
            return False
        distance = one.checkpoint.distance(first.checkpoint)
        if apart > loss or distance > parameters:
            fault = f"losses are apart by {apart:.2g}, parameters by {distance:.2g}"
        tally.test(f"{name}: losses and parameters of one device", fault, f"{apart:.1g} and {distance:.1g}")
        return True

    def check_resumes(self, tally, name, ranks, library, step, first, alone, one):
        half = RankRun(library, ranks, step, "half", self.data, steps=TEN // 2)
        rest = RankRun(library, ranks, step, "rest", self.data, f"--resume={half.directory}", steps=TEN // 2, init=False)
        tally.test(f"{name}: going on from a checkpoint", half.code and half.text or rest.difference(first))
        # Any mesh goes on from any other's checkpoint.
        other = Run(alone, f"from {ranks} ranks", self.data, f"--resume={half.directory}", steps=0, init=False)
        fault = f"ended with {other.code}: {other.text}" if other.code else other.checkpoint.difference(half.checkpoint)
        tally.test(f"{name}: one device saves what it resumed", fault)
        back = RankRun(library, ranks, step, "back", self.data, f"--resume={one.directory}", steps=0, init=False)
        fault = f"ended with {back.code}: {back.text}" if back.code else back.checkpoint.difference(one.checkpoint)
        tally.test(f"{name}: ranks save what they resumed", fault)

    def check_evaluation(self, tally, name, ranks, library, step, first, alone):
        flags = [*[f"--eval={d}" for d in self.data], "--eval-every=5"]
        one = Run(alone, "evaluated", self.data, *flags, steps=TEN)
        if one.code:
            return  # It can't evaluate a batch.
        run = RankRun(library, ranks, step, "evaluated", self.data, *flags, steps=TEN)
        fault = run.difference(first)
        if not fault:
            pairs = [(a["eval_loss"], b["eval_loss"]) for a, b in zip(one.evaluations, run.evaluations)]
            if len(pairs) != 2 or max(abs(a - b) / abs(a) for a, b in pairs) > self.model.get("bounds", EXACT)[0]:
                fault = f"one device's and the ranks' evaluations are {pairs}"
        tally.test(f"{name}: evaluations are one device's and change no bit", fault)

    def check_bits(self, tally, name, ranks, there, step, first):
        for library in there[1:]:
            tally.test(f"{name}: the bits of {there[0]} by {library}",
                       RankRun(library, ranks, step, library, self.data, "--threads=1", steps=TEN).difference(first))
        tally.test(f"{name}: the bits in two threads",
                   RankRun(there[0], ranks, step, "threads", self.data, "--threads=2", "--poison", steps=TEN).difference(first))
        self.check_bandwidth(tally, name, ranks, there[0], step, first)
        self.check_modes(tally, name, ranks, there[0], first, ["zero=0", "zero=1", "zero=3", "zero=3,whole=2"])
        pressed = small_budget(self.plan(step))
        for words, flags in ("in a small budget", [f"--budget={pressed}"]), ("with offload", ["--offload=all", f"--budget={pressed}"]), (
                "of shards with offload", ["--parallel=zero=3", "--offload=all", f"--budget={pressed}"]):
            directory, fault = self.compile(f"{ranks} ranks {words}", f"--devices={ranks}", *flags)
            if not fault:
                fault = RankRun(there[0], ranks, directory, "all", self.data, steps=TEN).difference(first)
            tally.test(f"{name}: the bits {words}", fault)

    def check_modes(self, tally, name, ranks, library, first, modes):
        for mode in modes:
            directory, fault = self.compile(f"{ranks} ranks {mode}", f"--parallel=dp={ranks},{mode}")
            if not fault:
                fault = RankRun(library, ranks, directory, "all", self.data, steps=TEN).difference(first)
            tally.test(f"{name}: the bits of {mode}", fault)

    def check_bandwidth(self, tally, name, ranks, library, step, first):
        """Each gradient goes to the others, in 16 bits at least, and its sums come back."""
        moments = re.compile(r"\.(exp_avg|exp_avg_sq)(_|$)|^loss_scale$")
        elements = sum(len(data) // 4 for n, data in first.checkpoint.tensors.items()
                       if not moments.search(n) and first.checkpoint.types[n] == "F32")
        least = HELD_SECONDS * (ranks - 1) / ranks
        held = RankRun(library, ranks, step, "held", self.data, f"--network-bandwidth={int(4 * elements / HELD_SECONDS)}", steps=TEN)
        fault = held.difference(first)
        quickest = min((line["seconds"] for line in held.lines), default=0)
        if not fault and quickest < least:
            fault = f"a step takes {quickest} s, and its bytes {least} s"
        tally.test(f"{name}: the bits on a slow network", fault, f"{quickest:.3f} s a step")


class CutCase(RanksCase):
    """Ranks that share heads and hidden columns."""

    def __init__(self, name, model, meshes, options, scratch):
        super().__init__(name, model, [], False, options, scratch)
        self.meshes = meshes

    def check(self, tally):
        alone, fault = self.compile("one device")
        if fault:
            return tally.test(f"{self.name}: one device", fault)
        one = Run(alone, "all", self.data, steps=TEN)
        for mesh in self.meshes:
            self.check_mesh(tally, mesh, alone, one)

    def check_mesh(self, tally, mesh, alone, one):
        name = f"{self.name}, {mesh}"
        ranks = math.prod(int(part.split("=")[1]) for part in mesh.split(","))
        step, fault = self.compile(mesh, f"--parallel={mesh}")
        if not fault:
            code, text = trained.run([self.tmc, "verify", "--threads=1", step])
            fault = text if code else ""
        tally.test(f"{name}: verify", fault)
        there = [] if fault else libraries(step)
        if not there:
            return tally.skip(f"{name}: there is neither mpirun nor Gloo")
        first = RankRun(there[0], ranks, step, "all", self.data, "--threads=1", steps=TEN)
        if not self.check_close(tally, name, one, first):
            return
        self.check_resumes(tally, name, ranks, there[0], step, first, alone, one)
        self.check_evaluation(tally, name, ranks, there[0], step, first, alone)
        for library in there[1:]:
            tally.test(f"{name}: the bits of {there[0]} by {library}",
                       RankRun(library, ranks, step, library, self.data, "--threads=2", "--poison", steps=TEN).difference(first))
        for mode in ("zero=0", "zero=2", "zero=3") if "dp" in mesh else ():
            other, fault = self.compile(f"{mesh} {mode}", f"--parallel={mesh},{mode}")
            if not fault:
                fault = RankRun(there[0], ranks, other, "all", self.data, steps=TEN).difference(first)
            tally.test(f"{name}: the bits of {mode}", fault)


class InFile(Case):
    """Shards that are at home in a file of each rank."""

    def check(self, tally):
        step, fault = self.compile("2 ranks", "--devices=2")
        moved, other = ("", fault) if fault else self.compile(
            "2 ranks with a file", "--parallel=dp=2,zero=3", "--offload=all", "--budget=1100KiB", "--host-budget=100KiB", f"--nvme={self.directory}")
        if other:
            return tally.test("shards in a file", other)
        there = libraries(step)
        if not there:
            return tally.skip("shards in a file: there is neither mpirun nor Gloo")
        fault = "" if self.plan(moved)["spaces"]["file"]["arena_bytes"] > 0 else "nothing is in the file"
        first = RankRun(there[0], 2, step, "all", self.data, steps=TEN)
        tally.test("shards in a file: the bits", fault or RankRun(there[0], 2, moved, "all", self.data, steps=TEN).difference(first))


class Faults(Case):
    """A world ends together, and says why."""

    def check(self, tally):
        step, fault = self.compile("2 ranks", "--devices=2")
        if fault:
            return tally.test("faults", fault)
        if "gloo" not in libraries(step):
            return tally.skip("faults: there is no Gloo")
        check_faults(tally, step, self.data, self.directory)
        moved, fault = self.compile("2 ranks with offload", "--devices=2", "--offload=all", f"--budget={small_budget(self.plan(step))}")
        if fault:
            return tally.test("the slowest rank", fault)
        check_slowest(tally, moved, self.data, self.directory)


def wait_for(directory):
    """Until a checkpoint has replaced another one: the ranks know of the first one then."""
    deadline, path, files = time.monotonic() + 60, os.path.join(directory, "checkpoint.safetensors"), set()
    while len(files) < 2 and time.monotonic() < deadline:
        if os.path.exists(path):
            files.add(os.stat(path).st_mtime_ns)
        time.sleep(0.02)


def check_slowest(tally, step, data, scratch):
    """Rank 1 has a slow way to its host."""
    steps, path = 11, os.path.join(scratch, "slowest.jsonl")
    train = [os.path.join(step, "train"), *[f"--data={d}" for d in data], "--init=random:1", "--network=gloo",
             f"--steps={steps}", f"--log={path}", "--threads=1"]
    code, texts = Ranks([train, [*train, "--link-bandwidth=1MB"]]).wait()
    rows = {int(rank): int(count) for rank, count in
            re.findall(r"^ +(\d+) +[\d.]+ s +[\d.]+ s +(\d+) +[\d.]+ \wiB$", texts[0], re.MULTILINE)}
    with open(path) as file:
        lines = [line for line in map(json.loads, file) if line["kind"] == "step"]
    logged = [line["slowest_rank"] for line in lines[1:]]
    fault = ""
    if code or f"{steps - 1} steps after the first" not in texts[0] or rows != {rank: logged.count(rank) for rank in (0, 1)}:
        fault = f"{code}: {rows}, the log says {logged}: {texts[0]}"
    elif logged != [1] * (steps - 1) or texts[0].count("slowest rank 1\n") < steps - 1:
        fault = f"rank 1 is the slowest in {logged.count(1)} steps: {texts[0]}"
    elif any(not 0 < line["slowest_rank_seconds"] <= line["seconds"] for line in lines):
        fault = f"times are {lines}"
    tally.test("the slowest rank is named", fault or texts[1])


def check_faults(tally, step, data, scratch):
    train = [os.path.join(step, "train"), *[f"--data={d}" for d in data], "--init=random:1", "--quiet", "--network=gloo"]

    code, texts = Ranks([[*train, "--steps=1", f"--seed={seed}"] for seed in (1, 2)]).wait()
    said = all(re.search(r"error: .*seed", text) for text in texts)
    tally.test("another seed is named before anything runs", "" if code == 2 and said else f"{code}: {texts}")

    code, texts = Ranks([[*train, "--steps=1", f"--lr={rate}"] for rate in ("1e-3", "1e-4")]).wait()
    said = all(re.search(r"error: .*learning rate.*0\.0001", text) for text in texts)
    tally.test("another learning rate is named before anything runs", "" if code == 2 and said else f"{code}: {texts}")

    starts = [[flag if not flag.startswith("--init") else f"--init=random:{number}" for flag in train] for number in (1, 2)]
    code, texts = Ranks([[*start, "--steps=1"] for start in starts]).wait()
    said = all("the ranks begin with different values" in text for text in texts)
    tally.test("other values are found before the first step", "" if code == 2 and said else f"{code}: {texts}")

    code, texts = Ranks([[*train, "--steps=1"]] * 3).wait()
    said = all("the step is for 2 ranks" in text for text in texts)
    tally.test("a wrong number of ranks is named", "" if code == 2 and said else f"{code}: {texts}")

    alone = subprocess.run([*train, "--steps=1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    tally.test("a start without a launcher is named",
               "" if alone.returncode == 2 and "mpirun -n 2" in alone.stdout else f"{alone.returncode}: {alone.stdout}")

    # After a fault the same command goes on. A rank that sees no checkpoint is named.
    saved, none = os.path.join(scratch, "again"), os.path.join(scratch, "none")
    again = [[*train, "--steps=4", "--lr-schedule=cosine", "--save-every=2", f"--save={saved}", f"--resume-if-there={saved}"]] * 2
    whole = Ranks(again).wait()
    first = Checkpoint(saved)
    half = [[*words, "--steps=2", "--lr-schedule=cosine:total=4"] for words in again]
    shutil.rmtree(saved)
    ends = [whole, Ranks(half).wait(), Ranks(again).wait()]
    fault = "" if not any(code for code, _ in ends) else f"{ends}"
    tally.test("the same command begins and goes on", fault or Checkpoint(saved).difference(first))
    code, texts = Ranks([again[0], [*again[1], f"--resume-if-there={none}"]]).wait()
    said = all(re.search(r"error: .*start by --resume-if-there.*'without a checkpoint'", text) for text in texts)
    tally.test("a rank that sees no checkpoint is named", "" if code == 2 and said else f"{code}: {texts}")

    # A signal to one rank ends all after the same step.
    saved = os.path.join(scratch, "interrupted")
    ranks = Ranks([[*train, "--steps=100000000", f"--save={saved}", "--save-every=20"]] * 2)
    wait_for(saved)
    ranks.processes[1].send_signal(signal.SIGINT)
    code, texts = ranks.wait(60)
    again = RankRun("gloo", 2, step, "interrupted", data, f"--resume={saved}", steps=1, init=False)
    tally.test("a signal to one rank ends all, and saves", f"{code}: {texts}" if code else again.code and again.text)

    for how, sign, flags, words in (
            ("killed", signal.SIGKILL, [], r"rank 1 \(host \S+, process \d+\) is gone (in|after) step \d+"),
            ("stopped", signal.SIGSTOP, ["--network-timeout=3"], r"rank 1 \(host \S+, process \d+\).*")):
        saved = os.path.join(scratch, how)
        words += f"; the checkpoint( of step (?P<step>\\d+))? in '{re.escape(saved)}' is whole"
        ranks = Ranks([[*train, "--steps=100000000", f"--save={saved}", "--save-every=20", *flags]] * 2)
        wait_for(saved)
        ranks.processes[1].send_signal(sign)
        begin = time.monotonic()
        try:
            text = ranks.processes[0].communicate(timeout=60)[0]
        except subprocess.TimeoutExpired:
            text = "still runs after a minute"
        seconds = time.monotonic() - begin
        ranks.kill()
        said = re.search(words, text)
        fault = "" if ranks.processes[0].returncode == WORLD and said else f"{ranks.processes[0].returncode}: {text}"
        kept = Checkpoint(saved).metadata["step"]
        if not fault and said["step"] not in (None, kept):
            fault = f"the checkpoint is of step {kept}: {text}"
        again = RankRun("gloo", 2, step, how, data, f"--resume={saved}", steps=1, init=False)
        fault = fault or again.code and f"the checkpoint: {again.text}"
        tally.test(f"a {how} rank is named, and the checkpoint is whole", fault, f"{seconds:.1f} s")


class Kills(Case):
    """A run that is killed and started again, until it is through, as often as asked for."""

    STEPS, SAVE_EVERY, MOST_SECONDS = 120, 7, 10

    def start(self, saved, log):
        return Ranks([[os.path.join(self.step, "train"), *[f"--data={d}" for d in self.data], "--init=random:1", "--seed=7", "--quiet",
                       "--network=gloo", "--threads=1", f"--steps={self.STEPS}", "--lr-schedule=cosine", f"--save-every={self.SAVE_EVERY}",
                       f"--save={saved}", f"--resume-if-there={saved}", f"--log={log}"]] * 2)

    def check(self, tally):
        self.step, fault = self.compile("2 ranks", "--devices=2")
        if fault:
            return tally.test("kills", fault)
        if "gloo" not in libraries(self.step):
            return tally.skip("kills: there is no Gloo")
        begin = time.monotonic()
        code, texts = self.start(os.path.join(self.directory, "whole"), os.path.join(self.directory, "whole.jsonl")).wait()
        seconds = time.monotonic() - begin
        if code:
            return tally.test("kills", f"{code}: {texts}")
        whole = Checkpoint(os.path.join(self.directory, "whole"))
        draw, kills, rounds, slowest, fault = random.Random(self.options.seed), 0, 0, 0.0, ""
        saved = os.path.join(self.directory, "killed")
        while kills < self.options.kills and not fault:
            shutil.rmtree(saved, ignore_errors=True)
            rounds += 1
            is_through = False
            while not is_through and not fault:
                wait = draw.random() * seconds / 2 if kills < self.options.kills else 600
                is_through, took, fault = self.kill(saved, draw.randrange(2), wait)
                kills += not is_through
                slowest = max(slowest, took)
            if not fault:
                fault = Checkpoint(saved).difference(whole)
            if not fault and os.listdir(saved) != ["checkpoint.safetensors"]:
                fault = f"the folder has {os.listdir(saved)}"
        tally.test(f"killed {kills} times", fault and f"seed {self.options.seed}: {fault}",
                   f"{rounds} runs, all ranks ended within {slowest:.2f} s")

    def kill(self, saved, victim, wait):
        """Starts the run, kills a rank after `wait` seconds, and returns if the run was through before, the seconds
        after which the other rank ended, and the fault."""
        log = os.path.join(self.directory, "killed.jsonl")
        if os.path.exists(log):
            os.remove(log)
        was_there = os.path.exists(os.path.join(saved, "checkpoint.safetensors"))
        ranks = self.start(saved, log)
        dying, other = ranks.processes[victim], ranks.processes[1 - victim]
        # The ranks have come together. A rank that waits for another one to come does so for a minute.
        deadline = time.monotonic() + 60
        while not os.path.exists(log) and other.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        try:
            dying.wait(wait)
        except subprocess.TimeoutExpired:
            dying.send_signal(signal.SIGKILL)
        begin = time.monotonic()
        try:
            text = other.communicate(timeout=60)[0]
        except subprocess.TimeoutExpired:
            text = "it still runs"
        took = time.monotonic() - begin
        ranks.kill()
        dying.communicate()
        if dying.returncode == 0:
            return True, 0.0, text if other.returncode else ""
        said = re.search(rf"^error: rank {victim} \(host \S+, process {dying.pid}\) is gone (before the first step|(in|after) step \d+)"
                         rf"(; the checkpoint( of step (?P<step>\d+))? in '{re.escape(saved)}' is whole)?$", text, re.MULTILINE)
        if dying.returncode != -signal.SIGKILL or other.returncode != WORLD or not said or took > self.MOST_SECONDS:
            return False, took, f"rank {victim} ended with {dying.returncode}, the other one with {other.returncode} after {took:.1f} s: {text}"
        is_named = "whole" in said[0]
        if not is_named and was_there:
            return False, took, f"no checkpoint is named: {text}"
        if is_named and said["step"] not in (None, Checkpoint(saved).metadata["step"]):
            return False, took, f"the checkpoint is of step {Checkpoint(saved).metadata['step']}: {text}"
        return False, took, ""


class Meshes(Case):
    """Steps for several numbers of ranks in one directory, and the trainer of the world beside them."""

    def folders(self):
        return sorted(os.listdir(os.path.join(self.directory, "both")))

    def check(self, tally):
        step, fault = self.compile("both", "--devices=2,4")
        if fault or "gloo" not in libraries(os.path.join(step, "ranks-2")):
            return tally.test("meshes", fault) if fault else tally.skip("meshes: there is no Gloo")
        saved = os.path.join(self.directory, "saved")
        train = [os.path.join(step, "train"), *[f"--data={d}" for d in self.data], "--quiet", "--network=gloo", f"--save={saved}",
                 f"--resume-if-there={saved}", "--init=random:1"]
        for ranks, steps in (2, 3), (4, 3), (4, 5), (2, 5):
            log = os.path.join(self.directory, "log.jsonl")
            code, texts = Ranks([[*train, f"--steps={steps}", f"--log={log}"]] * ranks).wait()
            now = Checkpoint(saved) if not code else None
            with open(log) as file:
                words = [json.loads(line) for line in file][0]["command"]
            # A mesh that takes no step saves what the other one saved.
            fault = f"{code}: {texts}" if code else "" if now.metadata["step"] == str(steps) and words[0] == train[0] else f"{now.metadata}, {words}"
            if not fault and (ranks, steps) in ((4, 3), (2, 5)):
                fault = now.difference(before)
            before = now
            tally.test(f"meshes: {ranks} ranks up to step {steps}", fault)
        code, texts = Ranks([[*train, "--steps=1"]] * 3).wait()
        said = all("the steps here are for 2 and 4 ranks, and TMC_RANK started 3" in text for text in texts)
        tally.test("meshes: another number of ranks is named", "" if code == 2 and said else f"{code}: {texts}")
        code, text = trained.run([train[0], "--help"])
        tally.test("meshes: help", "" if code == 0 and f"usage: {train[0]}" in text else text)
        # A compilation that fails leaves all as it was, and a later one takes the numbers that it has.
        before = self.folders()
        _, fault = self.compile("both", "--devices=2,3")
        tally.test("meshes: one that can't be leaves the others", "" if "with 2" in fault and self.folders() == before else f"{fault} {self.folders()}")
        _, fault = self.compile("both", "--devices=1,2")
        tally.test("meshes: others take their place", fault or ("" if self.folders() == ["config.toml", "ranks-1", "ranks-2", "train"] else f"{self.folders()}"))
        _, fault = self.compile("both")
        has_left = [name for name in self.folders() if name.startswith("ranks-")]
        alone, text = trained.run([*train, "--steps=6"])
        tally.test("meshes: one device takes their place", fault or (f"{has_left} {text}" if has_left or alone else ""))


def add_options(parser):
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1, help="of the kills")


def cases(options, scratch):
    made = [RanksCase(name, *case, options, scratch) for name, case in CASES.items()]
    made += [CutCase(f"{name}, cut", *case, options, scratch) for name, case in CUT_CASES.items()]
    tiny = dict(graph="test/models/gpt2-tiny.onnx", options=["--batch=4", "--dim=sequence=32"], inputs={}, optimizer="adamw")
    made.append(InFile("shards in a file", tiny, options, scratch))
    made.append(RankFiles("saved files", tiny, options, scratch))
    made.append(Faults("faults", CASES["mlp-small"][0], options, scratch))
    made.append(Meshes("meshes", CASES["mlp-small"][0], options, scratch))
    made.append(Kills("kills", CASES["mlp-small"][0], options, scratch))
    return [case for case in made if options.only in case.name]


if __name__ == "__main__":
    sys.exit(run_cases(__doc__, "ranks", cases, add_options))
