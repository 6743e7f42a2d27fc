#!/usr/bin/env python3
"""Train ten models as exported programs, and load what the trainer saves into PyTorch's own modules.

    state_dict.py [--tmc build/bin/tmc] [--only NAME] [--keep DIR]

`model.safetensors` must be the exported module's whole state_dict: load_state_dict(strict=True) takes it into the
module and into the program, every count is PyTorch's own after the same steps, and in eval mode the module's
outputs are those of the module that PyTorch trained, to 1e-6 of the largest. Needs torch and safetensors.
"""

import argparse
import copy
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
STEPS, BATCH, RATE, MOMENTUM = 3, 4, 0.02, 0.9
ALLOWED = 1e-6


class Classifier(nn.Module):
    """A loss of logits of images [4, 3, 8, 8]."""

    def forward(self, x, y):
        return F.cross_entropy(self.logits(x), y)


class Norms2d(Classifier):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 5)

    def logits(self, x):
        return self.head(F.relu(self.bn(self.conv(x))).mean((2, 3)))


class Norms1d(Classifier):
    def __init__(self):
        super().__init__()
        self.inner, self.bn, self.head = nn.Linear(192, 16), nn.BatchNorm1d(16, momentum=0.3), nn.Linear(16, 5)

    def logits(self, x):
        return self.head(torch.tanh(self.bn(self.inner(x.flatten(1)))))


class NoAffine(Classifier):
    def __init__(self):
        super().__init__()
        self.bn, self.head = nn.BatchNorm2d(3, affine=False), nn.Linear(192, 5)

    def logits(self, x):
        return self.head(self.bn(x).flatten(1))


class Frozen(Norms2d):
    """A trunk that isn't trained, in eval mode."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3))
        self.trunk.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.trunk.eval()
        return self

    def logits(self, x):
        return super().logits(self.trunk(x))


class Tied(Classifier):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(192, 192), nn.Linear(192, 192), nn.Linear(192, 5)
        self.second.weight = self.first.weight

    def logits(self, x):
        return self.head(self.second(F.gelu(self.first(x.flatten(1)))))


class Buffers(Norms2d):
    """Buffers that are read, that aren't, and that aren't of the state_dict."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.linspace(0.5, 2, 8))
        self.register_buffer("version", torch.tensor(7))
        self.register_buffer("table", torch.linspace(-1, 1, 8), persistent=False)

    def logits(self, x):
        features = F.relu(self.bn(self.conv(x))) * self.scale[:, None, None] + self.table[:, None, None]
        return self.head(features.mean((2, 3)))


class Unused(Norms2d):
    """A second head, for another task."""

    def __init__(self):
        super().__init__()
        self.other = nn.Sequential(nn.Linear(8, 3), nn.BatchNorm1d(3))


class GroupNorms(Classifier):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.Linear(8, 5)

    def logits(self, x):
        return self.head(F.silu(self.norm(self.conv(x))).mean((2, 3)))


class Deep(Classifier):
    """A residual net, one of its blocks twice."""

    def __init__(self):
        super().__init__()
        block = lambda: nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.stem, self.blocks, self.head = nn.Conv2d(3, 8, 1), nn.ModuleList([block(), block()]), nn.Linear(8, 5)

    def logits(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x.mean((2, 3)))


class Words(nn.Module):
    """A language model whose head is its table, with positions in a buffer."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, 32, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("positions", torch.randn(8, 16) * 0.1)

    def logits(self, x):
        return self.head(self.block(self.embed(x) + self.positions))

    def forward(self, x, y):
        return F.cross_entropy(self.logits(x).flatten(0, 1), y.flatten())


MODELS = [Norms2d, Norms1d, NoAffine, Frozen, Tied, Buffers, Unused, GroupNorms, Deep, Words]


def batches(model):
    generator = torch.Generator().manual_seed(3)
    count = STEPS * BATCH
    if isinstance(model, Words):
        return [torch.randint(0, 32, (count, 8), generator=generator) for _ in "xy"]
    return [torch.randn(count, 3, 8, 8, generator=generator), torch.randint(0, 5, (count,), generator=generator)]


def trained(model, data):
    model = copy.deepcopy(model)
    rule = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], RATE, MOMENTUM)
    for step in range(STEPS):
        rule.zero_grad()
        model(*(part[step * BATCH:(step + 1) * BATCH] for part in data)).backward()
        rule.step()
    return model


def check(model, tmc, directory):
    """What is wrong, or "", and the largest difference of an output."""
    data = batches(model)
    program = torch.export.export(model, tuple(part[:BATCH] for part in data))
    torch.export.save(program, os.path.join(directory, "model.pt2"))
    for name, part in zip("xy", data):
        np.save(os.path.join(directory, f"{name}.npy"), part.numpy())
    step, save = os.path.join(directory, "step"), os.path.join(directory, "save")
    for command in (
            [tmc, "compile", os.path.join(directory, "model.pt2"), "--target", "cpu",
             "--optimizer", f"sgd(momentum={MOMENTUM},weight_decay=0)", "-o", step],
            [os.path.join(step, "train"), *(f"--data={name}={directory}/{name}.npy" for name in "xy"),
             f"--steps={STEPS}", f"--lr={RATE}", "--save", save, "--save-weights", "--quiet"]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            return f"{os.path.basename(command[0])} ended with {done.returncode}: {done.stdout}", 0
    saved = load_file(os.path.join(save, "model.safetensors"))
    want, got = trained(model, data), copy.deepcopy(model)
    try:
        program.module().load_state_dict(saved, strict=True)
        got.load_state_dict(saved, strict=True)
    except RuntimeError as error:
        return str(error), 0
    for name, value in want.state_dict().items():
        if not value.is_floating_point() and not torch.equal(value, saved[name]):
            return f"{name} is {saved[name]}, {value} in PyTorch", 0
    with torch.no_grad():
        a, b = got.eval().logits(data[0]), want.eval().logits(data[0])
    worst = float((a - b).abs().max() / b.abs().max())
    return "" if worst <= ALLOWED else "eval outputs differ", worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(ROOT, "build", "bin", "tmc"))
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", help="leave everything in this directory")
    options = parser.parse_args()
    torch.set_num_threads(1)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="state-dict-") as scratch:
        for kind in MODELS:
            if options.only not in kind.__name__:
                continue
            torch.manual_seed(1)
            directory = os.path.join(options.keep or scratch, kind.__name__)
            os.makedirs(directory, exist_ok=True)
            fault, worst = check(kind().train(), options.tmc, directory)
            failed += bool(fault)
            print(f"{'FAIL' if fault else 'PASS'}: {kind.__name__}: {fault or 'strict'}, eval outputs off by {worst:.1e}", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
