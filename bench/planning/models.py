"""Exports the models of offload.py's and scale.py's tables that examples/ doesn't hold, with PyTorch,
torchvision and transformers installed.

    python bench/planning/models.py FOLDER [--only NAME ...]

ResNet-50 is torchvision's. The model with experts is Llama's decoder, in which eight
experts stand for each feed-forward part, one of which is chosen for each token: it is
sent to a place of its expert, of which there are a quarter more than tokens would need
if they were spread evenly, and dropped where none is left. The state-space model has four
layers, and in each a loop over 100 steps that the exporter unrolls. The largest is
Llama 3.1 405B. Writes graphs without parameters and steps.json, which `offload.py
--steps` reads.

Sources: of the routing Fedus, Zoph, Shazeer, "Switch Transformers" (2021); of the selective
states Gu, Dao, "Mamba" (2023); of 405B's shape "The Llama 3 Herd of Models" (2024), table 3.
"""

import argparse
import json
import os
import sys

import torch
import torchvision
from torch import nn
from torch.nn import functional as F
from transformers import MistralForCausalLM
from transformers.models.mistral.modeling_mistral import MistralRotaryEmbedding

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "export"))
from common import export  # noqa: E402
from mistral import configure  # noqa: E402

CAPACITY = 1.25  # Places of all experts, of tokens.


class ResNet(torchvision.models.ResNet):
    def __init__(self):
        super().__init__(torchvision.models.resnet.Bottleneck, [3, 4, 6, 3])

    def forward(self, image, label):
        logits = super().forward(image)
        return F.cross_entropy(logits, label), logits


class Experts(nn.Module):
    """One of `count` SwiGLU parts for each token, all of them as batched products."""

    def __init__(self, width, inner, count):
        super().__init__()
        self.router = nn.Linear(width, count, bias=False)
        self.gate = nn.Parameter(torch.empty(count, width, inner))
        self.up = nn.Parameter(torch.empty(count, width, inner))
        self.down = nn.Parameter(torch.empty(count, inner, width))

    def forward(self, x):
        batch, tokens, width = x.shape
        count = self.gate.shape[0]
        places = int(CAPACITY * tokens / count)
        share = torch.softmax(self.router(x), -1)
        chosen = (share == share.amax(-1, keepdim=True)).to(x.dtype)  # [batch, tokens, count]
        place = (torch.cumsum(chosen, 1) - 1) * chosen
        sent = (place.unsqueeze(-1) == torch.arange(places, device=x.device).to(x.dtype)).to(x.dtype) * chosen.unsqueeze(-1)
        flat = sent.reshape(batch, tokens, count * places)
        inside = torch.matmul(flat.transpose(1, 2), x).reshape(batch, count, places, width)
        made = torch.matmul(F.silu(torch.matmul(inside, self.gate)) * torch.matmul(inside, self.up), self.down)
        back = torch.matmul(flat, made.reshape(batch, count * places, width))
        return back * (share * chosen).sum(-1, keepdim=True)


def experts(batch, tokens):
    config = configure(hidden_size=2048, intermediate_size=5632, num_hidden_layers=16, num_attention_heads=16,
                       num_key_value_heads=16, head_dim=128, vocab_size=32000)
    with torch.device("meta"):
        model = MistralForCausalLM(config).train()
        for layer in model.model.layers:
            layer.mlp = Experts(config.hidden_size, config.intermediate_size // 2, 8)
    rotary = {f"model.rotary_emb.{name}": value for name, value in MistralRotaryEmbedding(config).named_buffers()}
    ids = torch.zeros(batch, tokens, dtype=torch.int64, device="meta")
    return model, dict(input_ids=ids, labels=ids.clone(), use_cache=False), rotary


class StateSpace(nn.Module):
    """A selective state of `states` numbers a channel, one step after the other."""

    def __init__(self, width, states):
        super().__init__()
        self.decay = nn.Parameter(torch.empty(width, states))
        self.project = nn.Linear(width, width + 2 * states)
        self.out = nn.Linear(width, width, bias=False)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        batch, tokens, width = x.shape
        states = self.decay.shape[1]
        inside = self.norm(x)
        delta, into, back = self.project(inside).split([width, states, states], -1)
        delta = F.softplus(delta)
        h = torch.zeros(batch, width, states, dtype=x.dtype, device=x.device)
        made = []
        for t in range(tokens):
            h = torch.exp(delta[:, t, :, None] * self.decay) * h + (delta[:, t] * inside[:, t])[..., None] * into[:, t, None]
            made.append((h * back[:, t, None]).sum(-1))
        return x + self.out(torch.stack(made, 1))


class StateSpaceModel(nn.Module):
    def __init__(self, layers=4, width=768, states=16, words=32000):
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.layers = nn.ModuleList([StateSpace(width, states) for _ in range(layers)])
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, input_ids, labels):
        x = self.table(input_ids)
        for layer in self.layers:
            x = layer(x)
        logits = self.head(x)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits


def save_resnet(path, batch):
    inputs = dict(image=torch.zeros(batch, 3, 224, 224), label=torch.zeros(batch, dtype=torch.int64))
    export(ResNet().train(), inputs, path, outputs=["loss", "logits"])


def save_experts(path):
    model, inputs, rotary = experts(1, 2048)
    export(model, inputs, path, outputs=["loss", "logits"], buffers=rotary)


def save_states(path):
    with torch.device("meta"):
        model = StateSpaceModel().train()
    ids = torch.zeros(8, 100, dtype=torch.int64, device="meta")
    export(model, dict(input_ids=ids, labels=ids.clone()), path, outputs=["loss", "logits"])


def save_405b(path):
    config = configure(hidden_size=16384, intermediate_size=53248, num_hidden_layers=126, num_attention_heads=128,
                       num_key_value_heads=8, head_dim=128, vocab_size=128256)
    with torch.device("meta"):
        model = MistralForCausalLM(config).train()
    rotary = {f"model.rotary_emb.{name}": value for name, value in MistralRotaryEmbedding(config).named_buffers()}
    ids = torch.zeros(2, 8192, dtype=torch.int64, device="meta")
    axes = {0: "batch"}
    export(model, dict(input_ids=ids, labels=ids.clone(), use_cache=False), path, outputs=["loss", "logits"],
           dims=dict(input_ids=axes, labels=axes), defaults=dict(batch=16), buffers=rotary)


# File, name in offload.py's table (none: in scale.py's alone), how it is made.
MODELS = [("resnet50-32", "ResNet-50, 32 x 224", lambda path: save_resnet(path, 32)),
          ("resnet50-128", "ResNet-50, 128 x 224", lambda path: save_resnet(path, 128)),
          ("experts", "Llama with 8 experts, 1 x 2048", save_experts), ("states", None, save_states),
          ("llama-405b", None, save_405b)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--only", action="append", choices=[file for file, _, _ in MODELS])
    options = parser.parse_args()
    folder = os.path.abspath(options.folder)
    os.makedirs(folder, exist_ok=True)
    path = lambda file: os.path.join(folder, f"{file}.onnx")
    for file, _, make in MODELS:
        if not options.only or file in options.only:
            make(path(file))
    with open(os.path.join(folder, "steps.json"), "w") as file:
        json.dump({name: [path(stem)] for stem, name, _ in MODELS if name}, file, indent=1)


if __name__ == "__main__":
    main()
