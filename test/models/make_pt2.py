"""Make the .pt2 files of this folder and of test/golden: `make_pt2.py [name ...]`, all without
arguments; needs torch 2.9 or later, transformers, onnx and onnxscript (for make.py, whose models
these are).

A file is the archive of torch.export.save, written again: without the example's inputs, which are a
pickle, and without the values of parameters, unless they are to be tested; of the stack only the
innermost frame, without the exporting machine's folders. It is deflated, or, with values, stored.
"""

import inspect
import io
import json
import os
import sys
import warnings
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "examples", "export")]

import torch
from torch import nn
from torch.nn import functional as F
from transformers import BertForMaskedLM, ViTConfig, ViTForImageClassification

import make as models
import mlp
import resnet
from common import innermost_frame

BATCH = {0: torch.export.Dim("batch", min=2, max=64)}
TEXT = {**BATCH, 1: torch.export.Dim("sequence", min=2, max=32)}


def clean(program):
    """The graph without what names a machine, and without the classes of modules."""
    program["torch_version"] = "unnamed"
    for node in program["graph_module"]["graph"]["nodes"]:
        metadata = node["metadata"]
        kept = {}
        if frame := innermost_frame(metadata.get("stack_trace", "")):
            kept["stack_trace"] = frame
        if stack := metadata.get("nn_module_stack"):
            kept["nn_module_stack"] = ";".join(",".join(entry.split(",")[:2]) + "," for entry in stack.split(";")[-1:])
        if "alias" in node["target"]:  # It may have been a detach().
            kept["torch_fn"] = metadata["torch_fn"]
        node["metadata"] = kept
    return program


def save(program, path, values=False):
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(path, "w") as target:
        for entry in source.infolist():
            folder, name = entry.filename.split("/", 1)
            data = source.read(entry)
            if name.startswith(("data/sample_inputs", ".data")):
                continue
            if name.startswith("data/weights/") and not name.endswith(".json"):
                config = json.loads(source.read(f"{folder}/data/weights/model_weights_config.json"))["config"]
                if not values and any(c["is_param"] and name.endswith("/" + c["path_name"]) for c in config.values()):
                    continue
            if name.startswith("models/"):
                data = json.dumps(clean(json.loads(data)), separators=(",", ":")).encode()
            info = zipfile.ZipInfo("model/" + name)
            info.compress_type = zipfile.ZIP_STORED if values else zipfile.ZIP_DEFLATED
            target.writestr(info, data)
    print(f"{path}: {os.path.getsize(path)} bytes")


def export(model, inputs, path, shapes=None, outputs=None, core=False, values=False, constants=None):
    """`outputs` names the entries of a tuple; `core` decomposes into core ATen."""
    warnings.simplefilter("ignore")
    if outputs:
        base = type(model)

        class Named(base):
            def forward(self, *args, **kwargs):
                return dict(zip(outputs, base.forward(self, *args, **kwargs)))

            forward.__signature__ = inspect.signature(base.forward)
        model.__class__ = Named
    if constants:
        shapes = shapes and {**shapes, **{name: None for name in constants}}
    program = torch.export.export(model, (), {**inputs, **(constants or {})}, dynamic_shapes=shapes)
    save(program.run_decompositions() if core else program, path, values)


def tokens():
    return dict(input_ids=models.ids(4), labels=models.ids(4))


def language(model, path, **options):
    export(model, tokens(), path, dict(input_ids=TEXT, labels=TEXT), constants=dict(use_cache=False), **options)


def perceptron(path, **options):
    inputs = dict(image=torch.zeros(16, 64), label=torch.zeros(16, dtype=torch.int64))
    export(mlp.MLP((64, 96, 96, 10)).train(), inputs, path, dict(image=BATCH, label=BATCH), ["loss", "logits"], **options)


def convolutional(path, **options):
    inputs = dict(image=torch.zeros(8, 3, 24, 24), label=torch.zeros(8, dtype=torch.int64))
    export(resnet.ResNet().train(), inputs, path, dict(image=BATCH, label=BATCH), ["loss", "logits"], **options)


def decoder(path, **options):
    export(models.Decoder().train(), tokens(), path, dict(input_ids=TEXT, labels=TEXT), ["loss", "logits"], **options)


def noted(path, **options):
    inputs = dict(cats=torch.tensor([[4, 6], [0, 2], [1, 2], [3, 0], [2, 5], [4, 1]]), label=torch.randint(6, (6,)))
    export(models.Noted().train(), inputs, path, None, ["loss", "logits"], **options)


def batch_first(path, **options):
    inputs = models.batch_first_inputs()
    export(models.BatchFirst().train(), inputs, path, dict(x=BATCH, label=BATCH, temperature=None, share=None), ["loss", "logits"], **options)


