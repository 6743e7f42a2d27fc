"""Make the cases of this folder with PyTorch: `make.py [family ...]`, all without arguments; needs torch
2.9 or later.

A family is an exported program, NAME.pt2, with one parameter `of.OP` and one output `OP` for each of its
operators, and `loss`, the sum of all outputs' squares. NAME.json has what PyTorch gives in double: the
outputs, and the gradients of the loss. What is drawn at random is made to give one result whatever is drawn.
"""

import json
import math
import os
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "models"))

import torch
import torch.nn.functional as F
from torch import nn

from make_pt2 import save

FAMILIES = {}
INF = math.inf


def family(name):
    def take(build):
        FAMILIES[name] = build
        return build
    return take


def drawn(*shape):
    """The same numbers in both types."""
    return torch.randn(*shape, dtype=torch.float32).to(torch.get_default_dtype())


def cells():
    torch.manual_seed(2)
    return nn.ModuleDict(dict(lstm=nn.LSTMCell(4, 3), gru=nn.GRUCell(4, 3), tanh=nn.RNNCell(4, 3), relu=nn.RNNCell(4, 3, nonlinearity="relu")))


# Each builder returns {operator: (function, shape or values of its operand)}; `m` has the program's modules.


@family("pointwise")
def pointwise(m):
    grid = [[0.0, 0.0, 1.5, -1.5], [2.0, -2.0, 0.0, 0.0], [1.0, -1.0, 1.0, -1.0], [0.5, 0.25, -3.0, -0.125]]
    other = torch.tensor([[0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 2.0, -2.0], [1.0, 1.0, -1.0, -1.0], [4.0, -0.5, 0.75, -2.0]])
    special, partial = torch.tensor([math.nan, INF, -INF, 0.5]), torch.tensor([math.nan, 0.3, -0.4, 0.5])
    return dict(
        multiply=(lambda x: torch.multiply(x, x), (2, 3)), subtract=(lambda x: torch.subtract(x, x * x, alpha=2), (2, 3)),
        divide=(lambda x: torch.divide(x, x * x + 1), (2, 3)), divide_floor=(lambda x: x * torch.divide(x, 0.3, rounding_mode="floor"), (2, 3)),
        negative=(torch.negative, (2, 3)), absolute=(torch.absolute, (2, 3)), fix=(lambda x: x * torch.fix(2 * x), (2, 3)),
        greater=(lambda x: x * torch.greater(x, 0), (2, 3)), greater_equal=(lambda x: x * torch.greater_equal(x, 0.1), (2, 3)),
        less=(lambda x: x * torch.less(x, 0), (2, 3)), less_equal=(lambda x: x * torch.less_equal(x, 0.1), (2, 3)),
        not_equal=(lambda x: x * torch.not_equal(x, 0), grid), exclusive=(lambda x: x * ((x > 0) ^ (x < 0.5)), (2, 3)),
        clip=(lambda x: torch.clip(x, -0.5, 0.5), (2, 3)), clamp_tensors=(lambda x: torch.clamp(x, other[0] - 1.01, other[1] + 0.02), grid),
        clamp_below=(lambda x: torch.clamp(x, min=other + 0.3), grid), arctan=(torch.arctan, (2, 3)), arcsin=(lambda x: torch.arcsin(x / 4), (2, 3)),
        arccos=(lambda x: torch.arccos(x / 4), (2, 3)), arcsinh=(torch.arcsinh, (2, 3)), arccosh=(lambda x: torch.arccosh(x * x + 1.5), (2, 3)),
        arctanh=(lambda x: torch.arctanh(x / 4), (2, 3)), logaddexp=(lambda x: torch.logaddexp(x, other), grid),
        logaddexp2=(lambda x: torch.logaddexp2(x, other), grid), logaddexp_far=(lambda x: torch.logaddexp(x * 1e3, other), grid),
        xlogy=(lambda x: torch.xlogy(x, x * x + 0.5), grid), hypot=(lambda x: torch.hypot(x + 2.25, other), grid),
        atan2=(lambda x: torch.atan2(x, other), grid), atan2_turned=(lambda x: torch.atan2(other[2:], x[2:] * 3), grid),
        copysign=(lambda x: torch.copysign(x, other - 0.5), (4, 4)), heaviside=(lambda x: x * torch.heaviside(x.detach(), other), grid),
        fmax=(lambda x: torch.fmax(x, partial), (2, 4)), fmin=(lambda x: torch.fmin(partial, x), (2, 4)),
        logit=(lambda x: torch.logit(torch.sigmoid(x)), (2, 3)), logit_eps=(lambda x: torch.logit(torch.sigmoid(x), 0.3), (2, 3)),
        frac=(torch.frac, (2, 3)), sinc=(torch.sinc, grid), deg2rad=(torch.deg2rad, (2, 3)), rad2deg=(torch.rad2deg, (2, 3)),
        nan_to_num=(lambda x: torch.nan_to_num(torch.cat([x, special]), 2.0, 3.0, -4.0), (4,)),
        prelu=(lambda x: F.prelu(x, torch.tensor([0.25])), (2, 3)), prelu_channels=(lambda x: F.prelu(x, torch.tensor([0.1, 0.2, 0.3])), (2, 3, 4)),
        rrelu=(lambda x: F.rrelu(x, 0.1, 0.5), (2, 3)), expit=(torch.special.expit, (2, 3)), lerp=(lambda x: torch.lerp(x, x * x, 0.3), (2, 3)))


