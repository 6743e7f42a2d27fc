#!/usr/bin/env python3
"""Train one model in several precisions on the same text and compare the losses.

    curves.py [--only NAME ...] [--steps 50]        writes curves.json, curves.md, curves.svg

A variant is a name and options of `tmc compile` (VARIANTS): to add one is to add a line.
Each is trained on the same batches from the same random weights, one thread. Variants
that tmc refuses (exit code 4 or 2) are listed as such. Runs are kept in curves.json, so
that --only adds or renews single ones. Ends with exit code 1 if a variant's last loss is
further from f32's than its line allows, or f32's loss falls by less than 3 nats: then the
comparison says nothing. Needs only the standard library.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
MODEL = "examples/gpt2-124m-nodropout.onnx"
TEXT = "examples/data/text.u16.bin"
SHAPE = ["--target=cpu", "--batch=4", "--dim=sequence=64"]
TRAIN = ["--lr=3e-4", "--lr-schedule=cosine:warmup=5", "--init=random:1", "--threads=1"]
BASE = "f32"
FALL = 3.0  # Nats by which the loss of BASE has to fall.

# Name: (options of tmc compile, how far the last loss may be from BASE's, relative).
VARIANTS = {
    "f32": ([], 0.0),
    "bf16": (["--precision=bf16"], 0.01),
    "bf16, lm_head f32": (["--precision=bf16,lm_head=f32"], 0.01),
    "fp16": (["--precision=fp16"], 0.01),
    "bf16 weights": (["--precision=bf16", "--optimizer=adamw(master=none)"], 0.015),
    "fp8": (["--precision=fp8"], 0.02),
    "fp8 delayed": (["--precision=fp8:delayed"], 0.02),
    "fp8 in blocks": (["--precision=fp8:block"], 0.02),
    "bf16 alone": (["--precision=bf16,gradients=bf16", "--optimizer=adamw(master=none,moments=bf16)"], 0.015),
}
# Colours that are told apart by everyone (Okabe and Ito).
COLOURS = ["#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#8c510a"]


def processor():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.machine()


def run(tmc, steps, flags):
    """What a variant gives: losses, seconds a step, bytes; or why it doesn't."""
    with tempfile.TemporaryDirectory(prefix="curves-") as work:
        step, log = os.path.join(work, "step"), os.path.join(work, "log")
        done = subprocess.run([tmc, "compile", MODEL, *SHAPE, *flags, "-o", step],
                              cwd=ROOT, stderr=subprocess.PIPE, text=True)
        if done.returncode in (2, 4):
            lines = [l for l in done.stderr.splitlines() if "error:" in l]
            return {"refused": lines[0].split("error: ")[1] if lines else "refused"}
        if done.returncode:
            raise SystemExit(done.stderr)
        subprocess.run([os.path.join(step, "train"), "--data", TEXT, "--steps", str(steps),
                        *TRAIN, "--quiet", "--log", log], cwd=ROOT, check=True)
        with open(log) as file:
            rows = [row for row in map(json.loads, file) if row["kind"] == "step"]
        with open(os.path.join(step, "plan.json")) as file:
            plan = json.load(file)
    seconds = sorted(row["seconds"] for row in rows)
    return {"losses": [row["loss"] for row in rows], "seconds": seconds[len(seconds) // 2],
            "arena_bytes": plan["arena_bytes"], "compiled_for": plan["compiled_for"],
            "products": plan["precision"]["products"], "processor": processor()}


def off(runs, name):
    """How far a variant's last loss is from BASE's, relative."""
    base = runs[BASE]["losses"][-1]
    return (runs[name]["losses"][-1] - base) / base


def table(runs):
    lines = ["| variant | products | first loss | last loss | off f32's | allowed | s a step | arena, GiB |",
             "|---|---|---|---|---|---|---|---|"]
    for name in VARIANTS:
        got = runs.get(name)
        if not got:
            continue
        if "refused" in got:
            lines.append(f"| {name} | refused: {got['refused']} | | | | | | |")
            continue
        products = ", ".join(f"{count} {kind}" for kind, count in got["products"].items())
        lines.append(f"| {name} | {products} | {got['losses'][0]:.5f} | {got['losses'][-1]:.5f} | "
                     f"{100 * off(runs, name):+.3f} % | {100 * VARIANTS[name][1]:g} % | {got['seconds']:.2f} | "
                     f"{got['arena_bytes'] / 2**30:.3f} |")
    return "\n".join(lines) + "\n"


def picture(runs):
    """Above the losses, below how far each is from BASE's, in percent, in one SVG."""
    shown = [name for name in VARIANTS if "losses" in runs.get(name, {})]
    steps = len(runs[BASE]["losses"])
    every = [loss for name in shown for loss in runs[name]["losses"]]
    apart = {name: [100 * (a / b - 1) for a, b in zip(runs[name]["losses"], runs[BASE]["losses"])] for name in shown}
    most = max([abs(v) for name in shown for v in apart[name]] + [0.01]) * 1.1
    width, left, right = 720, 62, 706
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 480" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="480" fill="#ffffff"/>']

    def panel(top, bottom, low, high, title, form, lines):
        x = lambda i: left + (right - left) * i / max(steps - 1, 1)
        y = lambda v: bottom - (bottom - top) * (v - low) / (high - low)
        out.append(f'<text x="{left}" y="{top - 8}" font-weight="bold">{title}</text>')
        for k in range(5):
            value = low + (high - low) * k / 4
            out.append(f'<path d="M{left} {y(value):.1f}H{right}" stroke="#d8dee4"/>'
                       f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end" fill="#57606a">{form % value}</text>')
        for i in range(0, steps, 10):
            out.append(f'<text x="{x(i):.1f}" y="{bottom + 16}" text-anchor="middle" fill="#57606a">{i}</text>')
        for name, values in lines.items():
            colour = COLOURS[shown.index(name) % len(COLOURS)]
            path = "".join(f"{'M' if i == 0 else 'L'}{x(i):.1f} {y(v):.2f}" for i, v in enumerate(values))
            dash = "" if name == BASE else ' stroke-dasharray="6 3"' if shown.index(name) % 2 else ' stroke-dasharray="2 3"'
            out.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>')

    panel(34, 270, min(every) * 0.97, max(every), f"loss, {steps} steps", "%.1f", {n: runs[n]["losses"] for n in shown})
    panel(320, 440, -most, most, f"off {BASE}'s, percent", "%+.2f", apart)
    for i, name in enumerate(shown):
        out.append(f'<path d="M{right - 150} {48 + 18 * i}h22" stroke="{COLOURS[i % len(COLOURS)]}" stroke-width="3"/>'
                   f'<text x="{right - 122}" y="{52 + 18 * i}">{name}</text>')
    out.append(f'<text x="{right}" y="472" text-anchor="end" fill="#57606a">step</text></svg>')
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(ROOT, "build", "bin", "tmc"))
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--only", action="append", choices=VARIANTS, help="run this one; others stay as they were")
    parser.add_argument("--draw", action="store_true", help="run none: table and picture of what there is")
    options = parser.parse_args()
    kept = os.path.join(HERE, "curves.json")
    runs = {}
    if os.path.exists(kept):
        with open(kept) as file:
            runs = json.load(file)
    for name in [] if options.draw else options.only or VARIANTS:
        print(name, flush=True)
        runs[name] = run(os.path.abspath(options.tmc), options.steps, VARIANTS[name][0])
        with open(kept, "w") as file:
            json.dump(runs, file, indent=1)
            file.write("\n")
    if BASE not in runs:
        raise SystemExit(f"{BASE} has not been run: nothing to compare with")
    if any(len(got.get("losses", runs[BASE]["losses"])) != len(runs[BASE]["losses"]) for got in runs.values()):
        raise SystemExit("the runs have different numbers of steps: run all of them again")
    with open(os.path.join(HERE, "curves.md"), "w") as file:
        file.write(table(runs))
    with open(os.path.join(HERE, "curves.svg"), "w") as file:
        file.write(picture(runs))
    print(table(runs), end="")
    fall = runs[BASE]["losses"][0] - runs[BASE]["losses"][-1]
    wrong = [f"{BASE}'s loss falls by {fall:.2f} nats only"] if fall < FALL else []
    for name, (_, allowed) in VARIANTS.items():
        if "losses" in runs.get(name, {}) and not abs(off(runs, name)) <= allowed:  # Not a number fails, too.
            wrong.append(f"{name}: {100 * off(runs, name):+.3f} % off, {100 * allowed:g} % allowed")
    print("\n".join(wrong) or f"all as close as asked; {BASE}'s loss falls by {fall:.2f} nats")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
