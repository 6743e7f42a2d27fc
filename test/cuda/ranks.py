#!/usr/bin/env python3
"""Run steps of several cards in the emulator: ranks are processes, and each has an emulated card.

    ranks.py --build build [--only SUBSTRING] [--full] [--jobs N] [--keep DIR]

Each model is compiled for cuda and 2 or 4 ranks, in each form of what a rank keeps. All runs of one number of
ranks end with the same bits: by NCCL's stand-in (emulator/Nccl.cpp) in the orders of all seeds, by Gloo and by MPI
through pinned memory, and in all forms. Their losses are those of one card. Each launch of each rank is watched.
A wait for the network that is left out of the step is named, as a race or as a read of what nobody has written.
NCCL's library refuses two ranks on one card. If a rank is killed, the other one ends with 74 and names it. The
program of bench/gpu that measures bandwidth runs by each library. A machine without Gloo or MPI skips these by
name. --full has six seeds in place of two, and more ranks. Ends with one line `N passed, M failed`. Needs only
the standard library.
"""

import glob
import math
import os
import re
import shutil
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "steps")]

import steps
from case import Case, run_cases
from trained import ROOT, Run
from worlds import MPIRUN, RankRun, Ranks

STEPS = 2
SEEDS, FULL_SEEDS = 2, 6
FAULT, WORLD, USAGE = 86, 74, 2  # The emulator's code; that of a rank whose peers are gone.
GPT2 = dict(graph="test/models/gpt2-tiny.onnx", options=["--batch=4", "--dim=sequence=32"], inputs={})
MLP = dict(graph="test/models/mlp-small.onnx", options=["--batch=4"], optimizer="adamw(clip=1.0)",
           inputs={"image": ([32, 64], "normal"), "label": ([32], "below 10")})
MODES = ["zero=2", "zero=0", "zero=3"]
# Name: the step, the numbers of ranks and with --full, the relative distance of its losses from one card's.
CASES = {
    "mlp-small": (MLP, [2, 4], [2, 4], 1e-6),
    "gpt2-tiny": (GPT2, [2], [2, 4], 1e-6),
    "gpt2-tiny, bf16": (dict(GPT2, options=[*GPT2["options"], "--precision=bf16"]), [2], [2], 1e-3),
    "gpt2-tiny, micro-batches, gradients in bf16": (
        dict(GPT2, options=["--batch=8", "--dim=sequence=32", "--micro-batches=2", "--precision=bf16,gradients=bf16"]), [], [2], 1e-2),
}


class EmulatedRun(RankRun):
    """A run of ranks whose cards are emulated, in the orders of a seed."""

    def __init__(self, library, ranks, step, name, data, *flags, seed=0, **more):
        self.seed = seed
        super().__init__(library, ranks, step, name, data, *flags, steps=STEPS, **more)

    def call(self, command):
        return super().call(["env", f"TMC_EMULATOR_SEED={self.seed}", *command])


class Emulated(Case):
    """Steps for cards whose trainers are the emulator's."""

    def compile(self, name, *flags, optimizer=None, edit=None):
        directory, fault = super().compile(name, "--emit=source", *flags, optimizer=optimizer)
        if fault:
            return directory, fault
        try:
            self.link(directory, edit)
        except steps.Failed as failure:
            return directory, str(failure)
        return directory, ""

    def link(self, directory, edit):
        at = lambda name: os.path.join(directory, name)
        library = lambda name: os.path.join(self.options.build, "lib", name)
        if edit:
            with open(at("step.cu")) as file:
                text = file.read()
            with open(at("step.cu"), "w") as file:
                file.write(edit(text))
        tools = self.options.tools
        steps.made([*tools.compile, "-include", tools.headers, "-x", "c++", "-c", at("step.cu"), "-o", at("step.o")])
        steps.made(["g++", at("step.o"), tools.watched, library("libtmc-trainer.a"), "-Wl,--undefined=tmc_open_ranks",
                    library("libtmc-network.a"), "-Wl,--undefined=ncclGetVersion", library("libTmcCudaEmulated.a"), "-rdynamic", "-pthread",
                    "-ldl", "-o", at("train")])
        for name in "gloo", "mpi":
            file = f"libtmc-network-{name}.so"
            if os.path.exists(library(file)):
                os.symlink(library(file), at(file))
        os.symlink(tools.nccl, at("libtmc-network-nccl.so"))