@family("edges")
def edges(m):
    """Where formulas change, what has a gradient is a convention."""
    at = [[-6.0, -3.0, -1.0, -0.5], [0.0, -0.0, 0.5, 1.0], [3.0, 6.0, 20.0, -20.0]]
    zeros = torch.zeros(3, 4)
    labels = torch.tensor([[0.0, 1.0, 0.25, 1.0]]).expand(3, 4)
    names = ("relu", "relu6", "elu", "selu", "celu", "gelu", "silu", "mish", "hardtanh", "hardswish", "hardsigmoid", "hardshrink", "softshrink", "tanhshrink", "softplus",
             "softsign", "logsigmoid", "leaky_relu")
    cases = {name: ((lambda f: lambda x: f(x) + 1)(getattr(F, name)), at) for name in names}
    return dict(
        cases, threshold=(lambda x: F.threshold(x, 0.5, 2.0), at), prelu=(lambda x: F.prelu(x, torch.tensor([0.25])) + 1, at), clamp=(lambda x: torch.clamp(x, -1, 3), at),
        clamp_min=(lambda x: torch.clamp_min(x, 0.0) + 1, at), clamp_tensor=(lambda x: torch.clamp(x, zeros - 1, zeros + 3), at), abs=(lambda x: x.abs() + 1, at),
        maximum=(lambda x: torch.maximum(x, zeros) + 1, at), minimum=(lambda x: torch.minimum(x, zeros) + 1, at), sign=(lambda x: x * x.sign() + x, at),
        amax=(lambda x: torch.amax(x, 1), [[1.0, 1.0, 0.0], [2.0, 1.0, 2.0]]), amin=(lambda x: torch.amin(x, 1), [[1.0, 1.0, 2.0], [2.0, 1.0, 1.0]]),
        max_dim=(lambda x: torch.max(x, 1)[0], [[1.0, 1.0, 0.0], [2.0, 1.0, 2.0]]), max_all=(torch.max, [[1.0, 1.0, 0.0], [2.0, 1.0, 2.0]]),
        max_pool=(lambda x: F.max_pool1d(x, 2), [[[1.0, 1.0, 0.0, 2.0]]]), adaptive_max=(lambda x: F.adaptive_max_pool1d(x, 2), [[[1.0, 1.0, 1.0]]]),
        bce=(lambda x: F.binary_cross_entropy_with_logits(x, labels, reduction="none"), at),
        bce_weighed=(lambda x: F.binary_cross_entropy_with_logits(x, labels, pos_weight=torch.tensor([2.0]), reduction="none"), at),
        smooth_l1=(lambda x: F.smooth_l1_loss(x, zeros, reduction="none") + 1, at), l1=(lambda x: F.l1_loss(x, zeros, reduction="none") + 1, at),
        huber=(lambda x: F.huber_loss(x, zeros, delta=3.0, reduction="none") + 1, at), soft_margin=(lambda x: F.soft_margin_loss(x, labels.sign() * 2 - 1), at),
        logaddexp=(lambda x: torch.logaddexp(x, zeros), at), logcosh=(lambda x: F.softplus(2 * x) - x, at), std=(lambda x: x.std(1), [[1.0, 1.0, 2.0], [2.0, 1.0, 1.0]]),
        norm=(lambda x: x.norm(dim=1), [[0.0, 0.0], [3.0, 4.0]]), prod=(lambda x: x.prod(1), [[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]]),
        cumprod=(lambda x: x.cumprod(1), [[0.0, 2.0, 3.0], [2.0, 0.0, 3.0]]), pow=(lambda x: x ** 2.5 + x ** 3 + x ** 0 + x ** 1 + x ** torch.tensor([0.0, 2.0]), [[0.0, 2.0]]), round=(lambda x: x * x.round(), at),
        softmax=(lambda x: torch.softmax(x * 5, 1), at), log_softmax=(lambda x: torch.log_softmax(x * 5, 1), at), logsumexp=(lambda x: torch.logsumexp(x * 5, 1), at))


@family("saturated")
def saturated(m):
    """Far from zero, where parts of a formula overflow in f32 and the whole doesn't."""
    far = [[-1e4, -1000.0, -100.0, -89.0], [-88.0, 88.0, 89.0, 100.0], [1000.0, 1e4, 0.0, -1.0]]
    labels = torch.tensor([[0.0, 1.0, 0.25, 1.0]]).expand(3, 4)
    names = ("sigmoid", "silu", "glu", "logsigmoid", "softplus", "mish", "tanh", "gelu", "elu", "selu", "celu", "hardswish", "hardsigmoid", "softsign", "tanhshrink")
    cases = {name: ((lambda f: lambda x: f(x) + 1)(getattr(F, name)), far) for name in names}
    return dict(
        cases, gelu_tanh=(lambda x: F.gelu(x, approximate="tanh"), far), swiglu=(lambda x: F.silu(x[:, :2]) * x[:, 2:] * 1e-4, far), atan=(torch.atan, far), erf=(torch.erf, far),
        expm1=(lambda x: torch.expm1(-x.abs()), far), log1p=(lambda x: torch.log1p(x * x), far), asinh=(torch.asinh, far), logaddexp=(lambda x: torch.logaddexp(x, -x) * 1e-3, far),
        softmax=(lambda x: torch.softmax(x, 1), far), log_softmax=(lambda x: torch.log_softmax(x, 1) * 1e-3, far), logsumexp=(lambda x: torch.logsumexp(x, 1) * 1e-3, far),
        softmin=(lambda x: F.softmin(x, 0), far), layer_norm=(lambda x: F.layer_norm(x, (4,)), far), rms_norm=(lambda x: F.rms_norm(x, (4,), eps=1e-6), far),
        normalize=(lambda x: F.normalize(x), far), cosine=(lambda x: F.cosine_similarity(x, x.flip(1)), far),
        bce=(lambda x: F.binary_cross_entropy_with_logits(x, labels, reduction="none") * 1e-3, far), cross_entropy=(lambda x: F.cross_entropy(x, torch.tensor([3, 0, 2]), reduction="none") * 1e-3, far),
        focal=(lambda x: (1 - torch.sigmoid(x)) ** 2 * F.softplus(-x) * 1e-3, far), lstm_cell=(lambda x: torch.cat(m["lstm"](x, (x[:, 1:], x[:, :3])), 1), far),
        gru_cell=(lambda x: m["gru"](x, x[:, 1:]), far))


@family("equal-rows")
def equal_rows(m):
    """Rows of equal elements, as those of padding are, where the parts of a norm's derivative are 0 and infinity."""
    rows = [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [-2.0, -2.0, -2.0]]
    norms = {f"norm_{name}": ((lambda p: lambda x: x.norm(p, dim=1) + 1)(p), rows) for name, p in dict(half=0.5, one=1, more=1.5, two=2, three=3, most=INF, least=-INF).items()}
    sizes = {f"cdist_{name}": ((lambda p: lambda x: torch.cdist(x, x, p=p) + 1)(p), rows) for name, p in dict(one=1, more=1.5, two=2, three=3).items()}
    uniform = torch.softmax(torch.zeros(3, 3), 1)
    return dict(
        norms, **sizes, std=(lambda x: x.std(1) + 1, rows), std_biased=(lambda x: x.std(1, correction=0) + x, rows), std_all=(lambda x: x[:1].std() + x, rows), std_mean=(lambda x: sum(torch.std_mean(x, 1)) + 1, rows),
        var=(lambda x: x.var(1) + x, rows), normalized=(lambda x: (x - x.mean(1, True)) / (x.std(1, keepdim=True) + 0.5) + x, rows),
        cosine=(lambda x: F.cosine_similarity(x[1:], x[1:].flip(0)) + 1, rows), cosine_zero=(lambda x: F.cosine_similarity(x, x.detach(), eps=0.5) + 1, rows),
        normalize=(lambda x: F.normalize(x, eps=0.5) + 1, rows), pairwise=(lambda x: F.pairwise_distance(x, x.detach(), eps=0.0) + 1, rows), matrix_norm=(lambda x: torch.linalg.matrix_norm(x[:1]) + 1, rows),
        triplet=(lambda x: F.triplet_margin_loss(x, x.detach(), -x.detach(), reduction="none", eps=0.0), rows), layer_norm=(lambda x: F.layer_norm(x, (3,)) + x, rows),
        group_norm=(lambda x: F.group_norm(x, 1) + x, rows), instance_norm=(lambda x: F.instance_norm(x[None]) + x, rows), rms_norm=(lambda x: F.rms_norm(x, (3,), eps=1e-5) + x, rows),
        softmax=(lambda x: torch.softmax(x, 1), rows), log_softmax=(lambda x: torch.log_softmax(x, 1), rows), logsumexp=(lambda x: torch.logsumexp(x, 1), rows), hypot=(lambda x: torch.hypot(x[1:], x[1:]), rows),
        uniform=(lambda x: x * uniform + torch.log_softmax(torch.full((3, 3), 2.5), 1) * x + torch.logsumexp(torch.ones(3, 3), 1), rows))
