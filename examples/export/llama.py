"""Decoders of LLaMA's and Mistral's shapes in bf16 as `.pt2` files without weights: `from_pretrained` gives this type.

    llama.py NAME PATH
"""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding


def shape(layers, width, inner, heads, groups=None, vocabulary=32000, **more):
    return dict(num_hidden_layers=layers, hidden_size=width, intermediate_size=inner, num_attention_heads=heads,
                num_key_value_heads=groups or heads, vocab_size=vocabulary, **more)


SHAPES = {
    "mistral-7b": shape(32, 4096, 14336, 32, 8),
    "llama-3.1-8b": shape(32, 4096, 14336, 32, 8, 128256, rope_parameters=dict(rope_type="default", rope_theta=500000.0)),
    "llama-13b": shape(40, 5120, 13824, 40),
    "llama-65b": shape(80, 8192, 22016, 64),
}


def run(name, path):
    """The rotary frequencies keep their values; parameters have none."""
    config = LlamaConfig(**SHAPES[name], attn_implementation="sdpa", use_cache=False, tie_word_embeddings=False)
    with torch.device("meta"):
        model = LlamaForCausalLM(config).to(torch.bfloat16).train()
    model.model.rotary_emb = LlamaRotaryEmbedding(config)
    ids = torch.zeros(2, 64, dtype=torch.int64, device="meta")
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence")}
    with torch.device("meta"):
        program = torch.export.export(model, (), dict(input_ids=ids, labels=ids.clone()),
                                      dynamic_shapes=dict(input_ids=axes, labels=axes))
    torch.export.save(program, path)


if __name__ == "__main__":
    run(*sys.argv[1:])
