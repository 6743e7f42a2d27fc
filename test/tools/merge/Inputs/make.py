"""Make the bases and adapters of merge.test with transformers and PEFT; with --tmc, compare tmc's merges with PEFT's.

    python3 make.py                        writes llama/, gpt2/ and the adapters beside this file
    python3 make.py --tmc build/bin/tmc    merges the kept ones, opens them in transformers and compares

Needs torch, transformers and peft. Each adapter gets normal numbers, so that no matrix is zero:

    llama       two layers, bf16, in two shards; untied
    llama-all   all linears, r = 4; other ranks and alphas by patterns; the head saved whole
    llama-table rsLoRA on the table of tokens and on one projection, in bf16
    gpt2        one layer, f32, W stored as [in, out]; in one file
    gpt2-all    c_attn, c_fc, c_proj, one of which is square
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model

HERE = os.path.dirname(os.path.abspath(__file__))
BASES = dict(
    llama=lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=48, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=32, tie_word_embeddings=False)).to(torch.bfloat16),
    gpt2=lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=40, n_embd=12, n_layer=1, n_head=2, n_positions=16)))
ADAPTERS = {
    "llama-all": ("llama", dict(r=4, lora_alpha=6, target_modules="all-linear", modules_to_save=["lm_head"],
                                rank_pattern={"down_proj": 3, r"layers\.1\.self_attn\.(q|k)_proj": 2}, alpha_pattern={"o_proj": 5})),
    "llama-table": ("llama", dict(r=4, lora_alpha=6, use_rslora=True, target_modules=["embed_tokens", "o_proj"])),
    "gpt2-all": ("gpt2", dict(r=3, lora_alpha=7, target_modules=["c_attn", "c_fc", "c_proj"])),
}


def make():
    for name, model in BASES.items():
        torch.manual_seed(len(name))
        folder = os.path.join(HERE, name)
        shutil.rmtree(folder, ignore_errors=True)
        base = model()
        with torch.no_grad():
            for parameter in base.parameters():
                parameter.copy_(torch.randn(parameter.shape) * 0.5)
        base.save_pretrained(folder, max_shard_size="8KB" if name == "llama" else "5GB")
    for name, (base, keys) in ADAPTERS.items():
        torch.manual_seed(len(name))
        model = transformers.AutoModelForCausalLM.from_pretrained(os.path.join(HERE, base), dtype="auto")
        model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **keys), autocast_adapter_dtype=name != "llama-table")
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.copy_(torch.randn(parameter.shape) * 0.5)
        folder = os.path.join(HERE, name)
        shutil.rmtree(folder, ignore_errors=True)
        model.peft_config["default"].base_model_name_or_path = base
        model.save_pretrained(folder, save_embedding_layers=False)
        os.remove(os.path.join(folder, "README.md"))
    for folder, _, files in os.walk(HERE):
        for file in files:
            os.chmod(os.path.join(folder, file), 0o644)


def compare(tmc):
    """tmc's merge against PEFT's in double: each number is as near as its type allows."""
    for name, (base, _) in ADAPTERS.items():
        original = transformers.AutoModelForCausalLM.from_pretrained(os.path.join(HERE, base), dtype=torch.float32)
        theirs = PeftModel.from_pretrained(original, os.path.join(HERE, name)).double().merge_and_unload().state_dict()
        for type, bound in (("f32", 2**-24), ("bf16", 2**-8), ("f16", 2**-11)):
            with tempfile.TemporaryDirectory() as folder:
                merged = os.path.join(folder, "merged")
                subprocess.run([tmc, "merge", "--base", os.path.join(HERE, base), "--adapter", os.path.join(HERE, name), "-o", merged,
                                "--type", type, "--shard", "6KB"], check=True)
                opened, report = transformers.AutoModelForCausalLM.from_pretrained(merged, dtype="auto", output_loading_info=True)
                if any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")):
                    sys.exit("%s: %s" % (name, report))
                wanted = dict(f32=torch.float32, bf16=torch.bfloat16, f16=torch.float16)[type]
                if opened.dtype != wanted:
                    sys.exit("%s as %s is opened as %s" % (name, type, opened.dtype))
                for key, value in opened.state_dict().items():
                    exact = theirs[key].double()
                    far = ((value.double() - exact).abs() - 2**-25 * (type == "f16")).div(exact.abs().clamp(min=1e-30)).max().item()
                    if far > bound * (1 + 1e-6):
                        sys.exit("%s as %s: %s is off by %.3g" % (name, type, key, far))
        print("%s: as PEFT's, and opened in transformers" % name)


options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("--tmc")
given = options.parse_args()
compare(given.tmc) if given.tmc else make()