@family("arguments")
def arguments(m):
    """What is rarely given, and the ways to resize."""
    wide = [[-100.0, -30.0, -1.0, 0.0], [0.5, 1.0, 3.0, 19.0], [21.0, 100.0, 1e3, -1e3]]
    ids = torch.tensor([[1, 2, 1, 0], [0, 1, 2, 1]])
    given = dict(
        meshgrid=(lambda x: torch.stack(torch.meshgrid(x[:3], x, indexing="ij")), (4,)), meshgrid_xy=(lambda x: torch.stack(torch.meshgrid(x[:3], x, indexing="xy")), (4,)),
        meshgrid_volume=(lambda x: torch.stack(torch.meshgrid(x[:2], x, x[1:], indexing="xy")), (4,)), meshgrid_one=(lambda x: torch.meshgrid(x, indexing="xy")[0], (4,)),
        softplus_low=(lambda x: F.softplus(x, threshold=1), wide), softplus_below=(lambda x: F.softplus(x, threshold=-2), wide),
        softplus_beta=(lambda x: F.softplus(x, 2, 5), wide), softplus_wide=(lambda x: F.softplus(x, 0.5), wide), logsigmoid_wide=(F.logsigmoid, wide),
        padding=(lambda x: F.embedding(ids, x, padding_idx=1), (4, 3)), padding_last=(lambda x: F.embedding(ids, x, padding_idx=-2), (4, 3)),
        padding_alone=(lambda x: F.embedding(torch.tensor([[1, 1], [1, 1]]), x, padding_idx=1) + x[0], (4, 3)), no_padding=(lambda x: F.embedding(ids, x), (4, 3)))
    shapes = {"nearest": (1, 2, 4, 7), "nearest-exact": (1, 2, 4, 7), "linear": (1, 2, 5), "bilinear": (1, 1, 5, 10), "bicubic": (1, 1, 5, 4), "trilinear": (1, 1, 2, 3, 4)}
    for mode, shape in shapes.items():
        for corners in ((None,) if "nearest" in mode else (False, True)):
            ways = dict(up=dict(scale_factor=1.7), down=dict(scale_factor=0.6), tenth=dict(scale_factor=1.1), size=dict(size=tuple(s + 2 for s in shape[2:])),
                        one=dict(size=(1,) * (len(shape) - 2)), again=dict(scale_factor=1.7, recompute_scale_factor=True))
            for name, way in ways.items():
                for smooth in ((False, True) if mode in ("bilinear", "bicubic") else (False,)):
                    if name == "tenth" and (smooth or mode == "bicubic"):
                        continue  # PyTorch's backward isn't that of its forward.
                    key = "_".join(["resize", mode.replace("-", "_"), name] + ["corners"] * bool(corners) + ["smooth"] * smooth)
                    given[key] = (lambda x, m=mode, c=corners, s=smooth, w=way: F.interpolate(x, mode=m, align_corners=c, antialias=s, **w), shape)
    return given


@family("shapes")
def shapes(m):
    return dict(
        reshape_as=(lambda x: x.reshape_as(torch.zeros(3, 2)), (2, 3)), ravel=(torch.ravel, (2, 3)), glu=(F.glu, (2, 6)), glu_first=(lambda x: F.glu(x, 0), (4, 3)),
        unfold=(lambda x: x.unfold(1, 3, 2), (2, 8)), unfold_first=(lambda x: x.unfold(0, 2, 1), (4, 3)),
        im2col=(lambda x: F.unfold(x, (3, 2), padding=(1, 0), stride=(1, 2), dilation=(1, 2)), (2, 2, 5, 6)),
        col2im=(lambda x: F.fold(x, (5, 6), (3, 2), padding=(1, 1), stride=(2, 1)), (1, 12, 21)),
        pixel_shuffle=(lambda x: F.pixel_shuffle(x, 2), (2, 8, 2, 3)), pixel_unshuffle=(lambda x: F.pixel_unshuffle(x, 2), (2, 2, 4, 6)),
        channel_shuffle=(lambda x: F.channel_shuffle(x, 3), (2, 6, 2, 2)), concat=(lambda x: torch.concat([x, 2 * x], 1), (2, 3)),
        concatenate=(lambda x: torch.concatenate([x, 2 * x]), (2, 3)), hstack=(lambda x: torch.hstack([x, 2 * x]), (2, 3)),
        hstack_vectors=(lambda x: torch.hstack([x[0], x[1]]), (2, 3)), vstack=(lambda x: torch.vstack([x[0], 2 * x]), (2, 3)),
        dstack=(lambda x: torch.dstack([x, 2 * x]), (2, 3)), column_stack=(lambda x: torch.column_stack([x[:, 0], 2 * x]), (2, 3)),
        moveaxis=(lambda x: torch.moveaxis(x, 0, 2), (2, 3, 4)), swapaxes=(lambda x: torch.swapaxes(x, 0, -1), (2, 3, 4)),
        swapdims=(lambda x: torch.swapdims(x, 1, 2), (2, 3, 4)), mT=(lambda x: x.mT, (2, 3, 4)), adjoint=(lambda x: x.adjoint(), (2, 3, 4)),
        broadcast_to=(lambda x: torch.broadcast_to(x, (2, 2, 3)), (2, 3)), tile=(lambda x: torch.tile(x, (2,)), (2, 3)),
        tile_more=(lambda x: torch.tile(x, (2, 1, 2)), (2, 3)), tensor_split=(lambda x: torch.tensor_split(x, 3, 1)[0], (2, 7)),
        tensor_split_at=(lambda x: torch.tensor_split(x, (2, 5), -1)[1], (2, 7)), hsplit=(lambda x: torch.hsplit(x, 2)[1], (2, 6)),
        vsplit=(lambda x: torch.vsplit(x, 2)[0], (4, 3)), dsplit=(lambda x: torch.dsplit(x, (1, 2))[1], (2, 2, 3)),
        unsafe_chunk=(lambda x: torch.unsafe_chunk(x, 2, 1)[1], (2, 5)), fliplr=(torch.fliplr, (2, 3)), flipud=(torch.flipud, (2, 3)),
        rot90=(torch.rot90, (2, 3)), rot90_thrice=(lambda x: torch.rot90(x, 3, (1, 2)), (2, 3, 2)), rot90_twice=(lambda x: torch.rot90(x, 2, (0, 2)), (2, 3, 2)),
        atleast_1d=(lambda x: torch.atleast_1d(x.sum()), (2,)), atleast_2d=(lambda x: torch.atleast_2d(x), (3,)), atleast_3d=(lambda x: torch.atleast_3d(x), (2, 3)),
        pad_reflect_3d=(lambda x: F.pad(x, (1, 2, 1, 1, 0, 1), mode="reflect"), (1, 2, 3, 3, 3)),
        pad_replicate_3d=(lambda x: F.pad(x, (1, 2, 1, 1, 0, 1), mode="replicate"), (1, 2, 2, 3, 3)), logspace=(lambda x: x * torch.logspace(0, 1, 4, base=2), (3, 4)),
        take_along_dim=(lambda x: torch.take_along_dim(x, torch.tensor([[2], [0]]), 1), (2, 3)),
        take_along_wide=(lambda x: torch.take_along_dim(x, torch.tensor([[2, 0]]), 1), (2, 3)), take=(lambda x: torch.take(x, torch.tensor([[5, 0], [3, 3]])), (2, 3)),
        index_fill=(lambda x: x.index_fill(1, torch.tensor([0, 2]), 0.5), (2, 3)),
        masked_scatter=(lambda x: torch.cat([x, torch.zeros(2, 3).masked_scatter(x > 0, x * 2)]), (2, 3)),
        masked_scatter_rows=(lambda x: (x * 3).masked_scatter((x[:, :, 0] > 0)[..., None].expand_as(x), x[0] * 2), (2, 4, 3)))


