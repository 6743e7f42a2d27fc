"""Make the graph-only models of this folder: `make.py [name ...]`, all without arguments.

Small relatives of models that users bring, by several exporters and opsets, so that
no test depends on one exporter's habits. README.md says what differs.
"""

import io
import os
import sys
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "export"))

import onnx
import torch
from torch import nn
from torch.nn import functional as F
from transformers import (BertConfig, BertForMaskedLM, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel,
                          LlamaConfig, LlamaForCausalLM)

import mlp
import resnet
from common import SCOPES, clean_values, export, export_torchscript, write

TOKENS = dict(input_ids={0: "batch", 1: "sequence"}, labels={0: "batch", 1: "sequence"})
ROWS = {name: {0: "batch"} for name in ("input_ids", "attention_mask", "labels")}
LM = ["loss", "logits"]


def ids(batch=2, sequence=32, vocabulary=256):
    return torch.randint(vocabulary, (batch, sequence))


def gpt2(dropout=0.0, attention="eager"):
    return GPT2LMHeadModel(GPT2Config(
        vocab_size=256, n_positions=32, n_embd=64, n_layer=2, n_head=4, resid_pdrop=dropout, embd_pdrop=dropout,
        attn_pdrop=dropout, attn_implementation=attention, use_cache=False, loss_type="ForCausalLM",
        bos_token_id=0, eos_token_id=0)).train()


def llama(hidden=64, attention="eager"):
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=256, hidden_size=hidden, intermediate_size=5 * hidden // 2, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, attn_implementation=attention, use_cache=False,
        bos_token_id=0, eos_token_id=0)).train()


def lm_inputs():
    tokens = ids()
    return dict(input_ids=tokens, labels=tokens.clone(), use_cache=False)


def bert(kind, hidden=64, **options):
    return kind(BertConfig(
        vocab_size=256, hidden_size=hidden, num_hidden_layers=2, num_attention_heads=4, intermediate_size=2 * hidden,
        max_position_embeddings=64, attn_implementation="eager", **options)).train()


def bert_inputs(labels):
    tokens = ids()
    return dict(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=labels)


class Decoder(nn.Module):
    """A decoder written with torch's own rms_norm and scaled_dot_product_attention, which
    opset 23 has operators for: grouped queries, rotary positions, SwiGLU."""

    def __init__(self, vocabulary=256, dim=64, heads=4, groups=2, hidden=160, layers=2, length=32):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, dim // heads
        self.embed = nn.Embedding(vocabulary, dim)
        self.blocks = nn.ModuleList()
        for _ in range(layers):
            self.blocks.append(nn.ModuleDict(dict(
                norm1=nn.RMSNorm(dim), q=nn.Linear(dim, dim, bias=False),
                k=nn.Linear(dim, groups * self.size, bias=False), v=nn.Linear(dim, groups * self.size, bias=False),
                o=nn.Linear(dim, dim, bias=False), norm2=nn.RMSNorm(dim), gate=nn.Linear(dim, hidden, bias=False),
                up=nn.Linear(dim, hidden, bias=False), down=nn.Linear(hidden, dim, bias=False))))
        self.norm = nn.RMSNorm(dim)
        self.head = nn.Linear(dim, vocabulary, bias=False)
        angles = torch.outer(torch.arange(length), 10000.0 ** -(torch.arange(0, self.size, 2) / self.size))
        self.register_buffer("cos", torch.cos(torch.cat([angles, angles], -1)))
        self.register_buffer("sin", torch.sin(torch.cat([angles, angles], -1)))

    def rotate(self, x):
        length = x.shape[2]
        a, b = x.chunk(2, -1)
        return x * self.cos[:length] + torch.cat([-b, a], -1) * self.sin[:length]

    def forward(self, input_ids, labels):
        x = self.embed(input_ids)
        batch, length, dim = x.shape
        for block in self.blocks:
            y = block["norm1"](x)
            q = self.rotate(block["q"](y).view(batch, length, self.heads, self.size).transpose(1, 2))
            k = self.rotate(block["k"](y).view(batch, length, self.groups, self.size).transpose(1, 2))
            v = block["v"](y).view(batch, length, self.groups, self.size).transpose(1, 2)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            x = x + block["o"](y.transpose(1, 2).reshape(batch, length, dim))
            y = block["norm2"](x)
            x = x + block["down"](F.silu(block["gate"](y)) * block["up"](y))
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits


