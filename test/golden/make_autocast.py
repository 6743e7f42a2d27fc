"""Make autocast.bf16 and autocast.fp16 with PyTorch on one thread; README.md ("Precision") has the format.

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
FORMATS = {"bf16": torch.bfloat16, "fp16": torch.float16}
SCALE = 65536.0
# So that which steps overflow is no matter of rounding: 2^32 does, 2^16 is far from it.
SCALER = dict(init_scale=2.0**32, growth_factor=2.0**16, backoff_factor=2.0**-16, growth_interval=4)


def fill(model, golden):
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for name, values in read_weights(golden, HERE).items():
        with torch.no_grad():
            parameters[name].copy_(torch.tensor(np.array(values)).reshape(parameters[name].shape))
    return model


def gradients(model, run_once, scale=1.0):
    model.zero_grad()
    (scale * run_once(model)).backward()
    return {name: p.grad.double() / scale for name, p in model.named_parameters(remove_duplicate=False)}


def train(model, run_once, run, scaler):
    """The losses, and after each step the scale."""
    groups = [dict(params=[p for p in model.parameters() if p.dim() >= 2], weight_decay=run["weight_decay"]),
              dict(params=[p for p in model.parameters() if p.dim() < 2], weight_decay=0.0)]
    stepper = torch.optim.AdamW(groups, lr=run["lr"], betas=(run["beta1"], run["beta2"]), eps=run["epsilon"], foreach=False)
    losses, scales = [], []
    for _ in run["losses"]:
        loss = run_once(model)
        stepper.zero_grad()
        scaler.scale(loss).backward()
        losses.append(float(loss.detach()))
        scaler.step(stepper)
        scaler.update()
        scales.append(scaler.get_scale())
    return losses, scales


def make(format):
    out = {"torch": torch.__version__}
    scale = SCALE if format == "fp16" else 1.0
    for name, build in MODELS.items():
        with open(os.path.join(HERE, name + ".json")) as file:
            golden = json.load(file)
        tokens = {key: torch.tensor(np.load(os.path.join(HERE, path))) for key, path in golden["inputs"].items()}
        plain = lambda m: m(**tokens, use_cache=False).loss

        def narrow(m):
            with torch.autocast("cpu", dtype=FORMATS[format]):
                return plain(m)

        single = gradients(fill(build(), golden), plain)
        double = gradients(fill(build(), golden).double(), plain)
        mixed = gradients(fill(build(), golden), narrow, scale)
        distance = {n: float((mixed[n] - double[n]).norm()) for n in golden["parameters"]}
        norms = {n: float(double[n].norm()) for n in golden["parameters"]}
        base = max(float((single[n] - double[n]).norm()) / distance[n] for n in distance)
        scaler = torch.amp.GradScaler("cpu", enabled=format == "fp16", **SCALER)
        losses, scales = train(fill(build(), golden), narrow, golden["runs"][RUN], scaler)
        shares = sorted(distance[n] / norms[n] for n in distance)
        print(f"{name} in {format}: autocast's gradients are off by {shares[0]:.2g} to {shares[-1]:.2g} of their norms; single "
              f"precision by at most {base:.1g} of that; losses {losses[0]:.5f} -> {losses[-1]:.5f}")
        digits = lambda values: {n: float(f"{v:.6g}") for n, v in values.items()}
        out[name] = dict(distance=digits(distance), norm=digits(norms), losses=[float(f"{v:.9g}") for v in losses])
        if format == "fp16":
            out[name]["scales"] = scales
    with open(os.path.join(HERE, f"autocast.{format}"), "w") as file:
        json.dump(out, file, indent=1)
        file.write("\n")


def main():
    torch.set_num_threads(1)
    for format in FORMATS:
        make(format)


main()