@family("matrices")
def matrices(m):
    torch.manual_seed(3)
    w, v, cube = drawn(4, 3), drawn(3), drawn(2, 3, 4)
    return dict(
        outer=(lambda x: torch.outer(x, v), (4,)), inner=(lambda x: torch.inner(x, w), (2, 3)), inner_vectors=(lambda x: torch.inner(x, v), (3,)),
        vdot=(lambda x: torch.vdot(x, v), (3,)), cross=(lambda x: torch.cross(x, w, dim=-1), (4, 3)), linalg_cross=(lambda x: torch.linalg.cross(x, v[None]), (4, 3)),
        tensordot=(lambda x: torch.tensordot(x, cube, ([1, 0], [1, 0])), (2, 3, 2)), tensordot_number=(lambda x: torch.tensordot(x, w, 1), (2, 4)),
        kron=(lambda x: torch.kron(x, w), (2, 2)), kron_more=(lambda x: torch.kron(x, cube), (2, 2)), addmv=(lambda x: torch.addmv(x[0], w, x[1, :3], beta=0.5, alpha=2), (2, 4)),
        addr=(lambda x: torch.addr(x, x[:, 0], v, beta=0.5, alpha=2), (4, 3)), addbmm=(lambda x: torch.addbmm(x[0, :, :3], x, cube.mT, beta=2, alpha=0.5), (2, 3, 4)),
        multi_dot=(lambda x: torch.linalg.multi_dot([x, w, w.t(), w]), (2, 4)), matrix_power=(lambda x: torch.linalg.matrix_power(x, 5), (2, 2)),
        matrix_power_0=(lambda x: x + torch.linalg.matrix_power(x, 0), (2, 2)), det=(torch.linalg.det, (2, 3, 3)),
        attention_windows=(lambda x: F.scaled_dot_product_attention(x, x * 2, x + 1), (2, 1, 3, 4, 2)),
        attention_windows_masked=(lambda x: F.scaled_dot_product_attention(x, x * 2, x + 1, attn_mask=(torch.arange(4)[:, None] >= torch.arange(4)).expand(2, 1, 3, 4, 4)), (2, 1, 3, 4, 2)),
        attention_bias=(lambda x: F.scaled_dot_product_attention(x, x * 2, x + 1, attn_mask=torch.arange(4.0).reshape(1, 1, 1, 1, 4)), (2, 1, 3, 4, 2)),
        bilinear=(lambda x: F.bilinear(x, x[:, :2], torch.arange(24.0).reshape(4, 3, 2) / 10, torch.arange(4.0)), (5, 3)),
        diag=(torch.diag, (3, 4)), diag_off=(lambda x: torch.diag(x, -1), (3, 4)), diag_of_vector=(lambda x: torch.diag(x, 1), (3,)),
        diagonal=(lambda x: torch.diagonal(x, 1, 0, 2), (3, 2, 4)), linalg_diagonal=(lambda x: torch.linalg.diagonal(x), (2, 3, 4)),
        diag_embed=(torch.diag_embed, (2, 3)), diag_embed_off=(lambda x: torch.diag_embed(x, -2, 0, 2), (2, 3)), diagflat=(torch.diagflat, (2, 2)),
        trace=(torch.trace, (3, 3)), block_diag=(lambda x: torch.block_diag(x, x[0], 2 * x), (2, 3)),
        norm_rows=(lambda x: torch.linalg.vector_norm(x, 2, 1), [[0.0, 0.0], [3.0, 4.0]]), norm_3=(lambda x: torch.linalg.vector_norm(x, 3, 0), (3, 2)),
        norm_1=(lambda x: torch.linalg.vector_norm(x, 1, 1, keepdim=True), (3, 2)), norm_inf=(lambda x: torch.linalg.vector_norm(x, INF), (3, 2)),
        norm_minus_inf=(lambda x: torch.linalg.vector_norm(x, -INF, 1), (3, 2)), norm_0=(lambda x: x[:, 0] * torch.linalg.vector_norm(x, 0, 1), [[0.0, 2.0], [3.0, 4.0]]),
        frobenius=(torch.linalg.matrix_norm, (2, 3, 2)), linalg_norm=(torch.linalg.norm, (3, 2)), normalize=(F.normalize, [[0.0, 0.0], [3.0, 4.0]]),
        dist=(lambda x: torch.dist(x, x * x, 3), (2, 3)), cosine=(lambda x: F.cosine_similarity(x, x * x + v, 1), (2, 3)),
        cosine_wide=(lambda x: F.cosine_similarity(x[:, None], w[None], -1), (2, 3)), pairwise=(lambda x: F.pairwise_distance(x, v[None].expand(2, 3), 2), (2, 3)),
        cdist=(lambda x: torch.cdist(x, x * x), (4, 3)), cdist_itself=(lambda x: torch.cdist(x, x), (3, 2)), cdist_1=(lambda x: torch.cdist(x[None], w[None], 1), (2, 3)))


