#!/usr/bin/env python3
"""Measure a training step of GPT-2 124M: tmc beside PyTorch, on this machine's CPU.

    run.py [--tmc build/bin/tmc] [--python PYTHON] [--threads 1] [--shapes 4x64,2x512]
           [--variants nodropout,dropout] [--systems tmc,eager,compile] [--precision bf16] [--rounds 3]
           [-o results.json]

Same weights (random, written once as safetensors), same tokens, same threads. Each system
has a process of its own; they take turns, so that a busy moment of the machine hits
all of them. A step is forward, zero_grad, backward, AdamW. README.md explains the figures.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
LR, DECAY = 3e-4, 0.01
TRAJECTORY = 10  # steps whose losses are compared
MODELS = {"nodropout": ("gpt2-124m-nodropout.onnx", 0.0), "dropout": ("gpt2-124m.onnx", 0.1)}
GIB = 1 << 30
PRODUCTS = ("Matmul", "Conv", "LinearCrossEntropy")  # families of kernels


def weights(python, path):
    """Random weights as the model's own initialization makes them, under the initializers' names."""
    subprocess.run([python, "-c", f"""
import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config())
values = dict(model.named_parameters(remove_duplicate=False))
del values["transformer.wte.weight"]  # Tied; the graph keeps the other name.
save_file({{k: v.detach().contiguous() for k, v in values.items()}}, {path!r})
"""], check=True)


class Worker:
    def __init__(self, python, spec, scratch):
        self.name = spec.get("name", spec["system"])
        path = os.path.join(scratch, f"{self.name}.json")
        with open(path, "w") as file:
            json.dump(spec, file)
        threads = str(spec["threads"])
        environment = dict(os.environ, OMP_NUM_THREADS=threads, MKL_NUM_THREADS=threads, TOKENIZERS_PARALLELISM="false")
        self.process = subprocess.Popen(
            [python, os.path.join(HERE, "workers.py"), path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if not os.environ.get("BENCH_VERBOSE") else None, text=True, env=environment)

    def ask(self, **command):
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.name}: the process ended (BENCH_VERBOSE=1 shows its messages)")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compile_step(tmc, variant, batch, sequence, scratch, extra):
    """Compile the step; returns its directory, the planner's figures and the seconds it took."""
    directory = os.path.join(scratch, f"{variant}-{batch}x{sequence}")
    model = os.path.join(ROOT, "examples", MODELS[variant][0])
    command = [tmc, "compile", model, "--target", "cpu", "--dim", f"batch={batch}", "--dim", f"sequence={sequence}",
               "--optimizer", f"adamw(weight_decay={DECAY})", "-o", directory, *extra]
    start = time.perf_counter()
    subprocess.run(command, check=True)
    seconds = time.perf_counter() - start
    with open(os.path.join(directory, "plan.json")) as file:
        return directory, json.load(file), seconds


def own_products(directory, data, threads, scratch):
    """The step's time over the time of its own products alone, by its own profile: of each launch
    the fastest of several runs, so that a busy moment of the machine counts for neither."""
    path = os.path.join(scratch, "profile.json")
    subprocess.run([os.path.join(directory, "train"), *(f"--data={x}" for x in data), "--steps", "6", "--quiet", "--init", "random:0",
                    "--threads", str(threads), "--profile=" + path], check=True, stdout=subprocess.DEVNULL)
    with open(path) as file:
        launches = json.load(file)["launches"]
    products = [x for x in launches if x["family"].startswith(PRODUCTS)]
    seconds = sum(x["least_seconds"] for x in products)
    return dict(products_seconds=seconds, products_gflops=sum(x["flops"] for x in products) / seconds / 1e9,
                step_over_products=sum(x["least_seconds"] for x in launches) / seconds)


def peak(scratch):
    """GFLOP/s of one thread that does nothing but multiply-adds in registers: median and best of many short runs."""
    program = os.path.join(scratch, "peak")
    subprocess.run(["c++", "-O3", "-march=native", os.path.join(HERE, "peak.cpp"), "-o", program], check=True)
    return [float(x) for x in subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout.split()]


