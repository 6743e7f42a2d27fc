"""Make formats.runs (JSON) with PyTorch on one thread; README.md ("Formats of the optimizer") has the format.

Needs torch, transformers and what test/models/make.py imports. The rules that torch.optim lacks are
written here as their publications have them, on whole tensors: Lion, and AdamW with torchao's moments
of 4 bits.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "examples", "export"), os.path.join(ROOT, "test", "models")]

import torch

import make as models
from check import read_weights
from formats import BATCH, NAME, RUNS, STEPS, batches, rate_at


BLOCK = 128  # Elements that share a scale.


class Rule:
    """An optimizer of our own: `update` changes a parameter, its state a dictionary."""

    def __init__(self, parameters, keys):
        self.parameters, self.keys, self.step_number = list(parameters), dict(keys), 0
        self.groups = [self.keys]
        self.states = [{} for _ in self.parameters]

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self):
        self.step_number += 1
        for parameter, state in zip(self.parameters, self.states):
            self.update(parameter, parameter.grad, state, self.step_number)


class Lion(Rule):
    """Program 1 of "Symbolic Discovery of Optimization Algorithms"."""

    def update(self, p, grad, state, _):
        k = self.keys
        m = state.setdefault("m", torch.zeros_like(p))
        direction = torch.sign(k["beta1"] * m + (1 - k["beta1"]) * grad)
        p.sub_(k["lr"] * (direction + k["weight_decay"] * p))
        m.copy_(k["beta2"] * m + (1 - k["beta2"]) * grad)


def dynamic_map():
    """torchao's create_dynamic_map(True, 3, 4)."""
    values = [0.0, 1.0]
    for i in range(3):
        edges = torch.linspace(0.1, 1, 2**i + 1)
        for middle in ((edges[:-1] + edges[1:]) / 2 * 10.0 ** (i - 2)).tolist():
            values += [middle, -middle]
    return torch.tensor(sorted(values))


MAPS = {"m": dynamic_map(), "v": torch.linspace(0, 1, 17)[1:]}


def coded(x, values):
    """What is left of `x` in 4 bits."""
    blocks = x.reshape(-1, BLOCK)
    scale = blocks.abs().amax(1, keepdim=True).clamp_min(1e-12)
    middles = (values[:-1] + values[1:]) / 2
    codes = torch.bucketize(blocks / scale, middles, right=True)
    return (values[codes] * scale).reshape(x.shape)


class AdamW4bit(Rule):
    def update(self, p, grad, state, t):
        k = self.keys
        is_coded = p.numel() >= 4096 and p.numel() % BLOCK == 0
        m, v = (state.get(name, torch.zeros_like(p)) for name in "mv")
        m = torch.lerp(m, grad, 1 - k["beta1"])
        v = torch.lerp(v, grad * grad, 1 - k["beta2"])
        state["m"], state["v"] = (coded(x, MAPS[name]) if is_coded else x for name, x in (("m", m), ("v", v)))
        p.sub_(k["lr"] * k["weight_decay"] * p)
        root = v.sqrt() / (1 - k["beta2"] ** t) ** 0.5
        p.sub_(k["lr"] * (m / (1 - k["beta1"] ** t)) / (root + k["eps"]))


def stepper(name, model, keys):
    parameters = list(model.parameters())
    if name == "adamw":
        return torch.optim.AdamW(parameters, lr=keys["lr"], betas=(keys["beta1"], keys["beta2"]), eps=keys["eps"],
                                 weight_decay=keys["weight_decay"], foreach=False)
    if name == "adafactor":
        return torch.optim.Adafactor(parameters, lr=keys["lr"], beta2_decay=keys["beta2_decay"], eps=(None, keys["eps2"]),
                                     d=keys["d"], weight_decay=keys["weight_decay"], foreach=True)
    return {"lion": Lion, "adamw4bit": AdamW4bit}[name](parameters, keys)


def started():
    """The model with the golden's weights."""
    model = models.gpt2()
    with open(os.path.join(HERE, NAME + ".json")) as file:
        golden = json.load(file)
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for name, values in read_weights(golden, HERE).items():
        with torch.no_grad():
            parameters[name].copy_(torch.tensor(values).reshape(parameters[name].shape))
    return model


def set_rate(rule, rate):
    for group in rule.groups if isinstance(rule, Rule) else rule.param_groups:
        group["lr"] = rate


def main():
    torch.set_num_threads(1)
    out = {"torch": torch.__version__, "runs": {}}
    for name, keys in RUNS.items():
        model = started()
        rule = stepper(name, model, keys)
        losses = []
        for i, tokens in enumerate(batches(STEPS)):
            set_rate(rule, rate_at(keys, i))
            ids = torch.tensor(tokens).reshape(BATCH)
            loss = model(input_ids=ids, labels=ids, use_cache=False).loss
            rule.zero_grad()
            loss.backward()
            losses.append(float(f"{float(loss.detach()):.7g}"))
            rule.step()
        print(f"{name}: {losses[0]} to {losses[-1]}")
        out["runs"][name] = losses
    with open(os.path.join(HERE, "formats.runs"), "w") as file:
        json.dump(out, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