@family("reductions")
def reductions(m):
    torch.manual_seed(4)
    special = torch.tensor([[math.nan, 1.0, 2.0], [3.0, math.nan, math.nan]])
    return dict(
        std_mean=(lambda x: torch.cat(torch.std_mean(x, 1)), (2, 4)), aminmax=(lambda x: torch.cat(torch.aminmax(x, dim=1)), (2, 4)),
        median=(lambda x: torch.median(x, 1)[0], (3, 4)), median_all=(torch.median, (3, 5)), median_places=(lambda x: x * torch.median(x, 1, keepdim=True)[1], (3, 4)),
        kthvalue=(lambda x: torch.kthvalue(x, 3, 0)[0], (4, 3)), msort=(torch.msort, (4, 3)), nansum=(lambda x: torch.nansum(special + x, 1), (2, 3)),
        nanmean=(lambda x: torch.nanmean(special + x, 0), (2, 3)), count_nonzero=(lambda x: x * torch.count_nonzero(x > 0, 1), (3, 3)),
        searchsorted=(lambda x: x * torch.searchsorted(torch.tensor([-1.0, 0.0, 0.5]), x), (3, 3)),
        searchsorted_right=(lambda x: x * torch.searchsorted(torch.tensor([[0.0, 1.0], [-1.0, 0.0]]), x, right=True), [[0.0, 1.0, 2.0], [0.0, -1.0, 2.0]]),
        bucketize=(lambda x: x * torch.bucketize(x, torch.tensor([-0.5, 0.5])), (3, 3)), special_logsumexp=(lambda x: torch.special.logsumexp(x, 1), (2, 3)),
        soft_margin=(lambda x: F.soft_margin_loss(x, torch.tensor([[1.0, -1.0, 1.0]])), (2, 3)),
        hinge=(lambda x: F.hinge_embedding_loss(x, torch.tensor([[1.0, -1.0, 1.0]]).expand(2, 3), 0.5), (2, 3)),
        cosine_embedding=(lambda x: F.cosine_embedding_loss(x, x * x, torch.tensor([1.0, -1.0, 1.0]), 0.1), (3, 4)),
        margin_ranking=(lambda x: F.margin_ranking_loss(x[0], x[1], torch.tensor([1.0, -1.0, 1.0]), 0.3, reduction="sum"), (2, 3)),
        triplet=(lambda x: F.triplet_margin_loss(x[0], x[1], x[2], swap=True), (3, 2, 4)), triplet_1=(lambda x: F.triplet_margin_loss(x[0], x[1], x[2], p=1.0), (3, 2, 4)),
        poisson=(lambda x: F.poisson_nll_loss(x, torch.tensor([0.0, 1.0, 3.0]), full=True), (2, 3)),
        poisson_numbers=(lambda x: F.poisson_nll_loss(x * x, torch.tensor([0.0, 1.0, 3.0]), log_input=False), (2, 3)))


@family("images")
def images(m):
    torch.manual_seed(5)
    volume, flat, line = drawn(3, 2, 2, 3, 2), drawn(2, 2, 3, 3), drawn(3, 2, 4)
    grid = drawn(2, 3, 2, 2) * 0.7
    return dict(
        conv3d=(lambda x: F.conv3d(x, volume, torch.arange(3.0), stride=(1, 2, 1), padding=1, dilation=(2, 1, 1)), (1, 2, 4, 5, 3)),
        conv_transpose3d=(lambda x: F.conv_transpose3d(x, volume, stride=2, padding=(0, 1, 0), output_padding=(1, 0, 0)), (1, 3, 2, 3, 2)),
        conv_same=(lambda x: F.conv2d(x, flat[:, :, :2], padding="same", dilation=(1, 2)), (1, 2, 5, 6)), conv_valid=(lambda x: F.conv2d(x, flat, padding="valid"), (1, 2, 5, 6)),
        conv_tbc=(lambda x: torch.conv_tbc(x, line, torch.arange(4.0), 1), (5, 2, 2)), max_pool3d=(lambda x: F.max_pool3d(x, 2, 1), (1, 2, 3, 3, 3)),
        avg_pool3d=(lambda x: F.avg_pool3d(x, (2, 2, 1), padding=(1, 0, 0)), (1, 2, 3, 4, 3)),
        adaptive_avg=(lambda x: F.adaptive_avg_pool2d(x, (3, 2)), (1, 2, 7, 5)), adaptive_avg_even=(lambda x: F.adaptive_avg_pool1d(x, 3), (1, 2, 6)),
        adaptive_avg3d=(lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)), (1, 2, 5, 4, 3)), adaptive_max=(lambda x: F.adaptive_max_pool2d(x, (3, 2)), (1, 2, 7, 5)),
        adaptive_max_even=(lambda x: F.adaptive_max_pool1d(x, 3), (1, 2, 6)),
        max_pool_places=(lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), (2, 2, 4, 6)),
        nearest_exact=(lambda x: F.interpolate(x, (5, 7), mode="nearest-exact"), (1, 2, 4, 4)), nearest3d=(lambda x: F.interpolate(x, (4, 5, 3)), (1, 2, 2, 3, 3)),
        trilinear=(lambda x: F.interpolate(x, (4, 5, 3), mode="trilinear"), (1, 2, 2, 3, 3)), bilinear_aa=(lambda x: F.interpolate(x, (3, 4), mode="bilinear", antialias=True), (1, 2, 7, 6)),
        bicubic_aa=(lambda x: F.interpolate(x, (3, 4), mode="bicubic", antialias=True), (1, 2, 7, 6)),
        grid_bilinear=(lambda x: F.grid_sample(x, grid, align_corners=False), (2, 2, 4, 5)),
        grid_nearest=(lambda x: F.grid_sample(x, grid, mode="nearest", padding_mode="border", align_corners=True), (2, 2, 4, 5)),
        grid_cubic=(lambda x: F.grid_sample(x, grid, mode="bicubic", padding_mode="reflection", align_corners=False), (2, 2, 4, 5)),
        affine_grid=(lambda x: F.grid_sample(torch.ones(2, 1, 3, 4), F.affine_grid(x, (2, 1, 3, 4), align_corners=False), align_corners=False), (2, 2, 3)),
        local_response=(lambda x: F.local_response_norm(x, 3), (2, 5, 3, 3)))


