"""Each ATen operator with all of its arguments, forward and gradient, beside PyTorch in double.

    python bench/operators/run.py [--only PART ...] [--formats pt2 core onnx torchscript] [--samples N] [--edges N]
                                  [--numbers build/bin/model-numbers] [--keep FOLDER] [--table FILE] [--verbose]

cases.py makes the cases; each is exported in the formats, imported, and interpreted in double without compiling
anything. README.md says how to read what is printed.
"""

import argparse
import collections
import io
import json
import logging
import math
import os
import re
import sys
import tempfile
import warnings
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))

ENDINGS = {"pt2": ".pt2", "core": ".core.pt2", "onnx": ".onnx", "torchscript": ".script.onnx"}

# Numbers agree that differ by less than this, and this share of them: constants of a program have f32.
ABSOLUTE, RELATIVE = 1e-6, 1e-5
# Those of PyTorch in f32 itself, where double has another range.
AS_F32 = 2e-3


def numbers_of(program):
    """What a program gives and its gradients, in double."""
    given = program()
    found = {key: [float(v) for v in y.detach().double().reshape(-1).tolist()] for key, y in given.items()}
    gradients = {}
    if "loss" in given and given["loss"].requires_grad:
        given["loss"].backward()
        gradients = {name: (p.grad if p.grad is not None else p * 0).to_dense().reshape(-1).tolist() for name, p in program.named_parameters()}
    return dict(outputs=found, gradients=gradients)


