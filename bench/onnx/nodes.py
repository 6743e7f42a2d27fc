"""Runs the conformance cases of a newer onnx than the one that tmc is built with.

    python bench/onnx/nodes.py --cases build/bin/onnx-node-cases --table results.md

The cases are those that the installed `onnx` package makes. Each model that imports is run by the
reference interpreter and compared with the outputs that the package expects. A case counts as one of
floats if all its inputs and outputs are tensors of floats, truth values or whole numbers of 32 or 64
bits, with a float among its outputs; what an operator does to texts, sequences, quantized numbers and
floats of 8 bits or less is no part of training a model.
"""

import argparse
import collections
import os
import subprocess
import tempfile
import warnings

import onnx
from onnx import TensorProto, numpy_helper

FLOATS = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}
OTHERS = {TensorProto.BOOL, TensorProto.INT32, TensorProto.INT64}


def write(case, folder):
    """Model, inputs and outputs, as the package itself writes them; False where one is no tensor."""
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(case.model.SerializeToString())
    inputs, outputs = case.data_sets[0]
    for kind, values, declared in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
        for i, (value, info) in enumerate(zip(values, declared)):
            if not info.type.HasField("tensor_type"):
                return False
            tensor = value if isinstance(value, TensorProto) else numpy_helper.from_array(value, info.name)
            with open(os.path.join(data, "%s_%d.pb" % (kind, i)), "wb") as file:
                file.write(tensor.SerializeToString())
    return True


def is_of_floats(model):
    types = [[v.type.tensor_type.elem_type if v.type.HasField("tensor_type") else None for v in values]
             for values in (model.graph.input, model.graph.output)]
    return all(t in FLOATS | OTHERS for t in types[0] + types[1]) and any(t in FLOATS for t in types[1])


def operator(case):
    """The operator that a case is named for; of one taken apart, too."""
    name = case.name[len("test_"):].replace("_", "")
    known = {s.name.lower(): s.name for s in onnx.defs.get_all_schemas()}
    kinds = {node.op_type for node in case.model.graph.node}
    if len(kinds) == 1:
        return kinds.pop()
    fitting = [n for n in known if name.startswith(n)]
    return known[max(fitting, key=len)] if fitting else sorted(kinds)[0]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cases", default="build/bin/onnx-node-cases")
    options.add_argument("--table")
    options.add_argument("--verbose", action="store_true", help="say what keeps each case from passing")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    from onnx.backend.test.case.node import collect_testcases
    cases = collect_testcases(None)
    with tempfile.TemporaryDirectory() as folder:
        kept = [case for case in cases if write(case, os.path.join(folder, case.name))]
        done = subprocess.run([given.cases, folder, "--verbose"], capture_output=True, text=True)
    said = {}
    for line in done.stdout.splitlines():
        outcome, _, rest = line.partition(" ")
        if outcome in ("wrong", "skip", "apart"):
            name, _, why = rest.partition(": ")
            said[name] = (outcome, why)
    counts = collections.defaultdict(collections.Counter)
    for case in kept:
        outcome, why = said.get(case.name, ("passed", ""))
        counts[operator(case)]["all"] += 1
        counts[operator(case)]["all " + outcome] += 1
        if is_of_floats(case.model):
            counts[operator(case)]["floats"] += 1
            counts[operator(case)]["floats " + outcome] += 1
        if given.verbose and outcome != "passed":
            print("%s %s%s: %s" % (outcome, "floats " if is_of_floats(case.model) else "", case.name, why))
    total = sum(counts.values(), collections.Counter())
    operators = [n for n, c in counts.items() if c["floats"]]
    # Of an operator that tmc has, what it refuses is in the last column.
    had = [n for n in operators if counts[n]["floats passed"]]
    whole = [n for n in operators if counts[n]["floats passed"] + counts[n]["floats apart"] == counts[n]["floats"]]
    lines = ["onnx %s, operator set %d: %d cases of %d are of tensors; %d pass, %d are wrong." % (
        onnx.__version__, onnx.defs.onnx_opset_version(), total["all"], len(cases), total["all passed"], total["all wrong"]),
             "%d are of floats; %d pass. Of %d operators of floats, %d pass in some case and %d in all." % (
                 total["floats"], total["floats passed"], len(operators), len(had), len(whole)), "",
             "| operator | cases of floats | pass | wrong |", "|---|---|---|---|"]
    for name in sorted(operators):
        c = counts[name]
        if c["floats passed"] != c["floats"]:
            lines.append("| %s | %d | %d | %d |" % (name, c["floats"], c["floats passed"], c["floats wrong"]))
    print("\n".join(lines))
    if given.table:
        with open(given.table, "w") as file:
            file.write("\n".join(lines) + "\n")


main()