@family("complex")
def complex_numbers(m):
    turn = torch.polar(torch.ones(3), torch.arange(3.0))
    pairs = lambda x: torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    floats = torch.view_as_real
    return dict(
        rotated=(lambda x: floats(pairs(x) * turn).flatten(1), (2, 6)), polar=(lambda x: floats(torch.polar(x * x + 0.1, x * 2)), (2, 3)), abs=(lambda x: pairs(x).abs(), [[0.0, 0.0, 3.0, 4.0]]),
        complex=(lambda x: floats(torch.complex(x, x * x) * 2.5 - turn), (2, 3)), divided=(lambda x: floats(turn / pairs(x)), (2, 6)), conj=(lambda x: floats((pairs(x) * pairs(x).conj()) / 2), (2, 6)),
        shapes=(lambda x: floats(pairs(x)[1:, 0].unsqueeze(-1).expand(-1, 2).transpose(0, 1)), (3, 6)), rows=(lambda x: floats(pairs(x)[torch.tensor([2, 0])]).reshape(-1), (3, 4)),
        fft=(lambda x: floats(torch.fft.fft(x)), (2, 5)), fft_short=(lambda x: floats(torch.fft.fft(x, 3, dim=0, norm="ortho")), (4, 2)), ifft=(lambda x: floats(torch.fft.ifft(pairs(x))), (2, 6)),
        rfft=(lambda x: torch.fft.rfft(x, norm="forward").imag, (2, 6)), irfft=(lambda x: torch.fft.irfft(torch.fft.rfft(x) * turn), (2, 4)), irfft_odd=(lambda x: torch.fft.irfft(torch.fft.rfft(x), 5), (2, 5)),
        fftn=(lambda x: torch.fft.fftn(x, dim=(1, 2)).real, (2, 3, 4)), fft2=(lambda x: floats(torch.fft.ifft2(torch.fft.fft2(x, norm="forward") * 2, norm="forward")), (2, 3, 4)),
        rfft2=(lambda x: torch.fft.irfft2(torch.fft.rfft2(x, norm="ortho") * 1.5, norm="ortho"), (2, 3, 4)), rfftn=(lambda x: floats(torch.fft.rfftn(x)), (3, 4)),
        stft=(lambda x: torch.stft(x, 4, 2, window=torch.tensor([0.0, 0.5, 1.0, 0.5]), return_complex=True).abs(), (2, 12)),
        stft_narrow=(lambda x: floats(torch.stft(x, 6, 2, 4, torch.ones(4), center=False, normalized=True, return_complex=True)), (12,)))


@family("cells-and-draws")
def cells_and_draws(m):
    keep = lambda x, y: x * ((y >= 0) & (y <= 1))
    return dict(
        lstm_cell=(lambda x: torch.cat(m["lstm"](x[:, :4], (x[:, 4:7], x[:, 7:])), 1), (2, 10)), lstm_cell_fresh=(lambda x: m["lstm"](x)[0], (2, 4)),
        gru_cell=(lambda x: m["gru"](x[:, :4], x[:, 4:]), (2, 7)), rnn_cell=(lambda x: m["tanh"](x[:, :4], x[:, 4:]), (2, 7)), rnn_relu_cell=(lambda x: m["relu"](x), (2, 4)),
        rand=(lambda x: keep(x, torch.rand(2, 3)), (2, 3)), rand_like=(lambda x: keep(x, torch.rand_like(x)), (2, 3)),
        uniform=(lambda x: keep(x, torch.empty(2, 3).uniform_(-3, -2) + 3), (2, 3)), bernoulli=(lambda x: keep(x, x.new_empty(2, 1).bernoulli_(0.5)), (2, 3)),
        bernoulli_all=(lambda x: x * torch.bernoulli(torch.ones(2, 3)), (2, 3)), bernoulli_none=(lambda x: x + x.new_empty(2, 3).bernoulli_(0.0), (2, 3)),
        path=(lambda x: keep(x, (torch.rand(2, 1) + 0.5).floor()), (2, 3)), randn=(lambda x: x * (torch.randn(2, 3) < 9), (2, 3)),
        randn_like=(lambda x: x * (torch.randn_like(x) > -9), (2, 3)), normal=(lambda x: x * (torch.empty(2, 3).normal_(20, 1) > 5), (2, 3)),
        exponential=(lambda x: x * (torch.empty(2, 3).exponential_(2.0) >= 0), (2, 3)), alpha_dropout=(lambda x: F.alpha_dropout(x, 0.0, True), (2, 3)),
        rrelu=(lambda x: x * (F.rrelu(-x * x, 0.1, 0.5, True) <= -0.1 * x * x), (2, 3)))


def spread(*shape):
    """A batch of matrices that are far from singular, and need other rows as pivots."""
    x = drawn(*shape)
    return (x + 3 * torch.eye(shape[-1]).roll(1, 0)).tolist()


