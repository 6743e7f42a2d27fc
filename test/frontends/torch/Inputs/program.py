"""Write a small exported program from lines of text: `program.py TEXT OUT.pt2`.

    x: f32 4 8                                          an input, with its type and sizes
    w: f32 4 8 = param                                  a parameter, without a value; or `frozen`, or a `buffer`
    w: f32 4 8 = param meta                             of the meta device: all have one storage, of no bytes
    row = aten.select.int self=x dim=0 index=1          a call
    values, places = aten.topk.default self=x k=2       with two results
    parts = [a, b] aten.split.Tensor self=x split_size=2      with a list of them
    - = aten._assert_async.default self=x               with none
    begin inner x w                                     a graph of its own, and its inputs
    h = aten.mul.Tensor self=x other=w
    end h                                               ... and its outputs
    y = higher_order.wrap_with_set_grad_enabled False inner row w       a call with a graph
    write b row                                         a new value of what is stored, as decomposed programs have it
    example x x y                                       what each input of the example is: one tensor may be several
    return row values

Arguments are names of values, numbers, True and False, quoted texts, and lists of these. `#` begins a
comment.
"""

import ast
import io
import json
import pickle
import re
import sys
import zipfile

TYPES = dict(i8=2, i32=4, i64=5, f16=6, f32=7, f64=8, c32=9, c64=10, bool=12, bf16=13)


def literal(text, known, blocks):
    if text in blocks:
        return {"as_graph": {"name": text, "graph": blocks[text]}}
    if text in known:
        return {"as_tensor": {"name": text}}
    if text.startswith("["):
        entries = [e for e in text[1:-1].split(",") if e]
        if entries and all(e in known or e == "None" for e in entries):
            if "None" in entries:
                return {"as_optional_tensors": [{"as_none": True} if e == "None" else {"as_tensor": {"name": e}} for e in entries]}
            return {"as_tensors": [{"name": e} for e in entries]}
        values = [ast.literal_eval(e) for e in entries]
        return {"as_ints" if all(isinstance(v, int) for v in values) else "as_floats": values}
    if text in TYPES:
        return {"as_scalar_type": TYPES[text]}
    value = ast.literal_eval(text)
    if value is None:
        return {"as_none": True}
    kinds = {bool: "as_bool", int: "as_int", float: "as_float", str: "as_string"}
    return {kinds[type(value)]: value}


class Tensor:
    """As torch.save() writes one: its storage is outside of the pickle."""

    def __reduce__(self):
        return tuple, ([Storage()],)


class Storage:
    pass


def example(names):
    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return ("storage", "0") if isinstance(value, Storage) else None
    tensors = {name: Tensor() for name in names}
    text, archive = io.BytesIO(), io.BytesIO()
    Pickler(text, 2).dump((tuple(tensors[name] for name in names), {}))
    with zipfile.ZipFile(archive, "w") as target:
        target.writestr(zipfile.ZipInfo("archive/data.pkl"), text.getvalue())
    return archive.getvalue()


def meta(kind, sizes, trains=False):
    strides, stride = [], 1
    for size in reversed(sizes):
        strides.insert(0, stride)
        stride *= size
    ints = [{"as_int": n} for n in sizes]
    return dict(
        dtype=TYPES[kind], sizes=ints, requires_grad=trains, device=dict(type="cpu", index=None), strides=[{"as_int": n} for n in strides],
        storage_offset=dict(as_int=0), layout=7)


def written(specs, name, value):
    kind = "parameter" if any("parameter" in s and s["parameter"]["parameter_name"] == name for s in specs) else "buffer"
    return {kind + "_mutation": {"arg": {"name": value}, kind + "_name": name}}


def main():
    with open(sys.argv[1]) as file:
        lines = [line.split("#")[0].strip() for line in file]
    known, values, inputs, nodes, specs, outputs = set(), {}, [], [], [], []
    blocks, around, config, writes, given = {}, None, {}, [], []
    for line in filter(None, lines):
        if line.startswith("return"):
            outputs = line.split()[1:]
        elif line.startswith("write "):
            writes.append(line.split()[1:])
        elif line.startswith("example "):
            given = line.split()[1:]
        elif line.startswith("begin "):
            block, *names = line.split()[1:]
            around, known, nodes = (block, names, known, nodes), set(names), []
        elif line.startswith("end "):
            block, names, outer, before = around
            blocks[block] = dict(inputs=[{"as_tensor": {"name": n}} for n in names], outputs=[{"as_tensor": {"name": n}} for n in line.split()[1:]],
                                 nodes=nodes, tensor_values={})
            known, nodes = outer, before
        elif re.match(r"\w+:", line):
            name, _, rest = line.partition(":")
            words, _, role = rest.partition("=")
            kind, *sizes = words.split()
            known.add(name)
            argument = {"name": name}
            inputs.append({"as_tensor": argument})
            role, *where = role.split() or [""]
            values[name] = meta(kind, [int(n) for n in sizes], role == "param")
            if where:
                values[name]["device"]["type"] = where[0]
                config[name] = dict(path_name="weight_0", use_pickle=False, tensor_meta=values[name])
            specs.append({"parameter": {"arg": argument, "parameter_name": name}} if role in ("param", "frozen") else
                         {"buffer": {"arg": argument, "buffer_name": name}} if role == "buffer" else
                         {"user_input": {"arg": {"as_tensor": argument}}})
        else:
            made, _, rest = line.partition("=")
            rest = rest.strip()
            results = [{"as_tensor": {"name": n.strip()}} for n in made.split(",")]
            if rest.startswith("["):
                names, _, rest = rest[1:].partition("]")
                results = [{"as_tensors": [{"name": n.strip()} for n in names.split(",")]}]
                known.update(n.strip() for n in names.split(","))
            if made.strip() == "-":
                results = []
            known.update(n.strip() for n in made.split(","))
            target, *arguments = rest.split()
            pairs = (text.split("=", 1) if "=" in text else ("", text) for text in arguments)
            read = [dict(name=a, arg=literal(v, known, blocks), kind=1) for a, v in pairs]
            nodes.append(dict(target="torch.ops." + target, inputs=read, outputs=results, metadata={}, name=made.split(",")[0].strip()))
    results = [{"as_tensor": {"name": n}} for n in outputs]
    program = dict(
        graph_module=dict(
            graph=dict(inputs=inputs, outputs=results, nodes=nodes, tensor_values=values, sym_int_values={}, sym_bool_values={},
                       is_single_tensor_return=False, custom_obj_values={}),
            signature=dict(input_specs=specs, output_specs=[written(specs, *pair) for pair in writes] + [{"user_output": {"arg": r}} for r in results]),
            module_call_graph=[]),
        opset_version=dict(aten=10), range_constraints={}, schema_version=dict(major=8, minor=0), torch_version="unnamed")
    with zipfile.ZipFile(sys.argv[2], "w") as target:
        for name, text in (("models/model.json", json.dumps(program)), ("archive_format", "pt2"), ("archive_version", "0"),
                           ("byteorder", "little"), ("data/weights/model_weights_config.json", json.dumps(dict(config=config))),
                           ("data/constants/model_constants_config.json", json.dumps(dict(config={})))):
            target.writestr(zipfile.ZipInfo("model/" + name), text)
        if config:
            target.writestr(zipfile.ZipInfo("model/data/weights/weight_0"), b"")
        if given:
            target.writestr(zipfile.ZipInfo("model/data/sample_inputs/model.pt"), example(given))


main()
