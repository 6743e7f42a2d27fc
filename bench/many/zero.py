#!/usr/bin/env python3
"""ZeRO's and ZeRO-Infinity's tables of a GPT of 7.5B, by plans: bytes of a rank, of the network and of the links.

    zero.py [--bin build/bin] [--target cuda:h100] [--devices 64] [--model gpt2-7.5b.onnx] [-o FILE.md]

Without --model, exports a GPT-2 of 36 layers, 4,096 wide, without values (examples/export/gpt2.py;
with PyTorch, transformers and onnx installed) into a temporary directory. Plans a step of one
sequence of 1,024 tokens a device in bf16 with gradients in bf16 and AdamW that clips, so that all
gradients are there when the norm is known. Bytes are those that are alive then: 16-bit copies,
gradients, f32 masters, moments. `published` is of Rajbhandari et al., ZeRO, 2020, figure 1. The
second table has steps of 1 and 16 devices that may offload all to their hosts. Nothing runs; times
are predictions. Prints tables in Markdown.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bench"))
from tables import publish  # noqa: E402

EXPORT = os.path.join(ROOT, "examples", "export")
GB, GIB, SEQUENCE = 1e9, 1 << 30, 1024
# The mode, its budget, and the published bytes of a rank. A small budget lets ranks gather parameters again.
ROWS = [("zero=0", "200GiB", 120.0), ("zero=1", "200GiB", 31.4), ("zero=2", "200GiB", 16.6), ("zero=3", "200GiB", 1.88),
        ("zero=3", "12GiB", 1.88)]


def export(path):
    """The graph, by a process of its own: PyTorch keeps what it took."""
    text = f"import sys; sys.path.insert(0, {EXPORT!r}); import gpt2; gpt2.run('gpt2-7.5b', {path!r}, dropout=False)"
    subprocess.run([sys.executable, "-c", text], check=True, stdout=subprocess.DEVNULL)


def plan(options, devices, *flags):
    done = subprocess.run(
        [os.path.join(options.bin, "tmc"), "plan", options.model, f"--target={options.target}", f"--batch={devices}",
         f"--dim=sequence={SEQUENCE}", "--precision=bf16,gradients=bf16", *flags, "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(flags)}: {done.stderr}")
    return json.loads(done.stdout)


def kept(options, mode, budget, published, scratch):
    trace = os.path.join(scratch, "trace.json")
    planned = plan(options, options.devices, "--optimizer=adamw(clip=1.0)", f"--parallel=dp={options.devices},{mode}",
                   f"--budget={budget}", f"--trace={trace}")
    with open(trace) as file:
        events = json.load(file)["traceEvents"]
    at_norm = [e for e in events if e.get("ph") == "X" and e["args"].get("kernel") == "grad_norm"]
    held = at_norm[0]["args"]["live_bytes"] / GB
    spaces, seconds = planned["spaces"], planned["step_time_s"]
    travels = spaces["moved_bytes"]["network"] / (planned["values"]["trained"]["bytes"] / 2)
    return [mode, budget, f"{published:g}", f"{held:.2f}", f"{100 * (held / published - 1):+.1f} %", f"{travels:.2f} n",
            f"{spaces['busy_s']['network']:.3f} s", f"{spaces['waits_s']['network']:.3f} s", f"{seconds:.3f} s",
            f"{SEQUENCE / seconds:.0f}", f"{planned['smallest_found_bytes'] / GIB:.2f} GiB"]


def offloaded(options, devices):
    ranks = [f"--parallel=dp={devices},zero=3"] if devices > 1 else []
    planned = plan(options, devices, "--budget=10GiB", "--host-budget=400GiB", "--offload=all", *ranks)
    spaces, seconds = planned["spaces"], planned["step_time_s"]
    moved = spaces["moved_bytes"]
    return [devices, f"{moved['h2d'] / GB:.2f}", f"{moved['d2h'] / GB:.2f}", f"{moved.get('network', 0) / GB:.1f}",
            f"{spaces['host']['arena_bytes'] / GB:.1f}", f"{seconds:.3f} s", f"{SEQUENCE / seconds:.0f}"]


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
    parser.add_argument("--target", default="cuda:h100")
    parser.add_argument("--devices", type=int, default=64)
    parser.add_argument("--model")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if not options.model:
            options.model = os.path.join(scratch, "gpt2-7.5b.onnx")
            export(options.model)
        lines = table(["mode", "budget", "published GB", "GB", "", "network", "busy", "kernels wait", "step", "tokens/s of a device",
                       "smallest budget"], [kept(options, *row, scratch) for row in ROWS])
        lines += ["", *table(["devices", "h2d GB of each", "d2h GB", "network GB", "host GB", "step", "tokens/s of a device"],
                             [offloaded(options, devices) for devices in (1, 16)])]
    publish(lines, options.output)


if __name__ == "__main__":
    main()
