"""Make jsonl.runs with PyTorch and transformers: losses of padded rows, over an epoch's short end.

README.md ("Rows in JSON lines") has the format. Rows are padded here, and a short batch has fewer rows, as a
DataLoader makes it: tmc must have the same losses. The order of the shuffled run is that of
test/unit/runtime/permutation.py.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [HERE, os.path.join(ROOT, "test", "unit", "runtime")]

import torch
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM

from permutation import order
from projection import generate

BATCH, LENGTH, SAMPLES, STEPS, RATE = 4, 32, 11, 5, 0.001
LEFT_OUT, PAD, SHUFFLE = -100, 3, 7


def llama():
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=256, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, attn_implementation="eager", use_cache=False, bos_token_id=0, eos_token_id=0)).train()


def bert():
    return BertForMaskedLM(BertConfig(
        vocab_size=256, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=64, attn_implementation="eager", hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0)).train()


def fill(model, weights):
    parameters = dict(model.named_parameters())
    parameters.update({name: value for name, value in model.named_parameters(remove_duplicate=False) if name in weights})
    with torch.no_grad():
        for name, (shape, scale, offset) in weights.items():
            parameters[name].copy_(torch.from_numpy(generate(name, parameters[name].numel(), scale, offset).reshape(shape)))
    return model


def drawn(name, count, end):
    return [int(x) for x in (generate(name, count, 0.5, 0.5).astype("float64") * (end - 1e-3)).astype("int64")]


def rows(masked):
    """Rows of 5 to 32 tokens. Labels are the tokens, or every third of them."""
    for i, length in enumerate(drawn("lengths", SAMPLES, LENGTH - 4)):
        tokens = drawn(f"tokens {i}", length + 5, 256)
        if masked:
            labels = [t if k % 3 == 0 else LEFT_OUT for k, t in enumerate(tokens)]
            yield dict(input_ids=tokens, attention_mask=[1] * len(tokens), labels=labels)
        else:
            yield dict(id=f"row {i}", input_ids=tokens, labels=[LEFT_OUT, *tokens[1:]])


def batch_of(samples):
    """A padded batch of as many rows as there are."""
    pads = dict(input_ids=PAD, attention_mask=0, labels=LEFT_OUT)
    return {key: torch.tensor([row[key] + [pads[key]] * (LENGTH - len(row[key])) for row in samples])
            for key in samples[0] if key != "id"}


def train(model, samples, shuffle):
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    losses, epoch = [], 0
    while len(losses) < STEPS:
        at = order(shuffle, epoch, SAMPLES) if shuffle is not None else lambda i: i
        for first in range(0, SAMPLES, BATCH):
            chosen = [samples[at(i)] for i in range(first, min(first + BATCH, SAMPLES))]
            optimizer.zero_grad()
            loss = model(**batch_of(chosen)).loss
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        epoch += 1
    return losses[:STEPS]


def main():
    torch.set_num_threads(1)
    models = {}
    for name, build, graph in (("llama-tiny", llama, "llama-tiny.pt2"), ("bert-tiny-mlm", bert, "bert-tiny-mlm-nodropout.pt2")):
        with open(os.path.join(HERE, name + ".json")) as file:
            weights = json.load(file)["weights"]
        samples = list(rows(masked=build is bert))
        runs = {title: train(fill(build(), weights), samples, seed) for title, seed in (("in order", None), ("shuffled", SHUFFLE))}
        for title, losses in runs.items():
            print(name, title, " ".join(f"{x:.6f}" for x in losses))
        models[name] = dict(graph="test/models/" + graph, weights=weights, lines=[json.dumps(row) for row in samples], runs=runs)
    with open(os.path.join(HERE, "jsonl.runs"), "w") as file:
        json.dump(dict(rate=RATE, pad=PAD, shuffle=SHUFFLE, models=models), file, indent=0)
        file.write("\n")


if __name__ == "__main__":
    main()
