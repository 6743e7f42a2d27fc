"""What every export script here shares: one call of torch.onnx.export and the clean-up of its result.

The files are graph-only. Parameters point into `<model>.onnx.data`, which is not
shipped: their values are random anyway, and a reader that only wants the graph must
not need them. Buffers (running statistics, masks, tables) stay inside the file,
because their values mean something.

Kept of the exporter's notes on each node: the name scopes, and the innermost frame of
the Python stack with the path cut down to the package. Left out: class names,
FX text and the outer frames, which are most of a file's bytes, and whatever
names a path of the machine that exported.
"""

import io
import logging
import math
import os
import re
import warnings

import onnx
import onnx_ir as ir
import torch

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SCOPES = "pkg.torch.onnx.name_scopes"
TRACE = "pkg.torch.onnx.stack_trace"
SIGNATURE = "pkg.torch.export.graph_signature.InputSpec.kind"
FOLDED = "pkg.onnxscript.optimizer.folded_from"
OUTPUT_SIGNATURE = "pkg.torch.export.graph_signature.OutputSpec.kind"
ALIGNMENT = 64  # of each tensor in the external file, in bytes


def innermost_frame(trace):
    """`File "transformers/models/x.py", line 12, in forward`, or None where no frame is known."""
    frames = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', trace)
    if not frames:
        return None
    path, line, function = frames[-1]
    for marker in ("/site-packages/", "/examples/export/"):
        if marker in path:
            path = path.split(marker, 1)[1]
            break
    else:
        path = os.path.basename(path)
    return f'File "{path}", line {line}, in {function}'


def clean_node(node):
    kept = {}
    if SCOPES in node.metadata_props:
        kept[SCOPES] = node.metadata_props[SCOPES]
    frame = innermost_frame(node.metadata_props.get(TRACE, ""))
    if frame:
        kept[TRACE] = frame
    node.metadata_props.clear()
    node.metadata_props.update(kept)
    node.doc_string = None


def clean_values(proto):
    """Drop the types of intermediate values, which follow from the operators; initializers keep
    their entry, because it says whether they are a PARAMETER or a BUFFER, or what they were folded from."""
    graph = proto.graph
    kept = [v for v in graph.value_info if any(p.key in (SIGNATURE, FOLDED) for p in v.metadata_props)]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    for value in [*graph.input, *graph.output, *graph.value_info]:
        props = [p for p in value.metadata_props if p.key in (SIGNATURE, OUTPUT_SIGNATURE, FOLDED)]
        del value.metadata_props[:]
        value.metadata_props.extend(props)


def train_batch_norms(proto):
    """Say that batch normalizations train, which the dynamo exporter of torch 2.15 doesn't.

    It writes training_mode=0 whatever the module's mode (onnxscript's torchlib notes it as a
    temporary fix). The node's name still tells: a *functional* normalization returns new
    running statistics, which only training does.
    """
    for node in proto.graph.node:
        if node.op_type != "BatchNormalization" or "legit_functional" not in node.name:
            continue
        kept = [a for a in node.attribute if a.name != "training_mode"]
        del node.attribute[:]
        node.attribute.extend([*kept, onnx.helper.make_attribute("training_mode", 1)])
        node.output.extend([node.output[0] + "_running_mean", node.output[0] + "_running_var"])


def rename_dims(proto, names):
    """Put the user's names where the exporter left s72 and the like, inside expressions too."""
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b") if names else None
    graph = proto.graph
    for value in [*graph.input, *graph.output, *graph.value_info]:
        for dim in value.type.tensor_type.shape.dim:
            if pattern and dim.HasField("dim_param"):
                dim.dim_param = pattern.sub(lambda m: names[m.group(1)], dim.dim_param)


