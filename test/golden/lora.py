#!/usr/bin/env python3
"""Compare the files of adapters with PEFT's, and a base of bf16 with its losses; needs only the standard library.

    lora.py --tmc build/bin/tmc [--target cpu] [--peft]

The goldens are *-lora.json and lora-adapter/ (README.md, "Adapters"). With --peft, or where this Python has peft, PEFT
loads what is saved here and has the next step's loss. Ends with one line `N passed, M failed`.
"""

import argparse
import importlib.util
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

from check import Step, feed, read_weights
from run import HERE, ROOT, spec

LOSS, LOSS_BF16 = 1e-5, 1e-3  # relative


def write_safetensors(path, golden, names):
    """The generated weights `names`, in f32."""
    values = read_weights(golden, HERE)
    header, at = {}, 0
    for name in names:
        size = 4 * len(values[name])
        header[name] = dict(dtype="F32", shape=golden["weights"][name][0], data_offsets=[at, at + size])
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(values[name].tobytes() for name in names))


def header_of(path):
    """Names, types and shapes of a safetensors file, and its metadata."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
    metadata = header.pop("__metadata__", {})
    return {name: (entry["dtype"], entry["shape"]) for name, entry in header.items()}, metadata


class Tally:
    passed = failed = 0

    def test(self, name, fault):
        good = not fault
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        print(f"{'PASS' if good else 'FAIL'}: {name}{'' if good else ': ' + str(fault)}", flush=True)


class Trainer:
    """The llama's step, compiled for the golden's run, its base in a file."""

    def __init__(self, options, golden, scratch):
        self.golden, self.scratch = golden, scratch
        self.base = os.path.join(scratch, "base.safetensors")
        write_safetensors(self.base, golden, [name for name in golden["weights"] if ".lora_" not in name])
        self.step = os.path.join(scratch, "step")
        run = golden["runs"]["adamw"]
        self.rate = run["lr"]
        compile_step(options, golden["graphs"][0], golden["lora"], run, self.step, [])

    def run(self, *flags, steps=1):
        """The losses of some steps, or the exit code and the message."""
        data = [f"--data={name}={os.path.join(HERE, path)}" for name, path in self.golden["inputs"].items()]
        done = subprocess.run([os.path.join(self.step, "train"), *data, f"--steps={steps}", f"--lr={self.rate}", *flags],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.scratch)
        if done.returncode:
            return done.returncode, done.stderr
        return [float(text) for text in re.findall(r"loss (\S+)", done.stdout)]


def compile_step(options, graph, lora, run, directory, more):
    done = subprocess.run([options.tmc, "compile", os.path.join(ROOT, graph), f"--target={options.target}", f"--lora={lora}",
                           f"--optimizer={spec(run)}", "--effort=20", "-o", directory, *more],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(done.stdout)


def far(got, want, relative):
    """A fault if numbers differ; printed losses have six digits behind the point."""
    if not isinstance(got, list) or len(got) != len(want):
        return got
    worst = max(abs(g - w) / abs(w) for g, w in zip(got, want))
    return f"off by {worst:.2g}" if not worst <= relative else ""


def test_files(tally, options, golden, scratch):
    trainer = Trainer(options, golden, scratch)
    theirs = os.path.join(HERE, "lora-adapter")
    weights = f"--weights={trainer.base}"
    tally.test("an adapter of PEFT has the loss of PEFT's next step",
               far(trainer.run(weights, f"--adapter={theirs}"), [golden["next_loss"]], LOSS))
    tally.test("another adapter hasn't", "" if far(trainer.run(weights, "--init=random:1"), [golden["next_loss"]], LOSS) else "it has")
    saved = os.path.join(scratch, "saved")
    trainer.run(weights, f"--adapter={theirs}", f"--save-adapter={saved}", steps=3)
    ours, kept = (header_of(os.path.join(folder, "adapter_model.safetensors")) for folder in (saved, theirs))
    tally.test("names, types and shapes are PEFT's", "" if ours == kept else f"{ours} for {kept}")
    with open(os.path.join(saved, "adapter_config.json")) as file:
        said = json.load(file)
    with open(os.path.join(theirs, "adapter_config.json")) as file:
        wanted = json.load(file)
    others = {key: value for key, value in said.items() if wanted.get(key) != value and key != "target_modules"}
    if sorted(said["target_modules"]) != sorted(wanted["target_modules"]):
        others["target_modules"] = said["target_modules"]
    tally.test("the configuration has PEFT's words", others)
    # Rounding to the file's f32 loses nothing: the rest of a run from it has the losses of the whole, but for moments.
    [whole] = trainer.run(weights, f"--adapter={saved}")
    tally.test("a saved adapter loads", far([whole], [trainer.run(weights, f"--adapter={theirs}", steps=4)[-1]], LOSS))
    merged = os.path.join(scratch, "merged")
    folder = os.path.join(scratch, "base")
    os.mkdir(folder)
    os.rename(trainer.base, os.path.join(folder, "model.safetensors"))
    done = subprocess.run([options.tmc, "merge", "--base", folder, "--adapter", saved, "-o", merged], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    tally.test("tmc merge takes a saved adapter", done.stdout if done.returncode else "")
    if options.peft or importlib.util.find_spec("peft"):
        tally.test("PEFT has the loss of the next step", far([peft_loss(golden, folder, saved)], [whole], LOSS))
    else:
        print("left out: PEFT isn't installed")
    return trainer


def peft_loss(golden, base, adapter):
    import numpy
    import peft
    import torch
    from safetensors.torch import load_file
    from transformers import LlamaConfig, LlamaForCausalLM
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=256, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, attn_implementation="eager", use_cache=False))
    model.load_state_dict(load_file(os.path.join(base, "model.safetensors")))
    inputs = {name: torch.from_numpy(numpy.load(os.path.join(HERE, path))) for name, path in golden["inputs"].items()}
    with torch.no_grad():
        return float(peft.PeftModel.from_pretrained(model, adapter)(**inputs).loss)


def test_narrow_base(tally, options, golden, scratch):
    narrow, directory = golden["bf16"], os.path.join(scratch, "narrow")
    dims = [f"--batch={narrow['dims']['batch']}", *(f"--dim={n}={v}" for n, v in narrow["dims"].items() if n != "batch")]
    run = golden["runs"]["adamw"]
    compile_step(options, narrow["graph"], golden["lora"], run, directory, [*dims, "--emit=lib"])
    values = os.path.join(scratch, "narrow.safetensors")
    write_safetensors(values, golden, golden["weights"])
    step = Step(directory)
    step.load(values)
    losses = []
    for _ in narrow["losses"]:
        feed(step, golden, HERE)
        losses.append(step.run(run["lr"]))
    tally.test("a base of bf16 has PEFT's losses", far(losses, narrow["losses"], LOSS_BF16))
    tally.test("and not those of f32 to the last digits", "" if far(losses, run["losses"], 1e-6) else "it has them")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", required=True)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--peft", action="store_true", help="fail where PEFT isn't installed")
    options = parser.parse_args()
    options.tmc = os.path.abspath(options.tmc)
    goldens = {}
    for name in ("llama-tiny-lora", "gpt2-tiny-lora"):
        with open(os.path.join(HERE, f"{name}.json")) as file:
            goldens[name] = json.load(file)
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="lora-") as scratch:
        test_files(tally, options, goldens["llama-tiny-lora"], scratch)
        test_narrow_base(tally, options, goldens["gpt2-tiny-lora"], scratch)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
