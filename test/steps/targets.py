"""What a step is compiled for, and whether a processor has it."""

import os
import re
import shutil
import sys

from trained import ROOT, Checkpoint, Run, run

# Targets by the kernels that their library is made of.
KERNELS = {"cpu:v3": "v3", "cpu:v4": "v4", "cpu:v4-bf16": "v4", "cpu:v4-amx": "v4"}
TILES = "cpu:v4-amx"  # The bits of its products of bf16 are its own.
ASKED = {"cpu:v3": "avx2 fma f16c bmi1 bmi2 abm movbe", "cpu:v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
         "cpu:v4-bf16": "avx512_bf16", "cpu:v4-amx": "amx_tile amx_bf16"}


def runs_here(target):
    """By what the system says of the processor; each target asks for what those before it do."""
    with open("/proc/cpuinfo") as file:
        flags = set(re.search(r"^flags\s*:(.*)$", file.read(), re.M).group(1).split())
    names = list(ASKED)
    return all(set(ASKED[name].split()) <= flags for name in names[:names.index(target) + 1])


class Targets:
    """A step runs where its instructions are, and refuses where they aren't; its check runs anywhere."""

    def __init__(self, options, scratch):
        self.options, self.directory = options, os.path.join(scratch, "targets")
        self.tmc = os.path.join(options.build, "bin", "tmc")
        self.libraries = os.path.join(options.build, "lib")
        digits = os.path.join(ROOT, "examples", "data", "digits-")
        self.data = [f"image={digits}image.npy", f"label={digits}label.npy"]

    def check(self, tally):
        steps = {}
        for target in KERNELS:
            if not os.path.exists(os.path.join(self.libraries, f"libtmc-runtime-{target.replace(':', '-')}.a")):
                tally.skip(f"targets: the compiler doesn't know {target}")
                continue
            directory = os.path.join(self.directory, target.replace(":", "-"))
            code, text = run([self.tmc, "compile", os.path.join(ROOT, "examples/mlp.onnx"), f"--target={target}", "-o", directory])
            tally.test(f"targets: {target} compiles", text if code else "")
            steps[target] = directory
        for target, directory in steps.items():
            done = Run(directory, "here", self.data, "--threads=1", steps=2)
            if runs_here(target):
                tally.test(f"targets: {target} runs here", "" if done.code == 0 else f"ended with {done.code}: {done.text}")
            else:
                tally.test(f"targets: {target} refuses this processor", self.refusal(target, done.code, done.text))
        self.check_objects(tally)
        self.check_emulated(tally, steps)

    def refusal(self, target, code, text):
        good = code == 74 and f"the step was compiled for {target}; this processor, or its operating system, lacks " in text
        return "" if good else f"ended with {code}: {text}"

    def check_objects(self, tally):
        """Nothing of a set runs before the check: no static initializer, and the check itself is for any x86-64."""
        wrong = []
        for library in sorted(os.listdir(self.libraries)):
            if not re.fullmatch(r"libtmc-(runtime-cpu-.*|trainer)\.a", library):
                continue
            path = os.path.join(self.libraries, library)
            code, text = run(["readelf", "-SW", path])
            if code or re.search(r"\.(init_array|ctors|preinit_array)", text):
                wrong.append(f"{library} has static initializers")
            code, text = run(["objdump", "-d", "--no-show-raw-insn", path])
            for part in re.split(r"^(?=\S+\.o:)", text, flags=re.M):
                name = part.split(".", 1)[0]
                if name in ("Api", "StartCheck", "Processor", "Train", "AllocationHook") and re.search(r"%[yz]mm|\sv\w+ps", part):
                    wrong.append(f"{name} of {library} has vectors of a set")
        tally.test("targets: nothing runs before the check", "\n".join(wrong))

    def check_emulated(self, tally, steps):
        emulator = shutil.which("qemu-x86_64")
        if not emulator:
            return tally.skip("targets: other processors: no qemu-x86_64 (Debian: qemu-user)")
        if "cpu:v4" not in steps:
            return tally.skip("targets: other processors: no cpu:v4")
        words = [f"--data={d}" for d in self.data] + ["--steps=2", "--init=random:1", "--threads=1", "--seed=7", "--lr=1e-3"]
        for processor, target in [("Nehalem", "cpu:v3"), ("Haswell", "cpu:v4")]:
            code, text = run([emulator, "-cpu", processor, os.path.join(steps[target], "train"), *words])
            tally.test(f"targets: {target} refuses a {processor}", self.refusal(target, code, text))
            script = ("import ctypes, sys; api = ctypes.CDLL(sys.argv[1]); step = ctypes.c_void_p(); "
                      "api.tmc_last_error.restype = ctypes.c_char_p; code = api.tmc_step_create(None, ctypes.byref(step)); "
                      "print(api.tmc_last_error().decode()); sys.exit(code)")
            code, text = run([emulator, "-cpu", processor, os.path.realpath(sys.executable), "-c", script,
                              os.path.join(steps[target], "libstep.so")])
            tally.test(f"targets: libstep.so for {target} refuses a {processor}", self.refusal(target, code, text))
        if not runs_here("cpu:v3"):
            return tally.skip("targets: the bits of another processor: this one has no AVX2")
        saved = os.path.join(self.directory, "haswell")
        here = Run(steps["cpu:v3"], "again", self.data, "--threads=1", steps=2)
        code, text = run([emulator, "-cpu", "Haswell", os.path.join(steps["cpu:v3"], "train"), *words, f"--save={saved}"])
        tally.test("targets: cpu:v3 has the same bits on a Haswell",
                   text if code else here.text if here.code else Checkpoint(saved).difference(here.checkpoint))
