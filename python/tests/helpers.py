"""Shared by the tests: the compiler to test, a small model, its mathematics in double."""

from __future__ import annotations

import importlib.util
import os
import sys
import unittest
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("TMC_BIN", str(ROOT / "build" / "bin" / "tmc"))

import numpy as np  # noqa: E402

import tmc  # noqa: E402

MLP = ROOT / "examples" / "mlp.onnx"
BATCH = 32
# The instruction set that every machine with these tests has; its bits are those of the others.
TARGET = "cpu:v3"


def has(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


def needs(*modules: str) -> Callable[[Any], Any]:
    """Skips what needs a module that isn't installed, and names it."""
    lacking = [module for module in modules if not has(module)]
    return unittest.skipIf(bool(lacking), "no " + ", ".join(lacking))


def digits(count: int = BATCH) -> dict[str, np.ndarray]:
    """A batch of pictures and labels."""
    data = ROOT / "examples" / "data"
    return {
        "image": np.load(data / "digits-image.npy")[:count].reshape(count, -1).astype(np.float32),
        "label": np.load(data / "digits-label.npy")[:count].astype(np.int64),
    }


def compile_mlp(**more: Any) -> tmc.Step:
    arguments: dict[str, Any] = dict(batch=BATCH, target=TARGET, optimizer="adamw(weight_decay=0.1,clip=1.0)")
    return tmc.compile(MLP, **dict(arguments, threads=1, **more))


class DoubleMlp:
    """Three linear layers with ReLU, cross entropy and AdamW in double.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, in PyTorch's order.
    """

    def __init__(self, values: dict[str, np.ndarray], rate: float, decay: float, clip: float) -> None:
        self.values = {name: value.astype(np.float64) for name, value in values.items()}
        self.first = {name: np.zeros_like(value) for name, value in self.values.items()}
        self.second = {name: np.zeros_like(value) for name, value in self.values.items()}
        self.rate, self.decay, self.clip, self.steps = rate, decay, clip, 0

    def step(self, image: np.ndarray, label: np.ndarray) -> float:
        w = [self.values[f"layers.{i}.weight"] for i in range(3)]
        b = [self.values[f"layers.{i}.bias"] for i in range(3)]
        inputs, x = [], image.astype(np.float64)
        for i in range(3):
            inputs.append(x)
            x = x @ w[i].T + b[i]
            x = np.maximum(x, 0) if i < 2 else x
        shifted = x - x.max(1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        rows = np.arange(len(label))
        loss = -logs[rows, label].mean()
        grad = np.exp(logs)
        grad[rows, label] -= 1
        grad /= len(label)
        grads: dict[str, np.ndarray] = {}
        for i in reversed(range(3)):
            grads[f"layers.{i}.weight"] = grad.T @ inputs[i]
            grads[f"layers.{i}.bias"] = grad.sum(0)
            grad = (grad @ w[i]) * (inputs[i] > 0)
        self._update(grads)
        return float(loss)

    def _update(self, grads: dict[str, np.ndarray]) -> None:
        self.steps += 1
        norm = np.sqrt(sum((g**2).sum() for g in grads.values()))
        for name, grad in grads.items():
            grad = grad * min(1.0, self.clip / (norm + 1e-6))
            self.first[name] = 0.9 * self.first[name] + 0.1 * grad
            self.second[name] = 0.999 * self.second[name] + 0.001 * grad**2
            m = self.first[name] / (1 - 0.9**self.steps)
            v = self.second[name] / (1 - 0.999**self.steps)
            value = self.values[name] * (1 - self.rate * self.decay)
            self.values[name] = value - self.rate * m / (np.sqrt(v) + 1e-8)
