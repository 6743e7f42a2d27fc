"""Make autocast.bf16, autocast.fp16 and alone.bf16 with PyTorch on one thread; README.md ("Precision") has the
format.

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
import resnet
from check import read_weights
from projection import generate


def language_loss(model, inputs):
    return model(**inputs, use_cache=False).loss


def first_result(model, inputs):
    return model(**inputs)[0]


# How to build it, and its loss of the golden's inputs.
MODELS = {"gpt2-tiny": (models.gpt2, language_loss), "llama-tiny": (models.llama, language_loss),
          "resnet-tiny": (lambda: resnet.ResNet().train(), first_result)}
ALONE = ["gpt2-tiny", "llama-tiny"]
RUN = "adamw"
FORMATS = {"bf16": torch.bfloat16, "fp16": torch.float16}
CHANCES = 8
SCALE = 65536.0
# Rounding decides which side of a ReLU or which element of a pool a few numbers fall on, and by that
# how far off a gradient is. Distances are root mean squares over so many batches of generated images.
DRAWS = {"resnet-tiny": 8}
# So that which steps overflow is no matter of rounding: 2^32 does, 2^16 is far from it.
SCALER = dict(init_scale=2.0**32, growth_factor=2.0**16, backoff_factor=2.0**-16, growth_interval=4)


def fill(model, golden):
    parameters = dict([*model.named_parameters(remove_duplicate=False), *model.named_buffers()])
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


def narrowed(model):
    """All parameters in bf16, as model.bfloat16() has them; buffers (the frequencies of rotary positions) stay
    f32, as transformers loads a model in bf16."""
    for parameter in model.parameters():
        parameter.data = parameter.data.bfloat16()
    return model


def write(format, out):
    with open(os.path.join(HERE, format), "w") as file:
        json.dump(out, file, indent=1)
        file.write("\n")


def digits(values):
    return {name: float(f"{value:.6g}") for name, value in values.items()}


def case(name):
    """How a model is built, its golden, the inputs, and its loss of such."""
    build, loss_of = MODELS[name]
    with open(os.path.join(HERE, name + ".json")) as file:
        golden = json.load(file)
    inputs = {key: torch.tensor(np.load(os.path.join(HERE, path))) for key, path in golden["inputs"].items()}
    # Images in double for a model in double.
    like = lambda m, t: t.to(next(m.parameters()).dtype) if t.is_floating_point() else t
    return build, golden, inputs, lambda m, some: loss_of(m, {key: like(m, t) for key, t in some.items()})


def by_chance(x):
    """Rounded to bf16, up with the probability of the distance from the lower neighbour."""
    bits = x.contiguous().view(torch.int32)
    return (bits + torch.randint(0, 2**16, bits.shape, dtype=torch.int32) & -(2**16)).view(torch.float32)


def train_by_chance(model, loss_of, run, seed):
    """The losses with an AdamW that computes in f32 and rounds what it keeps by chance."""
    torch.manual_seed(seed)
    kept = [(p, torch.zeros_like(p), torch.zeros_like(p)) for p in model.parameters()]
    losses, b1, b2 = [], run["beta1"], run["beta2"]
    for step in range(1, len(run["losses"]) + 1):
        model.zero_grad()
        loss = loss_of(model)
        loss.backward()
        losses.append(float(loss.detach()))
        with torch.no_grad():
            for p, first, second in kept:
                g, decay = p.grad.float(), run["weight_decay"] if p.dim() >= 2 else 0.0
                m = first.float() + (1 - b1) * (g - first.float())
                v = b2 * second.float() + (1 - b2) * g * g
                size = run["lr"] / (1 - b1**step) * m / ((v / (1 - b2**step)).sqrt() + run["epsilon"])
                for to, value in (p, p.float() * (1 - run["lr"] * decay) - size), (first, m), (second, v):
                    to.copy_(by_chance(value))
    return losses


def make_alone():
    """bf16 alone: parameters, what is computed, gradients and moments. The exact gradient is that of the rounded
    parameters. torch.optim.AdamW rounds what it keeps to nearest; `by_chance` has the mean losses of CHANCES runs
    that round by chance."""
    out = {"torch": torch.__version__}
    for name in ALONE:
        build, golden, inputs, loss_of = case(name)
        loss = lambda m: loss_of(m, inputs)
        fresh = lambda: narrowed(fill(build(), golden))
        double = gradients(fresh().double(), loss)
        alone = gradients(fresh(), loss)
        distance = {n: float((alone[n] - double[n]).norm()) for n in golden["parameters"]}
        norms = {n: float(double[n].norm()) for n in golden["parameters"]}
        losses, _ = train(fresh(), loss, golden["runs"][RUN], torch.amp.GradScaler("cpu", enabled=False))
        runs = np.array([train_by_chance(fresh(), loss, golden["runs"][RUN], seed) for seed in range(CHANCES)])
        mean = runs.mean(0)
        apart = lambda some: max(abs(a - b) for a, b in zip(some, golden["runs"][RUN]["losses"]))
        shares = sorted(distance[n] / norms[n] for n in distance)
        print(f"{name} in bf16 alone: gradients are off by {shares[0]:.2g} to {shares[-1]:.2g} of their norms; losses are "
              f"{apart(losses):.2g} from those in f32 at most, {apart(mean):.2g} where AdamW rounds by chance, with a "
              f"deviation of {runs.std(0).max():.2g}")
        out[name] = dict(distance=digits(distance), norm=digits(norms), losses=[float(f"{v:.9g}") for v in losses],
                         by_chance=[float(f"{v:.9g}") for v in mean])
    write("alone.bf16", out)


def make(format):
    out = {"torch": torch.__version__}
    scale = SCALE if format == "fp16" else 1.0
    for name in MODELS:
        build, golden, kept, loss = case(name)
        tokens = kept
        plain = lambda m: loss(m, tokens)

        def narrow(m):
            with torch.autocast("cpu", dtype=FORMATS[format]):
                return plain(m)

        def squares():
            """Of all gradients of these inputs: those of their norms, of autocast's and of single precision's distance."""
            single = gradients(fill(build(), golden), plain)
            double = gradients(fill(build(), golden).double(), plain)
            mixed = gradients(fill(build(), golden), narrow, scale)
            return {n: np.array([float((x - y).norm()) ** 2 for x, y in ((double[n], 0), (mixed[n], double[n]), (single[n], double[n]))])
                    for n in golden["parameters"]}

        draws = DRAWS.get(name, 0)
        if draws:
            sums = []
            for draw in range(draws):
                tokens = {key: torch.tensor(generate(f"{key} {draw}", t.numel(), 1.0, 0.0)).reshape(t.shape)
                          if t.is_floating_point() else t for key, t in kept.items()}
                sums.append(squares())
            tokens = kept
        else:
            sums = [squares()]
        mean = {n: np.sqrt(sum(s[n] for s in sums) / len(sums)) for n in golden["parameters"]}
        norms, distance, base = ({n: float(m[i]) for n, m in mean.items()} for i in range(3))
        base = max(base[n] / distance[n] for n in distance)
        scaler = torch.amp.GradScaler("cpu", enabled=format == "fp16", **SCALER)
        losses, scales = train(fill(build(), golden), narrow, golden["runs"][RUN], scaler)
        shares = sorted(distance[n] / norms[n] for n in distance)
        print(f"{name} in {format}: autocast's gradients are off by {shares[0]:.2g} to {shares[-1]:.2g} of their norms; single "
              f"precision by at most {base:.1g} of that; losses {losses[0]:.5f} -> {losses[-1]:.5f}")
        out[name] = dict(distance=digits(distance), norm=digits(norms), losses=[float(f"{v:.9g}") for v in losses])
        if draws:
            out[name]["draws"] = dict(count=draws, inputs={k: t.numel() for k, t in tokens.items() if t.is_floating_point()})
        if format == "fp16":
            out[name]["scales"] = scales
    write(f"autocast.{format}", out)


def main():
    torch.set_num_threads(1)
    for format in FORMATS:
        make(format)
    make_alone()


main()
