#!/usr/bin/env python3
"""Measure a training step of ResNet-50: tmc beside PyTorch, on this machine's CPU.

    resnet.py [--tmc build/bin/tmc] [--python PYTHON] [--threads 1] [--batch 4] [--size 224] [--avx2]
              [--systems tmc,eager,channels-last] [--rounds 3] [--steps 10] [-o results.json]

Same weights (random, written once as safetensors), same images, same threads; the systems
take turns as in run.py. --avx2 holds PyTorch and its library to AVX2; for tmc say which
step that is: --tmc-option=--target=cpu:v3, or --directory of a step made beforehand.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import run

EXPORT = """
import sys
sys.path.insert(0, {export!r})
import torch, torchvision
from safetensors.torch import save_file
from torch.nn import functional as F
from common import export

class Model(torchvision.models.ResNet):
    def __init__(self):
        super().__init__(torchvision.models.resnet.Bottleneck, [3, 4, 6, 3])

    def forward(self, image, label):
        logits = super().forward(image)
        return F.cross_entropy(logits, label), logits

torch.manual_seed(0)
model = Model().train()
save_file({{k: v.detach().contiguous() for k, v in model.named_parameters()}}, {weights!r})
with open({images!r}, "wb") as file:
    for _ in range({count}):
        file.write(torch.randn({batch}, 3, {size}, {size}).numpy().tobytes())
        file.write(torch.randint(0, 1000, ({batch},)).numpy().tobytes())
inputs = dict(image=torch.zeros(4, 3, {size}, {size}), label=torch.zeros(4, dtype=torch.int64))
export(model, inputs, {model!r}, outputs=["loss", "logits"], dims=dict(image={{0: "batch"}}, label={{0: "batch"}}))
"""


def table(result):
    faster = min((s["median_seconds"] for n, s in result["systems"].items() if n != "tmc"), default=None)
    lines = ["| B x size | threads | AVX2 only | system | ms/step (median) | least | processor ms | of the faster layout's median | peak GiB, steps |",
             "|---|---|---|---|---|---|---|---|---|"]
    for name, s in result["systems"].items():
        ratio = f"{s['median_seconds'] / faster:.2f}" if faster else ""
        lines.append(f"| {result['batch']} x {result['size']} | {result['threads']} | {'yes' if result['avx2'] else 'no'} | {name} | "
                     f"{1e3 * s['median_seconds']:.0f} | {1e3 * s['least_seconds']:.0f} | {1e3 * s['median_cpu_seconds']:.0f} | {ratio} | "
                     f"{s['peak_of_steps'] / run.GIB:.2f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(run.ROOT, "build", "bin", "tmc"))
    parser.add_argument("--tmc-option", action="append", default=[], help="another option of tmc compile")
    parser.add_argument("--directory", help="a compiled step, in place of compiling one")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch, torchvision, safetensors, onnx")
    parser.add_argument("--systems", default="tmc,eager,channels-last", help="compile is another")
    parser.add_argument("--avx2", action="store_true", help="hold PyTorch to AVX2")
    for name, value in (("threads", 1), ("batch", 4), ("size", 224), ("rounds", 3), ("steps", run.TRAJECTORY)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("-o", "--output", help="write the figures here as JSON")
    options = parser.parse_args()
    if options.avx2:
        os.environ.update(ONEDNN_MAX_CPU_ISA="AVX2", ATEN_CPU_CAPABILITY="avx2")
    with tempfile.TemporaryDirectory(prefix="bench-cpu-") as scratch:
        files = {name: os.path.join(scratch, file) for name, file in
                 (("model", "resnet50.onnx"), ("weights", "weights.safetensors"), ("images", "images.bin"))}
        subprocess.run([options.python, "-c", EXPORT.format(
            export=os.path.join(run.ROOT, "examples", "export"), count=4, batch=options.batch, size=options.size, **files)],
            check=True, stdout=subprocess.DEVNULL)
        result = dict(cpu=run.cpu_model(), batch=options.batch, size=options.size, threads=options.threads, avx2=options.avx2)
        spec = dict(batch=options.batch, size=options.size, threads=options.threads, lr=run.LR, weight_decay=run.DECAY, fused=True,
                    check=os.path.join(run.ROOT, "test", "golden"), **files)
        workers = []
        for system in options.systems.split(","):
            if system == "tmc":
                spec["directory"] = options.directory or os.path.join(scratch, "step")
                if not options.directory:
                    subprocess.run([options.tmc, "compile", files["model"], "--target", "cpu", "--dim", f"batch={options.batch}",
                                    "--optimizer", f"adamw(weight_decay={run.DECAY})", "-o", spec["directory"], *options.tmc_option],
                                   check=True, stdout=subprocess.DEVNULL)
            workers.append(run.Worker(sys.executable if system == "tmc" else options.python, dict(spec, system=system), scratch))
        _, result["systems"] = run.take_turns(workers, options.steps, options.rounds)
    print(table(result))
    if options.output:
        with open(options.output, "w") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
