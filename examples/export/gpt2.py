"""GPT-2 as transformers has it: with its loss, eager attention, in training mode."""

import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from common import export

SIZES = {
    "gpt2-124m": dict(),
    "gpt2-xl": dict(n_embd=1600, n_layer=48, n_head=25),
    "gpt2-7.5b": dict(n_embd=4096, n_layer=36, n_head=32),  # ZeRO's example.
    "gpt2-13b": dict(n_embd=4096, n_layer=65, n_head=32),  # ZeRO-Offload's largest but one.
    "gpt2-100b": dict(n_embd=9216, n_layer=96, n_head=72),
}
DEFAULTS = {
    "gpt2-124m": dict(batch=4, sequence=64),
    "gpt2-xl": dict(batch=1, sequence=1024),
    "gpt2-7.5b": dict(n_embd=4096, n_layer=36, n_head=32),  # ZeRO's example.
    "gpt2-7.5b": dict(batch=1, sequence=1024),
    "gpt2-13b": dict(batch=1, sequence=1024),
    "gpt2-100b": dict(batch=1, sequence=1024),
}


def make(name, dropout=True, **changes):
    """The model on the meta device: it has shapes and no values, so that XL fits anywhere."""
    config = dict(SIZES[name], attn_implementation="eager", use_cache=False, loss_type="ForCausalLM", **changes)
    if not dropout:
        config.update(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    with torch.device("meta"):
        return GPT2LMHeadModel(GPT2Config(**config)).train()


def run(name, path, dropout=True):
    ids = torch.zeros(4, 64, dtype=torch.int64, device="meta")
    axes = {0: "batch", 1: "sequence"}
    export(make(name, dropout), dict(input_ids=ids, labels=ids.clone(), use_cache=False), path,
           outputs=["loss", "logits"], dims=dict(input_ids=axes, labels=axes), defaults=DEFAULTS[name])


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["gpt2-124m", "gpt2-124m-nodropout", "gpt2-xl"]
    for item in wanted:
        name = item.removesuffix("-nodropout")
        run(name, f"examples/{item}.onnx", dropout=name == item)
