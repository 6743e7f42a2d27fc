"""Make the cases of this folder with PyTorch: `make.py [case ...]`, all without arguments; needs torch 2.9 or later.

A case is a model whose forward writes what the next step reads. NAME.pt2 is its training export, NAME-core.pt2 the
same decomposed. NAME.json has a batch for each step, the losses of as many steps of SGD in double, and all tensors of
the model after the last one.
"""

import json
import os
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "models"))

import torch
from torch import nn
from torch.nn import functional as F

import make_pt2

STEPS, RATE = 5, 0.1
CASES = {}
clean = make_pt2.clean


def with_origins(program):
    """make_pt2.clean, less that it forgets what ran without gradients."""
    nodes = program["graph_module"]["graph"]["nodes"]
    origins = [node["metadata"].get("torch_fn") for node in nodes]
    program = clean(program)
    for node, origin in zip(nodes, origins):
        if origin:
            node["metadata"]["torch_fn"] = origin
    return program


make_pt2.clean = with_origins


def case(batch, core=True):
    def take(kind):
        CASES[kind.__name__.lower()] = (kind, batch, core)
        return kind
    return take


def normal(*shape):
    return lambda: torch.randn(*shape)


@case(normal(4, 2))
class Teacher(nn.Module):
    """A parameter that follows another by momentum, and is read afterwards."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.tensor([1.0, 2.0]))
        self.t = nn.Parameter(torch.tensor([3.0, 4.0]), requires_grad=False)

    def forward(self, x):
        with torch.no_grad():
            self.t.mul_(0.5).add_(self.a, alpha=0.5)
        return (((self.a - self.t) * x) ** 2).mean()


@case(normal(4, 3))
class Student(nn.Module):
    """A teacher that is read first, and moved by a detached view at the end."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.student, self.teacher = nn.Linear(3, 3), nn.Linear(3, 3)
        self.teacher.requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            wanted = self.teacher(x)
        loss = F.mse_loss(self.student(x), wanted)
        for s, t in zip(self.student.parameters(), self.teacher.parameters()):
            t.detach().mul_(0.75).add_(s.detach(), alpha=0.25)
        return loss


@case(normal(4, 3))
class Warmup(nn.Module):
    """A count of whole numbers, and one of floats that the backward pass reads."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
        self.register_buffer("n", torch.tensor(0))
        self.register_buffer("f", torch.tensor(1.0))

    def forward(self, x):
        self.n += 1
        self.f += 1
        return (self.w * x).pow(2).mean() * torch.clamp(self.n / 4, max=1.0) * self.f


@case(normal(2, 3))
class Queue(nn.Module):
    """Keys of the steps before: the old queue is read by the backward pass."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.f = nn.Linear(3, 4)
        self.register_buffer("queue", torch.randn(6, 4))

    def forward(self, x):
        key = self.f(x)
        scores = torch.cat([(key * key.detach()).sum(1, keepdim=True), key @ self.queue.clone().t()], 1)
        loss = F.cross_entropy(scores, torch.zeros(2, dtype=torch.long))
        self.queue.copy_(torch.cat([key.detach(), self.queue[:-2]]))
        return loss


@case(normal(2, 3))
class Pointer(nn.Module):
    """A queue that is written where a pointer of whole numbers says."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.f = nn.Linear(3, 4)
        self.register_buffer("queue", torch.randn(6, 4))
        self.register_buffer("at", torch.tensor([4]))

    def forward(self, x):
        key = self.f(x)
        loss = (key @ self.queue.clone().t()).tanh().pow(2).mean() + key.pow(2).mean()
        places = (self.at + torch.arange(2)) % 6
        self.queue.index_copy_(0, places, key.detach())
        self.at.add_(2).remainder_(6)
        return loss


@case(normal(4, 3))
class Spectral(nn.Module):
    """A norm whose vectors are written by `out=`."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.w = nn.Parameter(torch.randn(4, 3))
        self.register_buffer("u", F.normalize(torch.randn(4), dim=0))
        self.register_buffer("v", F.normalize(torch.randn(3), dim=0))
        self.register_buffer("most", torch.zeros(3))
        self.register_buffer("where", torch.zeros(3, dtype=torch.long))

    def forward(self, x):
        with torch.no_grad():
            torch.mv(self.w.t(), self.u, out=self.v)
            torch.div(self.v, self.v.norm(), out=self.v)
            torch.mv(self.w, self.v, out=self.u)
            self.u.div_(self.u.norm())
            torch.max(x, 0, out=(self.most, self.where))
        sigma = torch.dot(self.u.clone(), self.w @ self.v.clone())
        return (x @ (self.w / sigma).t()).pow(2).mean() + (self.most * self.w[0]).sum() + (self.where * self.w[1]).sum()


@case(normal(4, 3))
class Twice(nn.Module):
    """A normalization that is called twice: its statistics move twice, and are read afterwards."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.norm, self.f = nn.BatchNorm1d(3), nn.Linear(3, 3)

    def forward(self, x):
        y = self.norm(self.f(self.norm(x)))
        return (y * self.norm.running_mean).sin().mean() + (y * self.norm.running_var).pow(2).mean()


@case(normal(4, 3))
class Chain(nn.Module):
    """Buffers that read each other's new values, that take each other's old ones, and what nothing reads."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
        for i, name in enumerate("abcdepq"):
            self.register_buffer(name, torch.tensor([1.0, 2.0, 3.0]) * (i + 1) / 4)

    def forward(self, x):
        first = (self.w * self.a.clone() * x).pow(2).mean()  # Reads the old a, in the backward pass, too.
        self.a.mul_(0.5).add_(x[0])
        self.b.mul_(self.a).add_(0.25)
        second = (self.w * self.b + self.w * self.a).sin().mean()
        self.c[:2].copy_(self.b[1:])  # A part.
        self.d.copy_(self.w.detach())
        self.e.zero_()
        with torch.no_grad():
            old = self.p.clone()
            self.p.copy_(self.q)
            self.q.copy_(old)
        return first + second + (self.w * self.p * self.c).sum() + (self.w * self.q).cos().sum() + (self.w * self.e).sum()


def digits(tensor):
    return [float(f"{v:.12g}") for v in tensor.detach().double().reshape(-1).tolist()]


def make(name):
    kind, draw, core = CASES[name]
    torch.manual_seed(3)
    batches = [draw() for _ in range(STEPS)]
    model = kind().train()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    for decomposed in (False, True) if core else (False,):
        program = torch.export.export(model, (batches[0],))
        if decomposed:
            program = program.run_decompositions()
        make_pt2.save(program, os.path.join(HERE, name + ("-core" if decomposed else "") + ".pt2"), values=True)
    model.load_state_dict(state)
    model.double()
    trained = [p for p in model.parameters() if p.requires_grad]
    losses = []
    for batch in batches:
        loss = model(batch.double())
        gradients = torch.autograd.grad(loss, trained)
        with torch.no_grad():
            for p, g in zip(trained, gradients):
                p -= RATE * g
        losses.append(loss.item())
    wanted = dict(batches=[digits(b) for b in batches], losses=losses, state={key: digits(v) for key, v in model.state_dict().items()})
    with open(os.path.join(HERE, f"{name}.json"), "w") as file:
        json.dump(wanted, file, separators=(",", ":"))
        file.write("\n")


warnings.simplefilter("ignore")
for each in sys.argv[1:] or CASES:
    make(each)
