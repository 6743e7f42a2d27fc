"""The models of this folder's table: tiny ones of each architecture, from the libraries' own
configurations, with random weights.

A row is a function that gives a module whose `forward` returns {"loss": ...}, and its inputs by name.
Padding rows, masks and ties are on wherever the architecture has them; dropout is off, since its
random numbers differ.
"""

import functools

import torch
import transformers
from torch import nn
from torch.nn import functional as F

BATCH, TOKENS, WORDS = 4, 16, 96
ROWS = {}


def row(family):
    def add(function):
        ROWS[function.__name__.replace("_", "-")] = (family, function)
        return function
    return add


class Loss(nn.Module):
    """`model` with a loss of its outputs: a function of what it returns and of the inputs."""

    def __init__(self, model, names, loss, **fixed):
        super().__init__()
        self.model, self.names, self.loss, self.fixed = model, names, loss, fixed
        # The exporters read the names of the inputs from the signature.
        text = f"def forward(self, {', '.join(names)}):\n    return self.run(dict({', '.join(f'{n}={n}' for n in names)}))"
        scope = {}
        exec(text, scope)
        self.forward = scope["forward"].__get__(self)

    def run(self, inputs):
        return {"loss": self.loss(self.model, inputs, self.fixed)}


def own(model, inputs, fixed):
    """The loss that the model computes itself."""
    return model(**inputs, **fixed).loss


def classified(model, inputs, fixed):
    """Cross-entropy of the scores that the model gives."""
    scores = model(inputs["image"])
    return F.cross_entropy(getattr(scores, "logits", scores), inputs["label"])


def ids(*shape):
    return torch.randint(3, WORDS, shape)


def mask():
    """Samples of several lengths, padded on the right."""
    lengths = torch.tensor([TOKENS, TOKENS - 3, TOKENS - 7, TOKENS - 1])
    return (torch.arange(TOKENS)[None] < lengths[:, None]).long()


def text(masked=True):
    tokens, labels = ids(BATCH, TOKENS), ids(BATCH, TOKENS)
    if not masked:
        return dict(input_ids=tokens, labels=labels)
    seen = mask()
    # 1 is every configuration's padding token here.
    return dict(input_ids=torch.where(seen == 1, tokens, 1), attention_mask=seen, labels=torch.where(seen == 1, labels, -100))


def image(size=32, channels=3):
    return dict(image=torch.randn(BATCH, channels, size, size), label=torch.randint(10, (BATCH,)))


def module(model, inputs, loss=own, **fixed):
    return Loss(model.train(), list(inputs), loss, **fixed), inputs


# Names that mean a size or a share of dropout in one configuration or another.
SMALL = dict(
    vocab_size=WORDS, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    max_position_embeddings=64, pad_token_id=1, bos_token_id=0, eos_token_id=2)


def configured(name, **changes):
    """A configuration without dropout, of `changes`."""
    config = getattr(transformers, name + "Config")(**changes)
    for part in [config, *(v for v in vars(config).values() if isinstance(v, transformers.PretrainedConfig))]:
        for key, value in list(vars(part).items()):
            if isinstance(value, float) and ("drop" in key or key in ("embd_pdrop", "attn_pdrop", "resid_pdrop", "layerdrop")):
                setattr(part, key, 0.0)
    return config


def decoder(name, masked=True, **changes):
    config = configured(name, **{**SMALL, **changes})
    model = getattr(transformers, name + "ForCausalLM")(config)
    return module(model, text(masked), use_cache=False)


# Decoders


