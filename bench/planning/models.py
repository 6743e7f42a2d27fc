"""Exports the models of offload.py's table that examples/ doesn't hold, with PyTorch, torchvision
and transformers installed.

    python bench/planning/models.py FOLDER

ResNet-50 is torchvision's. The model with experts is Llama's decoder, in which eight
experts stand for each feed-forward part, one of which is chosen for each token: it is
sent to a place of its expert, of which there are a quarter more than tokens would need
if they were spread evenly, and dropped where none is left. Writes graphs without
parameters and steps.json, which `offload.py --steps` reads.

Source of the routing: Fedus, Zoph, Shazeer, "Switch Transformers" (2021).
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    folder = os.path.abspath(parser.parse_args().folder)
    os.makedirs(folder, exist_ok=True)
    steps = {}
    for batch in (32, 128):
        path = os.path.join(folder, f"resnet50-{batch}.onnx")
        inputs = dict(image=torch.zeros(batch, 3, 224, 224), label=torch.zeros(batch, dtype=torch.int64))
        export(ResNet().train(), inputs, path, outputs=["loss", "logits"])
        steps[f"ResNet-50, {batch} x 224"] = [path]
    path = os.path.join(folder, "experts.onnx")
    model, inputs, rotary = experts(1, 2048)
    export(model, inputs, path, outputs=["loss", "logits"], buffers=rotary)
    steps["Llama with 8 experts, 1 x 2048"] = [path]
    with open(os.path.join(folder, "steps.json"), "w") as file:
        json.dump(steps, file, indent=1)


if __name__ == "__main__":
    main()
