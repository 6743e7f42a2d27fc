"""Make the golden values of this folder with PyTorch on one thread: `make.py [name ...]`, all without
arguments; README.md has the format.

Needs torch, transformers, onnx, onnxruntime, safetensors. Every model is also run in double,
which says what is determined at all; README.md says what is allowed and why.
"""

import copy
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "examples", "export"), os.path.join(ROOT, "test", "models")]

import numpy as np
import onnx
import torch
from safetensors.numpy import save_file
from torch.utils._python_dispatch import TorchDispatchMode

import make as models
import mlp
import resnet
from check import ROUNDING, tolerance
from projection import generate, project

STEPS = 10
# The same models as exported programs (test/models/make_pt2.py), in their example's sizes.
PROGRAMS = {
    "mlp-small": ["mlp-small", "mlp-small-core"],
    "gpt2-tiny": ["gpt2-tiny", "gpt2-tiny-eager", "gpt2-tiny-core"],
    "resnet-tiny": ["resnet-tiny", "resnet-tiny-core"],
    "llama-tiny": ["llama-tiny", "llama-tiny-core"],
    "decoder": ["decoder", "decoder-core"],
    "bert-tiny-mlm": ["bert-tiny-mlm-nodropout"],
    "biased-tiny": ["biased-tiny", "biased-tiny-core"],
    "unet-tiny": ["unet-tiny", "unet-tiny-core"],
    "noted-tiny": ["noted-tiny", "noted-tiny-core"],
    "batch-first": ["batch-first"],
}
ENTRIES = 8  # of each tensor
LOGITS = 64  # entries of the logits
SAVED = {torch.float32: "F32", torch.int64: "I64"}  # as a file of weights names them
KIND = "pkg.torch.export.graph_signature.InputSpec.kind"

ADAMW = dict(name="adamw", lr=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01)
RUNS = {
    "adamw": dict(ADAMW, decay="matrices", clip=None),
    "adamw-decay-all": dict(ADAMW, decay="all", clip=None),
    "adamw-clip": dict(ADAMW, decay="matrices", clip=1.0),
    "sgd-momentum": dict(name="sgd", lr=0.01, momentum=0.9, weight_decay=0.01, decay="all", clip=None),
}


def digits(value):
    return float(f"{value:.9g}")


def summary(tensor, entries=ENTRIES, without=()):
    """A tensor as its shape, norm, projections and evenly spaced entries (see README.md)."""
    flat = np.asarray(tensor).astype(np.float64).reshape(-1)
    for begin, end in without:
        flat[begin:end] = 0
    at = np.unique(np.linspace(0, flat.size - 1, min(entries, flat.size)).astype(np.int64))
    return dict(
        shape=list(np.shape(tensor)), norm=digits(np.linalg.norm(flat)), dots=[digits(d) for d in project(flat)],
        at=at.tolist(), entries=[digits(v) for v in flat[at]])


def summaries(tensors):
    return {name: summary(tensor) for name, tensor in tensors.items()}