class Biased(nn.Module):
    """Attention with trained numbers added to its scores: of buckets of relative positions, beside padding, as T5;
    of places within windows of a shifted picture of 4 x 8, as Swin; slopes of the distance, causal."""

    def __init__(self, vocabulary=256, dim=32, heads=4):
        super().__init__()
        self.heads, self.size = heads, dim // heads
        self.embed = nn.Embedding(vocabulary, dim)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(dict(norm=nn.LayerNorm(dim), qkv=nn.Linear(dim, 3 * dim), out=nn.Linear(dim, dim))) for _ in range(3))
        self.buckets, self.places = nn.Embedding(17, heads), nn.Parameter(torch.zeros(49, heads))
        self.slopes = nn.Parameter(torch.zeros(heads))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocabulary, bias=False)

    def of_buckets(self, q, k, v, seen):
        at = torch.arange(q.shape[2])
        bias = self.buckets((at[None] - at[:, None]).clamp(-8, 8) + 8).permute(2, 0, 1)[None]
        bias = bias + (1.0 - seen[:, None, None, :].float()) * torch.finfo(torch.float32).min
        return F.softmax(q @ k.transpose(-1, -2) + bias, -1) @ v

    def of_places(self, q, k, v):
        """In windows of 4 x 4, the last of which has two halves that aren't neighbours."""
        rows, columns = torch.arange(16) // 4, torch.arange(16) % 4
        index = (rows[:, None] - rows[None] + 3) * 7 + columns[:, None] - columns[None] + 3
        bias = self.places[index.flatten()].reshape(16, 16, self.heads).permute(2, 0, 1)
        part = (torch.arange(32) // 8).clamp(min=1).view(2, 16)
        apart = torch.where(part[:, :, None] == part[:, None], 0.0, -100.0)
        batch = q.shape[0]
        q, k, v = (x.transpose(1, 2).reshape(batch * 2, 16, self.heads, self.size).transpose(1, 2) for x in (q, k, v))
        scores = q @ k.transpose(-1, -2) / self.size ** 0.5 + bias[None]
        scores = scores.reshape(batch, 2, self.heads, 16, 16) + apart[None, :, None]
        y = F.softmax(scores.reshape(-1, self.heads, 16, 16), -1) @ v
        return y.transpose(1, 2).reshape(batch, 32, self.heads, self.size).transpose(1, 2)

    def of_distance(self, q, k, v):
        at = torch.arange(q.shape[2])
        distance = at[None] - at[:, None]
        bias = self.slopes[:, None, None] * distance.float()
        bias = bias.masked_fill(distance > 0, float("-inf"))
        return F.softmax(q @ k.transpose(-1, -2) / self.size ** 0.5 + bias[None], -1) @ v

    def forward(self, input_ids, attention_mask, labels):
        x = self.embed(input_ids)
        batch, length, dim = x.shape
        attend = lambda q, k, v: self.of_buckets(q, k, v, attention_mask)
        for block, attention in zip(self.blocks, (attend, self.of_places, self.of_distance)):
            qkv = block["qkv"](block["norm"](x)).view(batch, length, 3, self.heads, self.size)
            y = attention(*(qkv[:, :, i].transpose(1, 2) for i in range(3)))
            x = x + block["out"](y.transpose(1, 2).reshape(batch, length, dim))
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits


class UNet(nn.Module):
    """Two levels down and up again: one by transposed convolution, one by upsampling."""

    def __init__(self, width=8, norm="group"):
        super().__init__()

        def block(inputs, outputs):
            layers = []
            for channels in (inputs, outputs):
                layers.append(nn.Conv2d(channels, outputs, 3, padding=1))
                layers.append(nn.GroupNorm(4, outputs) if norm == "group" else nn.BatchNorm2d(outputs))
                layers.append(nn.ReLU())
            return nn.Sequential(*layers)

        self.down1, self.down2 = block(3, width), block(width, 2 * width)
        self.middle = block(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.merge2 = block(4 * width, 2 * width)
        self.up1 = nn.Sequential(nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(2 * width, width, 3, padding=1))
        self.merge1 = block(2 * width, width)
        self.out = nn.Conv2d(width, 3, 1)

    def forward(self, image, target):
        a = self.down1(image)
        b = self.down2(F.max_pool2d(a, 2))
        x = self.middle(F.max_pool2d(b, 2))
        x = self.merge2(torch.cat([self.up2(x), b], 1))
        x = self.merge1(torch.cat([self.up1(x), a], 1))
        prediction = self.out(x)
        return F.mse_loss(prediction, target), prediction


def unet(path, norm, **options):
    axes = {0: "batch"}
    inputs = dict(image=torch.zeros(2, 3, 32, 32), target=torch.zeros(2, 3, 32, 32))
    export(UNet(norm=norm).train(), inputs, path, outputs=["loss", "prediction"],
           dims=dict(image=axes, target=axes), **options)


def gpt2_torchscript(path, opset):
    """With an attention mask: without one, transformers looks for packed sequences by
    aten::diff, which this exporter doesn't know."""
    inputs = dict(lm_inputs(), attention_mask=torch.ones(2, 32, dtype=torch.int64))
    export_torchscript(gpt2(0.1), inputs, path, outputs=LM, dims=dict(TOKENS, attention_mask=TOKENS["labels"]), opset=opset)


class Folded(nn.Module):
    """Linear layers on sequences, tied, and a normalized convolution: all that folding takes apart."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.linear = nn.Linear(8, 8, bias=False)

    def forward(self, image):
        x = F.relu(self.bn(self.conv(image))).flatten(2).transpose(1, 2)
        return self.linear(self.linear(x))


def folded(path):
    """A trap: exported to run, not to train. Weights are named onnx::MatMul_N and hold products of others."""
    export_torchscript(Folded().eval(), dict(image=torch.zeros(2, 3, 8, 8)), path, outputs=["features"],
                       dims=dict(image={0: "batch"}), opset=17, training=False)


class Noted(nn.Module):
    """What ONNX has no place for and the dynamo exporter notes beside it: a padding row, a detached
    factor, label smoothing, a buffer that forward writes. One input holds indices into two tables."""

    def __init__(self, center=True):
        super().__init__()
        self.center = center
        self.first, self.second = nn.Embedding(5, 8), nn.Embedding(7, 8, padding_idx=2)
        self.hidden, self.out = nn.Linear(16, 16), nn.Linear(16, 6)
        self.register_buffer("running_center", torch.zeros(16))

    def forward(self, cats, label):
        x = torch.cat([self.first(cats[:, 0]), self.second(cats[:, 1])], 1)
        if self.center:
            self.running_center.mul_(0.9).add_(0.1 * x.detach().mean(0))
            x = x - self.running_center
        h = self.hidden(x)
        h = h * torch.sigmoid((2 * h).detach())
        logits = self.out(h)
        return F.cross_entropy(logits, label, label_smoothing=0.1), logits


class BatchFirst(nn.Module):
    """Modules that take samples first and work on time first, gates of experts by scatter, and inputs
    that belong to every sample: a temperature and a vector of one."""

    def __init__(self, width=8, experts=4, classes=5):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.layer = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, activation=F.gelu, batch_first=True)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.gate = nn.Linear(width, experts)
        self.experts = nn.Parameter(torch.randn(experts, width, width) / width ** 0.5)
        self.head = nn.Linear(width, classes)

    def forward(self, x, label, temperature, share):
        h = x + self.attention(x, x, x, need_weights=False)[0]
        h = self.lstm(self.layer(h))[0]
        tokens = h.reshape(-1, h.shape[-1])
        scores = self.gate(tokens)
        weights, chosen = scores.softmax(-1).topk(2)
        gates = torch.zeros_like(scores).scatter(1, chosen, weights)
        tokens = tokens + torch.einsum("te,td,edf->tf", gates, tokens, self.experts)
        logits = self.head(tokens.reshape(h.shape).mean(1)) / temperature
        return F.cross_entropy(logits, label) * share.squeeze(0), logits


class LostBuffer(nn.Module):
    """Writes a buffer after its last use: the exporter leaves the new value out."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("center", torch.zeros(4))

    def forward(self, x, label):
        logits = self.linear(x - self.center)
        self.center.mul_(0.9).add_(0.1 * x.mean(0))
        return F.cross_entropy(logits, label)


class Functions(nn.Module):
    """Functions of parameters alone, which the exporter's defaults fold: a number's, a vector's, a matrix's."""

    def __init__(self):
        super().__init__()
        self.a, self.t = nn.Parameter(torch.rand(3)), nn.Parameter(torch.tensor(0.5))
        self.u, self.v = nn.Parameter(torch.rand(3, 1)), nn.Parameter(torch.rand(1, 3))

    def forward(self, x):
        return ((x * torch.exp(self.a) / self.t.exp()) @ (self.u @ self.v)).pow(2).sum()


class DetachedTwice(nn.Module):
    """Nodes that read one value twice, detached in one place, the first or the second."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.rand(3)), nn.Parameter(torch.rand(3))

    def forward(self, x):
        y, z = self.a * x, self.b * x
        return (y * y.detach()).sum() + (z.detach() / z).sum()


class Labelled(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(7, 4), nn.Linear(4, 7)

    def forward(self, ids, labels):
        return F.cross_entropy(self.head(self.table(ids)).transpose(1, 2), labels)


def functions(path, notes=True):
    as_users_do(path, Functions().train(), dict(x=torch.rand(2, 3)))
    if not notes:
        proto = onnx.load(path)
        for value in proto.graph.value_info:
            del value.metadata_props[:]
        onnx.save(proto, path)


def one_tensor(path, ids=torch.zeros(2, 5, dtype=torch.int64)):
    as_users_do(path, Labelled().train(), dict(ids=ids, labels=ids), optimize=False)


class Norm(nn.Module):
    """One convolution with its batch normalization."""

    def __init__(self, **options):
        super().__init__()
        self.conv, self.bn, self.linear = nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4, **options), nn.Linear(4, 3)

    def forward(self, image, label):
        return F.cross_entropy(self.linear(F.relu(self.bn(self.conv(image))).mean((2, 3))), label)


class FrozenNorm(nn.Module):
    """A batch normalization in pieces, of buffers only, as detectors use it."""

    def __init__(self, channels):
        super().__init__()
        for name in ("weight", "bias", "running_mean", "running_var"):
            self.register_buffer(name, torch.rand(channels) + 0.5)

    def forward(self, x):
        column = lambda v: v.reshape(1, -1, 1, 1)
        scale = column(self.weight) * (column(self.running_var) + 1e-5).rsqrt()
        return x * scale + (column(self.bias) - column(self.running_mean) * scale)


def fixed_norm(path):
    model = Norm().train()
    model.bn.eval()
    inputs = dict(image=torch.zeros(4, 3, 8, 8), label=torch.zeros(4, dtype=torch.int64))
    as_users_do(path, model, inputs, dynamo=False)


def frozen_norm(path):
    model = Norm()
    model.bn = FrozenNorm(4)
    inputs = dict(image=torch.zeros(4, 3, 8, 8), label=torch.zeros(4, dtype=torch.int64))
    as_users_do(path, model.train(), inputs, dynamo=False)


NOTES = ("pkg.torch.onnx.fx_node", "pkg.onnxscript.rewriter.rule_name")


def as_users_do(path, model, inputs, outputs=("loss",), **options):
    """As a user exports it, with the exporter's notes on each node but none that holds a path."""
    warnings.simplefilter("ignore")
    buffer = io.BytesIO()
    if not options.get("dynamo", True):
        options.setdefault("training", torch.onnx.TrainingMode.PRESERVE)
        options.setdefault("do_constant_folding", False)
    program = torch.onnx.export(model, tuple(inputs.values()), buffer, input_names=list(inputs), output_names=list(outputs),
                                verbose=False, **options)
    proto = onnx.load_from_string(buffer.getvalue())
    for node in proto.graph.node:
        kept = [p for p in node.metadata_props if p.key in NOTES or p.key == SCOPES]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
        node.doc_string = ""
    clean_values(proto)
    write(proto, model, path, options.get("opset_version", "default"))


def noted(path, center=True, **options):
    cats = torch.tensor([[4, 6], [0, 2], [1, 2], [3, 0], [2, 5], [4, 1]])
    as_users_do(path, Noted(center).train(), dict(cats=cats, label=torch.randint(6, (6,))), ("loss", "logits"), **options)


def batch_first_inputs():
    return dict(x=torch.randn(5, 3, 8), label=torch.arange(5), temperature=torch.tensor(2.0), share=torch.tensor([0.5]))


def norm(path, training=True, options=(), **export_options):
    inputs = dict(image=torch.zeros(4, 3, 8, 8), label=torch.zeros(4, dtype=torch.int64))
    as_users_do(path, Norm(**dict(options)).train(training), inputs, **export_options)


MODELS = {
    "noted-tiny": lambda p: noted(p, optimize=False),
    "noted-tiny-optimized": lambda p: noted(p, center=False),
    "batch-first": lambda p: as_users_do(p, BatchFirst().train(), batch_first_inputs(), ("loss", "logits"), optimize=False),
    "folded-buffer": noted,
    "lost-buffer": lambda p: as_users_do(
        p, LostBuffer().train(), dict(x=torch.zeros(5, 4), label=torch.zeros(5, dtype=torch.int64)), optimize=False),
    "folded-norm": norm,
    "folded-functions": functions,
    "folded-functions-bare": lambda p: functions(p, notes=False),
    "detached-twice": lambda p: as_users_do(p, DetachedTwice().train(), dict(x=torch.rand(3))),
    "one-tensor": one_tensor,
    "merged-norm": lambda p: norm(p, training=False, dynamo=False),
    "fixed-norm-torchscript": fixed_norm,
    "frozen-norm-torchscript": frozen_norm,
    "norm-without-statistics": lambda p: norm(p, options=dict(track_running_stats=False), optimize=False),
    "norm-without-statistics-torchscript": lambda p: norm(p, options=dict(track_running_stats=False), dynamo=False),
    "gpt2-tiny": lambda p: export(gpt2(), lm_inputs(), p, outputs=LM, dims=TOKENS),
    "gpt2-tiny-dropout": lambda p: export(gpt2(0.1), lm_inputs(), p, outputs=LM, dims=TOKENS),
    "gpt2-tiny-optimized": lambda p: export(gpt2(0.1), lm_inputs(), p, outputs=LM, dims=TOKENS, optimize=True),
    "gpt2-tiny-nodropout-bfloat16": lambda p: export(gpt2().bfloat16(), lm_inputs(), p, outputs=LM, dims=TOKENS),
    "gpt2-tiny-nodropout-optimized": lambda p: export(gpt2(), lm_inputs(), p, outputs=LM, dims=TOKENS, optimize=True),
    "gpt2-tiny-nodropout-sdpa-opset18": lambda p: export(gpt2(0.0, "sdpa"), lm_inputs(), p, outputs=LM, dims=TOKENS),
    "gpt2-tiny-nodropout-sdpa-opset23": lambda p: export(gpt2(0.0, "sdpa"), lm_inputs(), p, outputs=LM, dims=TOKENS, opset=23),
    "gpt2-tiny-sdpa-opset18": lambda p: export(gpt2(0.1, "sdpa"), lm_inputs(), p, outputs=LM, dims=TOKENS),
    "gpt2-tiny-sdpa-opset23": lambda p: export(gpt2(0.1, "sdpa"), lm_inputs(), p, outputs=LM, dims=TOKENS, opset=23),
    "gpt2-tiny-fixed": lambda p: export(gpt2(), lm_inputs(), p, outputs=LM, opset=20),
    "gpt2-tiny-half": lambda p: export(gpt2(0.1).half(), lm_inputs(), p, outputs=LM, dims=TOKENS),
    "gpt2-tiny-bfloat16": lambda p: export(gpt2(0.1).bfloat16(), lm_inputs(), p, outputs=LM, dims=TOKENS),
    "gpt2-tiny-torchscript-opset14": lambda p: gpt2_torchscript(p, 14),
    "gpt2-tiny-torchscript-opset17": lambda p: gpt2_torchscript(p, 17),
    "llama-tiny": lambda p: export(llama(), lm_inputs(), p, outputs=LM, dims=TOKENS),
    "llama-tiny-optimized": lambda p: export(llama(), lm_inputs(), p, outputs=LM, dims=TOKENS, opset=20, optimize=True),
    "decoder-opset18": lambda p: export(Decoder().train(), dict(input_ids=ids(), labels=ids()), p, outputs=LM, dims=TOKENS),
    "decoder-opset23": lambda p: export(Decoder().train(), dict(input_ids=ids(), labels=ids()), p, outputs=LM, dims=TOKENS, opset=23),
    "bert-tiny-mlm": lambda p: export(
        bert(BertForMaskedLM), bert_inputs(ids()), p, outputs=LM, dims=dict(TOKENS, attention_mask=TOKENS["labels"])),
    "bert-tiny-mlm-nodropout": lambda p: export(
        bert(BertForMaskedLM, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0), bert_inputs(ids()), p,
        outputs=LM, dims=dict(TOKENS, attention_mask=TOKENS["labels"])),
    "bert-tiny-classify": lambda p: export(
        bert(BertForSequenceClassification, num_labels=4, problem_type="single_label_classification"),
        bert_inputs(torch.zeros(2, dtype=torch.int64)), p, outputs=LM,
        dims=dict(input_ids=TOKENS["labels"], attention_mask=TOKENS["labels"], labels={0: "batch"})),
    "bert-tiny-mlm-optimized": lambda p: export(
        bert(BertForMaskedLM), bert_inputs(ids()), p, outputs=LM,
        dims=dict(TOKENS, attention_mask=TOKENS["labels"]), opset=20, optimize=True),
    "biased-tiny": lambda p: export(Biased().train(), bert_inputs(ids()), p, outputs=LM, dims=ROWS),
    "unet-tiny": lambda p: unet(p, "group"),
    "unet-tiny-opset21": lambda p: unet(p, "group", opset=21),
    "unet-tiny-batchnorm": lambda p: unet(p, "batch"),
    "mlp-small": lambda p: mlp.run(p, (64, 96, 96, 10)),
    "mlp-small-torchscript-opset13": lambda p: mlp.run(p, (64, 96, 96, 10), how=export_torchscript, opset=13),
    "resnet-tiny-torchscript-opset13": lambda p: resnet.run(p, how=export_torchscript, opset=13),
    "folded-eval": folded,
    "folded-bert": lambda p: export(
        bert(BertForMaskedLM, 32), bert_inputs(ids()), p, outputs=LM,
        dims=dict(TOKENS, attention_mask=TOKENS["labels"]), optimize=True, folded=True),
}

if __name__ == "__main__":
    torch.manual_seed(0)
    for name in sys.argv[1:] or MODELS:
        try:
            MODELS[name](f"test/models/{name}.onnx")
        except Exception as error:  # One exporter's failure shouldn't hide the other models.
            print(f"{name}: FAILED: {type(error).__name__}: {str(error)[:600]}")
