"""More rows of the table: newer decoders, experts beside other layers, spectra, models of images and text, time series."""

import torch
import transformers

from models import BATCH, SMALL, TOKENS, WORDS, classified, configured, decoder, ids, image, module, row, text


@row("experts")
def deepseek_v2():
    """Latent attention, whose positions turn complex numbers."""
    return decoder(
        "DeepseekV2", num_key_value_heads=4, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8,
        n_routed_experts=8, moe_intermediate_size=16, first_k_dense_replace=1, n_group=2, topk_group=1, num_experts_per_tok=2)


@row("experts")
def deepseek_v3():
    return decoder(
        "DeepseekV3", num_key_value_heads=4, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8,
        n_routed_experts=8, moe_intermediate_size=16, first_k_dense_replace=1, n_group=2, topk_group=1, num_experts_per_tok=2)


@row("experts")
def qwen2_moe():
    return decoder("Qwen2Moe", num_experts=4, moe_intermediate_size=16, shared_expert_intermediate_size=16)


@row("experts")
def llama4():
    config = configured("Llama4Text", **SMALL, head_dim=8, intermediate_size_mlp=48, num_local_experts=2, interleave_moe_layer_step=2)
    return module(transformers.Llama4ForCausalLM(config), text(), use_cache=False)


@row("state space")
def jamba():
    """State spaces, attention and experts by turns."""
    return decoder("Jamba", num_experts=2, use_mamba_kernels=False, mamba_d_state=8, attn_layer_period=2, attn_layer_offset=1)


@row("encoder")
def fnet():
    """Fourier transforms in place of attention."""
    inputs = text()
    del inputs["attention_mask"]
    return module(transformers.FNetForMaskedLM(configured("FNet", **SMALL)), inputs)


@row("encoder")
def convbert():
    return module(transformers.ConvBertForMaskedLM(configured("ConvBert", **SMALL, embedding_size=32)), text())


@row("encoder")
def mobilebert():
    """A weight of this one has no elements."""
    return module(transformers.MobileBertForMaskedLM(configured("MobileBert", **SMALL, embedding_size=32, intra_bottleneck_size=32)), text())


@row("encoder")
def roformer():
    return module(transformers.RoFormerForMaskedLM(configured("RoFormer", **SMALL, embedding_size=32)), text())


@row("encoder")
def xlnet():
    config = configured("XLNet", vocab_size=WORDS, d_model=32, n_layer=2, n_head=4, d_inner=48, num_labels=10)
    return module(transformers.XLNetForSequenceClassification(config), dict(input_ids=ids(BATCH, TOKENS), labels=torch.randint(10, (BATCH,))))


@row("convnet")
def convnextv2():
    config = configured("ConvNextV2", hidden_sizes=[8, 16, 32, 32], depths=[1, 1, 1, 1], num_labels=10)
    return module(transformers.ConvNextV2ForImageClassification(config), image(), classified)


@row("vision transformer")
def mobilevit():
    config = configured(
        "MobileViT", image_size=64, hidden_sizes=[32, 48, 64], neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 64], patch_size=2, num_labels=10,
        num_attention_heads=4)
    return module(transformers.MobileViTForImageClassification(config).eval(), image(64), classified)


@row("contrastive")
def siglip():
    """The loss of each pair by itself."""
    of = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
    config = transformers.SiglipConfig(
        text_config=dict(of, vocab_size=WORDS, max_position_embeddings=TOKENS), vision_config=dict(of, image_size=32, patch_size=8))
    inputs = dict(input_ids=ids(BATCH, TOKENS), pixel_values=torch.randn(BATCH, 3, 32, 32))
    return module(transformers.SiglipModel(config), inputs, return_loss=True)


@row("vision and language")
def llava():
    """Features of an image in the places of its tokens."""
    eyes = transformers.CLIPVisionConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=8)
    config = transformers.LlavaConfig(
        vision_config=eyes, text_config=transformers.LlamaConfig(**SMALL), image_token_index=WORDS - 1, vision_feature_select_strategy="full",
        vision_feature_layer=-1)
    seen, words = torch.full((BATCH, 5), WORDS - 1), torch.randint(3, WORDS - 1, (BATCH, TOKENS))
    inputs = dict(
        input_ids=torch.cat([seen, words], 1), labels=torch.cat([torch.full_like(seen, -100), words], 1),
        pixel_values=torch.randn(BATCH, 3, 16, 16))
    return module(transformers.LlavaForConditionalGeneration(config), inputs, use_cache=False)


def forecast(name, **changes):
    config = configured(
        name, num_input_channels=2, context_length=32, patch_length=8, patch_stride=8, prediction_length=8, **changes)
    inputs = dict(past_values=torch.randn(BATCH, 32, 2), future_values=torch.randn(BATCH, 8, 2))
    return module(getattr(transformers, name + "ForPrediction")(config), inputs)


@row("time series")
def patchtst():
    return forecast("PatchTST", d_model=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48)


@row("time series")
def patchtsmixer():
    return forecast("PatchTSMixer", d_model=16, num_layers=2)