@family("solutions")
def solutions(m):
    torch.manual_seed(4)
    b, v, wide = drawn(3, 2), drawn(3), drawn(2, 3, 4)

    def positive(x):
        return x @ x.mT + torch.eye(x.shape[-1])

    a, more, large = spread(3, 3), spread(2, 3, 3), spread(12, 12)
    return dict(
        inverse=(torch.inverse, a), linalg_inv=(torch.linalg.inv, more), inv_large=(torch.linalg.inv, large), inv_one=(torch.linalg.inv, [[2.0]]),
        inv_swapped=(torch.linalg.inv, [[0.0, 2.0], [4.0, 0.0]]), inv_ex=(lambda x: torch.linalg.inv_ex(x)[0], a), solve=(lambda x: torch.linalg.solve(x, b), a),
        solve_vector=(lambda x: torch.linalg.solve(x, v), a), solve_right=(lambda x: torch.linalg.solve(x, b.T, left=False), a),
        solve_batch=(lambda x: torch.linalg.solve(x, wide), more), solve_vectors=(lambda x: torch.linalg.solve(x, wide[:, :, 0]), more),
        solve_sides=(lambda x: torch.linalg.solve(torch.tensor(a), x), (3, 2)), solve_ex=(lambda x: torch.linalg.solve_ex(x, b)[0], a),
        solve_triangular=(lambda x: torch.linalg.solve_triangular(x, b, upper=True), a), solve_lower=(lambda x: torch.linalg.solve_triangular(x + 3 * torch.eye(3), b, upper=False), (3, 3)),
        solve_unit=(lambda x: torch.linalg.solve_triangular(x, b.T, upper=False, left=False, unitriangular=True), (3, 3)),
        cholesky=(lambda x: torch.linalg.cholesky(positive(x)), (3, 3)), cholesky_upper=(lambda x: torch.linalg.cholesky(positive(x), upper=True), (2, 3, 3)),
        cholesky_lower=(lambda x: torch.linalg.cholesky(x), [[4.0, 9.0, 9.0], [1.0, 5.0, 9.0], [-1.0, 0.5, 6.0]]), cholesky_ex=(lambda x: torch.linalg.cholesky_ex(positive(x))[0], (9, 9)),
        cholesky_solve=(lambda x: torch.cholesky_solve(b, torch.linalg.cholesky(positive(x))), (3, 3)),
        cholesky_inverse=(lambda x: torch.cholesky_inverse(torch.linalg.cholesky(positive(x))), (3, 3)),
        slogdet=(lambda x: torch.stack(list(torch.linalg.slogdet(x))), more), slogdet_large=(lambda x: torch.linalg.slogdet(x)[1], large), logdet=(lambda x: torch.logdet(positive(x)), (2, 3, 3)),
        slogdet_turned=(lambda x: torch.slogdet(x)[0] * x.sum((1, 2)), [[[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [3.0, 0.0, 0.0]], [[0.0, 1.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 3.0]]]),
        det_large=(torch.linalg.det, large), det_singular=(torch.det, [[1.0, 2.0], [2.0, 4.0]]))


@family("special")
def special(m):
    at = [[-0.5, -1.25, -3.75, 0.25], [0.5, 1.0, 2.0, 3.5], [7.5, 8.0, 20.0, 300.0]]
    near, far = [[-3.0, -0.5, 0.0, 0.25], [0.5, 1.0, 2.5, 5.0]], [[-1e4, -2.0, 3.0, 1e4], [0.0, 0.0, -1e4, 2.0]]
    ties = [[1.0, 3.0, 3.0, -1.0, 2.0], [0.0, -1.0, 0.0, -2.0, 0.0]]
    return dict(
        lgamma=(torch.lgamma, at), digamma=(torch.digamma, at), gammaln=(torch.special.gammaln, at), psi=(torch.special.psi, at), erfc=(torch.erfc, near),
        special_erfc=(torch.special.erfc, near), logcumsumexp=(lambda x: torch.logcumsumexp(x, 1), (3, 5)), logcumsumexp_first=(lambda x: torch.logcumsumexp(x, 0), (4, 2)),
        logcumsumexp_far=(lambda x: torch.logcumsumexp(x, 1)[:, 1:], far), logaddexp_infinite=(lambda x: torch.logaddexp(x, torch.tensor([-INF, 0.0, -INF, 1.0]))[:, 1:], far),
        cummax=(lambda x: torch.cummax(x, 1)[0], ties), cummin=(lambda x: torch.cummin(x, 1)[0], ties), cummax_first=(lambda x: torch.cummax(x, 0)[0], (5, 3)),
        cummax_places=(lambda x: x.sum() + torch.cummax(x, 1)[1], ties), quantile=(lambda x: torch.quantile(x, 0.3), (3, 4)), quantile_dim=(lambda x: torch.quantile(x, 0.6, dim=1), (3, 5)),
        quantile_some=(lambda x: torch.quantile(x, torch.tensor([0.0, 0.25, 0.5, 1.0]), dim=0, keepdim=True), (5, 2)),
        quantile_lower=(lambda x: torch.quantile(x, 0.4, dim=1, interpolation="lower"), (3, 4)), quantile_higher=(lambda x: torch.quantile(x, 0.4, dim=1, interpolation="higher"), (3, 4)),
        quantile_midpoint=(lambda x: torch.quantile(x, 0.4, dim=1, interpolation="midpoint"), (3, 4)), quantile_nearest=(lambda x: torch.quantile(x, 0.5, dim=1, interpolation="nearest"), (3, 6)),
        left_shift=(lambda x: x * (torch.tensor([1, -3, 5]) << torch.tensor([0, 3, 62])).to(x.dtype) * 1e-18, (2, 3)),
        right_shift=(lambda x: x * (torch.tensor([9, -9, -5, 5, 1 << 40]) >> torch.tensor([1, 1, 63, 2, 33])), (2, 5)), shift_operator=(lambda x: x * ((x > 0).long() << 2), (2, 3)),
        bits_unpacked=(lambda x: x * ((torch.tensor([[200], [77]], dtype=torch.uint8) >> torch.arange(8, dtype=torch.uint8)) & 1), (2, 8)),
        bits_of_steps=(lambda x: x * (((x * 8).long() ^ 5) & 3), (2, 3)), bits_not=(lambda x: x * ~(x * 8).long(), (2, 3)))


@family("joined")
def joined(m):
    torch.manual_seed(6)
    index, rows = torch.tensor([[0, 1, 1, 0], [2, 2, 2, 0], [1, 1, 0, 1]]), torch.tensor([2, 0, 2, 2])
    old, zeros = drawn(3, 4), torch.zeros(3, 4)
    ties = [[0.0, -1.0, 2.0, 0.0], [2.0, 2.0, 1.0, 3.0], [0.0, 1.0, 2.0, 0.0]]
    ids, starts, words = torch.tensor([3, 1, 1, 4, 0, 3, 2, 1]), torch.tensor([0, 3, 3, 7]), torch.tensor([[0, 1, 2], [2, 2, 1]])
    labels, weights = torch.tensor([0, 2, -100, 1]), torch.tensor([0.5, 2.0, 1.5])
    squares, soft = torch.tensor([[[1, 0], [2, 1]], [[0, 0], [-100, 2]]]), dict(label_smoothing=0.2)

    def scatter(reduce, include=True, base=old):
        return lambda x: base.scatter_reduce(0, index, x, reduce, include_self=include)

    def computed(reduce, include=True, base=old):
        return lambda x: base.scatter_reduce(0, index + (x.detach() > 99), x, reduce, include_self=include)

    def bag(mode, table=None, **more):
        return lambda x: F.embedding_bag(ids, x, starts, mode=mode, **more)

    cases = {}
    for reduce in ("mean", "prod", "amax", "amin"):
        for include in (True, False):
            name = reduce + ("" if include else "_alone")
            cases["known_" + name], cases["computed_" + name] = (scatter(reduce, include), ties), (computed(reduce, include), ties)
            cases["into_" + name] = ((lambda r, i: lambda x: x.scatter_reduce(1, torch.tensor([[0, 0], [2, 2], [3, 1]]), old[:, :2], r, include_self=i))(reduce, include), (3, 4))
        cases["index_" + reduce] = ((lambda r: lambda x: old.index_reduce(1, rows, x, r))(reduce), (3, 4))
    return dict(
        cases, zeros_amax=(computed("amax", base=zeros), ties), none_amax=(lambda x: computed("amax", base=zeros - INF)(x).clamp(min=-9), ties),
        scatter_multiply=(lambda x: x * (old + x.detach() * 0).scatter(1, torch.tensor([[1, 2]]), 3.0, reduce="multiply"), (3, 4)),
        bag_sum=(bag("sum"), (5, 3)), bag_mean=(bag("mean"), (5, 3)), bag_max=(bag("max"), (5, 3)), bag_padding=(bag("sum", padding_idx=1), (5, 3)),
        bag_mean_padding=(bag("mean", padding_idx=1), (5, 3)), bag_max_padding=(bag("max", padding_idx=1), (5, 3)), bag_rows=(lambda x: F.embedding_bag(words, x, mode="mean", padding_idx=2), (4, 3)),
        bag_rows_max=(lambda x: F.embedding_bag(words, x, mode="max"), (4, 3)), bag_weighed=(lambda x: F.embedding_bag(words, x, mode="sum", per_sample_weights=torch.tensor([[0.5, 2.0, 1.0], [1.5, 0.25, 3.0]])), (4, 3)),
        divisor=(lambda x: F.avg_pool2d(x, 2, divisor_override=3), (1, 2, 4, 4)), divisor_ceil=(lambda x: F.avg_pool2d(x, (3, 2), stride=2, padding=(1, 0), ceil_mode=True, divisor_override=5), (1, 2, 5, 5)),
        divisor_3d=(lambda x: F.avg_pool3d(x, 2, stride=1, divisor_override=7), (1, 1, 3, 3, 3)),
        smooth_none=(lambda x: F.cross_entropy(x, labels, reduction="none", **soft), (4, 3)), smooth_sum=(lambda x: F.cross_entropy(x, labels, reduction="sum", **soft), (4, 3)),
        smooth_mean=(lambda x: F.cross_entropy(x, labels, **soft), (4, 3)), smooth_weights=(lambda x: F.cross_entropy(x, labels, weights, **soft), (4, 3)),
        smooth_weights_sum=(lambda x: F.cross_entropy(x, labels, weights, reduction="sum", **soft), (4, 3)),
        smooth_weights_none=(lambda x: F.cross_entropy(x, labels, weights, reduction="none", **soft), (4, 3)),
        smooth_ignored=(lambda x: F.cross_entropy(x, labels.clamp(0), weights, ignore_index=2, **soft), (4, 3)),
        smooth_images=(lambda x: F.cross_entropy(x, squares, weights, **soft), (2, 3, 2, 2)), smooth_images_none=(lambda x: F.cross_entropy(x, squares, reduction="none", **soft), (2, 3, 2, 2)))


@family("complex-more")
def complex_more(m):
    torch.manual_seed(5)
    w, u = torch.complex(drawn(3, 4), drawn(3, 4)), torch.complex(drawn(2, 3), drawn(2, 3))

    def z(x):
        return torch.view_as_complex(x)

    def real(y):
        return torch.view_as_real(y)

    def written(x):
        y = torch.zeros(2, 6, dtype=u.dtype)
        y[:, 1:4] = z(x)
        y[:, -1] = z(x)[:, 0] * 2
        return real(y * 1)

    def modes(x):
        f = torch.fft.rfft2(x)
        y = torch.zeros(2, 3, 5, 3, dtype=f.dtype)
        y[:, :, :2, :2] = torch.einsum("bixy,io->boxy", f[:, :, :2, :2], w[:3, :3])
        y[:, :, -2:, :2] = torch.einsum("bixy,io->boxy", f[:, :, -2:, :2], w[:3, 1:])
        return torch.fft.irfft2(y, s=(5, 5))

    def halves(x):
        y = z(x).clone()
        y.real.mul_(2)
        return real(y + 1)

    return dict(
        einsum=(lambda x: real(torch.einsum("bi,io->bo", z(x), w)), (2, 3, 2)),
        einsum_three=(lambda x: real(torch.einsum("bi,io,bi->bo", z(x), w, u)), (2, 3, 2)), matmul=(lambda x: real(z(x) @ w), (2, 3, 2)), bmm=(lambda x: real(torch.bmm(z(x), torch.stack([w, w * 2]))), (2, 5, 3, 2)),
        written=(written, (2, 3, 2)), modes=(modes, (2, 3, 5, 5)), halves=(halves, (2, 3, 2)), cat=(lambda x: real(torch.cat([z(x), u], -1)), (2, 3, 2)),
        stack=(lambda x: real(torch.stack([z(x), u], -1)), (2, 3, 2)), narrow=(lambda x: real(z(x).narrow(-1, 1, 2)), (2, 3, 2)), split=(lambda x: real(z(x).split([1, 2], -1)[1]), (2, 3, 2)),
        chunk=(lambda x: real(z(x).chunk(2, -1)[0]), (2, 4, 2)), unbind=(lambda x: real(z(x).unbind(-1)[1]), (2, 3, 2)), flatten=(lambda x: real(z(x).flatten(-2)), (2, 3, 4, 2)),
        squeeze=(lambda x: real(z(x).squeeze(-1)), (2, 1, 2)), flip=(lambda x: real(z(x).flip(-1)), (2, 3, 2)), sum=(lambda x: real(z(x).sum()), (2, 3, 2)),
        sum_dim=(lambda x: real(z(x).sum(-1, keepdim=True)), (2, 3, 2)), mean=(lambda x: real(z(x).mean(-1)), (2, 3, 2)), exp=(lambda x: real(torch.exp(z(x))), (2, 3, 2)),
        square=(lambda x: real(torch.square(z(x))), (2, 3, 2)), reciprocal=(lambda x: real(1 / z(x)), (2, 3, 2)), slice_step=(lambda x: real(z(x)[:, ::2]), (2, 5, 2)),
        slice_more=(lambda x: real(z(x)[..., 1:, None] * u[:, None, 1:3]), (2, 4, 2)))


class Operators(nn.Module):
    def __init__(self, build):
        super().__init__()
        self.m = cells()
        for parameter in self.m.parameters():
            parameter.requires_grad = False
        self.functions = build(self.m)
        self.nothing = nn.Parameter(torch.zeros(0, 64))  # Strides of 64 and 1, and no element.
        torch.manual_seed(1)
        self.of = nn.ParameterDict()
        for name, (_, given) in self.functions.items():
            self.of[name] = nn.Parameter(torch.tensor(given) if isinstance(given, list) else drawn(given))

    def forward(self, batch):
        given = {name: function(self.of[name]) for name, (function, _) in self.functions.items()}
        loss = sum((y * y).sum() for y in given.values() if y.is_floating_point())
        return {**given, "loss": loss + 0 * batch.sum() + self.nothing.sum()}


def digits(tensor):
    return [float(f"{v:.12g}") for v in tensor.detach().double().reshape(-1).tolist()]


def make(name):
    model = Operators(FAMILIES[name])
    batch = torch.zeros(2)  # What is drawn is drawn for a batch of two.
    path = os.path.join(HERE, f"{name}.pt2")
    save(torch.export.export(model, (batch,)), path, values=True)
    with zipfile.ZipFile(path) as source:
        entries = {entry: source.read(entry) for entry in source.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for entry, data in entries.items():
            target.writestr(zipfile.ZipInfo(entry), data, zipfile.ZIP_DEFLATED)
    torch.set_default_dtype(torch.float64)
    try:
        wide = Operators(FAMILIES[name])
        wide.load_state_dict(model.state_dict())
        wide.double()
        given = wide(batch.double())
        given["loss"].backward()
    finally:
        torch.set_default_dtype(torch.float32)
    wanted = dict(outputs={key: digits(y) for key, y in given.items()}, gradients={key: digits(p.grad) for key, p in wide.of.items()})
    with open(os.path.join(HERE, f"{name}.json"), "w") as file:
        json.dump(wanted, file, separators=(",", ":"))
        file.write("\n")


for each in sys.argv[1:] or FAMILIES:
    make(each)
