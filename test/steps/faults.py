#!/usr/bin/env python3
"""What must hold of a trainer whose swap file fails; needs only the standard library and a compiler.

    faults.py --build build [--kills N] [--only SUBSTRING] [--keep DIR] [--planted]

One small step is compiled with a file, and a library is built that stands between it and the kernel
(FileFaults.cpp). Each fault, at a drawn transfer of a run that saves every step, ends the trainer with
code 74 and a sentence that names it, or is survived with the same bits; the last checkpoint is whole,
and going on from it gives the bits of the undisturbed run; the directory of the swap file is empty and
free after it. All that by io_uring, if the kernel has it, and by pread and pwrite. A second process and
a foreign file are refused. Kills at drawn moments, and at drawn transfers, lose nothing. Ends with one
line `N passed, M failed`.

With --planted it is the other way round: the runtime's swap file is compiled anew without one of its
checks at a time, and these tests must fail where PLANTED says so. What no trainer can be made to do by
its file, a read of another length than was written, is SwapFileTest.cpp's to find.
"""

import argparse
import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import trained
from trained import ROOT, TEXT, Checkpoint, Tally

STEPS = 6
MODEL = ["test/models/gpt2-tiny-dropout.onnx", "--batch=4", "--dim=sequence=32",
         "--optimizer=adamw(weight_decay=0.1,clip=1.0)", "--offload=all"]
# Kind, which transfers count, the sentence; "" where the bits stay the same.
FAULTS = [
    ("enospc", "writes", r"can't write \d+ bytes at \d+ of the swap file in '.*': No space left on device"),
    ("eio", "writes", r"can't write \d+ bytes at \d+ of the swap file in '.*': Input/output error"),
    ("eio", "reads", r"can't read \d+ bytes at \d+ of the swap file in '.*': Input/output error"),
    ("short", "writes", ""),
    ("short", "reads", ""),
    ("stall", "writes", r"can't write \d+ bytes at \d+ of the swap file in '.*': Input/output error"),
    ("stall", "reads", r"can't read \d+ bytes at \d+ of the swap file in '.*': Input/output error"),
    ("flip", "writes", r"\d+ bytes at \d+ of the swap file in '.*' are damaged: they aren't what step \d+ wrote there"),
    ("lost", "writes", r"\d+ bytes at \d+ of the swap file in '.*' are (stale: they are of step \d+, and what step \d+ "
                       r"wrote there was lost|damaged)"),
    ("truncate", "reads", r"the swap file in '.*' was truncated: nothing can be read at \d+, it has \d+ bytes|are damaged"),
]
WAYS = {"ring": {}, "no ring": {"TMC_FAULT_RING": "0"}}
# What is taken out of runtime/step/SwapFile.cpp, what stands there instead, and the tests of which one must fail.
PLANTED = {
    "no checksum is compared": ("if (sum == block.sum)", "if (sum == block.sum || true)", "flip"),
    "no step is told from another": ("if (sum == block.lastSum)", "if (false)", "lost"),
    "a short transfer is whole": ("result >= left() ? left() : result / kFileAlign * kFileAlign", "left()", "short"),
    "an error is a whole transfer": ("return result == -EINTR || result == -EAGAIN ? 0 : int(-result);",
                                     "return done += left(), 0;", "eio"),
    "a stall is a whole transfer": ("stalls < kMostStalls ? 0 : EIO", "stalls < kMostStalls ? 0 : (done += left(), 0)", "stall"),
}