def point_outside(proto, parameters, data_name):
    """Make each parameter an external tensor of known place and size, without a value."""
    offset = 0
    for tensor in proto.graph.initializer:
        if tensor.name not in parameters:
            continue
        length = math.prod(tensor.dims) * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        tensor.ClearField("raw_data")
        del tensor.external_data[:]
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", data_name), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
        offset += -(-length // ALIGNMENT) * ALIGNMENT


def set_default_dims(proto, defaults):
    """Propose sizes for symbolic dimensions: a reader takes them where its user gives none."""
    if defaults:
        onnx.helper.set_model_props(proto, {"default_dims": " ".join(f"{k}={n}" for k, n in defaults.items())})


def histogram(proto):
    counts = {}
    for node in proto.graph.node:
        name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def export(model, inputs, path, *, outputs, dims=None, defaults=None, opset=18, optimize=False, folded=False,
           buffers=None):
    """Export `model`, called with the keyword arguments `inputs`, to ROOT/path and say what is in it.

    `dims` maps the name of an input to {axis: name of a symbolic dimension}, `defaults` the name
    of a symbolic dimension to the size it has where a user gives none.
    `buffers` maps the name of a buffer to its values, where the model is on the meta device.
    `optimize` runs the exporter's optimizer, but keeps the parameters' values from it: it folds
    a transposed weight into a new constant, merges parameters that are equal and drops biases
    that are zero. With `folded` it does all that, as it would for a user who didn't look.
    """
    dims = dims or {}
    symbols = {name: torch.export.Dim(name, min=2, max=65536) for axes in dims.values() for name in axes.values()}
    shapes = {
        name: {axis: symbols[dim] for axis, dim in dims.get(name, {}).items()} or None
        for name in inputs
    }
    tensors = [name for name, value in inputs.items() if isinstance(value, torch.Tensor)]
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    program = torch.onnx.export(
        model, kwargs=inputs, dynamo=True, optimize=False, do_constant_folding=False, opset_version=opset,
        input_names=tensors, output_names=outputs, dynamic_shapes=shapes if symbols else None, verbose=False)

    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    values = [v for name, v in program.model.graph.initializers.items() if name in parameters]
    for name, buffer in (buffers or {}).items():
        if name in program.model.graph.initializers:
            program.model.graph.initializers[name].const_value = ir.tensor(buffer.numpy(), name=name)
    if not folded:
        for value in values:  # Not wanted in the file, and what has no value can't be folded.
            value.const_value = None
    if optimize:
        program.optimize()
    for node in program.model.graph.all_nodes():
        clean_node(node)
    for function in program.model.functions.values():
        for node in function.all_nodes():
            clean_node(node)
    for value in values:
        value.const_value = ir.ExternalTensor("none", None, None, value.dtype, shape=value.shape, name=value.name)
    proto = ir.to_proto(program.model)
    clean_values(proto)
    train_batch_norms(proto)
    renamed = {}
    for value in proto.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            wanted = dims.get(value.name, {}).get(axis)
            if wanted and dim.HasField("dim_param"):
                renamed[dim.dim_param] = wanted
    rename_dims(proto, renamed)
    set_default_dims(proto, defaults)
    return write(proto, model, path, opset)


def export_torchscript(model, inputs, path, *, outputs, dims=None, opset=17, training=True):
    """The same through the older, tracing exporter, which reaches back to opset 13."""
    tensors = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    rest = {name: value for name, value in inputs.items() if name not in tensors}

    class Positional(torch.nn.Module):
        """Gives the tracer positional arguments and a tuple; adds no scope to a parameter's name."""

        def forward(self, *values):
            result = original(**dict(zip(tensors, values)), **rest)
            return tuple(result.values()) if isinstance(result, dict) else result

    mode = torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.EVAL
    original = model.forward
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    model.forward = Positional.forward.__get__(model)
    buffer = io.BytesIO()
    torch.onnx.export(
        model, tuple(tensors.values()), buffer, dynamo=False, training=mode, do_constant_folding=not training,
        opset_version=opset, input_names=list(tensors), output_names=outputs, dynamic_axes=dims)
    del model.forward
    proto = onnx.load_from_string(buffer.getvalue())
    return write(proto, model, path, opset)


def write(proto, model, path, opset):
    """Write the graph to ROOT/path without its parameters' values, and print a summary."""
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    full = os.path.join(ROOT, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    point_outside(proto, parameters, os.path.basename(full) + ".data")
    data = proto.SerializeToString(deterministic=True)
    for leak in (b"site-packages", os.path.expanduser("~").encode(), ROOT.encode()):
        if leak in data:
            raise SystemExit(f"{path}: holds the machine path {leak.decode()}")
    with open(full, "wb") as out:
        out.write(data)
    count = sum(p.numel() for p in model.parameters())
    print(f"{path}: {len(data)} bytes, opset {opset}, {count} parameters, {len(proto.graph.node)} nodes")
    print("   ", ", ".join(f"{name} {n}" for name, n in histogram(proto).items()))
    for kind, values in (("in", proto.graph.input), ("out", proto.graph.output)):
        for value in values:
            shape = [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
            print(f"    {kind} {value.name} {onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type)} {shape}")
