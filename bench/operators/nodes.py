"""Each ONNX operator with its attributes, drawn at the edges as well, forward and gradient.

    python bench/operators/nodes.py [--only PART ...] [--numbers build/bin/model-numbers] [--keep FOLDER] [--table FILE]

The cases are those that the installed `onnx` package makes (bench/onnx/nodes.py runs them as they are). Their
inputs of floats are drawn again and become parameters; the others are constants. Outputs are compared with the
package's reference implementation, and gradients with the differences of the loss where it is smooth; everywhere
else they must be numbers where the outputs are.
"""

import argparse
import collections
import json
import math
import os
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
FLOATS = {TensorProto.FLOAT}
# Of the reference's f32.
ABSOLUTE, RELATIVE = 1e-4, 1e-3
SLOPE = 1e-5


def cycled(array, values):
    return np.resize(np.array(values, dtype=np.float32), array.shape)


# The package's own numbers are smooth for most operators; the other draws are the edges.
DRAWS = {
    "own": lambda a: a,
    "zeros": np.zeros_like,
    "equal": lambda a: np.full_like(a, 0.5),
    "large": lambda a: cycled(a, (100, -100, 1e4, -1e4, 88.5, -89, 0, 30)),
    "whole": lambda a: cycled(a, (0, 1, -1, 2, 1, -2, 3, 0, -3)),
    "fractions": lambda a: cycled(a, (0.25, 0.75, 0.1, 0.9, 1e-3, 0.5)),
}
SKIPPED = ("training_dropout", "bernoulli", "random", "cast", "quantize", "string", "adam", "adagrad", "momentum")