class RanksCase(Emulated):
    def __init__(self, name, model, ranks, full, distance, options, scratch):
        super().__init__(name, model, options, scratch)
        self.ranks, self.distance = full if options.full else ranks, distance

    def check(self, tally):
        alone, fault = self.compile("one card")
        if fault:
            return tally.test(f"{self.name}: one card", fault)
        one = Run(alone, "all", self.data, steps=STEPS)
        for ranks in self.ranks:
            self.check_ranks(tally, ranks, one)

    def check_ranks(self, tally, ranks, one):
        name, first = f"{self.name}, {ranks} ranks", None
        for mode in MODES if ranks == 2 else MODES[2:]:
            step, fault = self.compile(f"{ranks} ranks {mode.replace('=', ' ')}", f"--devices={ranks}", f"--parallel=dp={ranks},{mode}")
            if fault:
                tally.test(f"{name}, {mode}", fault)
                continue
            for seed in range(FULL_SEEDS if self.options.full else SEEDS):
                run = EmulatedRun("nccl", ranks, step, f"nccl-{seed}", self.data, seed=seed)
                if not first:
                    first = run
                    self.compare(tally, name, one, run)
                else:
                    tally.test(f"{name}, {mode}: the bits by nccl, seed {seed}", run.difference(first), f"{run.seconds:.1f} s")
            for library in "gloo", "mpi":
                if not os.path.exists(os.path.join(step, f"libtmc-network-{library}.so")) or (library == "mpi" and not MPIRUN):
                    tally.skip(f"{name}: there is no {library}")
                elif library == "gloo" or mode == MODES[-1]:
                    run = EmulatedRun(library, ranks, step, library, self.data, seed=1)
                    tally.test(f"{name}, {mode}: the bits by {library}", run.difference(first), f"{run.seconds:.1f} s")

    def compare(self, tally, name, one, run):
        fault, apart = "", math.inf
        for each in one, run:
            if each.code:
                fault = fault or f"the trainer ended with {each.code}: {each.text}"
        if not fault:
            apart = max(abs(a["loss"] - b["loss"]) / abs(a["loss"]) for a, b in zip(one.lines, run.lines))
            fault = "" if apart <= self.distance else f"losses are apart by {apart:.2g}"
        tally.test(f"{name}: the losses of one card", fault, f"{apart:.1g}, {run.seconds:.1f} s")


class Bandwidth(Emulated):
    """bench/gpu/Bandwidth.cpp, in the emulator."""

    def check(self, tally):
        step, fault = self.compile("2 ranks", "--devices=2")
        if fault:
            return tally.test("bandwidth", fault)
        program = os.path.join(self.directory, "bandwidth")
        library = lambda name: os.path.join(self.options.build, "lib", name)
        steps.made(["g++", *steps.FLAGS, os.path.join(ROOT, "bench", "gpu", "Bandwidth.cpp"), library("libtmc-network.a"),
                    "-Wl,--undefined=ncclGetVersion", library("libTmcCudaEmulated.a"), "-rdynamic", "-pthread", "-ldl", "-o", program])
        for network in "nccl", "gloo":
            if not os.path.exists(os.path.join(step, f"libtmc-network-{network}.so")):
                tally.skip(f"bandwidth: there is no {network}")
                continue
            code, texts = Ranks([[program, network, step, "1000000"]] * 2).wait()
            rows = re.findall(r"^(gather|exchange) +(65536|524288) +[\d.e+-]+ s +[\d.]+ GB/s$", texts[0], re.MULTILINE)
            tally.test(f"bandwidth by {network}", "" if code == 0 and len(rows) == 4 and texts[0].startswith(network) else f"{code}: {texts}")


