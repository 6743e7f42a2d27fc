"""Make autocast.bf16 with PyTorch on one thread; README.md ("Precision") has the format.

Needs torch, transformers and what test/models/make.py imports. Weights, inputs and optimizer are
those of the single-precision golden of the same name.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "examples", "export"), os.path.join(ROOT, "test", "models")]

import numpy as np
import torch

import make as models
from check import read_weights

MODELS = {"gpt2-tiny": models.gpt2, "llama-tiny": models.llama}
RUN = "adamw"


def fill(model, golden):
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for name, values in read_weights(golden, HERE).items():
        with torch.no_grad():
            parameters[name].copy_(torch.tensor(np.array(values)).reshape(parameters[name].shape))
    return model


def gradients(model, run_once):
    model.zero_grad()
    run_once(model).backward()
    return {name: p.grad.double().clone() for name, p in model.named_parameters(remove_duplicate=False)}


def train(model, run_once, run):
    groups = [dict(params=[p for p in model.parameters() if p.dim() >= 2], weight_decay=run["weight_decay"]),
              dict(params=[p for p in model.parameters() if p.dim() < 2], weight_decay=0.0)]
    stepper = torch.optim.AdamW(groups, lr=run["lr"], betas=(run["beta1"], run["beta2"]), eps=run["epsilon"], foreach=False)
    losses = []
    for _ in run["losses"]:
        loss = run_once(model)
        stepper.zero_grad()
        loss.backward()
        losses.append(float(loss.detach()))
        stepper.step()
    return losses


def main():
    torch.set_num_threads(1)
    out = {"torch": torch.__version__}
    for name, build in MODELS.items():
        with open(os.path.join(HERE, name + ".json")) as file:
            golden = json.load(file)
        tokens = {key: torch.tensor(np.load(os.path.join(HERE, path))) for key, path in golden["inputs"].items()}
        plain = lambda m: m(**tokens, use_cache=False).loss

        def narrow(m):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return plain(m)

        single = gradients(fill(build(), golden), plain)
        double = gradients(fill(build(), golden).double(), plain)
        mixed = gradients(fill(build(), golden), narrow)
        distance = {n: float((mixed[n] - double[n]).norm()) for n in golden["parameters"]}
        norms = {n: float(double[n].norm()) for n in golden["parameters"]}
        base = max(float((single[n] - double[n]).norm()) / distance[n] for n in distance)
        losses = train(fill(build(), golden), narrow, golden["runs"][RUN])
        shares = sorted(distance[n] / norms[n] for n in distance)
        print(f"{name}: autocast's gradients are off by {shares[0]:.2g} to {shares[-1]:.2g} of their norms; single "
              f"precision by at most {base:.1g} of that; losses {losses[0]:.5f} -> {losses[-1]:.5f}")
        digits = lambda values: {n: float(f"{v:.6g}") for n, v in values.items()}
        out[name] = dict(distance=digits(distance), norm=digits(norms), losses=[float(f"{v:.9g}") for v in losses])
    with open(os.path.join(HERE, "autocast.bf16"), "w") as file:
        json.dump(out, file, indent=1)
        file.write("\n")


main()
