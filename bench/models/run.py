"""Export, plan, compile, verify and train the models of models.py and more.py beside PyTorch.

    python bench/models/run.py [--only NAME ...] [--formats pt2 core onnx torchscript] [--keep FOLDER]
                               [--json FILE] [--table FILE]

Needs torch, transformers, timm, torchvision, diffusers, torch_geometric and onnx; README.md says in
which versions the table was made. For each model and each way to export it:

    plan      a plan is found without a budget
    compile   and printed, compiled and linked
    verify    `tmc verify` agrees
    losses    of four steps of AdamW are PyTorch's: no farther from those in double than 1e-6 of them, or
              than eight times the farthest of PyTorch's own in float32 (which it computes three times: as it
              is, by other kernels, and with the samples in reverse order)
    tight     the smallest budget plus 2 % of the way to no budget gives the same losses and parameters,
              bit for bit

An ONNX file doesn't say what PyTorch keeps as it is. Where losses aren't PyTorch's for want of that, the
row is gone through again with `--freeze` of it, and says so. The first of these that isn't so is the row's reason, in tmc's words.
"""

import argparse
import concurrent.futures
import copy
import hashlib
import io
import json
import logging
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))

FORMATS = {"pt2": "model.pt2", "core": "core.pt2", "onnx": "model.onnx", "torchscript": "script.onnx"}
STEPS = 4
RATE, DECAY = 1e-3, 0.01
OPTIMIZER = f"adamw(weight_decay={DECAY},decay=all)"
ROUNDING, FACTOR = 1e-6, 8
TIGHT = 0.02


# What needs PyTorch runs in a process of its own for each model: `run.py --export NAME FOLDER`.


def losses_of(torch, model, inputs):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE, weight_decay=DECAY)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(**inputs)["loss"]
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def copied(model):
    fresh = copy.deepcopy(model)
    fresh.forward = type(model.forward)(model.forward.__func__, fresh)
    return fresh


def doubled(torch, values):
    return {k: v.double() if v.is_floating_point() else v for k, v in values.items()}


def program_of(torch, model, inputs, core):
    program = torch.export.export(model, (), inputs)
    return program.run_decompositions() if core else program