class Trainer:
    """One compiled step, its swap directory and its checkpoints."""

    def __init__(self, step, scratch, library):
        self.step, self.scratch, self.library = step, scratch, library
        self.swap = os.path.join(scratch, "swap")
        self.save = os.path.join(scratch, "save")
        os.makedirs(self.swap, exist_ok=True)

    def words(self, count, resume, save):
        start = [f"--resume={save}"] if resume else ["--init=random:1", "--seed=7"]
        return [os.path.join(self.step, "train"), f"--data={TEXT}", f"--steps={count}", "--lr=1e-3", "--threads=1",
                "--host-threads=1", f"--nvme={self.swap}", f"--save={save}", "--save-every=1", *start]

    def environment(self, faults):
        return dict(os.environ, LD_PRELOAD=self.library, **faults)

    def run(self, count, resume=False, save=None, **faults):
        done = subprocess.run(self.words(count, resume, save or self.save), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=self.environment(faults))
        return done.returncode, done.stdout

    def done(self):
        """Steps that the checkpoint has; 0: there is none."""
        path = os.path.join(self.save, "checkpoint.safetensors")
        if not os.path.exists(path):
            return 0
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            return int(json.loads(file.read(size))["__metadata__"]["step"])

    def fresh(self):
        shutil.rmtree(self.save, ignore_errors=True)

    def after(self):
        """What a fault may not leave: a swap file, a lock, half a checkpoint."""
        if os.listdir(self.swap):
            return f"the swap directory holds {os.listdir(self.swap)}"
        directory = os.open(self.swap, os.O_RDONLY)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return "the swap directory is locked"
        finally:
            os.close(directory)
        return ""

    def finish(self, whole, **ways):
        """Goes on from the checkpoint, undisturbed, to the bits of `whole`."""
        done = self.done()
        if done < STEPS:
            code, text = self.run(STEPS - done, done > 0, **ways)
            if code:
                return f"going on from step {done} ended with {code}: {text}"
        return self.after() or Checkpoint(self.save).difference(whole)