class Terms(TorchDispatchMode):
    """Counts the terms that are summed on the way to a gradient: those of all products and convolutions,
    forward and backward; of the convolutions' filter gradients, which end a way, those of the longest."""

    def __init__(self):
        super().__init__()
        self.passed, self.filters = 0, 0

    def count(self):
        return self.passed + self.filters

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        name = func.name().split("::")[1]
        if name in ("addmm", "baddbmm"):
            self.passed += tensors[1].shape[-1]
        elif name in ("mm", "bmm"):
            self.passed += tensors[0].shape[-1]
        elif name == "convolution":  # Of an input and a filter: window and channels.
            self.passed += tensors[1].numel() // tensors[1].shape[0]
        elif name == "convolution_backward":  # Of the output's gradient, an input and a filter.
            self.passed += tensors[2].numel() // tensors[2].shape[1]
            self.filters = max(self.filters, tensors[0].numel() // tensors[0].shape[1])
        return func(*args, **(kwargs or {}))


ZERO = 2.0 ** -40  # Of the global norm: far above double's rounding, far below any gradient that isn't zero.
DECIDED = 0.1  # Of a step of AdamW: by how much rounding may change it before it decides it.


def runs_of(chosen):
    """[[begin, end], ...] of the elements that are chosen."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(chosen).reshape(-1).astype(np.int8), [0]])))
    return [[int(a), int(b)] for a, b in zip(edges[::2], edges[1::2])]


def initializers(path):
    """The names of the file's parameters and buffers, by kind, in the file's order."""
    graph = onnx.load(path, load_external_data=False).graph
    kinds = {v.name: p.value for v in graph.value_info for p in v.metadata_props if p.key == KIND}
    kinds = {i.name: kinds[i.name] for i in graph.initializer if i.name in kinds}
    return ([n for n, k in kinds.items() if k == "PARAMETER"], [n for n, k in kinds.items() if k == "BUFFER"])


def dimensions(path, inputs):
    """What the graph's symbolic dimensions are in these inputs."""
    dims = {}
    for value in onnx.load(os.path.join(ROOT, path), load_external_data=False).graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_param:
                dims[dim.dim_param] = inputs[value.name].shape[axis]
    return dims


def arrays(model, names, pick=lambda t: t):
    by_name = dict([*model.named_parameters(remove_duplicate=False), *model.named_buffers()])
    return {name: pick(by_name[name]).detach().numpy().copy() for name in names}


def optimizer(model, run):
    named = list(model.named_parameters())
    if run["decay"] == "all":
        groups = [dict(params=[p for _, p in named], weight_decay=run["weight_decay"])]
    else:
        groups = [dict(params=[p for _, p in named if p.dim() >= 2], weight_decay=run["weight_decay"]),
                  dict(params=[p for _, p in named if p.dim() < 2], weight_decay=0.0)]
    if run["name"] == "sgd":
        return torch.optim.SGD(groups, lr=run["lr"], momentum=run["momentum"], foreach=False)
    return torch.optim.AdamW(groups, lr=run["lr"], betas=(run["beta1"], run["beta2"]), eps=run["epsilon"], foreach=False)


def train(model, call, run, each=lambda stepper: None):
    """Losses and gradient norms (before clipping) of STEPS steps; the model holds the result."""
    losses, norms = [], []
    stepper = optimizer(model, run)
    for _ in range(STEPS):
        loss, _ = call(model)
        stepper.zero_grad()
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), run["clip"] or 1e30, foreach=False)))
        losses.append(float(loss.detach()))
        stepper.step()
        each(stepper)
    return losses, norms


class Reach:
    """How far an error of the gradients moves each parameter in a run, in double.

    Each gradient is off by `relative` of its tensor's norm, spread evenly over its elements. SGD moves
    a parameter by as much of its own movement. AdamW's step is lr m / sqrt(v): an error e moves an
    element by lr e / sqrt(v). Where that is DECIDED or more in any step, rounding decides the element:
    it is left out. Such is the bias of a key, whose gradient is zero, and noise in single precision: a
    softmax doesn't see what it adds. A gradient that is exactly zero, as that of a token that doesn't
    occur, has no error.
    """

    def __init__(self, model, names, run, relative, total):
        by_name = dict(model.named_parameters(remove_duplicate=False))
        self.parameters = {name: by_name[name] for name in names}
        self.run, self.relative, self.least = run, relative, ZERO * total
        self.before = {name: p.detach().clone() for name, p in self.parameters.items()}
        self.moved = {name: torch.zeros_like(p) for name, p in self.parameters.items()}
        self.most = {name: torch.zeros_like(p) for name, p in self.parameters.items()}

    def step(self, stepper):
        if self.run["name"] != "adamw":
            return
        for name, parameter in self.parameters.items():
            grad, state = parameter.grad, stepper.state[parameter]
            root = (state["exp_avg_sq"] / (1 - self.run["beta2"] ** float(state["step"]))).sqrt()
            error = max(self.relative * float(grad.norm()) / grad.numel() ** 0.5, self.least)
            share = torch.where(grad == 0, torch.zeros_like(root), error / root.clamp_min(1e-300))
            self.moved[name] += self.run["lr"] * share
            self.most[name] = torch.maximum(self.most[name], share)

    def left_out(self):
        """The runs of elements that rounding decides, by tensor."""
        found = {name: runs_of((most >= DECIDED).numpy()) for name, most in self.most.items()}
        return {name: runs for name, runs in found.items() if runs}

    def norms(self, name, without):
        """The norms of the movement and of its error."""
        movement, error = (self.parameters[name].detach() - self.before[name]).reshape(-1), self.moved[name].reshape(-1)
        for begin, end in without:
            movement[begin:end] = 0
            error[begin:end] = 0
        norm = float(movement.norm())
        return dict(moved=digits(norm), reach=digits(float(error.norm()) if self.run["name"] == "adamw" else self.relative * norm))


