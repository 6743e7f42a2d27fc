"""An encoder as transformers has it: BERT's base model, dropout on, with the masked tokens' loss inside."""

import torch
from transformers import BertConfig, BertForMaskedLM

from common import export


def make(**changes):
    return BertForMaskedLM(BertConfig(attn_implementation="eager", **changes)).train()


if __name__ == "__main__":
    ids = torch.zeros(4, 64, dtype=torch.int64)
    axes = {0: "batch", 1: "sequence"}
    export(make(), dict(input_ids=ids, labels=ids.clone()), "examples/bert-base.onnx",
           outputs=["loss", "logits"], dims=dict(input_ids=axes, labels=axes), defaults=dict(batch=4, sequence=128))
