"""The models of kinds.py, as PyTorch has them: of each a function that gives a module whose `forward` returns
its loss, and the inputs of a batch by name. Weights and data are random; dropout is off, because its random
numbers differ between systems.
"""

import torch
from torch import nn
from torch.nn import functional as F

WORDS = 8000


class Classifier(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, image, label):
        return F.cross_entropy(self.model(image), label)


class Language(nn.Module):
    """A model of transformers, which computes its loss itself."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, labels):
        return self.model(input_ids=input_ids, labels=labels, **({"use_cache": False} if self.model.can_generate() else {})).loss


class Recurrent(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.table, self.head = nn.Embedding(WORDS, width), nn.Linear(width, WORDS)
        self.cells = nn.LSTM(width, width, num_layers=layers, batch_first=True)

    def forward(self, input_ids, labels):
        return F.cross_entropy(self.head(self.cells(self.table(input_ids))[0]).flatten(0, 1), labels.flatten())


class Residual(nn.Module):
    """Two convolutions with group norms, the time between them, and a path around them."""

    def __init__(self, channels, out, time):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(32, channels), nn.GroupNorm(32, out)
        self.conv1, self.conv2 = nn.Conv2d(channels, out, 3, padding=1), nn.Conv2d(out, out, 3, padding=1)
        self.time = nn.Linear(time, out)
        self.around = nn.Conv2d(channels, out, 1) if channels != out else nn.Identity()

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.around(x) + self.conv2(F.silu(self.norm2(y)))


class Attended(nn.Module):
    """Attention among the pixels of an image."""

    def __init__(self, channels, heads=4):
        super().__init__()
        self.heads, self.norm = heads, nn.GroupNorm(32, channels)
        self.qkv, self.out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)

    def forward(self, x):
        batch, channels, height, width = x.shape
        pixels = self.norm(x).flatten(2).transpose(1, 2)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(pixels).chunk(3, -1))
        attended = self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + attended.transpose(1, 2).reshape(batch, channels, height, width)


class UNet(nn.Module):
    """The noise in an image, at a time: three sizes, attention in the two smaller ones."""

    def __init__(self, width=64, time=256):
        super().__init__()
        one, two, three = width, 2 * width, 2 * width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.register_buffer("rates", torch.exp(-torch.arange(width // 2) * (9.21 / (width // 2))))
        self.first = nn.Conv2d(3, one, 3, padding=1)
        self.down1, self.shrink1 = Residual(one, one, time), nn.Conv2d(one, one, 3, 2, padding=1)
        self.down2, self.see2, self.shrink2 = Residual(one, two, time), Attended(two), nn.Conv2d(two, two, 3, 2, padding=1)
        self.middle1, self.see, self.middle2 = Residual(two, three, time), Attended(three), Residual(three, three, time)
        self.up2, self.look2 = Residual(three + two, two, time), Attended(two)
        self.up1 = Residual(two + one, one, time)
        self.norm, self.last = nn.GroupNorm(32, one), nn.Conv2d(one, 3, 3, padding=1)

    def forward(self, image, moment, noise):
        angles = moment[:, None] * self.rates[None]
        time = self.time(torch.cat((angles.sin(), angles.cos()), 1))
        one = self.down1(self.first(image), time)
        two = self.see2(self.down2(self.shrink1(one), time))
        x = self.middle2(self.see(self.middle1(self.shrink2(two), time)), time)
        x = self.look2(self.up2(torch.cat((F.interpolate(x, scale_factor=2.0), two), 1), time))
        x = self.up1(torch.cat((F.interpolate(x, scale_factor=2.0), one), 1), time)
        return F.mse_loss(self.last(F.silu(self.norm(x))), noise)


def text(batch, tokens):
    return dict(input_ids=torch.randint(WORDS, (batch, tokens)), labels=torch.randint(WORDS, (batch, tokens)))


def images(batch, size=224):
    return dict(image=torch.randn(batch, 3, size, size), label=torch.randint(1000, (batch,)))


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(vocab_size=WORDS, hidden_size=512, intermediate_size=1408, num_hidden_layers=8, num_attention_heads=8,
                         num_key_value_heads=8)
    return Language(LlamaForCausalLM(config)), text(4, 128)


def bert():
    from transformers import BertConfig, BertForMaskedLM
    config = BertConfig(vocab_size=WORDS, hidden_size=512, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=8,
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return Language(BertForMaskedLM(config)), text(4, 128)


def timm_model(name, **options):
    import timm
    return Classifier(timm.create_model(name, **options))


def vit_tiny():
    return timm_model("vit_tiny_patch16_224"), images(8)


def convnext_atto():
    return timm_model("convnext_atto"), images(8)


def mobilenet_v3():
    return timm_model("mobilenetv3_large_100", drop_rate=0.0), images(8)


def unet():
    return UNet(), dict(image=torch.randn(4, 3, 64, 64), moment=1000 * torch.rand(4), noise=torch.randn(4, 3, 64, 64))


def lstm():
    return Recurrent(512, 2), text(16, 64)


def resnet50():
    import torchvision
    return Classifier(torchvision.models.resnet50()), images(4)


MODELS = {f.__name__.replace("_", "-"): f for f in (llama, bert, vit_tiny, convnext_atto, mobilenet_v3, unet, lstm, resnet50)}


def make(name):
    """The model in training mode, and its inputs; the same ones in each process."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    return model.train(), inputs
