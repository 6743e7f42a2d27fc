#!/usr/bin/env python3
"""Times PyTorch's step of a case beside tmc's, on the GPU, as JSON lines like a trainer's log.

    peer.py CASE --batch=N [--dim=sequence=N] [--precision=f32|tf32|bf16] [--compile] [--vocabulary N] --steps N

The same shapes and precision (bf16: autocast), a fused optimizer; random data. --compile has the step
compiled by torch.compile; --vocabulary pads the table's rows, as people do by hand for aligned products.
GPT-2, Llama and BERT are written out and have PyTorch's own attention, so they need torch alone; ResNet-50
is torchvision's.
"""

import argparse
import json
import time

import torch
from torch import nn
from torch.nn import functional as F


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))

    def forward(self, image, label):
        return F.cross_entropy(self.layers(image), label)


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, time_, width = x.shape
        q, k, v = (part.view(batch, time_, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norms[0](x)).split(width, 2))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout)
        attended = self.out(attended.transpose(1, 2).reshape(batch, time_, width))
        x = x + F.dropout(attended, self.dropout)
        return x + F.dropout(self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh")), self.dropout)


class Encoder(nn.Module):
    """BERT's base model with the masked tokens' loss of every token, as transformers has it."""

    def __init__(self, dropout=0.1, vocabulary=30522, width=768, layers=12, heads=12, positions=512):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.types, self.norm, self.dropout = nn.Embedding(2, width), nn.LayerNorm(width), nn.Dropout(dropout)
        self.blocks = nn.ModuleList(EncoderBlock(width, heads, dropout) for _ in range(layers))
        self.head, self.head_norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, ids, labels):
        x = self.tokens(ids) + self.positions.weight[:ids.shape[1]] + self.types.weight[0]
        x = self.dropout(self.norm(x))
        for block in self.blocks:
            x = block(x)
        x = self.head_norm(F.gelu(self.head(x)))
        logits = F.linear(x, self.tokens.weight, self.bias)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


class EncoderBlock(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, time_, width = x.shape
        q, k, v = (layer(x).view(batch, time_, self.heads, -1).transpose(1, 2)
                   for layer in (self.query, self.key, self.value))
        attended = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)
        attended = self.out(attended.transpose(1, 2).reshape(batch, time_, width))
        x = self.norms[0](x + F.dropout(attended, self.dropout))
        return self.norms[1](x + F.dropout(self.down(F.gelu(self.up(x))), self.dropout))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.RMSNorm(width, 1e-6) for _ in range(2))
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, cos, sin):
        batch, time_, width = x.shape
        y = self.norms[0](x)
        q, k, v = (layer(y).view(batch, time_, self.heads, -1).transpose(1, 2)
                   for layer in (self.query, self.key, self.value))
        attended = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, time_, width))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def rotate(x, cos, sin):
    left, right = x.chunk(2, -1)
    return (x * cos + torch.cat((-right, left), -1) * sin).to(x.dtype)


class Llama(nn.Module):
    """1.3 billion parameters: 24 layers of 2,048, heads of 128, SwiGLU of 5,504, a head of its own."""

    def __init__(self, vocabulary=32000, width=2048, layers=24, heads=16, hidden=5504):
        super().__init__()
        self.tokens, self.norm = nn.Embedding(vocabulary, width), nn.RMSNorm(width, 1e-6)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, hidden) for _ in range(layers))
        self.head, self.size = nn.Linear(width, vocabulary, bias=False), width // heads

    def forward(self, ids):
        powers = torch.arange(0, self.size, 2, device=ids.device) / self.size
        angles = torch.arange(ids.shape[1], device=ids.device)[:, None] * (10000.0 ** -powers)[None]
        angles = torch.cat((angles, angles), -1)
        cos, sin = angles.cos(), angles.sin()
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, cos, sin)
        logits = self.head(self.norm(x))[:, :-1]
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        import torchvision
        self.model = torchvision.models.resnet50()

    def forward(self, image, label):
        return F.cross_entropy(self.model(image), label)


class Gpt2(nn.Module):
    def __init__(self, dropout, vocabulary=50257, width=768, layers=12, heads=12, positions=1024):
        super().__init__()
        self.dropout = dropout
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.blocks = nn.Sequential(*(Block(width, heads, dropout) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        x = self.norm(self.blocks(F.dropout(x, self.dropout)))
        logits = F.linear(x[:, :-1], self.tokens.weight)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1))


def make(options):
    """The case's model, its inputs and the number of its tokens (0: it has none)."""
    if options.case == "mlp":
        return Mlp(), (torch.randn(options.batch, 784), torch.randint(10, (options.batch,))), 0
    if options.case.startswith("resnet50"):
        image = torch.randn(options.batch, 3, 224, 224).to(memory_format=torch.channels_last)
        return Pictures().to(memory_format=torch.channels_last), (image, torch.randint(1000, (options.batch,))), 0
    shape = (options.batch, int(options.dim.partition("=")[2]))
    kind, words = next((kind, words) for prefix, kind, words in (
        ("bert", Encoder, 30522), ("llama", Llama, 32000), ("gpt2", Gpt2, 50257)) if options.case.startswith(prefix))
    inputs = [torch.randint(words, shape) for _ in range(2 if kind is Encoder else 1)]
    sizes = dict(vocabulary=options.vocabulary or words)
    if kind is Gpt2:
        sizes.update(dropout=0.1 if "b2t512" in options.case else 0.0)
    with torch.device("cuda"):
        return kind(**sizes), inputs, options.batch * shape[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--dim", default="sequence=64")
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="f32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--vocabulary", type=int)
    parser.add_argument("--steps", type=int, default=30)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
    model, inputs, tokens = make(options)
    model = model.cuda().train()
    inputs = [value.cuda() for value in inputs]
    if options.case.startswith("resnet50"):
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    forward = torch.compile(model) if options.compile else model
    for step in range(1, options.steps + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=options.precision == "bf16"):
            loss = forward(*inputs)
        loss.backward()
        if "b2t512" in options.case:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        value = loss.item()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        rate = {"tokens_per_second": tokens / seconds} if tokens else {"samples_per_second": options.batch / seconds}
        print(json.dumps(dict(step=step, loss=value, seconds=seconds,
                              arena_bytes=torch.cuda.max_memory_reserved(), **rate)), flush=True)


if __name__ == "__main__":
    main()