def write(torch, program, kind, path, names):
    if kind in ("pt2", "core"):
        exported = torch.export.export(program, ())
        if kind == "core":
            exported = exported.run_decompositions()
        torch.export.save(exported, path)
        return
    import onnx
    if kind == "onnx":
        import onnx_ir
        proto = onnx_ir.to_proto(torch.onnx.export(
            program, (), dynamo=True, optimize=False, do_constant_folding=False, output_names=names, verbose=False).model)
    else:
        class Positional(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = program

            def forward(self):
                return tuple(self.inner().values())
        buffer = io.BytesIO()
        torch.onnx.export(
            Positional(), (), buffer, dynamo=False, training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, opset_version=17,
            output_names=names)
        proto = onnx.load_from_string(buffer.getvalue())
        for tensor in proto.graph.initializer:  # The wrapper's name is none of the case's.
            old, tensor.name = tensor.name, tensor.name.replace("inner.", "")
            for node in proto.graph.node:
                for i, name in enumerate(node.input):
                    if name == old:
                        node.input[i] = tensor.name
    onnx.save(proto, path)


def arguments_of(path, covered):
    """Notes which arguments the calls of a .pt2 give; gives the operators. The file leaves out what has its default."""
    with zipfile.ZipFile(path) as archive:
        name = next(n for n in archive.namelist() if n.endswith("models/model.json"))
        nodes = json.loads(archive.read(name))["graph_module"]["graph"]["nodes"]
    operators = set()
    for node in nodes:
        target = node["target"].replace("torch.ops.", "")
        operator = target.split(".")[1] if target.startswith("aten.") else target
        operators.add(operator)
        covered[operator].update(entry["name"] for entry in node["inputs"] if "as_none" not in entry["arg"])
    return {name for name in operators if not name.startswith(("torch.", "_operator."))}


class Exporter:
    """Writes cases in all formats, and what PyTorch gives."""

    def __init__(self, folder, formats, operators):
        import torch
        self.torch, self.folder, self.formats, self.operators = torch, folder, formats, operators
        self.covered = collections.defaultdict(set)
        self.wanted = {}  # By file.
        self.failed = collections.Counter()
        self.lacking = collections.defaultdict(set)  # By operator, the cases that have it.

    def add(self, case):
        import cases
        torch = self.torch
        try:
            probe = cases.Program(case, None)
            first, second = (self.drawn(probe, seed) for seed in (1, 2))
            if any(not torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(first.values(), second.values())):
                return  # Drawn.
            if not first or all(y.numel() > 20000 for y in first.values()):
                return
            floats = cases.weights_of(first)
            trained = any(y.requires_grad for y in first.values() if y.is_floating_point())
            make = lambda: cases.Program(case, floats if trained else None)  # noqa: E731
            narrow, wide = numbers_of(make()), numbers_of(make().double())
        except Exception as error:
            self.failed[f"PyTorch: {type(error).__name__}"] += 1
            return
        names = list(first) + (["loss"] if trained else [])
        stem = re.sub(r"[^A-Za-z0-9_.-]", "_", case.name)
        for kind in self.formats:
            path = os.path.join(self.folder, stem + ("" if trained else ".forward") + ENDINGS[kind])
            try:
                if not os.path.exists(path):  # Of an earlier run with the same --keep.
                    write(torch, make(), kind, path, names)
            except Exception as error:
                self.failed[f"{kind}: {type(error).__name__}"] += 1
                continue
            if path.endswith(".pt2"):
                absent = arguments_of(path, self.covered) - self.operators
                absent = {name for name in absent if name.rstrip("_") not in self.operators}
                if self.operators and absent:
                    for name in absent:
                        self.lacking[name].add(case.operator)
                    os.remove(path)
                    continue
            self.wanted[path] = dict(wide=wide, narrow=narrow, operator=case.operator)

    def drawn(self, program, seed):
        self.torch.manual_seed(seed)
        return program.outputs()


def same(a, b, absolute, relative):
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= absolute + relative * abs(b)


def difference(got, wanted, narrow):
    """What differs, or nothing. Where double has a wider range than f32, either will do."""
    for part in ("outputs", "gradients"):
        for name, numbers in wanted[part].items():
            ours = got.get(part, {}).get(name)
            if ours is None and part == "gradients":
                ours = [0.0] * len(numbers)
            if ours is None:
                return f"no output {name}"
            if len(ours) != len(numbers):
                return f"{name} has {len(ours)} elements instead of {len(numbers)}"
            for i, (a, b, c) in enumerate(zip(ours, numbers, narrow[part][name])):
                if same(a, b, ABSOLUTE, RELATIVE) or same(a, c, AS_F32, AS_F32):
                    continue
                # PyTorch has no number there.
                if math.isnan(b) and math.isnan(c) and part == "gradients":
                    continue
                what = "gradient of " if part == "gradients" else ""
                return f"{what}{name}[{i}] is {a:.9g} instead of {b:.9g}" + ("" if same(b, c, AS_F32, AS_F32) else f" ({c:.9g} in f32)")
    return ""


def outcome(entry, wanted):
    if "why" in entry:
        text = " | ".join([entry["why"]] + entry["notes"])
        kind = {4: "refused", 1: "input", 70: "defect"}.get(entry["code"], "crash")
        return kind, text
    text = difference(entry, wanted["wide"], wanted["narrow"])
    return ("wrong", text) if text else ("same", "")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", nargs="*", default=[])
    options.add_argument("--formats", nargs="*", default=["pt2"], choices=list(ENDINGS))
    options.add_argument("--samples", type=int, default=10, help="of each operator")
    options.add_argument("--edges", type=int, default=2, help="samples of each that are drawn at the edges, too")
    options.add_argument("--skip-database", action="store_true", help="the cases of extra.py alone")
    options.add_argument("--numbers", default=os.path.join(ROOT, "build", "bin", "model-numbers"))
    options.add_argument("--operators", help="a file with the names of the operators that are known")
    options.add_argument("--keep", help="write the files there, and leave them")
    options.add_argument("--table", help="write the table there")
    options.add_argument("--verbose", action="store_true", help="name what is refused, too")
    options.add_argument("--export-only", action="store_true")
    options.add_argument("--compare-only", action="store_true", help="of the files in --keep")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    sys.path.insert(0, HERE)
    folder = given.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    if given.compare_only:
        with open(os.path.join(folder, "wanted.json")) as file:
            kept = json.load(file)
    else:
        kept = exported(given, folder)
        with open(os.path.join(folder, "wanted.json"), "w") as file:
            json.dump(kept, file)
        if given.export_only:
            return
    from said import interpreted
    report(given, kept, interpreted([given.numbers], list(kept["wanted"])))


def exported(given, folder):
    import torch
    import cases
    import extra
    torch.set_num_threads(1)
    operators = set()
    if given.operators:
        with open(given.operators) as file:
            operators = set(file.read().split())
    exporter = Exporter(folder, given.formats, operators)
    for case in extra.cases():
        if not given.only or any(part in case.name for part in given.only):
            exporter.add(case)
    if not given.skip_database:
        for name, case in cases.of_database(given.only, given.samples, given.edges):
            if isinstance(case, Exception):
                exporter.failed["samples"] += 1
            else:
                exporter.add(case)
    uncovered = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space != "aten" or name not in operators:
            continue
        for argument in schema.arguments:
            if argument.name not in exporter.covered[name] and not argument.is_out and argument.name not in ("device", "layout", "pin_memory", "memory_format", "generator", "non_blocking"):
                uncovered.setdefault(name, set()).add(argument.name)
    return dict(wanted=exporter.wanted, failed=exporter.failed, lacking={k: sorted(v) for k, v in exporter.lacking.items()},
                uncovered={k: sorted(v) for k, v in uncovered.items()})


def report(given, kept, said):
    counts = collections.defaultdict(collections.Counter)
    why = collections.defaultdict(list)
    for path, wanted in kept["wanted"].items():
        kind, text = outcome(said.get(path, dict(code=-1, why="no answer", notes=[])), wanted)
        counts[wanted["operator"]][kind] += 1
        if kind != "same" and (kind != "refused" or given.verbose):
            why[kind].append(f"{kind} {os.path.basename(path)}: {text}")
    for kind in ("crash", "defect", "wrong", "input", "refused"):
        for line in why[kind]:
            print(line)
    total = sum(counts.values(), collections.Counter())
    head = "%d programs of %d operators: %d as PyTorch in double, %d refused, %d wrong, %d defects, %d called malformed." % (
        sum(total.values()), len(counts), total["same"], total["refused"], total["wrong"], total["defect"] + total["crash"], total["input"])
    lines = [head, "", "| operator | programs | same | refused | wrong | defect |", "|---|---|---|---|---|---|"]
    for name in sorted(counts):
        c = counts[name]
        if c["same"] != sum(c.values()):
            lines.append("| %s | %d | %d | %d | %d | %d |" % (name, sum(c.values()), c["same"], c["refused"], c["wrong"] + c["input"], c["defect"] + c["crash"]))
    lines += ["", "Operators that no importer knows, of these cases: " + ", ".join(sorted(kept["lacking"])) + ".", "",
              "Arguments that no case gives: " + ", ".join(f"{name} ({' '.join(a)})" for name, a in sorted(kept["uncovered"].items())) + ".", "",
              "Not exported: " + ", ".join(f"{name} {count}" for name, count in sorted(kept["failed"].items())) + "."]
    print("\n".join(lines))
    if given.table:
        with open(given.table, "w") as file:
            file.write("\n".join(lines) + "\n")


main()