def check_graph(path, weights, inputs, loss, logits):
    """The graph that ships computes what the module computes: run it in ONNX Runtime."""
    import onnxruntime
    proto = onnx.load(os.path.join(ROOT, path), load_external_data=False)
    for tensor in proto.graph.initializer:
        if tensor.name in weights:
            tensor.CopyFrom(onnx.numpy_helper.from_array(weights[tensor.name], tensor.name))
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    got = session.run(None, inputs)  # The loss, then the model's output.
    if abs(got[0] - loss) > 1e-6 * abs(loss) or np.abs(got[1] - logits).max() > 1e-5 * np.abs(logits).max():
        raise SystemExit(f"{path}: the graph doesn't compute what the module does")
    print(f"{path}: loss {got[0]} in ONNX Runtime, {loss} in PyTorch")


def golden(name, graphs, model, inputs, call, runs, check=True, keep=True):
    """Write NAME.json and NAME.INPUT.npy for `model` as the files `graphs` have it.

    The weights go to NAME.safetensors, or with `keep` off are replaced by generated ones, and only
    their generator's constants are written.
    """
    if sys.argv[1:] and name not in sys.argv[1:]:
        return
    parameters, buffers = initializers(os.path.join(ROOT, graphs[0]))
    buffers = [b for b in buffers if "running" in b]  # Tables and masks don't change.
    if keep:
        source = f"{name}.safetensors"
        save_file(arrays(model, parameters + buffers), os.path.join(HERE, source))
    else:
        source = replace(model, parameters)
    weights = arrays(model, parameters + buffers)
    for key, value in inputs.items():
        np.save(os.path.join(HERE, f"{name}.{key}.npy"), value)
    single = copy.deepcopy(model)
    double = copy.deepcopy(model).double()
    results = []
    for each, kind in ((single, torch.float32), (double, torch.float64)):
        tensors = {k: torch.tensor(v, dtype=kind if v.dtype == np.float32 else None) for k, v in inputs.items()}
        results.append((each, lambda m, tensors=tensors: call(m, tensors)))
    programs = [f"test/models/{program}.pt2" for program in PROGRAMS[name]]
    out = dict(graphs=[*graphs, *programs], dims=dimensions(graphs[0], inputs), weights=source, inputs={k: f"{name}.{k}.npy" for k in inputs},
               parameters=parameters, states=buffers)
    if programs:
        saved = model.state_dict()
        out["state_dict"] = {n: [SAVED[v.dtype], list(v.shape)] for n, v in saved.items()}
        out["batches_before"] = next((int(v) for n, v in saved.items() if n.endswith("num_batches_tracked")), 0)
    out["torch"] = torch.__version__
    firsts = []
    for each, run_once in results:
        each = copy.deepcopy(each)
        with Terms() as terms:
            loss, logits = run_once(each)
            loss.backward()
        firsts.append((float(loss.detach()), logits.detach().numpy(), arrays(each, parameters, lambda t: t.grad),
                       arrays(each, buffers)))
    (loss, logits, grads, states), (_, _, grads64, _) = firsts
    total = np.sqrt(sum(np.linalg.norm(g.astype(np.float64)) ** 2 for g in grads.values()))
    zero = [n for n in grads if np.linalg.norm(grads64[n]) < ZERO * total]
    relative = tolerance(terms.count())
    out.update(terms=terms.count(), loss=loss, logits=summary(logits, LOGITS), gradient_norm=digits(total), gradients=summaries(grads),
               states_after_forward=summaries(states), zero_gradients=zero)
    off = {n: np.linalg.norm(grads[n] - grads64[n]) / np.linalg.norm(grads64[n]) for n in grads if n not in zero}
    print(f"  {terms.count()} terms, {relative:.1e} allowed; single precision is off by {max(off.values()):.1e}; zero but for rounding: {zero}")
    if check:
        for graph in graphs:
            check_graph(graph, weights, inputs, loss, logits)
    out["runs"] = {}
    for run in runs:
        require_steady(name, model, inputs, call, run)
        each = copy.deepcopy(results[1][0])
        reach = Reach(each, parameters, RUNS[run], relative, total)
        train(each, results[1][1], RUNS[run], reach.step)
        without = reach.left_out()
        each = copy.deepcopy(results[0][0])
        losses, norms = train(each, results[0][1], RUNS[run])
        after = arrays(each, parameters)
        tensors = {n: dict(summary(after[n], without=without.get(n, ())), **reach.norms(n, without.get(n, ()))) for n in parameters}
        out["runs"][run] = dict(RUNS[run], losses=losses, gradient_norms=[digits(n) for n in norms], parameters=tensors, left_out=without,
                                states=summaries(arrays(each, buffers)))
        shares = {n: (t["reach"] + ROUNDING * t["norm"]) / t["moved"] for n, t in tensors.items() if t["moved"] > 0}
        worst = max(shares, key=shares.get)
        print(f"  {run}: loss {losses[0]:.7f} -> {losses[-1]:.7f}, norms {norms[0]:.3f} -> {norms[-1]:.3f}; allowed of the movement: "
              f"{np.median(list(shares.values())):.1e}, at most {shares[worst]:.1e} in {worst}; left out "
              f"{ {n: sum(b - a for a, b in w) for n, w in without.items()} }")
    with open(os.path.join(HERE, f"{name}.json"), "w") as file:
        lines = json.dumps(out, separators=(",", ":")).replace('"runs":', '\n"runs":')
        file.write(lines.replace('},"', '},\n"').replace("\n\n", "\n") + "\n")


