"""The small models that compiled steps are tested with."""

import os

# Parts of the way from the smallest budget to what is needed without one.
BUDGETS = {"75 %": 0.75, "50 %": 0.5, "2 %": 0.02}
# Steps in 16 and 8 bits get the others with tools/check --full: test/steps/draws.py draws budgets and precisions.
NARROW_BUDGETS = list(BUDGETS) if os.environ.get("TMC_TEST_FULL") else ["2 %"]
ADAMW = "adamw(weight_decay=0.1,clip=1.0)"

# Name: graph, options of tmc compile, inputs (name: shape, kind), budgets, micro-batches, optimizer.
# Kinds: `text` tokens, `below N` integers, `mask` ones with some zeros, `normal` floats.
MODELS = {
    "gpt2-tiny": dict(
        graph="test/models/gpt2-tiny-dropout.onnx", options=["--batch=4", "--dim=sequence=32"],
        inputs={}, budgets=list(BUDGETS), micro=[2, 4], weights=True),
    "llama-tiny": dict(
        graph="test/models/llama-tiny.onnx", options=["--batch=2", "--dim=sequence=32"],
        inputs={}, budgets=["2 %"], micro=[]),
    "bert-tiny": dict(
        graph="test/models/bert-tiny-mlm.onnx", options=["--batch=4", "--dim=sequence=16"],
        inputs={"input_ids": ([64, 16], "below 128"), "labels": ([64, 16], "below 128"),
                "attention_mask": ([64, 16], "mask")}, budgets=["2 %"], micro=[2]),
    "unet-tiny": dict(
        graph="test/models/unet-tiny.onnx", options=["--batch=2"],
        inputs={"image": ([8, 3, 32, 32], "normal"), "target": ([8, 3, 32, 32], "normal")}, budgets=["2 %"], micro=[]),
    "resnet-tiny": dict(
        graph="examples/resnet-tiny.onnx", options=["--batch=8"],
        inputs={"image": ([32, 3, 24, 24], "normal"), "label": ([32], "below 8")}, budgets=["2 %"], micro=[]),
    "gpt2-tiny, adapters": dict(
        graph="test/models/gpt2-tiny-dropout.onnx",
        options=["--batch=4", "--dim=sequence=32", "--lora=r=4,alpha=8,targets=c_attn,c_proj,c_fc,dropout=0.1,r:c_fc=2", "--train=*ln_f*"],
        inputs={}, budgets=["50 %", "2 %"], micro=[2]),
    "llama-tiny, adapters in bf16": dict(
        graph="test/models/llama-tiny.onnx",
        options=["--batch=2", "--dim=sequence=32", "--precision=bf16", "--lora=r=4,alpha=8,targets=all-linear,dropout=0.1,rslora=true"],
        inputs={}, budgets=["2 %"], micro=[], decided=False),
    "gpt2-tiny, moments in 8 bits": dict(
        graph="test/models/gpt2-tiny-dropout.onnx", options=["--batch=4", "--dim=sequence=32"],
        inputs={}, budgets=["2 %"], micro=[], optimizer="adamw8bit(weight_decay=0.1,clip=1.0)"),
    "gpt2-tiny, moments in 4 bits": dict(
        graph="test/models/gpt2-tiny-dropout.onnx", options=["--batch=4", "--dim=sequence=32"],
        inputs={}, budgets=["2 %"], micro=[], optimizer="adamw4bit(weight_decay=0.1,clip=1.0)",
        long=["--lr=3e-3", "--lr-schedule=cosine:warmup=10"]),
    "gpt2-tiny, adafactor": dict(
        graph="test/models/gpt2-tiny-dropout.onnx", options=["--batch=4", "--dim=sequence=32"],
        inputs={}, budgets=["2 %"], micro=[2], optimizer="adafactor(weight_decay=0.1,clip=1.0)", as_adamw=False),
    "resnet-tiny, adafactor without masters": dict(
        graph="examples/resnet-tiny.onnx", options=["--batch=8"],
        inputs={"image": ([32, 3, 24, 24], "normal"), "label": ([32], "below 8")}, budgets=["2 %"], micro=[],
        optimizer="adafactor(master=none)", as_adamw=False),
    "gpt2-tiny, lion": dict(
        graph="test/models/gpt2-tiny-dropout.onnx", options=["--batch=4", "--dim=sequence=32"],
        inputs={}, budgets=["2 %"], micro=[], optimizer="lion(weight_decay=0.1,clip=1.0)", as_adamw=False),
    "gpt2-tiny, a base in nf4": dict(
        graph="test/models/gpt2-tiny-dropout.onnx",
        options=["--batch=4", "--dim=sequence=32", "--freeze=*.h.*", "--base=nf4"],
        inputs={}, budgets=["2 %"], micro=[2]),
    "gpt2-tiny, a base in nf4 and int8, bf16": dict(
        graph="test/models/gpt2-tiny-dropout.onnx",
        options=["--batch=4", "--dim=sequence=32", "--freeze=*.h.*", "--base=nf4:plain,*c_fc*=int8", "--precision=bf16"],
        inputs={}, budgets=["2 %"], micro=[]),
    "gpt2-tiny, bf16": dict(
        graph="test/models/gpt2-tiny-dropout.onnx",
        options=["--batch=4", "--dim=sequence=32", "--precision=bf16"],
        inputs={}, budgets=NARROW_BUDGETS, micro=[]),
    "gpt2-tiny, bf16 alone": dict(
        graph="test/models/gpt2-tiny-dropout.onnx",
        options=["--batch=4", "--dim=sequence=32", "--precision=bf16,gradients=bf16"],
        inputs={}, budgets=["2 %"], micro=[], optimizer="adamw(master=none,moments=bf16,clip=1.0)"),
    # Steps 1, 6, 11 and 16 overflow and are skipped.
    "gpt2-tiny, fp16": dict(
        graph="test/models/gpt2-tiny-dropout.onnx",
        options=["--batch=4", "--dim=sequence=32", "--precision=fp16",
                 "--loss-scale=dynamic(start=4294967296,growth=65536,backoff=0.0000152587890625,interval=4)"],
        inputs={}, budgets=NARROW_BUDGETS, micro=[]),
    "gpt2-tiny, exported in 16 bits": dict(
        graph="test/models/gpt2-tiny-half.onnx", options=["--batch=4", "--dim=sequence=32"], inputs={}, budgets=["2 %"],
        micro=[]),
    "gpt2-tiny, fp8": dict(
        graph="test/models/gpt2-tiny-dropout.onnx",
        options=["--batch=4", "--dim=sequence=32", "--precision=fp8,lm_head=bf16"],
        inputs={}, budgets=NARROW_BUDGETS, micro=[]),
    "gpt2-tiny, fp8 delayed": dict(
        graph="test/models/gpt2-tiny-dropout.onnx",
        options=["--batch=4", "--dim=sequence=32", "--precision=fp8:delayed,lm_head=bf16"],
        inputs={}, budgets=NARROW_BUDGETS, micro=[]),
    "llama-tiny, fp8 in blocks": dict(
        graph="test/models/llama-tiny.onnx", options=["--batch=2", "--dim=sequence=32", "--precision=fp8:block"],
        inputs={}, budgets=["2 %"], micro=[]),
    "llama-tiny, bf16": dict(
        graph="test/models/llama-tiny.onnx", options=["--batch=2", "--dim=sequence=32", "--precision=bf16,lm_head=f32"],
        inputs={}, budgets=["2 %"], micro=[]),
    "unet-tiny, bf16": dict(
        graph="test/models/unet-tiny.onnx", options=["--batch=2", "--precision=bf16"],
        inputs={"image": ([8, 3, 32, 32], "normal"), "target": ([8, 3, 32, 32], "normal")}, budgets=["2 %"], micro=[]),
    # A few numbers that rounding puts on the other side of a ReLU decide what bf16 gives: `tmc verify`
    # has to say so. (test/golden holds the gradients to PyTorch's.)
    "resnet-tiny, bf16": dict(
        graph="examples/resnet-tiny.onnx", options=["--batch=8", "--precision=bf16"], decided=False,
        inputs={"image": ([32, 3, 24, 24], "normal"), "label": ([32], "below 8")}, budgets=["2 %"], micro=[]),
    # Two tables of 5 and 7 rows: `tmc verify` draws each column below its own limit.
    "noted-tiny": dict(
        graph="test/models/noted-tiny.onnx", options=[],
        inputs={"cats": ([24, 2], "below 5"), "label": ([24], "below 6")}, budgets=[], micro=[]),
}

# Of more rows than the chunks that a loss is taken in unasked, and without and with a bias.
CHUNKED = {
    "gpt2-tiny, 320 rows": dict(
        graph="test/models/gpt2-tiny-dropout.onnx", options=["--batch=10", "--dim=sequence=32"], inputs={}),
    "bert-tiny, 320 rows": dict(
        graph="test/models/bert-tiny-mlm.onnx", options=["--batch=20", "--dim=sequence=16"],
        inputs={"input_ids": ([60, 16], "below 128"), "labels": ([60, 16], "below 128"),
                "attention_mask": ([60, 16], "mask")}),
}
