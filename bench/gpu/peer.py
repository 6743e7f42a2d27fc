#!/usr/bin/env python3
"""Times a PyTorch eager step of a case beside tmc's, on the GPU, as JSON lines like a trainer's log.

    peer.py CASE --batch=N [--dim=sequence=N] [--precision=f32|tf32|bf16] --steps N

The same shapes and precision (bf16: autocast), fused AdamW; random data. Only torch is needed: the
GPT-2 here is written out and has PyTorch's own attention.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--dim", default="sequence=64")
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="f32")
    parser.add_argument("--steps", type=int, default=30)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
    if options.case == "mlp":
        model, tokens = Mlp(), 0
        inputs = (torch.randn(options.batch, 784), torch.randint(10, (options.batch,)))
    else:
        sequence = int(options.dim.partition("=")[2])
        model, tokens = Gpt2(0.1 if "b2t512" in options.case else 0.0), options.batch * sequence
        inputs = (torch.randint(50257, (options.batch, sequence)),)
    model = model.cuda().train()
    inputs = [value.cuda() for value in inputs]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for step in range(1, options.steps + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=options.precision == "bf16"):
            loss = model(*inputs)
        loss.backward()
        if "b2t512" in options.case:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        value = loss.item()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        rate = {"tokens_per_second": tokens / seconds} if tokens else {"samples_per_second": options.batch / seconds}
        print(json.dumps(dict(step=step, loss=value, seconds=seconds,
                              arena_bytes=torch.cuda.max_memory_reserved(), **rate)))


if __name__ == "__main__":
    main()
