"""Exports a graph of cases.txt that examples/ doesn't hold, without weights.

    export.py resnet50.onnx|llama-1.3b.onnx FILE      with a Python that has torch, transformers and onnx
"""

import os
import sys

NAMES = ("resnet50.onnx", "llama-1.3b.onnx")
if len(sys.argv) != 3 or sys.argv[1] not in NAMES:
    sys.exit(__doc__)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "examples", "export"), os.path.join(HERE, "..", "planning")]

import torch  # noqa: E402
from common import export  # noqa: E402


def resnet50(path):
    from models import ResNet
    inputs = dict(image=torch.zeros(4, 3, 224, 224), label=torch.zeros(4, dtype=torch.int64))
    export(ResNet().train(), inputs, path, outputs=["loss", "logits"], dims=dict(image={0: "batch"}, label={0: "batch"}))


def llama(path):
    """1.3 billion parameters: 24 layers of 2,048, heads of 128, SwiGLU of 5,504, a head of its own."""
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
    config = LlamaConfig(
        hidden_size=2048, intermediate_size=5504, num_hidden_layers=24, num_attention_heads=16, num_key_value_heads=16,
        vocab_size=32000, max_position_embeddings=2048, attn_implementation="eager", use_cache=False, loss_type="ForCausalLM")
    ids = torch.zeros(2, 64, dtype=torch.int64, device="meta")
    axes = {0: "batch", 1: "sequence"}
    rotary = {f"model.rotary_emb.{name}": value for name, value in LlamaRotaryEmbedding(config).named_buffers()}
    with torch.device("meta"):
        model = LlamaForCausalLM(config).train()
    export(model, dict(input_ids=ids, labels=ids.clone(), use_cache=False), path, outputs=["loss", "logits"],
           dims=dict(input_ids=axes, labels=axes), defaults=dict(batch=1, sequence=1024), buffers=rotary)


if __name__ == "__main__":
    dict(zip(NAMES, (resnet50, llama)))[sys.argv[1]](sys.argv[2])
