#!/usr/bin/env python3
"""Measure a training step of models of many kinds: tmc beside PyTorch, on this machine's CPU.

    kinds.py [--tmc build/bin/tmc] [--python PYTHON] [--only llama,bert,...] [--precisions f32,bf16]
             [--systems tmc,eager,compile] [--rounds 9] [--steps 19] [--avx2] [-o results.json]

The models are those of models.py. Same weights, same data, one thread. Each system has a process of its own,
for each precision; they all take turns as in run.py. channels-last is another system, for models of images.
--avx2 holds PyTorch and its library to AVX2; for tmc say --tmc-option=--target=cpu:v3.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import run

SEVEN = "llama,bert,vit-tiny,convnext-atto,mobilenet-v3,unet,lstm"
BATCHES = 4
EXPORT = """
import json, sys
sys.path.insert(0, {here!r})
import numpy, torch, models
from safetensors.torch import save_file

model, inputs = models.make({name!r})
torch.export.save(torch.export.export(model, (), inputs), {model!r})
save_file({{k: v.detach().contiguous() for k, v in model.named_parameters()}}, {weights!r})
made = [models.MODELS[{name!r}]()[1] for _ in range({count})]
for k in inputs:
    numpy.save({folder!r} + f"/{{k}}.npy", torch.cat([batch[k] for batch in made]).numpy())
with open({batches!r}, "wb") as file:
    for batch in made:
        for value in batch.values():
            file.write(value.numpy().tobytes())
print(json.dumps([[k, str(v.dtype)[6:], list(v.shape)] for k, v in inputs.items()]))
"""


def measure(options, name, scratch):
    files = {key: os.path.join(scratch, file) for key, file in
             (("model", "model.pt2"), ("weights", "weights.safetensors"), ("batches", "batches.bin"))}
    text = subprocess.run([options.python, "-W", "ignore", "-c", EXPORT.format(here=run.HERE, name=name, count=BATCHES, folder=scratch, **files)],
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    spec = dict(model=name, inputs=json.loads(text.splitlines()[-1]), threads=options.threads, lr=run.LR, weight_decay=run.DECAY, fused=True,
                check=os.path.join(run.ROOT, "test", "golden"), weights=files["weights"], batches=files["batches"])
    workers, directories = [], {}
    for precision in options.precisions.split(","):
        for system in options.systems.split(","):
            one = dict(spec, system=system, precision=precision, name=f"{system} {precision}")
            if system == "tmc":
                one["directory"] = directories[one["name"]] = os.path.join(scratch, precision)
                subprocess.run([options.tmc, "compile", files["model"], "--target", "cpu", "--precision", precision,
                                "--optimizer", f"adamw(weight_decay={run.DECAY},decay=all)", "-o", one["directory"], *options.tmc_option],
                               check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            workers.append(run.Worker(sys.executable if system == "tmc" else options.python, one, scratch))
    losses, systems = run.take_turns(workers, options.steps, options.rounds)
    for key, directory in directories.items():
        data = [f"{k}={scratch}/{k}.npy" for k, _, _ in spec["inputs"]]
        systems[key].update(run.own_products(directory, data, options.threads, scratch))
    for key, values in losses.items():
        eager = losses.get("eager " + key.split()[1])
        if eager:
            systems[key]["loss_difference"] = max(abs(a - b) for a, b in zip(values[:run.TRAJECTORY], eager))
    return dict(model=name, avx2=options.avx2, threads=options.threads, systems=systems)


def ratio(systems, key, other):
    """Of the medians of processor time."""
    if key not in systems or other not in systems:
        return ""
    return f"{systems[key]['median_cpu_seconds'] / systems[other]['median_cpu_seconds']:.2f}"


def table(results):
    others = list(dict.fromkeys(key.split()[0] for r in results for key in r["systems"] if not key.startswith("tmc ")))
    lines = ["| model | precision | tmc, processor ms/step | " + "".join(f"of {x}'s | " for x in others) +
             "of its own f32 | eager's of its own f32 | of its own products | peak GiB, steps | of eager's | losses off eager's by |"]
    lines.append("|---" * (9 + len(others)) + "|")
    for r in results:
        systems = r["systems"]
        for precision in dict.fromkeys(key.split()[1] for key in systems):
            own, eager = systems.get("tmc " + precision), systems.get("eager " + precision)
            if not own:
                continue
            memory = f"{own['peak_of_steps'] / eager['peak_of_steps']:.2f}" if eager else ""
            lines.append("| " + " | ".join([
                r["model"] + (", AVX2 only" if r["avx2"] else ""), precision, f"{1e3 * own['median_cpu_seconds']:.0f}",
                *(ratio(systems, "tmc " + precision, f"{x} {precision}") for x in others),
                *(ratio(systems, f"{x} {precision}", x + " f32") if precision != "f32" else "" for x in ("tmc", "eager")),
                f"{own['step_over_products']:.2f}", f"{own['peak_of_steps'] / run.GIB:.2f}", memory,
                f"{own['loss_difference']:.1e}" if "loss_difference" in own else ""]) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(run.ROOT, "build", "bin", "tmc"))
    parser.add_argument("--tmc-option", action="append", default=[], help="another option of tmc compile")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch, torchvision, transformers, timm")
    parser.add_argument("--only", default=SEVEN, help="resnet50 is another (default: %(default)s)")
    parser.add_argument("--precisions", default="f32,bf16")
    parser.add_argument("--systems", default="tmc,eager,compile", help="channels-last is another")
    parser.add_argument("--avx2", action="store_true", help="hold PyTorch to AVX2")
    for name, value in (("threads", 1), ("rounds", 9), ("steps", 19)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("-o", "--output", help="write the figures here as JSON")
    options = parser.parse_args()
    if options.avx2:
        os.environ.update(ONEDNN_MAX_CPU_ISA="AVX2", ATEN_CPU_CAPABILITY="avx2")
    results = []
    for name in options.only.split(","):
        with tempfile.TemporaryDirectory(prefix="bench-cpu-") as scratch:
            results.append(measure(options, name, scratch))
        print(table(results) if len(results) == 1 else table(results[-1:]).split("\n", 2)[2], flush=True)
    for precision in options.precisions.split(","):
        keys = ["tmc " + precision, "eager " + precision]
        ratios = [x["systems"][keys[0]]["median_cpu_seconds"] / x["systems"][keys[1]]["median_cpu_seconds"] for x in results
                  if all(k in x["systems"] for k in keys)]
        if ratios:
            print(f"{precision}: of eager's, the median over the models {statistics.median(ratios):.2f}, the greatest {max(ratios):.2f}")
    if options.output:
        with open(options.output, "w") as file:
            json.dump(dict(cpu=run.cpu_model(), results=results), file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