@row("decoder")
def gpt2():
    config = configured("GPT2", vocab_size=WORDS, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    return module(transformers.GPT2LMHeadModel(config), text(), use_cache=False)


@row("decoder")
def gpt_neo():
    return decoder("GPTNeo", num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=4)


@row("decoder")
def gpt_neox():
    return decoder("GPTNeoX")


@row("decoder")
def opt():
    return decoder("OPT", ffn_dim=48, word_embed_proj_dim=32)


@row("decoder")
def bloom():
    """Attention with linear biases (ALiBi)."""
    return decoder("Bloom", n_layer=2, n_head=4)


@row("decoder")
def falcon():
    return decoder("Falcon", new_decoder_architecture=False, alibi=True)


@row("decoder")
def llama():
    return decoder("Llama", tie_word_embeddings=True)


@row("decoder")
def mistral():
    """A sliding window of four tokens."""
    return decoder("Mistral", sliding_window=4)


@row("decoder")
def gemma2():
    """Soft caps on scores and logits, every second layer with a sliding window."""
    return decoder("Gemma2", sliding_window=4, head_dim=8, query_pre_attn_scalar=8, num_hidden_layers=2)


@row("decoder")
def gemma3():
    config = configured("Gemma3Text", **SMALL, sliding_window=4, head_dim=8, query_pre_attn_scalar=8)
    return module(transformers.Gemma3ForCausalLM(config), text(), use_cache=False)


@row("decoder")
def phi():
    return decoder("Phi", partial_rotary_factor=0.5)


@row("decoder")
def qwen3():
    return decoder("Qwen3", head_dim=8)


# Encoders


@row("encoder")
def bert():
    return module(transformers.BertForMaskedLM(configured("Bert", **SMALL)), text())


@row("encoder")
def roberta():
    return module(transformers.RobertaForMaskedLM(configured("Roberta", **SMALL)), text())


@row("encoder")
def albert():
    return module(transformers.AlbertForMaskedLM(configured("Albert", **SMALL, embedding_size=16)), text())


@row("encoder")
def deberta_v2():
    config = configured(
        "DebertaV2", **SMALL, relative_attention=True, position_buckets=8, pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm",
        share_att_key=True)
    return module(transformers.DebertaV2ForMaskedLM(config), text())


@row("encoder")
def modernbert():
    config = configured("ModernBert", **SMALL, global_attn_every_n_layers=2, local_attention=8)
    config._attn_implementation = "sdpa"
    return module(transformers.ModernBertForMaskedLM(config), text())


# Encoder and decoder


@row("encoder-decoder")
def t5():
    config = configured("T5", vocab_size=WORDS, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, pad_token_id=1, decoder_start_token_id=0)
    return module(transformers.T5ForConditionalGeneration(config), text(), use_cache=False)


@row("encoder-decoder")
def bart():
    config = configured(
        "Bart", vocab_size=WORDS, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64, pad_token_id=1, decoder_start_token_id=2)
    return module(transformers.BartForConditionalGeneration(config), text(), use_cache=False)


# Experts


@row("experts")
def mixtral():
    return decoder("Mixtral", num_local_experts=4, num_experts_per_tok=2)


@row("experts")
def qwen3_moe():
    return decoder("Qwen3Moe", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, head_dim=8)


@row("experts")
def gpt_oss():
    """Sinks in attention, biases of experts."""
    return decoder("GptOss", num_local_experts=4, num_experts_per_tok=2, head_dim=8, sliding_window=4)


# State spaces


@row("state space")
def mamba():
    return decoder("Mamba", masked=False, state_size=4, expand=2, use_mambapy=False)


@row("state space")
def mamba2():
    return decoder("Mamba2", masked=False, state_size=8, expand=2, num_heads=4, head_dim=16, n_groups=1, chunk_size=8)


@row("recurrent")
def rwkv():
    return decoder("Rwkv", masked=False, attention_hidden_size=32, context_length=TOKENS)


@row("recurrent")
def recurrent_gemma():
    return decoder("RecurrentGemma", masked=False, lru_width=32, attention_window_size=8, num_hidden_layers=3)


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.table = nn.Embedding(WORDS, 24, padding_idx=1)
        self.cells = getattr(nn, kind)(24, 32, batch_first=True, **options)
        self.head = nn.Linear(32 * (2 if options.get("bidirectional") else 1), WORDS)

    def forward(self, tokens):
        return self.head(self.cells(self.table(tokens))[0])


def token_loss(model, inputs, fixed):
    return F.cross_entropy(model(inputs["input_ids"]).flatten(0, 1), inputs["labels"].flatten())


@row("recurrent")
def lstm():
    return module(Recurrent("LSTM", num_layers=2), text(False), token_loss)


@row("recurrent")
def gru():
    return module(Recurrent("GRU", bidirectional=True), text(False), token_loss)


# Vision


def vision(name, **changes):
    size = dict(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8, num_labels=10)
    config = configured(name, **{**size, **changes})
    return module(getattr(transformers, name + "ForImageClassification")(config), image(), classified)


@row("vision transformer")
def vit():
    return vision("ViT")


@row("vision transformer")
def beit():
    return vision("Beit", use_relative_position_bias=True, use_mask_token=False)


@row("vision transformer")
def dinov2():
    return vision("Dinov2", mlp_ratio=2)


@row("vision transformer")
def swin():
    config = configured("Swin", image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4, num_labels=10)
    return module(transformers.SwinForImageClassification(config), image(), classified)


def timm_model(name, size=32, **options):
    import timm
    return module(timm.create_model(name, num_classes=10, **options), image(size), classified)


@row("vision transformer")
def timm_vit():
    return timm_model("vit_tiny_patch16_224", img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4)


@row("convnet")
def timm_convnext():
    return timm_model("convnext_atto", depths=(1, 1, 1, 1), dims=(8, 16, 24, 32))


@row("convnet")
def timm_efficientnet():
    from timm.models.efficientnet import _gen_efficientnet
    model = _gen_efficientnet("efficientnet_b0", channel_multiplier=0.25, depth_multiplier=0.3, num_classes=10)
    return module(model, image(64), classified)


def torchvision_model(name, size=64, **options):
    import torchvision
    return module(getattr(torchvision.models, name)(num_classes=10, **options), image(size), classified)


@row("convnet")
def resnet18():
    return torchvision_model("resnet18")


@row("convnet")
def mobilenet_v3():
    return torchvision_model("mobilenet_v3_small", dropout=0.0)


@row("convnet")
def densenet():
    import torchvision
    return module(torchvision.models.DenseNet(8, (2, 2, 2), 16, num_classes=10), image(64), classified)


@row("convnet")
def shufflenet():
    return torchvision_model("shufflenet_v2_x0_5")


@row("convnet")
def regnet():
    return torchvision_model("regnet_y_400mf")


# Diffusion


def denoised(model, inputs, fixed):
    others = {k: v for k, v in inputs.items() if k not in ("sample", "timestep", "noise")}
    return F.mse_loss(model(inputs["sample"], inputs["timestep"], **others, return_dict=False)[0], inputs["noise"])


def noisy(channels, size=16):
    return dict(
        sample=torch.randn(BATCH, channels, size, size), timestep=torch.randint(1000, (BATCH,)), noise=torch.randn(BATCH, channels, size, size))


@row("diffusion")
def unet():
    import diffusers
    model = diffusers.UNet2DModel(
        sample_size=16, in_channels=3, out_channels=3, block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=8, attention_head_dim=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"))
    return module(model, noisy(3), denoised)


@row("diffusion")
def unet_conditioned():
    import diffusers
    model = diffusers.UNet2DConditionModel(
        sample_size=16, in_channels=4, out_channels=4, block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=8, attention_head_dim=8,
        cross_attention_dim=24, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))
    return module(model, dict(noisy(4), encoder_hidden_states=torch.randn(BATCH, 8, 24)), denoised)


@row("diffusion")
def dit():
    import diffusers
    model = diffusers.DiTTransformer2DModel(
        num_attention_heads=4, attention_head_dim=8, in_channels=4, num_layers=2, sample_size=16, patch_size=4, num_embeds_ada_norm=1000,
        norm_num_groups=4)
    model = model.eval()  # Its labels are dropped by chance in training.
    wrapped, inputs = module(model, dict(noisy(4), class_labels=torch.randint(10, (BATCH,))), denoised)
    model.eval()
    return wrapped, inputs


@row("diffusion")
def autoencoder():
    import diffusers
    model = diffusers.AutoencoderKL(
        in_channels=3, out_channels=3, block_out_channels=(8, 16), norm_num_groups=4, latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)

    def loss(model, inputs, fixed):
        latent = model.encode(inputs["image"]).latent_dist
        spread = (latent.mean ** 2 + latent.var - 1 - latent.logvar).sum() / 2
        return F.mse_loss(model.decode(latent.mean).sample, inputs["image"]) + 1e-6 * spread
    return module(model, dict(image=torch.randn(BATCH, 3, 16, 16)), loss)


# Detection and segmentation


@row("detection")
def yolos():
    """Its matching of boxes is no graph; here the boxes have their places."""
    config = configured(
        "Yolos", hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=[32, 32], patch_size=8,
        num_detection_tokens=5, num_labels=10)
    model = transformers.YolosForObjectDetection(config)

    def loss(model, inputs, fixed):
        found = model(inputs["image"])
        return F.cross_entropy(found.logits.flatten(0, 1), inputs["label"].flatten()) + F.l1_loss(found.pred_boxes, inputs["boxes"])
    inputs = dict(image=torch.randn(BATCH, 3, 32, 32), label=torch.randint(10, (BATCH, 5)), boxes=torch.rand(BATCH, 5, 4))
    return module(model, inputs, loss)


@row("detection")
def retinanet_head():
    """The heads of RetinaNet on a pyramid of features; focal loss of its own places. Of the picture that is drawn
    first, one number before a ReLU is -2e-7 where f32 is 4e-6 off: rounding decides its gradient."""
    import torchvision
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
    from torchvision.models.detection.retinanet import RetinaNetHead

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone = resnet_fpn_backbone(backbone_name="resnet18", weights=None, norm_layer=torchvision.ops.FrozenBatchNorm2d)
            self.head = RetinaNetHead(256, 1, 3)

        def forward(self, image):
            return self.head(list(self.backbone(image).values()))

    def loss(model, inputs, fixed):
        found = model(inputs["image"])
        scores = found["cls_logits"]
        return torchvision.ops.sigmoid_focal_loss(scores, inputs["classes"], reduction="mean") + F.smooth_l1_loss(
            found["bbox_regression"], inputs["boxes"])
    model = Detector()
    torch.randn(2, 3, 64, 64)
    picture = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        found = model(picture)
    inputs = dict(image=picture, classes=(torch.rand_like(found["cls_logits"]) < 0.1).float(), boxes=torch.randn_like(found["bbox_regression"]))
    return module(model, inputs, loss)


@row("segmentation")
def deeplab():
    import torchvision
    model = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0

    def loss(model, inputs, fixed):
        return F.cross_entropy(model(inputs["image"])["out"], inputs["label"])
    return module(model, dict(image=torch.randn(2, 3, 64, 64), label=torch.randint(5, (2, 64, 64))), loss)


@row("segmentation")
def segformer():
    config = configured(
        "Segformer", num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[16, 32], patch_sizes=[7, 3], strides=[4, 2],
        num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=16, num_labels=5)

    def loss(model, inputs, fixed):
        return model(pixel_values=inputs["image"], labels=inputs["label"]).loss
    return module(
        transformers.SegformerForSemanticSegmentation(config), dict(image=torch.randn(2, 3, 32, 32), label=torch.randint(5, (2, 32, 32))), loss)


# Audio


@row("audio")
def whisper():
    config = configured(
        "Whisper", vocab_size=WORDS, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=48, decoder_ffn_dim=48, num_mel_bins=8, max_source_positions=24, max_target_positions=32, pad_token_id=1, bos_token_id=0,
        eos_token_id=2, decoder_start_token_id=2, suppress_tokens=None, begin_suppress_tokens=None)
    inputs = dict(input_features=torch.randn(BATCH, 8, 48), labels=text()["labels"])
    return module(transformers.WhisperForConditionalGeneration(config), inputs, use_cache=False)


@row("audio")
def wav2vec2():
    config = configured(
        "Wav2Vec2", hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, conv_dim=(16, 16), conv_stride=(4, 4),
        conv_kernel=(8, 4), num_feat_extract_layers=2, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4, num_labels=10,
        apply_spec_augment=False, classifier_proj_size=16)

    def loss(model, inputs, fixed):
        return F.cross_entropy(model(inputs["wave"]).logits, inputs["label"])
    return module(
        transformers.Wav2Vec2ForSequenceClassification(config), dict(wave=torch.randn(BATCH, 400), label=torch.randint(10, (BATCH,))), loss)


@row("audio")
def spectrogram_transformer():
    config = configured(
        "AST", hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, patch_size=8, frequency_stride=8, time_stride=8,
        max_length=32, num_mel_bins=16, num_labels=10)

    def loss(model, inputs, fixed):
        return model(input_values=inputs["sound"], labels=inputs["labels"]).loss
    return module(
        transformers.ASTForAudioClassification(config), dict(sound=torch.randn(BATCH, 32, 16), labels=torch.randint(10, (BATCH,))), loss)


# Several kinds of input


@row("contrastive")
def clip():
    small = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
    config = transformers.CLIPConfig(
        text_config=dict(small, vocab_size=WORDS, max_position_embeddings=TOKENS, pad_token_id=1, bos_token_id=0, eos_token_id=2),
        vision_config=dict(small, image_size=32, patch_size=8), projection_dim=16)
    words = text()
    words["input_ids"][:, -1] = 2
    inputs = dict(input_ids=words["input_ids"], pixel_values=torch.randn(BATCH, 3, 32, 32), attention_mask=words["attention_mask"])
    return module(transformers.CLIPModel(config), inputs, return_loss=True)


# Recommenders and graphs


class Recommender(nn.Module):
    """DLRM (Naumov et al. 2019): bags of categories, products of all pairs of features."""

    def __init__(self, bags=True):
        super().__init__()
        kind = functools.partial(nn.EmbeddingBag, mode="sum") if bags else nn.Embedding
        self.tables = nn.ModuleList(kind(n, 8) for n in (50, 30, 20))
        self.bottom = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(8 + 6, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, dense, categories):
        x = self.bottom(dense)
        features = torch.stack([x, *(table(categories[:, i]) for i, table in enumerate(self.tables))], 1)
        rows, columns = torch.tril_indices(4, 4, -1)
        pairs = (features @ features.transpose(1, 2))[:, rows, columns]
        return self.top(torch.cat([x, pairs], 1)).squeeze(1)


@row("recommender")
def dlrm():
    def loss(model, inputs, fixed):
        return F.binary_cross_entropy_with_logits(model(inputs["dense"], inputs["categories"]), inputs["clicked"])
    inputs = dict(dense=torch.randn(8, 6), categories=torch.randint(20, (8, 3, 4)), clicked=torch.randint(2, (8,)).float())
    return module(Recommender(), inputs, loss)


class Graph(nn.Module):
    """Two layers of a kind of torch_geometric's; one graph of 12 nodes is a sample."""

    def __init__(self, kind):
        super().__init__()
        import torch_geometric.nn as layers
        make = getattr(layers, kind)
        self.first, self.second = make(8, 16), make(16, 5)
        edges = torch.stack([torch.arange(12).repeat_interleave(2), torch.randint(12, (24,))])
        self.register_buffer("edges", edges)

    def forward(self, nodes):
        return self.second(F.relu(self.first(nodes, self.edges)), self.edges)


def graph(kind):
    def loss(model, inputs, fixed):
        return F.cross_entropy(model(inputs["nodes"]), inputs["label"])
    return module(Graph(kind), dict(nodes=torch.randn(12, 8), label=torch.randint(5, (12,))), loss)


@row("graph")
def graph_convolution():
    return graph("GCNConv")


@row("graph")
def graph_attention():
    return graph("GATConv")