def write_onnx(torch, model, inputs, path, dynamo):
    import onnx
    sys.path.insert(0, os.path.join(ROOT, "examples", "export"))
    from common import train_batch_norms
    if dynamo:
        import onnx_ir
        program = torch.onnx.export(
            model, kwargs=inputs, dynamo=True, optimize=False, do_constant_folding=False, input_names=list(inputs), output_names=["loss"],
            verbose=False)
        proto = onnx_ir.to_proto(program.model)
        train_batch_norms(proto)
    else:
        inner = model

        class Positional(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = inner

            def forward(self, *values):
                return self.inner(**dict(zip(inputs, values)))["loss"]

        buffer = io.BytesIO()
        torch.onnx.export(
            Positional(), tuple(inputs.values()), buffer, dynamo=False, training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
            opset_version=17, input_names=list(inputs), output_names=["loss"])
        proto = onnx.load_from_string(buffer.getvalue())
    onnx.save(proto, path)


def export(name, folder, formats):
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    import numpy
    import torch

    import models
    import more  # noqa: F401 (its rows are the table's, too)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    family, build = models.ROWS[name]
    model, inputs = build()
    kept = [key for key, p in model.named_parameters() if not p.requires_grad]
    kept += [key for key, b in model.named_buffers() if b.is_floating_point()]
    told = dict(family=family, inputs=list(inputs), errors={}, parameters=sum(p.numel() for p in model.parameters()), kept=kept)
    os.makedirs(folder, exist_ok=True)
    for key, value in inputs.items():
        numpy.save(os.path.join(folder, key + ".npy"), value.numpy())
    for kind in formats:
        path = os.path.join(folder, FORMATS[kind])
        try:
            fresh = copied(model)
            if kind in ("pt2", "core"):
                torch.export.save(program_of(torch, fresh, inputs, kind == "core"), path)
            else:
                write_onnx(torch, fresh, inputs, path, kind == "onnx")
        except Exception as error:  # Anything may go wrong in an exporter.
            told["errors"][kind] = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"[:200]
    wide = copied(model).double()
    try:
        told["double"] = losses_of(torch, wide, doubled(torch, inputs))
    except (RuntimeError, NotImplementedError) as error:
        told["no double"] = str(error).splitlines()[0]
    # Rounding's own spread: the same losses by other kernels, and with the samples in another order.
    with torch.backends.mkldnn.flags(enabled=False):
        others = [losses_of(torch, copied(model), inputs)]
    if all(len(v) == len(next(iter(inputs.values()))) for v in inputs.values()):
        others.append(losses_of(torch, copied(model), {key: value.flip(0) for key, value in inputs.items()}))
    told["losses"] = losses_of(torch, model, inputs)
    told["others"] = others
    with open(os.path.join(folder, "told.json"), "w") as file:
        json.dump(told, file)


# The rest needs only the standard library.


def call(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout, done.stderr


def reason(code, text):
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("warning")]
    kept = [line for line in lines if line.startswith(("error", "note"))] or lines[-3:]
    return f"[{code}] " + "; ".join(re.sub(r"^(error|note): ", "", line) for line in kept)


def train(directory, folder, told):
    log = os.path.join(directory, "log.jsonl")
    data = [f"--data={name}={os.path.join(folder, name + '.npy')}" for name in told["fed"]]
    code, out, err = call(
        os.path.join(directory, "train"), *data, f"--steps={STEPS}", f"--lr={RATE}", f"--log={log}", f"--save={directory}/saved")
    if code:
        return None, reason(code, err or out)
    with open(log) as file:
        losses = [entry["loss"] for entry in map(json.loads, file) if entry["kind"] == "step"]
    with open(os.path.join(directory, "saved", "checkpoint.safetensors"), "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        header.pop("__metadata__", None)
        body = file.read()
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode() + body).hexdigest()
    return (losses, digest), ""


def farthest(told, losses):
    """The largest relative distance from PyTorch, and whether it is rounding."""
    exact = told.get("double", told["losses"])
    if any(not math.isfinite(loss) for loss in exact):  # A mask's value that only float32 has.
        exact = told["losses"]
    away = lambda run: max(abs(a - b) / abs(b) for a, b in zip(run, exact))
    spread = max(away(run) for run in [told["losses"], *told.get("others", [])])
    worst = away(losses)
    return worst, len(losses) == len(exact) and worst <= max(ROUNDING, FACTOR * spread)


def examine(tmc, folder, kind, target, flags=()):
    """What became of one export: {"stage": ..., "reason": ...}."""
    with open(os.path.join(folder, "told.json")) as file:
        told = json.load(file)
    if kind in told["errors"]:
        return dict(stage="export", reason=told["errors"][kind])
    graph = os.path.join(folder, FORMATS[kind])
    options = [f"--target={target}", f"--optimizer={OPTIMIZER}", "--loss=loss", *flags]
    found = dict(stage="plan")
    code, out, err = call(tmc, "plan", graph, "--json", *options)
    if code:
        return dict(found, reason=reason(code, err))
    plan = json.loads(out)
    full, least = plan["arena_bytes"], plan["smallest_found_bytes"]
    found.update(stage="compile", full_bytes=full, smallest_bytes=least)
    directory = os.path.join(folder, kind)
    tight = None if least is None else least + int(TIGHT * (full - least))
    sides = [(directory, [])] + ([(directory + "-tight", [f"--budget={tight}"])] if tight else [])
    results = []
    for where, extra in sides:
        code, out, err = call(tmc, "compile", graph, *options, *extra, "-o", where)
        if code:
            return dict(found, stage="tight" if extra else "compile", reason=reason(code, err))
        if not extra:
            code, out, err = call(tmc, "verify", where)
            if code:
                return dict(found, stage="verify", reason=reason(code, out + err))
        with open(os.path.join(where, "step.cpp")) as file:
            text = file.read()
        told["fed"] = [name for name in told["inputs"] if f'"{name}"' in text]
        result, why = train(where, folder, told)
        if why:
            return dict(found, stage="losses", reason=why)
        results.append(result)
        if not extra:
            worst, good = farthest(told, result[0])
            found.update(farthest=worst)
            if not good:
                trained = plan["values"]["trained"]["names"]
                flags = [f"--freeze={name}" for name in trained if f".{name}".endswith(tuple("." + key for key in told["kept"]))]
                if flags and kind in ("onnx", "torchscript"):
                    return dict(examine(tmc, folder, kind, target, flags), flags=flags)
                return dict(found, stage="losses", reason=f"losses are {worst:.2g} from PyTorch's")
        shutil.rmtree(where)
    if len(results) == 2 and results[0] != results[1]:
        return dict(found, stage="tight", reason="other bits under a tight budget")
    return dict(found, stage="held", reason="")


def one(options, name, folder):
    begin = time.monotonic()
    if not os.path.exists(os.path.join(folder, "told.json")):
        code, out, err = call(sys.executable, os.path.abspath(__file__), "--export", name, folder, "--formats", *FORMATS)
        if code:
            lines = [line for line in err.splitlines() if line.strip()]
            return {kind: dict(stage="model", reason=lines[-1] if lines else "") for kind in options.formats}
    results = {kind: examine(options.tmc, folder, kind, options.target) for kind in options.formats}
    for kind, found in results.items():
        away = f"{found['farthest']:.0e}" if "farthest" in found else ""
        print(f"{name:24} {kind:12} {found['stage']:8} {away:6} {found['reason'][:options.width]}", flush=True)
    print(f"{name:24} {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
    return results


def table(results, families):
    kinds = [kind for kind in FORMATS if any(kind in row for row in results.values())]
    lines = ["| model | family | " + " | ".join(kinds) + " |", "|---" * (2 + len(kinds)) + "|"]
    notes = []
    for name, row in results.items():
        cells = []
        for kind in kinds:
            found = row.get(kind)
            if found and found["stage"] == "held":
                cells.append(f"{found['farthest']:.0e}" + (" frozen" if "flags" in found else ""))
            elif found:
                said = re.sub(r"\s+", " ", found["reason"]).replace("|", "\\|")
                if said not in notes:
                    notes.append(said)
                cells.append(f"{found['stage']} [{notes.index(said) + 1}]")
            else:
                cells.append("")
        lines.append(f"| {name} | {families[name]} | " + " | ".join(cells) + " |")
    held = ", ".join(f"{kind} {sum(row.get(kind, {}).get('stage') == 'held' for row in results.values())}" for kind in kinds)
    lines += ["", f"Of {len(results)} models hold: {held}.", ""]
    lines += [f"{i}. {note}" for i, note in enumerate(notes, 1)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tmc", default=os.path.join(ROOT, "build", "bin", "tmc"))
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--only", nargs="*", help="these models")
    parser.add_argument("--formats", nargs="*", default=list(FORMATS))
    parser.add_argument("--keep", help="leave exports here, and take those that are there")
    parser.add_argument("--jobs", type=int, default=2, help="models at a time")
    parser.add_argument("--json", help="write what was found")
    parser.add_argument("--table", help="write the table")
    parser.add_argument("--width", type=int, default=160, help="characters of a reason that are printed")
    parser.add_argument("--export", nargs=2, metavar=("NAME", "FOLDER"), help="only export this model")
    options = parser.parse_args()
    if options.export:
        return export(*options.export, options.formats)
    text = ""
    for part in ("models.py", "more.py"):
        with open(os.path.join(HERE, part)) as file:
            text += file.read()
    families = {name.replace("_", "-"): family for family, name in re.findall(r'@row\("(.*)"\)\ndef (\w+)', text)}
    chosen = options.only or list(families)
    with tempfile.TemporaryDirectory(prefix="models-") as scratch, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        folders = [os.path.join(options.keep or scratch, name) for name in chosen]
        results = dict(zip(chosen, pool.map(lambda n, f: one(options, n, f), chosen, folders)))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)
    text = table(results, families)
    if options.table:
        with open(options.table, "w") as file:
            file.write(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