def take_turns(workers, steps, rounds):
    """Let each worker take steps, by turns, and end it. The losses and the figures, by system."""
    losses, seconds, cpu, systems = {}, {}, {}, {}
    for worker in workers:  # The first step warms up and compiles; it counts for the losses alone.
        losses[worker.name] = worker.ask(do="steps", count=1)["losses"]
        seconds[worker.name], cpu[worker.name] = [], []
    per_round = max(1, -(-(steps - 1) // rounds))
    for number in range(rounds):
        turn = workers[number % len(workers):] + workers[:number % len(workers)]
        for worker in turn:
            answer = worker.ask(do="steps", count=per_round)
            losses[worker.name] += answer["losses"]
            seconds[worker.name] += answer["seconds"]
            cpu[worker.name] += answer["cpu"]
    for worker in workers:
        memory = worker.ask(do="memory")
        worker.close()
        systems[worker.name] = dict(
            median_seconds=statistics.median(seconds[worker.name]), least_seconds=min(seconds[worker.name]),
            median_cpu_seconds=statistics.median(cpu[worker.name]), steps=len(seconds[worker.name]), losses=losses[worker.name][:TRAJECTORY], **memory)
    return losses, systems


def measure(options, variant, batch, sequence, threads, scratch):
    base = dict(batch=batch, sequence=sequence, threads=threads, dropout=MODELS[variant][1], lr=LR, weight_decay=DECAY,
                weights=options.weights, tokens=os.path.join(ROOT, "examples", "data", "text.u16.bin"),
                attention=options.attention, fused=not options.unfused, precision=options.precision, config={}, check=os.path.join(ROOT, "test", "golden"))
    result = dict(variant=variant, batch=batch, sequence=sequence, threads=threads, systems={})
    workers = []
    for system in options.systems:
        spec = dict(base, system=system)
        if system == "tmc":
            spec["directory"], plan, seconds = compile_step(
                options.tmc, variant, batch, sequence, scratch, [f"--precision={options.precision}", *options.tmc_option])
            result["plan"] = {k: plan.get(k) for k in ("arena_bytes", "live_peak_bytes", "launches", "plan_seconds", "overhead_pct")}
            result["compile_seconds"] = round(seconds, 2)
        workers.append(Worker(sys.executable if system == "tmc" else options.python, spec, scratch))
    losses, result["systems"] = take_turns(workers, options.steps, options.rounds)
    if "tmc" in result["systems"]:
        directory = os.path.join(scratch, f"{variant}-{batch}x{sequence}")
        result["systems"]["tmc"].update(own_products(directory, [base["tokens"]], threads, scratch))
    if "eager" in losses and MODELS[variant][1] == 0:
        for name, values in losses.items():
            pairs = zip(values[:TRAJECTORY], losses["eager"][:TRAJECTORY])
            result["systems"][name]["loss_difference"] = max(abs(a - b) for a, b in pairs)
    return result


def table(results):
    lines = ["| variant | B x T | threads | system | ms/step (median) | least | processor ms | of eager's: median | least | processor | "
             "of its own products | peak GiB, steps | of eager's | peak GiB, all | losses off eager's by |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for r in results:
        eager = r["systems"].get("eager")
        for name, s in r["systems"].items():
            ratios = [f"{s[k] / eager[k]:.2f}" if eager else "" for k in ("median_seconds", "least_seconds", "median_cpu_seconds")]
            products = f"{s['step_over_products']:.2f}" if "step_over_products" in s else ""
            memory_ratio = f"{s['peak_of_steps'] / eager['peak_of_steps']:.2f}" if eager else ""
            off = f"{s['loss_difference']:.1e}" if "loss_difference" in s else ""
            lines.append(f"| {r['variant']} | {r['batch']} x {r['sequence']} | {r['threads']} | {name} | "
                         f"{1e3 * s['median_seconds']:.0f} | {1e3 * s['least_seconds']:.0f} | {1e3 * s['median_cpu_seconds']:.0f} | "
                         f"{' | '.join(ratios)} | {products} | "
                         f"{s['peak_of_steps'] / GIB:.2f} | {memory_ratio} | {s['peak'] / GIB:.2f} | {off} |")
    return "\n".join(lines)


def cpu_model():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(ROOT, "build", "bin", "tmc"))
    parser.add_argument("--tmc-option", action="append", default=[], help="another option of tmc compile, such as --budget=2GiB")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch, transformers, safetensors")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--shapes", default="4x64,2x512")
    parser.add_argument("--variants", default="nodropout,dropout")
    parser.add_argument("--systems", default="tmc,eager,compile")
    parser.add_argument("--attention", default="eager", choices=["eager", "sdpa"], help="of the PyTorch model")
    parser.add_argument("--precision", default="f32", choices=["f32", "bf16"], help="bf16: PyTorch's by autocast")
    parser.add_argument("--unfused", action="store_true", help="PyTorch's default AdamW, not fused=True")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=TRAJECTORY, help="of each system, at least (default: %(default)s)")
    parser.add_argument("--weights", help="a safetensors file to start from (default: made here)")
    parser.add_argument("-o", "--output", help="write the figures here as JSON")
    options = parser.parse_args()
    options.systems = options.systems.split(",")
    if "tmc" in options.systems and not os.path.exists(options.tmc):
        parser.error(f"no tmc at {options.tmc}: build it, or say --systems eager,compile")
    results, peak_gflops = [], None
    with tempfile.TemporaryDirectory(prefix="bench-cpu-") as scratch:
        if not options.weights:
            options.weights = os.path.join(scratch, "weights.safetensors")
            weights(options.python, options.weights)
        if "tmc" in options.systems:
            peak_gflops = peak(scratch)
            print(f"{cpu_model()}, {os.cpu_count()} processors; one thread multiplies and adds "
                  f"{peak_gflops[0]:.0f} GFLOP/s (best {peak_gflops[1]:.0f})", flush=True)
        for threads in options.threads.split(","):
            for variant in options.variants.split(","):
                for shape in options.shapes.split(","):
                    batch, sequence = map(int, shape.split("x"))
                    results.append(measure(options, variant, batch, sequence, int(threads), scratch))
                    print(table(results[-1:]) if len(results) == 1 else table(results[-1:]).split("\n", 2)[2], flush=True)
    if options.output:
        with open(options.output, "w") as file:
            json.dump(dict(cpu=cpu_model(), peak_gflops=peak_gflops, attention=options.attention, precision=options.precision,
                           results=results), file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