def scatter(model, generator, matrix):
    """Weights that leave nothing at a special value: norms off one, biases off zero."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() >= 2:
                parameter.copy_(noise * matrix(parameter))
            else:
                parameter.copy_(noise * 0.1 + (1.0 if name.endswith("weight") else 0.0))
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(torch.randn(buffer.shape, generator=generator) * 0.1)
            elif name.endswith("running_var"):
                buffer.copy_(1 + torch.rand(buffer.shape, generator=generator))
    return model


TRIALS = 12
REACH = 2.0 ** -21  # A few roundings of a weight.
STEADY = 2e-5  # Relative, of each gradient norm.


def is_steady(model, inputs, call, run):
    """True if training isn't decided by rounding.

    A pre-activation within rounding of zero turns over in one correct program and not in another, and
    so does the largest of a pool's window; every step from there on differs by far more than rounding.
    So the model is trained in double, and TRIALS times in single precision from weights that are moved
    by rounding's reach; all gradient norms must agree.
    """
    def norms(model, kind):
        tensors = {k: torch.tensor(v, dtype=kind if v.dtype == np.float32 else None) for k, v in inputs.items()}
        return np.array(train(model, lambda m: call(m, tensors), RUNS[run])[1])

    exact = norms(copy.deepcopy(model).double(), torch.float64)
    move = torch.Generator().manual_seed(1)
    for _ in range(TRIALS):
        moved = copy.deepcopy(model)
        with torch.no_grad():
            for parameter in moved.parameters():
                parameter.mul_(1 + REACH * (2 * torch.rand(parameter.shape, generator=move) - 1))
        if np.abs(norms(moved, torch.float32) / exact - 1).max() > STEADY:
            return False
    return True


def require_steady(name, model, inputs, call, run):
    if not is_steady(model, inputs, call, run):
        raise SystemExit(f"{name}: rounding decides the run {run}; take other weights or another batch")


def steady(name, build, call, runs):
    """The first of the pairs (model, inputs) that `build(generator)` draws whose training is steady."""
    if sys.argv[1:] and name not in sys.argv[1:]:
        return None, None
    for seed in range(1000):
        model, inputs = build(torch.Generator().manual_seed(seed))
        if all(is_steady(model, inputs, call, run) for run in runs):
            print(f"  steady from seed {seed}")
            return model, inputs
    raise SystemExit("no seed's training is free of rounding")


def replace(model, parameters):
    """Give the model generated weights; returns {name: (shape, scale, offset)}."""
    by_name = dict(model.named_parameters(remove_duplicate=False))
    constants = {}
    with torch.no_grad():
        for name in parameters:
            parameter = by_name[name]
            shape = tuple(parameter.shape)
            if len(shape) >= 2:  # About as wide as training wants it, by a power of two.
                scale, offset = 2.0 ** -round(np.log2(fan_in(parameter) ** -1 / 1.7)), 0.0
            else:
                scale, offset = 0.125, 1.0 if name.endswith("weight") else 0.0
            parameter.copy_(torch.from_numpy(generate(name, parameter.numel(), scale, offset).reshape(shape)))
            constants[name] = (shape, scale, offset)
    return constants


def fan_in(parameter):
    return (parameter[0].numel()) ** -0.5


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    draw = torch.Generator().manual_seed(1)
    data = os.path.join(ROOT, "examples", "data")

    image = torch.randn(16, 64, generator=draw).numpy()
    label = torch.randint(10, (16,), generator=draw).numpy()
    golden("mlp-small", ["test/models/mlp-small.onnx", "test/models/mlp-small-torchscript-opset13.onnx"], scatter(mlp.MLP((64, 96, 96, 10)), draw, fan_in),
           dict(image=image, label=label), lambda m, t: m(t["image"], t["label"]), list(RUNS))

    text = np.fromfile(os.path.join(data, "text.u16.bin"), dtype="<u2")[1000:1000 + 4 * 32].astype(np.int64).reshape(4, 32)
    def lm(m, t):
        result = m(input_ids=t["input_ids"], labels=t["labels"], use_cache=False)
        return result.loss, result.logits
    variants = [f"test/models/gpt2-tiny-nodropout-{v}.onnx" for v in ("optimized", "sdpa-opset18", "sdpa-opset23")]
    golden("gpt2-tiny", ["test/models/gpt2-tiny.onnx", *variants], scatter(models.gpt2(), draw, lambda p: 0.1),
           dict(input_ids=text, labels=text), lm, list(RUNS))

    image = np.load(os.path.join(data, "shapes-image.npy"))[:8]
    label = np.load(os.path.join(data, "shapes-label.npy"))[:8]
    scatter(resnet.ResNet().train(), draw, fan_in)  # So that the draws below stay as they are.
    image_of = lambda m, t: m(t["image"], t["label"])
    runs, images = ["adamw", "sgd-momentum"], dict(image=image, label=label)
    model, _ = steady("resnet-tiny", lambda seeded: (scatter(resnet.ResNet().train(), seeded, fan_in), images), image_of, runs)
    golden("resnet-tiny", ["examples/resnet-tiny.onnx", "test/models/resnet-tiny-torchscript-opset13.onnx"], model, images, image_of,
           runs, check=False)

    files = lambda *names: [f"test/models/{n}.onnx" for n in names]
    tokens = dict(input_ids=text, labels=text)
    golden("llama-tiny", files("llama-tiny", "llama-tiny-optimized"), models.llama(), tokens, lm, ["adamw"], keep=False)
    shifted = dict(input_ids=text, labels=np.concatenate([text[:, 1:], text[:, :1]], 1))
    golden("decoder", files("decoder-opset18", "decoder-opset23"), models.Decoder().train(), shifted,
           lambda m, t: m(t["input_ids"], t["labels"]), ["adamw"], keep=False)
    mask = np.ones_like(text)
    mask[1, 20:] = mask[3, 9:] = 0
    labels = np.where((np.arange(text.size).reshape(text.shape) % 5 == 1) & (mask == 1), text, -100)
    def masked(m, t):
        result = m(input_ids=t["input_ids"], attention_mask=t["attention_mask"], labels=t["labels"])
        return result.loss, result.logits
    plain = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    golden("bert-tiny-mlm", files("bert-tiny-mlm-nodropout"), models.bert(models.BertForMaskedLM, **plain),
           dict(input_ids=text, attention_mask=mask, labels=labels), masked, ["adamw"], keep=False)
    golden("biased-tiny", files("biased-tiny"), models.Biased().train(), dict(input_ids=text, attention_mask=mask, labels=labels),
           lambda m, t: m(t["input_ids"], t["attention_mask"], t["labels"]), ["adamw"], keep=False)
    unet, parameters = models.UNet().train(), initializers(os.path.join(ROOT, files("unet-tiny")[0]))[0]
    replace(unet, parameters)
    def to_reverse(seeded):
        image = torch.randn(2, 3, 32, 32, generator=seeded).numpy()
        return unet, dict(image=image, target=image[:, ::-1].copy())
    reverse = lambda m, t: m(t["image"], t["target"])
    unet, images = steady("unet-tiny", to_reverse, reverse, ["adamw"])
    golden("unet-tiny", files("unet-tiny", "unet-tiny-opset21"), unet, images, reverse, ["adamw"], keep=False)
    noted()
    batch_first()


def batch_first():
    """Samples first outside, time first inside: in micro-batches, too."""
    draw = torch.Generator().manual_seed(3)
    inputs = dict(x=torch.randn(5, 3, 8, generator=draw).numpy(), label=torch.randint(5, (5,), generator=draw).numpy(),
                  temperature=np.array(0.75, dtype=np.float32), share=np.float32([0.5]))
    golden("batch-first", ["test/models/batch-first.onnx"], models.BatchFirst().train(), inputs,
           lambda m, t: m(t["x"], t["label"], t["temperature"], t["share"]), ["adamw"], keep=False)


def noted():
    """What the exporter notes beside the graph: ONNX Runtime doesn't read it."""
    draw = torch.Generator().manual_seed(2)
    inputs = dict(cats=torch.stack([torch.randint(n, (6,), generator=draw) for n in (5, 7)], 1).numpy(),
                  label=torch.randint(6, (6,), generator=draw).numpy())
    inputs["cats"][1:3, 1] = 2  # The padding row.
    inputs["label"][4] = -100
    golden("noted-tiny", ["test/models/noted-tiny.onnx"], scatter(models.Noted().train(), draw, fan_in), inputs,
           lambda m, t: m(t["cats"], t["label"]), ["adamw", "sgd-momentum"], check=False)


if __name__ == "__main__":
    main()
