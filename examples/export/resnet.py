"""A small ResNet of bottleneck blocks, in training mode, with its loss.

Its batch normalizations use the statistics of the batch (training_mode=1); their
second and third results are the new values of the buffers that went in.
"""

import torch
from torch import nn
from torch.nn import functional as F

from common import export


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        out = 4 * width
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """Stem, three stages of (1, 2, 1) blocks, average pool, classifier: 24x24 images."""

    def __init__(self, classes=8, width=16):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = nn.Sequential(Bottleneck(width, width // 2, 1))
        self.layer2 = nn.Sequential(Bottleneck(2 * width, width, 2), Bottleneck(4 * width, width, 1))
        self.layer3 = nn.Sequential(Bottleneck(4 * width, 2 * width, 2))
        self.fc = nn.Linear(8 * width, classes)

    def forward(self, image, label):
        x = self.maxpool(F.relu(self.bn1(self.conv1(image))))
        x = self.layer3(self.layer2(self.layer1(x)))
        logits = self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))
        return F.cross_entropy(logits, label), logits


def run(path, how=export, **options):
    inputs = dict(image=torch.zeros(16, 3, 24, 24), label=torch.zeros(16, dtype=torch.int64))
    how(ResNet().train(), inputs, path, outputs=["loss", "logits"],
        dims=dict(image={0: "batch"}, label={0: "batch"}), **options)


if __name__ == "__main__":
    run("examples/resnet-tiny.onnx", defaults=dict(batch=16))
