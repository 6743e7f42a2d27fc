"""One system under measurement, in a process of its own: `workers.py SPEC.json`.

Commands come as JSON lines on standard input, one answer each on standard output:
{"do": "steps", "count": n} runs n steps and answers their seconds, their processor seconds
(of all threads) and losses;
{"do": "memory"} answers the peaks, in bytes above the level before the model was loaded.
The process ends with its input.
"""

import json
import math
import os
import sys
import time

SPEC = json.load(open(sys.argv[1]))


def status(field):
    """A field of /proc/self/status, in bytes."""
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def reset_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


class Memory:
    """Peaks above a base: over everything since, and over the steps alone."""

    def __init__(self):
        self.base, self.steps_only = None, False
        self.all = 0

    def start(self):
        reset_peak()
        self.base = status("VmRSS")

    def loaded(self):
        """What came before (building, compiling, the first step) no longer counts as steps."""
        self.all = status("VmHWM")
        reset_peak()

    def answer(self):
        steps = status("VmHWM")
        return dict(base=self.base, peak=max(self.all, steps) - self.base, peak_of_steps=steps - self.base)


MEMORY = Memory()


def token_batches():
    """Consecutive windows of the token file, as int64; the same for every system."""
    import array
    tokens = array.array("H", open(SPEC["tokens"], "rb").read())
    size = SPEC["batch"] * SPEC["sequence"]
    position = 0
    while True:
        if position + size > len(tokens):
            position = 0
        data = array.array("q", tokens[position:position + size]).tobytes()
        yield dict(input_ids=data, labels=data)
        position += size


def stored_batches():
    """The batches of the file, one after another: of each the inputs, by name."""
    with open(SPEC["batches"], "rb") as file:
        data = file.read()
    inputs = [(name, kind, shape, math.prod(shape) * (8 if kind == "int64" else 4)) for name, kind, shape in SPEC["inputs"]]
    while True:
        at = 0
        while at < len(data):
            batch = {}
            for name, _, _, size in inputs:
                batch[name] = data[at:at + size]
                at += size
            yield batch


class Torch:
    """A model in PyTorch: `model` and `loss(batch)` come from a subclass."""

    def __init__(self):
        import torch
        torch.set_num_threads(SPEC["threads"])
        torch.manual_seed(0)
        self.torch = torch
        self.make()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=SPEC["lr"], betas=(0.9, 0.999), eps=1e-8, weight_decay=SPEC["weight_decay"],
            fused=SPEC["fused"])
        self.forward = torch.compile(self.model) if SPEC["system"] == "compile" else self.model

    def tensor(self, data, type, *shape):
        return self.torch.frombuffer(bytearray(data), dtype=type).view(*shape)

    def step(self, batch):
        batch = self.inputs(batch)
        start = time.perf_counter()
        with self.torch.autocast("cpu", self.torch.bfloat16, enabled=SPEC.get("precision") == "bf16"):
            loss = self.loss(batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        value = float(loss.detach())
        return time.perf_counter() - start, value


class Gpt2(Torch):
    def make(self):
        from safetensors.torch import load_file
        from transformers import GPT2Config, GPT2LMHeadModel
        from transformers.utils import logging
        logging.disable_progress_bar()
        MEMORY.start()
        pdrop = SPEC["dropout"]
        config = GPT2Config(resid_pdrop=pdrop, embd_pdrop=pdrop, attn_pdrop=pdrop, use_cache=False,
                            attn_implementation=SPEC["attention"], loss_type="ForCausalLM", **SPEC["config"])
        self.model = GPT2LMHeadModel(config).train()
        weights = load_file(SPEC["weights"])
        missing, unexpected = self.model.load_state_dict(weights, strict=False)
        if unexpected or set(missing) - {"transformer.wte.weight"}:
            raise SystemExit(f"weights: missing {missing}, unexpected {unexpected}")
        del weights

    def inputs(self, batch):
        return self.tensor(batch["input_ids"], self.torch.int64, SPEC["batch"], SPEC["sequence"])

    def loss(self, ids):
        return self.forward(input_ids=ids, labels=ids, use_cache=False).loss


class Kind(Torch):
    """A model of models.py, as it is or with channels last."""

    def make(self):
        import models
        from safetensors.torch import load_file
        MEMORY.start()
        self.format = self.torch.channels_last if SPEC["system"] == "channels-last" else self.torch.contiguous_format
        self.model, _ = models.make(SPEC["model"])
        self.model.load_state_dict(load_file(SPEC["weights"]), strict=False)
        self.model.to(memory_format=self.format)

    def inputs(self, batch):
        tensors = {name: self.tensor(batch[name], getattr(self.torch, kind), *shape) for name, kind, shape in SPEC["inputs"]}
        return {name: t.contiguous(memory_format=self.format) if t.dim() == 4 else t for name, t in tensors.items()}

    def loss(self, batch):
        return self.forward(**batch)


class Tmc:
    """A step directory compiled beforehand, through its C interface."""

    def __init__(self):
        sys.path.insert(0, SPEC["check"])
        from check import Step
        MEMORY.start()
        self.compiled = Step(SPEC["directory"], SPEC["threads"])
        self.compiled.load(SPEC["weights"])

    def step(self, batch):
        start = time.perf_counter()
        for name, data in batch.items():
            self.compiled.write(name, data)
        loss = self.compiled.run(SPEC["lr"])
        return time.perf_counter() - start, loss


def main():
    stored = "batches" in SPEC
    system = Tmc() if SPEC["system"] == "tmc" else Kind() if stored else Gpt2()
    source = stored_batches() if stored else token_batches()
    first = True
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "memory":
            print(json.dumps(MEMORY.answer()), flush=True)
            continue
        seconds, cpu, losses = [], [], []
        for _ in range(command["count"]):
            before = time.process_time()
            taken, loss = system.step(next(source))
            seconds.append(taken)
            cpu.append(time.process_time() - before)
            losses.append(loss)
            if first:  # Compiling, and memory that only the first step takes.
                MEMORY.loaded()
                first = False
        print(json.dumps(dict(seconds=seconds, cpu=cpu, losses=losses)), flush=True)


if __name__ == "__main__":
    main()
