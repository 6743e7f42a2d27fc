"""Cases that PyTorch's own database lacks: arguments that it doesn't give, and every way to resize."""

import itertools

import torch
import torch.nn.functional as F

from cases import Case


RANDOM = torch.Generator()  # Of its own: who uses the cases draws, too.


def drawn(*shape):
    return torch.randn(*shape, generator=RANDOM)


def of(name, function, *tensors, operator=None, kept=()):
    """A case whose tensors of floats are trained, but for those in `kept`."""
    trained = [t.is_floating_point() and not any(t is k for k in kept) for t in tensors]
    return Case(name, function, list(tensors), trained, operator or name.split("-")[0])


def resizing():
    """Modes, corners, factors that are whole and that aren't, sizes, and both ways to give them."""
    factors = (2, 3, 1.7, 0.6, 0.5, 1.25, 2.5, 0.34, 1.0, 1.1)
    for mode, rank, sizes in (("nearest", 1, (5,)), ("nearest-exact", 1, (5,)), ("linear", 1, (5,)), ("nearest", 2, (4, 7)), ("nearest-exact", 2, (4, 7)),
                              ("bilinear", 2, (5, 6)), ("bicubic", 2, (5, 6)), ("trilinear", 3, (3, 4, 2)), ("nearest", 3, (3, 4, 2)), ("bilinear", 2, (1, 10)),
                              ("nearest", 1, (10,)), ("nearest", 1, (1,)), ("nearest-exact", 1, (10,)), ("linear", 1, (1,)), ("linear", 1, (10,))):
        corners = (None,) if "nearest" in mode else (False, True)
        for align, antialias in itertools.product(corners, (False, True) if mode in ("bilinear", "bicubic") else (False,)):
            ways = [dict(scale_factor=f) for f in factors] + [dict(scale_factor=f, recompute_scale_factor=True) for f in (1.7, 0.6)]
            ways += [dict(size=tuple(max(1, s + d) for s in sizes)) for d in (-2, 0, 1, 4)] + [dict(size=(1,) * rank)]
            if rank > 1:
                ways += [dict(scale_factor=(1.7, 0.6, 2.0)[:rank]), dict(size=(sizes[0], 3 * sizes[1], 3)[:rank])]
            for way in ways:
                label = "-".join(str(v).replace(" ", "") for v in way.values())
                name = f"interpolate.{mode}{rank}-{sizes[-1]}-{align}-{'aa-' if antialias else ''}{label}"
                given = dict(mode=mode, align_corners=align, antialias=antialias, **way)
                yield of(name, lambda t, given=given: F.interpolate(t[0], **given), drawn(1, 2, *sizes), operator=f"interpolate.{mode}")