def bert(path, **options):
    plain = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    inputs = dict(input_ids=models.ids(4), attention_mask=torch.ones(4, 32, dtype=torch.int64), labels=models.ids(4))
    export(models.bert(BertForMaskedLM, **plain), inputs, path, {name: TEXT for name in inputs}, **options)


def unet(path, **options):
    inputs = dict(image=torch.zeros(2, 3, 32, 32), target=torch.zeros(2, 3, 32, 32))
    export(models.UNet().train(), inputs, path, None, ["loss", "prediction"], **options)


def biased(path, **options):
    inputs = dict(input_ids=models.ids(4), attention_mask=torch.ones(4, 32, dtype=torch.int64), labels=models.ids(4))
    export(models.Biased().train(), inputs, path, {name: BATCH for name in inputs}, ["loss", "logits"], **options)


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.vit = ViTForImageClassification(ViTConfig(
            hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8,
            num_labels=10))

    def forward(self, image, label):
        logits = self.vit(pixel_values=image).logits
        return F.cross_entropy(logits, label), logits


def vit(path, **options):
    inputs = dict(image=torch.zeros(4, 3, 32, 32), label=torch.zeros(4, dtype=torch.int64))
    export(Vit().train(), inputs, path, dict(image=BATCH, label=BATCH), ["loss", "logits"], **options)


class Views(nn.Module):
    """Parameters of one storage, by strides and offsets, and one that isn't trained; 16-bit elements."""

    def __init__(self):
        super().__init__()
        storage = torch.arange(24, dtype=torch.float32) / 8
        self.tall = nn.Parameter(storage.as_strided((4, 3), (3, 1), 0))
        self.turned = nn.Parameter(storage.as_strided((3, 4), (1, 3), 12))
        self.fixed = nn.Parameter(torch.tensor([0.5, 0.25, 2.0]), requires_grad=False)
        self.single = nn.Parameter(torch.tensor([1.5, -2.0, 0.125], dtype=torch.float16))
        self.brain = nn.Parameter(torch.tensor([1.5, -2.0, 0.125], dtype=torch.bfloat16))

    def forward(self, x):
        y = (x @ self.tall) @ self.turned
        z = x @ self.tall * self.fixed + self.single.float() * self.brain.float()
        return dict(loss=y.square().mean() + z.square().mean())


def views(path, **options):
    export(Views(), dict(x=torch.ones(2, 4)), path, values=True)


class Two(nn.Module):
    """Two inputs that nothing relates: the exporter makes two symbols of their one dimension."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 4), nn.Linear(3, 2)

    def forward(self, a, b):
        return dict(loss=self.first(a).square().mean() + self.second(b).square().mean())


def two(path):
    rows = {0: torch.export.Dim.AUTO}
    export(Two(), dict(a=torch.ones(6, 3), b=torch.ones(6, 3)), path, dict(a=rows, b=rows))


MODELS = {
    "mlp-small": lambda p: perceptron(p, values=True),
    "mlp-small-core": lambda p: perceptron(p, core=True),
    "gpt2-tiny": lambda p: language(models.gpt2(0.0, "sdpa"), p),
    "gpt2-tiny-eager": lambda p: language(models.gpt2(), p),
    "gpt2-tiny-core": lambda p: language(models.gpt2(), p, core=True),
    "gpt2-tiny-dropout": lambda p: language(models.gpt2(0.1, "sdpa"), p),
    "llama-tiny": lambda p: language(models.llama(attention="sdpa"), p),
    "llama-tiny-core": lambda p: language(models.llama(attention="sdpa"), p, core=True),
    "decoder": decoder,
    "decoder-core": lambda p: decoder(p, core=True),
    "bert-tiny-mlm-nodropout": bert,
    "biased-tiny": biased,
    "biased-tiny-core": lambda p: biased(p, core=True),
    "resnet-tiny": convolutional,
    "resnet-tiny-core": lambda p: convolutional(p, core=True),
    "unet-tiny": unet,
    "unet-tiny-core": lambda p: unet(p, core=True),
    "noted-tiny": noted,
    "noted-tiny-core": lambda p: noted(p, core=True),
    "batch-first": batch_first,
    "batch-first-core": lambda p: batch_first(p, core=True),
    "vit-tiny": vit,
    "vit-tiny-core": lambda p: vit(p, core=True),
    "views": views,
    "two-batches": two,
}

if __name__ == "__main__":
    torch.manual_seed(0)
    for name in sys.argv[1:] or MODELS:
        try:
            MODELS[name](f"test/models/{name}.pt2")
        except Exception as error:  # One model's failure shouldn't hide the others.
            print(f"{name}: FAILED: {type(error).__name__}: {str(error)[:600]}")
