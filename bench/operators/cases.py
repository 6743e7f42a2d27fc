"""The calls of ATen's operators that run.py compares: those of PyTorch's own test database, drawn at the edges
as well, and those of extra.py.

A case is a function of tensors: some are parameters, which get a gradient, the others are buffers.
"""

import dataclasses
import math
import typing
import warnings

import torch
from torch.utils import _pytree as pytree

# Values where formulas change: what overflows, what rounds to nothing, what is equal, what lies between.
EDGES = {
    "zeros": lambda t: torch.zeros_like(t),
    "equal": lambda t: torch.full_like(t, 0.5),
    "large": lambda t: cycled(t, (100.0, -100.0, 1e4, -1e4, 88.5, -89.0, 0.0, 30.0)),
    "whole": lambda t: cycled(t, (0.0, 1.0, -1.0, 2.0, 1.0, -2.0, 3.0, 0.0, -3.0)),
    "fractions": lambda t: cycled(t, (0.25, 0.75, 0.1, 0.9, 1e-3, 0.5, 1 - 2**-12, 2**-20)),
}


def cycled(t, values):
    """`values` one after the other, in the shape of `t`."""
    count = max(t.numel(), 1)
    return torch.tensor((values * math.ceil(count / len(values)))[:t.numel()], dtype=t.dtype).reshape(t.shape)


@dataclasses.dataclass
class Case:
    name: str
    function: typing.Callable  # Of the tensors.
    tensors: list
    trained: list  # Which of them get a gradient.
    operator: str  # Whose case it is.


class Program(torch.nn.Module):
    """The case as a model without inputs: outputs y0, y1, ..., and a loss that weighs each element by its own."""

    def __init__(self, case, weights):
        super().__init__()
        self.case = case
        for i, (tensor, trained) in enumerate(zip(case.tensors, case.trained)):
            value = tensor.detach().clone()
            if trained:
                self.register_parameter(f"p{i}", torch.nn.Parameter(value))
            else:
                self.register_buffer(f"p{i}", value)
        for i, weight in enumerate(weights or ()):
            self.register_buffer(f"w{i}", weight)
        self.weighs = weights is not None

    def outputs(self):
        given = [getattr(self, f"p{i}") for i in range(len(self.case.tensors))]
        # An alias of a parameter is none: what is written in place must not be the parameter.
        result = self.case.function(given)
        flat = [y for y in pytree.tree_leaves(result) if isinstance(y, torch.Tensor) and not y.is_complex()]
        return {f"y{i}": y for i, y in enumerate(flat)}

    def forward(self):
        given = self.outputs()
        if not self.weighs:
            return given
        floats = [y for y in given.values() if y.is_floating_point()]
        loss = sum((y * getattr(self, f"w{i}")).sum() for i, y in enumerate(floats))
        return {**given, "loss": loss}


def weights_of(outputs):
    """A weight for every element of the outputs of floats: their signs differ, and none is 0."""
    torch.manual_seed(5)
    return [torch.randn(y.shape) + 0.1 for y in outputs.values() if y.is_floating_point()]


def of_sample(name, operator, op, sample):
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    if any(leaves[i].is_complex() or leaves[i].dtype == torch.float64 for i in places):
        return None

    def function(tensors):
        filled = list(leaves)
        for place, tensor in zip(places, tensors):
            filled[place] = tensor
        first, args, kwargs = pytree.tree_unflatten(filled, spec)
        return op(first, *args, **kwargs)
    tensors = [leaves[i].detach() for i in places]
    # Of a frozen tensor of floats the samples want no gradient (targets, running statistics).
    return Case(name, function, tensors, [bool(leaves[i].requires_grad) for i in places], operator)


def spread(samples, count):
    """`count` of them: the first ones, and others from all over the list."""
    if len(samples) <= count:
        return samples
    first = count // 2
    step = (len(samples) - first) / (count - first)
    return samples[:first] + [samples[first + int(i * step)] for i in range(count - first)]


def of_database(only, count, edges):
    """Cases of the operators whose name holds one of `only`; `count` of each, and `edges` of those drawn again."""
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db
    for info in op_db:
        name = info.name + ("." + info.variant_test_name if info.variant_test_name else "")
        if only and not any(part in name for part in only):
            continue
        # Not of numbers, or drawn.
        if name.startswith(("jiterator", "empty", "to_sparse", "sparse")) or torch.float32 not in info.dtypes:
            continue
        torch.manual_seed(1)
        try:
            samples = spread(list(info.sample_inputs("cpu", torch.float32, requires_grad=info.supports_autograd)), count)
        except Exception as error:  # A sample may need what this PyTorch was built without.
            yield name, error
            continue
        for i, sample in enumerate(samples):
            case = of_sample(f"{name}-{i}", name, info.op, sample)
            if case is None:
                continue
            yield name, case
            if i >= edges:
                continue
            for kind, draw in EDGES.items():
                drawn = [draw(t) if trained else t for t, trained in zip(case.tensors, case.trained)]
                yield name, dataclasses.replace(case, name=f"{case.name}-{kind}", tensors=drawn)