class Faults(Emulated):
    """Steps and worlds that aren't right."""

    def check(self, tally):
        step, fault = self.compile("2 ranks", "--devices=2")
        if fault:
            return tally.test("faults", fault)
        train = [os.path.join(step, "train"), *[f"--data={d}" for d in self.data], "--init=random:1", "--quiet", "--network=nccl"]
        code, texts = Ranks([["env", "TMC_EMULATOR_CARD=0000:01:00.0", *train, "--steps=1"]] * 2).wait()
        said = all("ranks 0 and 1 have the same card" in text and "--network gloo" in text for text in texts)
        tally.test("two ranks on one card are refused", "" if code in (USAGE, WORLD) and said else f"{code}: {texts}")
        self.check_killed(tally, train)
        self.check_waits(tally, step)

    def check_killed(self, tally, train):
        saved = os.path.join(self.directory, "killed")
        ranks = Ranks([[*train, "--steps=100000000", f"--save={saved}", "--save-every=5"]] * 2)
        # Of two checkpoints the ranks know the first one.
        deadline, path, times = time.monotonic() + 60, os.path.join(saved, "checkpoint.safetensors"), set()
        while len(times) < 2 and time.monotonic() < deadline:
            if os.path.exists(path):
                times.add(os.stat(path).st_mtime_ns)
            time.sleep(0.02)
        ranks.processes[1].send_signal(signal.SIGKILL)
        code, texts = ranks.wait(60)
        said = re.search(r"rank 1 \(host \S+, process \d+\) is gone .*; the checkpoint.* is whole", texts[0])
        tally.test("a killed rank is named", "" if ranks.processes[0].returncode == WORLD and said else f"{code}: {texts}")

    def check_waits(self, tally, step):
        """Each wait for the network, and each of the network's own, is left out once."""
        with open(os.path.join(step, "step.cu")) as file:
            text = file.read()
        run, end = text.index("void run("), text.index("void evaluate(")
        body = text[run:end]
        events = set(re.findall(r'q\.record\(engine\("network"\), (\d+)\)', body))
        waits = [m for m in re.finditer(r'  q\.wait\(engine\("(\w+)"\), (\d+)\);\n', body) if m[1] == "network" or m[2] in events]
        found = 0
        for i, wait in enumerate(waits):
            without = text[:run] + body[:wait.start()] + body[wait.end():] + text[end:]
            other, fault = self.compile(f"without wait {i}", "--devices=2", edit=lambda _: without)
            if fault:
                return tally.test("a wait that is left out", fault)
            run_of = EmulatedRun("nccl", 2, other, "all", self.data, seed=1)
            if run_of.code == FAULT and re.search("emulator: (race|uninitialised read)", run_of.text):
                found += 1
            else:
                tally.test(f"without {wait[0].strip()}", f"ended with {run_of.code}: {run_of.text}")
        tally.test("a wait that is left out is named", "" if waits and found == len(waits) else f"{found} of {len(waits)}", f"{found} waits")


def clean_up(*_):
    """Removes what killed ranks have left in shared memory."""
    for folder in glob.glob("/dev/shm/tmc-nccl-*"):
        if not os.path.exists("/proc/" + folder.split("-")[2]):
            shutil.rmtree(folder, ignore_errors=True)


def prepare(options, scratch):
    """What all steps share: precompiled headers, the watch over a step, and the library of NCCL's stand-in."""
    class Tools:
        compile = ["g++", *steps.FLAGS, *steps.WATCHED]
        headers, watched, nccl = (os.path.join(scratch, name) for name in ("step.h", "watched.o", "libtmc-network-nccl.so"))
    os.makedirs(scratch, exist_ok=True)
    with open(Tools.headers, "w") as file:
        file.writelines(f'#include "{header}"\n' for header in steps.HEADERS)
    steps.made([*Tools.compile, "-x", "c++-header", Tools.headers, "-o", Tools.headers + ".gch"])
    steps.made(["g++", *steps.FLAGS, "-c", os.path.join(HERE, "WatchedStep.cpp"), "-o", Tools.watched])
    steps.made(["g++", *steps.FLAGS, "-shared", os.path.join(ROOT, "runtime", "network", "Nccl.cpp"), "-o", Tools.nccl])
    options.tools = Tools


def cases(options, scratch):
    options.target = "cuda:sm_90"
    prepare(options, scratch)
    made = [RanksCase(name, *case, options, scratch) for name, case in CASES.items()]
    made.append(Faults("faults", MLP, options, scratch))
    made.append(Bandwidth("bandwidth", MLP, options, scratch))
    return [case for case in made if options.only in case.name and getattr(case, "ranks", [0])]


if __name__ == "__main__":
    sys.exit(run_cases(__doc__, "cards", cases, lambda parser: parser.add_argument("--full", action="store_true"), clean_up))
