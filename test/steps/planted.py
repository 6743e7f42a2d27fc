"""Faults that are planted in a compiled step, or in what it leaves."""

import math
import os
import re
import shutil
import struct

from case import Case
from models import MODELS
from trained import ROOT, TEXT, Run, run


class Faults:
    """Faults that are planted in a step; each must be found."""

    def __init__(self, options, scratch):
        self.options, self.directory = options, os.path.join(scratch, "faults")
        self.tmc = os.path.join(options.build, "bin", "tmc")
        with open(os.path.join(options.build, "CMakeCache.txt")) as file:
            cache = dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.M))
        self.compiler, self.flags = cache["CMAKE_CXX_COMPILER"], re.split("[; ]", cache["TMC_RUNTIME_CPU_FLAGS"])

    def compile(self, name, *flags):
        directory = os.path.join(self.directory, name)
        code, text = run([self.tmc, "compile", os.path.join(ROOT, "examples/mlp.onnx"), "--target=cpu:v3", "--batch=4",
                          "--emit=lib", *flags, "-o", directory])
        if code:
            raise SystemExit(text)
        return directory

    def link(self, directory, text):
        """Makes libstep.so anew from changed text."""
        with open(os.path.join(directory, "step.cpp"), "w") as file:
            file.write(text)
        self.build(directory, "-fPIC", "-shared", "-Wl,--whole-archive", self.runtime(), "-Wl,--no-whole-archive",
                   output="libstep.so")

    def runtime(self):
        return os.path.join(self.options.build, "lib", "libtmc-runtime-cpu-v3.a")

    def build(self, directory, *words, output):
        """Compiles step.cpp as it stands, in one piece."""
        flags = [f for f in self.flags if not f.startswith("-march=")] + ["-march=x86-64-v3"]
        code, out = run([self.compiler, "-std=c++20", *flags, "-I", ROOT, os.path.join(directory, "step.cpp"), *words,
                         "-o", os.path.join(directory, output), "-pthread"])
        if code:
            raise SystemExit(out)

    def verify(self, directory, message):
        code, text = run([self.tmc, "verify", "--threads=1", directory])
        return "" if code == 1 and re.search(message, text) else f"tmc verify ended with {code}\n{text}"

    def own_weights(self):
        """`tmc verify` takes the directory's weights: an infinite one is found."""
        directory = os.path.join(self.directory, "weights")
        code, text = run([self.tmc, "compile", os.path.join(ROOT, "test/models/mlp-small.onnx"), "--target=cpu", "--batch=4",
                          "--emit=lib", "--weights", os.path.join(ROOT, "test/golden/mlp-small.safetensors"), "--copy-weights", "-o",
                          directory])
        if code:
            return text
        path = os.path.join(directory, "weights.safetensors")
        code, text = run([self.tmc, "verify", "--threads=1", directory])
        if code or f"weights of {path}" not in text:
            return f"tmc verify ended with {code}\n{text}"
        with open(path, "r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.write(struct.pack("<f", math.inf))
        return self.verify(directory, "the reference's loss isn't finite")

    def pass_off(self, other, good):
        """The library of `other` in the place of `good`'s, as if they were of one compilation. Returns `good`'s step.mlir as it was."""
        shutil.copy(os.path.join(other, "libstep.so"), os.path.join(good, "libstep.so"))
        lines = []
        for directory in (other, good):
            with open(os.path.join(directory, "step.mlir")) as file:
                lines.append(file.readlines())
        with open(os.path.join(good, "step.mlir"), "w") as file:
            file.writelines(lines[0][:1] + lines[1][1:])
        return "".join(lines[1])

    def check(self, tally):
        good = self.compile("good")
        with open(os.path.join(good, "step.cpp")) as file:
            text = file.read()
        other = self.compile("other", "--optimizer=adamw(beta2=0.998)")
        shutil.copy(os.path.join(other, "libstep.so"), os.path.join(good, "libstep.so"))
        tally.test("faults: a library of another compilation is found", self.verify(good, "are of two compilations"))
        meant = self.pass_off(other, good)
        tally.test("faults: another beta2 is found", self.verify(good, r"error: the compiled step isn't what .* off by"))
        # Each launch that takes a bias takes the bytes 64 further on.
        offsets = re.findall(r"run\(s, \{at\(0x[0-9a-f]+\), at\(0x[0-9a-f]+\), at\((0x[0-9a-f]+)\)", text)
        if not offsets:
            return tally.test("faults: a launch to change", "the emitted text has no launch of the expected form")
        moved = hex(int(offsets[0], 16) + 64)
        with open(os.path.join(good, "step.mlir"), "w") as file:
            file.write(meant)
        self.link(good, re.sub(rf"(run\(s, \{{at\(0x[0-9a-f]+\), at\(0x[0-9a-f]+\), at\(){offsets[0]}\)", rf"\g<1>{moved})", text, count=1))
        tally.test("faults: a wrong offset is found", self.verify(good, r"error: the compiled step isn't what .* off by"))
        small = self.compile("small", "--batch=2")
        self.pass_off(small, good)
        tally.test("faults: a step of another batch is found", self.verify(good, r"isn't of step.mlir: .* is 2x784"))
        self.check_comparison(tally)
        tally.test("faults: weights of the directory are read", self.own_weights())

    def check_comparison(self, tally):
        """One changed bit of a checkpoint, and one of a log, are differences."""
        base, fault = Case("faults", MODELS["gpt2-tiny"], self.options, self.directory).compile("base")
        one = Run(base, "one", [TEXT], "--threads=1", steps=2)
        self.build(base, os.path.join(self.options.build, "lib", "libtmc-trainer.a"), self.runtime(), output="train")
        whole = Run(base, "whole", [TEXT], "--threads=1", steps=2)
        tally.test("faults: a step compiled in one piece is the same", whole.difference(one))
        same = Run(base, "two", [TEXT], "--threads=1", steps=2)
        other = Run(base, "other", [TEXT], "--threads=1", "--seed=8", steps=2)
        tally.test("faults: two runs are the same", one.difference(same))
        tally.test("faults: another seed of dropout isn't", "" if "loss" in one.difference(other) else "not found")
        name = next(n for n in same.checkpoint.tensors if n.endswith("exp_avg_sq"))
        data = bytearray(same.checkpoint.tensors[name])
        data[8] ^= 1
        same.checkpoint.tensors[name] = bytes(data)
        tally.test("faults: one bit of a moment isn't", "" if name in one.difference(same) else "not found")
