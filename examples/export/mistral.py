"""A decoder of seven billion parameters as transformers has it: grouped queries, rotary positions, SwiGLU."""

import torch
from transformers import MistralConfig, MistralForCausalLM
from transformers.models.mistral.modeling_mistral import MistralRotaryEmbedding

from common import export


def configure(**changes):
    """The default configuration is Mistral 7B's; its window is as long as what it is used for."""
    return MistralConfig(attn_implementation="eager", use_cache=False, loss_type="ForCausalLM", sliding_window=None, **changes)


def make(config):
    """The model on the meta device: it has shapes and no values."""
    with torch.device("meta"):
        return MistralForCausalLM(config).train()


if __name__ == "__main__":
    ids = torch.zeros(2, 64, dtype=torch.int64, device="meta")
    axes = {0: "batch", 1: "sequence"}
    config = configure()
    rotary = {f"model.rotary_emb.{name}": value for name, value in MistralRotaryEmbedding(config).named_buffers()}
    export(make(config), dict(input_ids=ids, labels=ids.clone(), use_cache=False), "examples/mistral-7b.onnx",
           outputs=["loss", "logits"], dims=dict(input_ids=axes, labels=axes), defaults=dict(batch=1, sequence=2048), buffers=rotary)