def cases():
    RANDOM.manual_seed(3)
    table, ids = drawn(5, 3), torch.tensor([[1, 2, 1, 4], [0, 1, 2, 1]])
    for padding, frequent in itertools.product((None, 0, 1, -1), (False, True)):
        yield of(f"embedding-{padding}-{frequent}", lambda t, p=padding, f=frequent: F.embedding(t[0], t[1], padding_idx=p, scale_grad_by_freq=f), ids, table)
        yield of(f"embedding-known-{padding}-{frequent}",
                 lambda t, p=padding, f=frequent: F.embedding(torch.tensor([[1, 2, 1, 4], [0, 1, 2, 1]]), t[0], padding_idx=p, scale_grad_by_freq=f), table)
    yield of("embedding-sparse", lambda t: F.embedding(t[0], t[1], sparse=True), ids, table)
    yield of("embedding-max_norm", lambda t: F.embedding(t[0], t[1], max_norm=1.0), ids, table)
    for indexing in ("ij", "xy"):
        yield of(f"meshgrid-{indexing}", lambda t, i=indexing: torch.meshgrid(t[0], t[1], indexing=i), drawn(2), drawn(3))
        yield of(f"meshgrid-{indexing}-three", lambda t, i=indexing: torch.meshgrid(*t, indexing=i), drawn(2), drawn(3), drawn(4))
    yield of("meshgrid-xy-one", lambda t: torch.meshgrid(t[0], indexing="xy"), drawn(2))
    wide = torch.tensor([-100.0, -30.0, -1.0, 0.0, 0.5, 1.0, 3.0, 19.0, 21.0, 100.0, 1e4])
    for beta, threshold in itertools.product((1, 2, 0.5), (20, 1, 0, -1)):
        yield of(f"softplus-{beta}-{threshold}", lambda t, b=beta, h=threshold: F.softplus(t[0], b, h), wide)
    labels = torch.tensor([0.0, 1.0, 0.25, 1.0, 0.0, 1.0, 0.5, 0.0, 1.0, 0.0, 1.0])
    for name in ("logsigmoid", "sigmoid", "silu", "mish", "gelu", "tanh", "elu", "celu", "selu", "softsign", "hardswish", "tanhshrink", "hardsigmoid"):
        yield of(f"{name}-wide", lambda t, f=getattr(F, name): f(t[0]), wide)
    for name in ("expm1", "log1p", "sinc", "asinh", "logit", "exp", "exp2", "log2", "log10", "rsqrt", "erf", "atan", "acosh", "atanh"):
        small = torch.tensor([1e-7, 1e-5, 1e-3, 0.1, 0.5, 0.9, 0.999])
        yield of(f"{name}-small", lambda t, f=getattr(torch, name): f(t[0] + (1 if name == "acosh" else 0)), small)
        yield of(f"{name}-wide", lambda t, f=getattr(torch, name): f(t[0]), wide)
    weight, turned = torch.linspace(0.5, 2, 11), torch.linspace(2, 0.5, 11)
    for reduction in ("none", "mean", "sum"):
        bce = F.binary_cross_entropy_with_logits
        yield of(f"bce_logits-{reduction}", lambda t, r=reduction: bce(t[0], labels, reduction=r), wide)
        yield of(f"bce_logits-weight-{reduction}", lambda t, r=reduction: bce(t[0], labels, weight=t[1], reduction=r), wide, weight, kept=[weight])
        yield of(f"bce_logits-pos-{reduction}", lambda t, r=reduction: bce(t[0], labels, pos_weight=t[1], reduction=r), wide, weight, kept=[weight])
        yield of(f"bce_logits-both-{reduction}", lambda t, r=reduction: bce(t[0], labels, weight=t[1], pos_weight=t[2], reduction=r), wide, weight, turned, kept=[weight, turned])
        shares = torch.tensor([0.0, 1.0, 1e-30, 0.5, 1 - 2**-24, 0.1, 0.9, 0.0, 1.0, 0.3, 0.7])
        yield of(f"bce-{reduction}", lambda t, r=reduction: F.binary_cross_entropy(t[0], labels, reduction=r), shares)
    pair = torch.tensor([1e4, -1e4, 0.0, 88.0, -89.0, 3.0])
    for name in ("logaddexp", "logaddexp2", "hypot", "atan2", "xlogy", "copysign", "fmod", "remainder", "maximum", "minimum", "fmax", "fmin"):
        yield of(f"{name}-wide", lambda t, f=getattr(torch, name): f(t[0], t[1]), pair, pair.flip(0))
        yield of(f"{name}-equal", lambda t, f=getattr(torch, name): f(t[0], t[1]), pair, pair.clone())
    rows = torch.stack([torch.zeros(6), torch.full((6,), 2.0), pair])
    for name in ("softmax", "log_softmax", "logsumexp", "std", "var", "norm", "logcumsumexp", "cumsum", "prod", "amax", "amin", "median", "mean"):
        yield of(f"{name}-rows", lambda t, f=getattr(torch, name): f(t[0], dim=1), rows)
    yield of("normalize-rows", lambda t: F.normalize(t[0]), rows)
    yield of("cosine-rows", lambda t: F.cosine_similarity(t[0], t[1]), rows, rows.flip(0))
    yield of("pairwise-rows", lambda t: F.pairwise_distance(t[0], t[0] + 0 * t[0]), rows)
    yield of("layer_norm-rows", lambda t: F.layer_norm(t[0], (6,)), rows)
    yield of("rms_norm-rows", lambda t: F.rms_norm(t[0], (6,)), rows)
    yield from resizing()
