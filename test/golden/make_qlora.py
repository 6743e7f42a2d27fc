"""Make qlora.runs and test/models/llama-qlora-tiny.pt2 with PEFT 0.21.2 and bitsandbytes 0.50.2 on the cpu.

README.md ("Frozen storage") has the format. A tiny Llama with grouped keys and adapters of rank 4 on four of its
matrices trains for ten steps of AdamW, over a base that is stored in several ways. `plain` is nf4 with maxima in f32,
`nested` nf4 with maxima in 8 bits, both by bitsandbytes' Linear4bit; `int8` is torch over the values of bitsandbytes'
codes by rows. The `bf16` runs compute as bitsandbytes does with bnb_4bit_compute_dtype=bfloat16.
"""

import json
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [os.path.join(ROOT, "test", "models"), HERE]

import bitsandbytes as bnb
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

import make_pt2
from projection import generate

STEPS, RATE, BATCH, SEQUENCE = 10, 0.01, 2, 16
NAME = "llama-qlora-tiny"


def plain():
    torch.manual_seed(1)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=256, hidden_size=128, intermediate_size=192, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, attn_implementation="eager", use_cache=False,
        bos_token_id=0, eos_token_id=0)).train()


def adapted(model):
    return get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "k_proj", "v_proj", "down_proj"],
                                            lora_dropout=0.0, task_type="CAUSAL_LM"))


def scale_of(name):
    """Norms are near one; others are so large that a step changes the loss."""
    if "norm" in name:
        return 0.25, 1.0
    return (0.125, 0.0) if "lora" not in name else (0.0625, 0.0)


def fill(model):
    """Generated weights, under the names of the model without storage; returns {name: (shape, scale, offset)}."""
    recipe = {}
    for name, parameter in model.named_parameters():
        scale, offset = scale_of(name)
        recipe[name] = (list(parameter.shape), scale, offset)
        parameter.data.copy_(torch.from_numpy(generate(name, parameter.numel(), scale, offset)).view_as(parameter))
    return recipe


def linears(model):
    for name, module in list(model.named_modules()):
        if isinstance(module, torch.nn.Linear) and "lm_head" not in name and "lora" not in name:
            yield name, module


def put(model, name, module):
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, module)


def stored(base, compute, kept=None):
    """The model over a base in this storage. `kept` gets the codes, as a checkpoint of bitsandbytes has them."""
    source = adapted(plain())
    fill(source)
    values = dict(source.named_parameters())
    model = plain()
    own = {name: values[f"base_model.model.{name}" if f"base_model.model.{name}" in values
                        else f"base_model.model.{name.removesuffix('.weight')}.base_layer.weight"]
           for name, _ in model.named_parameters()}
    for name, parameter in model.named_parameters():
        parameter.data.copy_(own[name].data)
    for name, module in linears(model):
        weight = module.weight.data
        if base == "int8":
            codes, maxima = by_rows(weight)
            module.weight.data = values_of_rows(codes, maxima)
            continue
        four = bnb.nn.Linear4bit(weight.shape[1], weight.shape[0], bias=False, compute_dtype=compute,
                                 compress_statistics=base == "nested", quant_type="nf4")
        four.weight = bnb.nn.Params4bit(weight, requires_grad=False, compress_statistics=base == "nested",
                                        quant_type="nf4")
        four = four.to("cpu")
        put(model, name, four)
        if kept is not None:
            key = f"base_model.model.{name}.weight"
            if key not in values:
                key = f"base_model.model.{name}.base_layer.weight"
            kept[key] = four.weight.data.clone()
            for suffix, tensor in four.weight.quant_state.as_dict(packed=True).items():
                kept[f"{key}.{suffix}"] = tensor.clone()
    model = adapted(model)
    for name, parameter in model.named_parameters():
        if "lora" in name:
            parameter.data.copy_(values[name].data)
    return model


def by_rows(weight):
    codes, maxima, _ = torch.ops.bitsandbytes.int8_vectorwise_quant.default(weight.clone(), 0.0)
    return codes, maxima


def values_of_rows(codes, maxima):
    return codes.float() * maxima[:, None] * torch.tensor(7.874015718698502e-3)


def train(model, tokens):
    chosen = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(chosen, lr=RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    torch.set_num_threads(1)
    model = adapted(plain())
    recipe = fill(model)
    tokens = torch.from_numpy(((generate("tokens", BATCH * SEQUENCE, 0.5, 0.5)) * 255.99).astype("int64")).view(BATCH, SEQUENCE)
    make_pt2.export(model, dict(input_ids=tokens, labels=tokens.clone()), os.path.join(ROOT, "test", "models", NAME + ".pt2"),
                    constants=dict(use_cache=False))
    runs = {"f32": train(model, tokens)}
    kept = {}
    for base in ("plain", "nested", "int8"):
        runs[base] = train(stored(base, torch.float32, kept if base == "nested" else None), tokens)
    save_file(kept, os.path.join(HERE, "qlora.safetensors"), metadata=dict(format="pt"))
    for base in ("plain", "nested"):
        runs[base + " bf16"] = train(stored(base, torch.bfloat16), tokens)
    for name, losses in runs.items():
        print(name, " ".join(f"{x:.6f}" for x in losses))
    with open(os.path.join(HERE, "qlora.runs"), "w") as file:
        json.dump(dict(graph=f"test/models/{NAME}.pt2", rate=RATE, tokens=tokens.tolist(), weights=recipe, runs=runs), file)


if __name__ == "__main__":
    main()
