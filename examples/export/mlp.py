"""A multilayer perceptron for 28x28 images, with its loss."""

import torch
from torch import nn
from torch.nn import functional as F

from common import export


class MLP(nn.Module):
    def __init__(self, sizes=(784, 256, 256, 10)):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(m, n) for m, n in zip(sizes, sizes[1:]))

    def forward(self, image, label):
        x = image
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        logits = self.layers[-1](x)
        return F.cross_entropy(logits, label), logits


def run(path, sizes=(784, 256, 256, 10), how=export, **options):
    inputs = dict(image=torch.zeros(32, sizes[0]), label=torch.zeros(32, dtype=torch.int64))
    how(MLP(sizes).train(), inputs, path, outputs=["loss", "logits"],
        dims=dict(image={0: "batch"}, label={0: "batch"}), **options)


if __name__ == "__main__":
    run("examples/mlp.onnx", defaults=dict(batch=32))
