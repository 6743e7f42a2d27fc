"""Make the goldens of adapters with PEFT: *-lora.json and lora-adapter/; README.md ("Adapters") has the format.

Needs torch, transformers, peft and safetensors. The models are those of test/models/make.py, the optimizer and the
measures those of make.py, whose packages for ONNX nothing here uses.
"""

import copy
import importlib.util
import json
import os
import shutil
import sys
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [HERE]

import numpy as np
import peft
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

SPEC = importlib.util.spec_from_file_location("golden", os.path.join(HERE, "make.py"))
golden = importlib.util.module_from_spec(SPEC)
with mock.patch.dict(sys.modules, {name: mock.MagicMock() for name in ("onnx", "make", "mlp", "resnet")}):
    SPEC.loader.exec_module(golden)

from check import tolerance
from projection import generate

RUN = golden.RUNS["adamw"]


def llama():
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=256, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, attn_implementation="eager", use_cache=False, bos_token_id=0, eos_token_id=0)).train()


def gpt2():
    return GPT2LMHeadModel(GPT2Config(
        vocab_size=256, n_positions=32, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        attn_implementation="eager", use_cache=False, loss_type="ForCausalLM", bos_token_id=0, eos_token_id=0)).train()


def own_name(name):
    """The step's name of a parameter of a PEFT model; a tied table has the name of the head."""
    name = name.replace("transformer.wte.", "lm_head.")
    return name.removeprefix("base_model.model.").replace(".base_layer.", ".").replace(".default.", ".")


class Named(torch.nn.Module):
    """A PEFT model whose trained parameters have the step's names."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def named_parameters(self, *args, **kwargs):
        return ((own_name(n), p) for n, p in self.model.named_parameters() if p.requires_grad)

    def parameters(self, recurse=True):
        return (p for _, p in self.named_parameters())

    def forward(self, **inputs):
        return self.model(**inputs)


def with_weights(build, config, kind=torch.float32):
    """A PEFT model with generated weights, and their constants. B isn't zero, so that A has a gradient. The base
    gets `kind`; adapters of f32 stay as they are."""
    torch.manual_seed(0)
    model = peft.get_peft_model(build(), config)
    constants = {}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            own, shape = own_name(name), tuple(parameter.shape)
            scale, offset = (0.125, 0.0) if parameter.dim() >= 2 else (0.125, 1.0 if name.endswith("weight") else 0.0)
            parameter.copy_(torch.from_numpy(generate(own, parameter.numel(), scale, offset).reshape(shape)))
            constants[own] = (shape, scale, offset)
    for parameter in model.parameters():
        if not parameter.requires_grad:
            parameter.data = parameter.data.to(kind)
    return Named(model), constants


def call(model, inputs):
    result = model(input_ids=inputs["input_ids"], labels=inputs["labels"], use_cache=False)
    return result.loss, result.logits


def make(name, base, graph, build, lora, config):
    inputs = {key: torch.from_numpy(np.load(os.path.join(HERE, f"{base}.{key}.npy"))) for key in ("input_ids", "labels")}
    run_once = lambda model: call(model, inputs)
    model, constants = with_weights(build, config)
    names = [n for n, _ in model.named_parameters()]
    firsts = []
    for each in (copy.deepcopy(model), copy.deepcopy(model).double()):
        with golden.Terms() as terms:
            loss, _ = run_once(each)
            loss.backward()
        firsts.append((float(loss.detach()), {n: p.grad.numpy().copy() for n, p in each.named_parameters()}))
    (loss, grads), (_, exact) = firsts
    total = np.sqrt(sum(np.linalg.norm(g.astype(np.float64)) ** 2 for g in grads.values()))
    relative = tolerance(terms.count())
    off = max(np.linalg.norm(grads[n] - exact[n]) / np.linalg.norm(exact[n]) for n in names)
    print(f"{name}: {terms.count()} terms, {relative:.1e} allowed; single precision is off by {off:.1e}")
    double = copy.deepcopy(model).double()
    reach = golden.Reach(double, names, RUN, relative, total)
    golden.train(double, run_once, RUN, reach.step)
    without = reach.left_out()
    losses, norms = golden.train(model, run_once, RUN)
    after = {n: p.detach().numpy() for n, p in model.named_parameters()}
    tensors = {n: dict(golden.summary(after[n], without=without.get(n, ())), **reach.norms(n, without.get(n, ()))) for n in names}
    out = dict(graphs=[graph], dims={}, lora=lora, weights=constants, inputs={k: f"{base}.{k}.npy" for k in inputs},
               parameters=names, states=[], peft=peft.__version__, torch=torch.__version__.split("+")[0], terms=terms.count(), loss=loss,
               gradient_norm=golden.digits(total), gradients=golden.summaries(grads), states_after_forward={}, zero_gradients=[],
               next_loss=float(run_once(model)[0].detach()))
    out["runs"] = {"adamw": dict(RUN, losses=losses, gradient_norms=[golden.digits(n) for n in norms], parameters=tensors,
                                 left_out=without, states={})}
    print(f"  {losses[0]:.7f} -> {losses[-1]:.7f}, then {out['next_loss']:.7f}; left out {without}")
    return model, out, run_once


def write(name, out):
    with open(os.path.join(HERE, f"{name}.json"), "w") as file:
        lines = json.dumps(out, separators=(",", ":")).replace('"runs":', '\n"runs":')
        file.write(lines.replace('},"', '},\n"').replace("\n\n", "\n") + "\n")


def main():
    torch.set_num_threads(1)
    config = lambda **keys: peft.LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, bias="none", **keys)
    plain = config(r=4, lora_alpha=8, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"])
    model, out, _ = make("llama-tiny-lora", "llama-tiny", "test/models/llama-tiny.pt2", llama,
                         "r=4,alpha=8,targets=q_proj,k_proj,v_proj,o_proj", plain)
    write("llama-tiny-lora", out)
    folder = os.path.join(HERE, "lora-adapter")
    shutil.rmtree(folder, ignore_errors=True)
    model.model.save_pretrained(folder)
    os.remove(os.path.join(folder, "README.md"))

    turned = config(r=4, lora_alpha=6, target_modules=["c_attn", "c_fc"], use_rslora=True, fan_in_fan_out=True,
                    rank_pattern={"c_fc": 2}, alpha_pattern={"c_fc": 3})
    _, out, run_once = make("gpt2-tiny-lora", "gpt2-tiny", "test/models/gpt2-tiny.pt2", gpt2,
                            "r=4,alpha=6,targets=c_attn,c_fc,rslora=true,r:c_fc=2,alpha:c_fc=3", turned)
    narrow, _ = with_weights(gpt2, turned, torch.bfloat16)
    losses, _ = golden.train(narrow, run_once, RUN)
    out["bf16"] = dict(graph="test/models/gpt2-tiny-nodropout-bfloat16.onnx", dims=dict(batch=4, sequence=32), losses=losses)
    print(f"  bf16: {losses[0]:.7f} -> {losses[-1]:.7f}")
    write("gpt2-tiny-lora", out)


if __name__ == "__main__":
    main()
