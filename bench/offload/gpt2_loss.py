#!/usr/bin/env python3
"""The loss of a GPT-2 by PyTorch's forward pass in f32: gpt2_loss.py NAME CHECKPOINT.safetensors TOKENS FIRST BATCH SEQUENCE

NAME is one of examples/export/gpt2.py's, without dropout. The checkpoint's parameters are read one by one from its
mapped file; moments aren't. The tokens are BATCH x SEQUENCE from the FIRST on, little-endian uint16. Prints the mean
over all tokens that count: of each sequence all but the first are predicted.
"""

import os
import sys

import numpy
import torch
from safetensors import safe_open

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "examples", "export"))
import gpt2  # noqa: E402


def main():
    name, checkpoint, tokens, first, batch, sequence = *sys.argv[1:4], *map(int, sys.argv[4:7])
    model = gpt2.GPT2LMHeadModel(gpt2.make(name, dropout=False).config).eval()
    with safe_open(checkpoint, framework="pt") as file, torch.no_grad():
        missing, known = dict(model.named_parameters()), set(file.keys())
        for key, parameter in model.named_parameters(remove_duplicate=False):
            if key in known:  # A tied one under one of its names.
                parameter.copy_(file.get_tensor(key))
                missing = {name: other for name, other in missing.items() if other is not parameter}
        if missing:
            sys.exit(f"{checkpoint} lacks {', '.join(missing)}")
        ids = numpy.fromfile(tokens, dtype="<u2", count=batch * sequence, offset=2 * first)
        ids = torch.from_numpy(ids.astype(numpy.int64)).view(batch, sequence)
        losses = [model(input_ids=row[None], labels=row[None]).loss.item() for row in ids]
    print(sum(losses) / len(losses))  # As many tokens of each.


if __name__ == "__main__":
    main()
