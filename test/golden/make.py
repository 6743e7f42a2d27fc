"""Make the golden values of this folder with PyTorch on one thread; README.md has the format.

Needs torch, transformers, onnx, onnxruntime, safetensors. Every model is also run in double:
what single precision alone changes is written beside each value, as its noise.
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

import make as models
import mlp
import resnet
from projection import generate, project

STEPS = 10
ENTRIES = 8  # of each tensor
LOGITS = 64  # entries of the logits
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


def summary(single, double, entries=ENTRIES):
    """A tensor as its shape, norm, projections, evenly spaced entries and noise (see README.md)."""
    single = np.asarray(single)
    flat = single.astype(np.float64).reshape(-1)
    at = np.unique(np.linspace(0, flat.size - 1, min(entries, flat.size)).astype(np.int64))
    return dict(
        shape=list(single.shape), norm=digits(np.linalg.norm(flat)), dots=[digits(d) for d in project(flat)],
        at=at.tolist(), entries=[digits(v) for v in flat[at]],
        noise=digits(np.linalg.norm(flat - np.asarray(double, dtype=np.float64).reshape(-1))))


def summaries(single, double):
    return {name: summary(single[name], double[name]) for name in single}


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


def train(model, call, run):
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
    return losses, norms


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
    out = dict(graphs=graphs, dims=dimensions(graphs[0], inputs), weights=source, inputs={k: f"{name}.{k}.npy" for k in inputs},
               parameters=parameters, states=buffers, torch=torch.__version__)
    firsts = []
    for each, run_once in results:
        each = copy.deepcopy(each)
        loss, logits = run_once(each)
        loss.backward()
        firsts.append((float(loss.detach()), logits.detach().numpy(), arrays(each, parameters, lambda t: t.grad),
                       arrays(each, buffers)))
    (loss, logits, grads, states), (loss64, logits64, grads64, states64) = firsts
    total = np.sqrt(sum(np.linalg.norm(g.astype(np.float64)) ** 2 for g in grads.values()))
    out.update(loss=loss, loss_noise=digits(loss - loss64), logits=summary(logits, logits64, LOGITS),
               gradient_norm=digits(total), gradients=summaries(grads, grads64), states_after_forward=summaries(states, states64))
    if check:
        for graph in graphs:
            check_graph(graph, weights, inputs, loss, logits)
    out["runs"] = {}
    for run in runs:
        trained = []
        for each, run_once in results:
            each = copy.deepcopy(each)
            losses, norms = train(each, run_once, RUNS[run])
            trained.append((losses, norms, arrays(each, parameters), arrays(each, buffers)))
        (losses, norms, after, states), (losses64, _, after64, states64) = trained
        out["runs"][run] = dict(
            RUNS[run], losses=losses, losses_noise=[digits(a - b) for a, b in zip(losses, losses64)],
            gradient_norms=[digits(n) for n in norms], parameters=summaries(after, after64), states=summaries(states, states64))
        worst = max(after, key=lambda n: out["runs"][run]["parameters"][n]["noise"])
        print(f"  {run}: loss {losses[0]:.7f} -> {losses[-1]:.7f}, norms {norms[0]:.3f} -> {norms[-1]:.3f}, loss noise "
              f"{max(abs(a - b) for a, b in zip(losses, losses64)):.1e}, worst {worst} "
              f"{out['runs'][run]['parameters'][worst]['noise'] / np.linalg.norm(after[worst]):.1e}")
    noise = {n: out["gradients"][n]["noise"] / (out["gradients"][n]["norm"] + 1e-30) for n in grads}
    print(f"  gradient norm {total:.4f}, noisiest", sorted(((digits(v), n) for n, v in noise.items()), reverse=True)[:3])
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


def steady(build, inputs, call, runs):
    """The model `build(seed)` of the first seed whose training isn't decided by rounding.

    A pre-activation within rounding of zero turns over in one correct program and not in another,
    and every step from there on differs by far more than rounding. So the model is trained in
    double, and TRIALS times in single precision from weights that are moved by rounding's reach; all
    gradient norms must agree.
    """
    def norms(model, kind, run):
        tensors = {k: torch.tensor(v, dtype=kind if v.dtype == np.float32 else None) for k, v in inputs.items()}
        return np.array(train(model, lambda m: call(m, tensors), RUNS[run])[1])

    for seed in range(1000):
        model = build(torch.Generator().manual_seed(seed))
        exact = {run: norms(copy.deepcopy(model).double(), torch.float64, run) for run in runs}
        move = torch.Generator().manual_seed(1)
        for trial in range(TRIALS * len(runs)):
            moved = copy.deepcopy(model)
            with torch.no_grad():
                for parameter in moved.parameters():
                    parameter.mul_(1 + REACH * (2 * torch.rand(parameter.shape, generator=move) - 1))
            run = runs[trial % len(runs)]
            if np.abs(norms(moved, torch.float32, run) / exact[run] - 1).max() > STEADY:
                break
        else:
            print(f"  steady from seed {seed}")
            return model
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
    model = steady(lambda seeded: scatter(resnet.ResNet().train(), seeded, fan_in), images, image_of, runs)
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
    image = torch.randn(2, 3, 32, 32, generator=draw).numpy()
    golden("unet-tiny", files("unet-tiny", "unet-tiny-opset21"), models.UNet().train(), dict(image=image, target=image[:, ::-1].copy()),
           lambda m, t: m(t["image"], t["target"]), ["adamw"], keep=False)


if __name__ == "__main__":
    main()