def trained(case, given):
    """The case's model: inputs of floats are parameters, others constants, and the loss weighs every element."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx") and entry.version < 13:
            entry.version = 13
    graph = model.graph
    nodes = list(graph.node)
    del graph.node[:]
    floats = []
    for info in list(graph.input):
        array = given[info.name]
        if info.type.tensor_type.elem_type in FLOATS and array.size:
            graph.initializer.append(numpy_helper.from_array(array, info.name))
            floats.append(info.name)
        else:
            graph.node.append(helper.make_node("Constant", [], [info.name], value=numpy_helper.from_array(np.asarray(array), info.name)))
    del graph.input[:]
    graph.node.extend(nodes)
    return model, floats


def with_loss(model, outputs):
    """The loss, and whether there is one."""
    rng = np.random.default_rng(5)
    graph = model.graph
    total = None
    for info, array in zip(list(graph.output), outputs):
        if info.type.tensor_type.elem_type not in FLOATS:
            continue
        y = info.name
        weights = rng.normal(size=array.shape).astype(np.float32) + np.float32(0.1)
        graph.node.append(helper.make_node("Constant", [], [y + ".w"], value=numpy_helper.from_array(weights, y + ".w")))
        graph.node.append(helper.make_node("Mul", [y, y + ".w"], [y + ".p"]))
        graph.node.append(helper.make_node("ReduceSum", [y + ".p"], [y + ".s"], keepdims=0))
        if total:
            graph.node.append(helper.make_node("Add", [total, y + ".s"], [y + ".t"]))
        total = y + ".t" if total else y + ".s"
    if total:
        graph.node.append(helper.make_node("Identity", [total], ["loss"]))
        graph.output.append(helper.make_tensor_value_info("loss", TensorProto.FLOAT, []))
    return bool(total)


def operator(case):
    kinds = {node.op_type for node in case.model.graph.node}
    return kinds.pop() if len(kinds) == 1 else case.name.split("_expanded")[0]


def prepare(case, folder, only):
    """{path: what is wanted} of all draws of a case."""
    wanted = {}
    if any(part in case.name for part in SKIPPED) or only and not any(part in case.name for part in only):
        return wanted
    infos = list(case.model.graph.input) + list(case.model.graph.output)
    if any(not v.type.HasField("tensor_type") or v.type.tensor_type.elem_type not in FLOATS | {TensorProto.BOOL, TensorProto.INT64, TensorProto.INT32}
           for v in infos):
        return wanted
    inputs, results = case.data_sets[0]
    own = {}
    for info, value in zip(case.model.graph.input, inputs):
        own[info.name] = numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)
    if any(a.size > 4000 for a in own.values()):
        return wanted
    for kind, draw in DRAWS.items():
        given = {n: np.asarray(draw(a), dtype=np.float32).reshape(a.shape) if a.dtype == np.float32 else a for n, a in own.items()}
        if kind != "own" and all(a.dtype != np.float32 for a in own.values()):
            continue
        try:
            if kind == "own":
                outputs = [numpy_helper.to_array(v) if isinstance(v, TensorProto) else np.asarray(v) for v in results]
            else:
                outputs = ReferenceEvaluator(case.model).run(None, given)
        except Exception:  # The reference may not take such numbers.
            continue
        model, floats = trained(case, given)
        has_loss = bool(floats) and with_loss(model, outputs)
        path = os.path.join(folder, f"{case.name}-{kind}{'' if has_loss else '.forward'}.onnx")
        onnx.save(model, path)
        names = [info.name for info in case.model.graph.output]
        wanted[path] = dict(
            operator=operator(case), kind=kind,
            outputs={n: [float(v) for v in np.asarray(a, dtype=np.float64).reshape(-1)] for n, a in zip(names, outputs) if n})
    return wanted


def close(a, b, absolute, relative):
    return a == b or math.isnan(a) and math.isnan(b) or abs(a - b) <= absolute + relative * abs(b)


def difference(entry, wanted):
    for name, numbers in wanted["outputs"].items():
        ours = entry["outputs"].get(name)
        if ours is None or len(ours) != len(numbers):
            return f"{name} has {0 if ours is None else len(ours)} elements instead of {len(numbers)}"
        for i, (a, b) in enumerate(zip(ours, numbers)):
            # Beyond f32, the reference has an infinity or none.
            if not close(a, b, ABSOLUTE, RELATIVE) and not (abs(a) > 3e38 and not math.isfinite(b)):
                return f"{name}[{i}] is {a:.9g} instead of {b:.9g}"
    finite = all(math.isfinite(v) for numbers in wanted["outputs"].values() for v in numbers)
    for name, numbers in entry.get("gradients", {}).items():
        for i, v in enumerate(numbers):
            if finite and not math.isfinite(v):
                return f"gradient of {name}[{i}] is {v}"
    if wanted["kind"] == "own":
        for name, (slope, fine, size) in entry.get("slopes", {}).items():
            if not close(slope, fine, SLOPE * max(size, 1e-3), 0):
                return f"slope along {name} is {slope:.9g} instead of {fine:.9g}"
    return ""


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", nargs="*", default=[])
    options.add_argument("--numbers", default=os.path.join(ROOT, "build", "bin", "model-numbers"))
    options.add_argument("--keep")
    options.add_argument("--table")
    options.add_argument("--verbose", action="store_true", help="name what is refused, too")
    options.add_argument("--export-only", action="store_true")
    options.add_argument("--compare-only", action="store_true")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    folder = given.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    listed = os.path.join(folder, "wanted.json")
    if given.compare_only:
        with open(listed) as file:
            wanted = json.load(file)
    else:
        from onnx.backend.test.case.node import collect_testcases
        wanted = {}
        for case in collect_testcases(None):
            wanted.update(prepare(case, folder, given.only))
        with open(listed, "w") as file:
            json.dump(wanted, file)
        if given.export_only:
            return
    sys.path.insert(0, HERE)
    from said import interpreted
    said = interpreted([given.numbers, "--differences"], list(wanted))
    counts = collections.defaultdict(collections.Counter)
    for path, want in wanted.items():
        entry = said.get(path, dict(code=-1, why="no answer", notes=[]))
        if "why" in entry:
            kind, text = {4: "refused", 1: "input"}.get(entry["code"], "defect"), " | ".join([entry["why"]] + entry["notes"])
        else:
            text = difference(entry, want)
            kind = "wrong" if text else "same"
        counts[want["operator"]][kind] += 1
        if kind in ("wrong", "defect", "input") or given.verbose and kind == "refused":
            print(f"{kind} {os.path.basename(path)}: {text}")
    total = sum(counts.values(), collections.Counter())
    lines = ["%d models of %d operators: %d as the reference, %d refused, %d wrong, %d called malformed, %d defects." % (
        sum(total.values()), len(counts), total["same"], total["refused"], total["wrong"], total["input"], total["defect"]),
        "", "| operator | models | same | refused | wrong | malformed | defect |", "|---|---|---|---|---|---|---|"]
    for name in sorted(counts):
        c = counts[name]
        if c["same"] != sum(c.values()):
            lines.append("| %s | %d | %d | %d | %d | %d | %d |" % (name, sum(c.values()), c["same"], c["refused"], c["wrong"], c["input"], c["defect"]))
    print("\n".join(lines))
    if given.table:
        with open(given.table, "w") as file:
            file.write("\n".join(lines) + "\n")


main()