class Faults:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.tally = Tally()
        self.random = random.Random(11)
        with open(os.path.join(options.build, "CMakeCache.txt")) as file:
            self.compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", file.read(), re.M).group(1)

    def build(self):
        library = os.path.join(self.scratch, "faults.so")
        code, text = trained.run([self.compiler, "-std=c++20", "-O1", "-fPIC", "-shared", os.path.join(trained.HERE, "FileFaults.cpp"),
                                "-o", library, "-ldl"])
        if code:
            raise SystemExit(text)
        step = os.path.join(self.scratch, "step")
        tmc = os.path.join(self.options.build, "bin", "tmc")
        model = [os.path.join(ROOT, MODEL[0]), f"--target={self.options.target}", *MODEL[1:]]
        swap = os.path.join(self.scratch, "swap")
        code, text = trained.run([tmc, "compile", *model, "--budget=1MiB", "--host-budget=900KiB", f"--nvme={swap}", "-o", step])
        if code:
            raise SystemExit(text)
        self.trainer = Trainer(step, self.scratch, library)

    def test(self, label, fault, note=""):
        if self.options.only in label:
            self.tally.test(label, fault, note)

    def whole(self, way, **ways):
        """The undisturbed run, and how many transfers of each kind it has."""
        trainer, counts = self.trainer, {}
        path = os.path.join(self.scratch, "count")
        for kind in "writes", "reads":
            trainer.fresh()
            code, text = trainer.run(STEPS, TMC_FAULT_COUNT=path, TMC_FAULT_TRANSFERS=kind, **ways)
            if code:
                raise SystemExit(f"the undisturbed run ended with {code}: {text}")
            with open(path) as file:
                counts[kind] = int(file.read())
        how = re.search(r"^swap file in '.*': .*?, (io_uring|pread and pwrite), ", text, re.M)
        self.test(f"{way}: transfers", "" if min(counts.values()) > 10 * STEPS else f"there are {counts}", f"{counts}")
        return Checkpoint(trainer.save), counts, how.group(1)

    def check_faults(self, way, whole, counts, **ways):
        trainer = self.trainer
        stale = 0
        for kind, transfers, sentence in FAULTS:
            # One early, before any checkpoint, and one late; the first read asks the kernel for rings.
            most = counts[transfers]
            for at in self.random.randrange(1, most // STEPS), self.random.randrange(most // 2, most * 3 // 4):
                label = f"{way}: {kind} at {transfers[:-1]} {at} of {most}"
                if self.options.only not in label:
                    continue
                trainer.fresh()
                path = os.path.join(self.scratch, "count")
                code, text = trainer.run(STEPS, TMC_FAULT=f"{kind}:{at}", TMC_FAULT_TRANSFERS=transfers, TMC_FAULT_COUNT=path, **ways)
                fault = ""
                if not sentence:
                    fault = f"it ended with {code}: {text}" if code else Checkpoint(trainer.save).difference(whole)
                    with open(path) as file:
                        fault = fault or ("" if int(file.read()) > most else "no transfer was short")
                elif code != 74 or not re.search(sentence, text):
                    # A write that nobody reads any more may be lost, and the file be cut before what is written
                    # again before it is read.
                    same = code == 0 and not Checkpoint(trainer.save).difference(whole) and kind in ("lost", "flip", "truncate")
                    fault = "" if same else f"it ended with {code}: {text}"
                stale += kind == "lost" and "are stale" in text
                done = trainer.done()
                self.test(label, fault or trainer.after() or trainer.finish(whole, **ways), f"code {code}, resumed from step {done}")

        # Where the block had another length before, what was lost can only be called damaged.
        self.test(f"{way}: lost writes are known by their step", "" if stale else "none is said to be stale")

    def check_refusals(self, whole):
        trainer = self.trainer
        trainer.fresh()
        code, text = trainer.run(STEPS, TMC_FAULT_START="ENOSPC")
        self.test("no room for the file", "" if code == 74 and re.search(
            r"can't keep a swap file in '.*' of \d+ bytes: No space left on device, \d+ bytes are free", text) else f"{code}: {text}")
        foreign = os.path.join(trainer.swap, "tmc-swap")
        with open(foreign, "w") as file:
            file.write("somebody's")
        code, text = trainer.run(STEPS, TMC_FAULT_NAMELESS="0")
        with open(foreign) as file:
            kept = file.read() == "somebody's"
        self.test("a foreign file is left alone", "" if code == 74 and kept and re.search(
            "'tmc-swap' is there and isn't ours; it is left alone", text) else f"{code}: {text}")
        open(foreign, "w").close()
        code, text = trainer.run(STEPS, TMC_FAULT_NAMELESS="0")
        self.test("a file with a name for a moment", f"{code}: {text}" if code else trainer.finish(whole))
        # A second process, while the first trains.
        trainer.fresh()
        first = subprocess.Popen(trainer.words(100000, False, trainer.save), stdout=subprocess.PIPE, text=True)
        try:
            for line in first.stdout:
                if line.startswith("swap file in"):
                    break
            limit = time.monotonic() + 60
            while not trainer.done() and time.monotonic() < limit:
                time.sleep(0.01)
            before = trainer.done()
            code, text = trainer.run(STEPS, save=os.path.join(self.scratch, "second"))
            fault = "" if code == 74 and "another step uses it; each needs a directory of its own" in text else f"{code}: {text}"
        finally:
            first.send_signal(signal.SIGKILL)
            first.communicate()
        self.test("a second process is refused", fault or trainer.after())
        self.test("and lets the first's checkpoint be", "" if 0 < before <= trainer.done()
                  else f"it was of step {before} and is of step {trainer.done()}")
        self.check_default()

    def check_default(self):
        """Without --nvme the file is where tmc compile said; the help says so."""
        trainer = self.trainer
        words = [w for w in trainer.words(1, False, os.path.join(self.scratch, "default")) if not w.startswith("--nvme")]
        code, text = trained.run(words)
        self.test("the directory of tmc compile is the default", "" if code == 0 and f"swap file in '{trainer.swap}'" in text
                  else f"{code}: {text}")
        code, text = trained.run([words[0], "--help"])
        self.test("and the help says so", "" if code == 0 and f"(default, from tmc compile: '{trainer.swap}')" in text else text)

    def check_kills(self, way, whole, counts, seconds, **ways):
        """Kills at drawn moments until the run is through, as often as asked for."""
        trainer, kills, fault, rounds = self.trainer, 0, "", 0
        while kills < self.options.kills and not fault:
            trainer.fresh()
            rounds += 1
            while trainer.done() < STEPS and not fault and kills < self.options.kills:
                done = trainer.done()
                at = {"TMC_FAULT": f"kill:{self.random.randrange(sum(counts.values()) // 2)}"} if kills % 2 else {}
                process = subprocess.Popen(trainer.words(STEPS - done, done > 0, trainer.save), stdout=subprocess.PIPE,
                                           stderr=subprocess.STDOUT, text=True, env=trainer.environment({**ways, **at}))
                if not at:
                    time.sleep(self.random.random() * seconds)
                    process.send_signal(signal.SIGKILL)
                text, _ = process.communicate()
                kills += process.returncode == -signal.SIGKILL
                if process.returncode not in (0, -signal.SIGKILL):
                    fault = f"it ended with {process.returncode}: {text}"
                elif trainer.done() < done:
                    fault = f"the checkpoint of step {done} is gone"
                fault = fault or trainer.after()
            fault = fault or trainer.finish(whole, **ways)
        self.test(f"{way}: killed {kills} times", fault, f"{rounds} runs")

    def plant(self, old, new):
        """A copy of the build whose swap file has `new` for `old`."""
        build = self.options.build
        source = os.path.join(ROOT, "runtime", "step", "SwapFile.cpp")
        with open(source) as file:
            text = file.read()
        if text.count(old) != 1:
            raise SystemExit(f"{source} has {text.count(old)} of '{old}'")
        planted = os.path.join(self.scratch, "SwapFile.cpp")
        with open(planted, "w") as file:
            file.write(text.replace(old, new))
        other = os.path.join(self.scratch, "build")
        for name in "bin", "lib":
            os.makedirs(os.path.join(other, name))
        shutil.copy(os.path.join(build, "CMakeCache.txt"), other)
        shutil.copy(os.path.join(build, "bin", "tmc"), os.path.join(other, "bin"))
        made = os.path.join(self.scratch, "SwapFile.cpp.o")
        calls = [[self.compiler, "-std=c++20", "-O2", "-fPIC", "-ffp-contract=off", "-w", "-I", ROOT, "-c", planted, "-o", made]]
        for name in os.listdir(os.path.join(build, "lib")):
            library = os.path.join(other, "lib", name)
            if name.startswith("libtmc-") and name.endswith(".a"):
                shutil.copy(os.path.join(build, "lib", name), library)
                if "SwapFile.cpp.o" in trained.run(["ar", "t", library])[1]:
                    calls.append(["ar", "r", library, made])
        for call in calls:
            code, text = trained.run(call)
            if code:
                raise SystemExit(text)
        self.options.build = other

    def check(self):
        self.build()
        first = None
        for way, ways in WAYS.items():
            begin = time.monotonic()
            whole, counts, how = self.whole(way, **ways)
            seconds = (time.monotonic() - begin) / 2
            if first is None:
                first = whole
            self.test(f"{way}: {how}", whole.difference(first), f"{seconds:.2f} s")
            self.check_faults(way, whole, counts, **ways)
            self.check_kills(way, whole, counts, seconds, **ways)
        self.check_refusals(whole)


def check_planted(options):
    tally, build = Tally(), options.build
    for name, (old, new, tests) in PLANTED.items():
        with tempfile.TemporaryDirectory(prefix="tmc-planted-") as scratch:
            options.build, options.only = build, tests
            faults = Faults(options, scratch)
            faults.plant(old, new)
            faults.build()
            for way, ways in WAYS.items():
                whole, counts, _ = faults.whole(way, **ways)
                faults.check_faults(way, whole, counts, **ways)
        tally.test(f"{name}: found", "" if faults.tally.failed else f"{faults.tally.passed} tests of '{tests}' passed")
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed or not tally.passed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--kills", type=int, default=10, help="each way to the file (default 10)")
    parser.add_argument("--only", default="", help="tests whose names contain this")
    parser.add_argument("--keep", help="a directory for the compiled step")
    parser.add_argument("--planted", action="store_true", help="whether faults of the runtime itself are found")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    os.environ["XDG_CACHE_HOME"] = os.path.join(options.build, "cache")  # Not the user's.
    if options.planted:
        return check_planted(options)
    scratch = options.keep or tempfile.mkdtemp(prefix="tmc-faults-")
    faults = Faults(options, os.path.abspath(scratch))
    try:
        faults.check()
    finally:
        if not options.keep:
            shutil.rmtree(scratch, ignore_errors=True)
    print(f"{faults.tally.passed} passed, {faults.tally.failed} failed")
    return 1 if faults.tally.failed or not faults.tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
