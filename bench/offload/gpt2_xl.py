#!/usr/bin/env python3
"""GPT-2 XL on the cpu with device, host and a file: whole AdamW steps over micro-batches of one sequence.

    gpt2_xl.py --build build --scratch DIR [--micro-batches 2] [--steps 2] [--budget SIZE] [--host-budget SIZE]
               [--lr X] [--python VENV/bin/python]

Compiles examples/gpt2-xl.onnx (1,024 tokens, f32) with what may leave allowed to, trains it from random weights, and
prints a table: what was planned in each space, the predicted and the measured steps, and the largest resident memory
of the trainer's process, as the kernel says it (VmHWM, read from outside while it runs). DIR needs 25 GB, and must not
be in memory.

With --python, which has torch, transformers, onnxscript and safetensors, each step's loss stands beside the one that
PyTorch's forward pass has over the weights that were saved before that step. The graph is then exported without
dropout, each step is a run of its own that goes on from the checkpoint before, and DIR needs 65 GB. bench/README.md's
eight micro-batches are --micro-batches=8 --steps=3 --budget=9300MiB --host-budget=2500MiB --lr=1e-4.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
TEXT = os.path.join(ROOT, "examples", "data", "text.u16.bin")
GIB = 1 << 30
MODEL, SEQUENCE = "gpt2-xl", 1024


def most_resident(pid):
    """Bytes; 0 where the process is gone."""
    try:
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def train(options, step, log, *flags):
    """The most bytes that a run of the trainer had in memory."""
    run = subprocess.Popen([os.path.join(step, "train"), f"--data={TEXT}", f"--lr={options.lr}", f"--nvme={options.scratch}",
                            f"--log={log}", "--quiet", *flags])
    resident = 0
    while run.poll() is None:
        resident = max(resident, most_resident(run.pid))
        time.sleep(0.2)
    if run.returncode:
        sys.exit(f"the trainer ended with {run.returncode}")
    return resident


def with_reference(options, step, log):
    """Steps one by one: the most bytes in memory, and PyTorch's loss before each."""
    resident, losses = 0, []
    with tempfile.TemporaryDirectory(dir=options.scratch) as kept:
        train(options, step, log, "--init=random:1", "--steps=0", f"--save={kept}")
        for number in range(options.steps):
            tokens = options.micro_batches * SEQUENCE
            out = subprocess.run([options.python, os.path.join(HERE, "gpt2_loss.py"), MODEL,
                                  os.path.join(kept, "checkpoint.safetensors"), TEXT, str(number * tokens),
                                  str(options.micro_batches), str(SEQUENCE)], stdout=subprocess.PIPE, check=True, text=True)
            losses.append(float(out.stdout))
            print(f"before step {number + 1}: {losses[-1]:.6f}", file=sys.stderr, flush=True)
            resident = max(resident, train(options, step, log, f"--resume={kept}", "--steps=1", f"--save={kept}"))
    return resident, losses


def exported(options, directory):
    if not options.python:
        return os.path.join(ROOT, "examples", MODEL + ".onnx")
    path = os.path.join(directory, MODEL + ".onnx")
    code = f"import gpt2; gpt2.run({MODEL!r}, {path!r}, dropout=False)"
    subprocess.run([options.python, "-c", code], cwd=os.path.join(ROOT, "examples", "export"), check=True,
                   stdout=subprocess.DEVNULL)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--micro-batches", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--budget", default="4GiB")
    parser.add_argument("--host-budget", default="3600MiB")
    parser.add_argument("--lr", default="2e-5", help="without a warmup, 1e-4 is too much for the third step already")
    parser.add_argument("--python", help="one that has PyTorch: compare the losses")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        step, log = os.path.join(directory, "step"), os.path.join(directory, "log.jsonl")
        model = exported(options, directory)
        begin = time.monotonic()
        subprocess.run([os.path.join(options.build, "bin", "tmc"), "compile", model, "--target=cpu",
                        f"--batch={options.micro_batches}", f"--micro-batches={options.micro_batches}",
                        f"--dim=sequence={SEQUENCE}", f"--budget={options.budget}", f"--host-budget={options.host_budget}",
                        "--offload=all", f"--nvme={options.scratch}", "-o", step], check=True, stderr=subprocess.DEVNULL)
        compiled = time.monotonic() - begin
        if options.python:
            resident, references = with_reference(options, step, log)
        else:
            resident, references = train(options, step, log, "--init=random:1", f"--steps={options.steps}"), []
        with open(os.path.join(step, "plan.json")) as file:
            plan = json.load(file)
        with open(log) as file:
            lines = [line for line in map(json.loads, file) if line["kind"] == "step"]
    spaces = plan["spaces"]
    touched = max(line["high_water_bytes"] for line in lines)
    rows = [("device arena", f"{plan['arena_bytes'] / GIB:.2f} GiB, touched {touched / GIB:.2f} GiB"),
            ("host arena", f"{spaces['host']['arena_bytes'] / GIB:.2f} GiB"),
            ("file", f"{spaces['file']['arena_bytes'] / GIB:.2f} GiB"),
            ("largest resident memory of the process", f"{resident / GIB:.2f} GiB"),
            ("predicted step", f"{plan['step_time_s']:.1f} s"),
            ("measured steps", ", ".join(f"{line['seconds']:.1f}" for line in lines) + " s"),
            ("losses", ", ".join(f"{line['loss']:.6f}" for line in lines)),
            ("compiled in", f"{compiled:.0f} s")]
    if references:
        apart = max(abs(line["loss"] - reference) for line, reference in zip(lines, references))
        rows += [("PyTorch's losses over the same weights", ", ".join(f"{loss:.6f}" for loss in references)),
                 ("apart by at most", f"{apart:.1e}")]
    print("| what | figure |\n|---|---|")
    for name, value in rows:
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
