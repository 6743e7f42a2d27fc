#!/usr/bin/env python3
"""Names of hostile files change nothing but names; needs only the standard library.

    names.py --build build [--keep DIR]

Models in both formats give the names below to tensors, inputs, outputs, nodes, functions and dimensions, the
same models harmless ones. What is emitted is the same but for comments and the contents of strings, a trained
step leaves the same bits under each name, and whatever is shown or written for others holds no character that
its reader doesn't see. Names with control characters and bytes that aren't UTF-8 are refused. Ends with one
line `N passed, M failed`.
"""

import argparse
import html.parser
import json
import os
import pickle
import re
import struct
import subprocess
import sys
import tempfile
import unicodedata
import zipfile

from trained import ROOT, Checkpoint, Tally

sys.path.insert(0, os.path.join(ROOT, "test/frontends/onnx/Inputs"))
import wire  # noqa: E402

HOSTILE = [
    "\\", "a\\", "a\\ ", "\\\\", "*/", "*/ int x = 1; /*", "/*", "//", "/", "..", ".", "../x", "a/../b", "??/", "a??/", '"', "'", '"; abort(); //',
    '")//', "%s%n%d", "{0}", "{", "}", "$(shell touch injected)", "`touch injected`", "${x}", "#", "# x", ";", ",", "a=b", "a:b", "a b", " a",
    "a ", "-o", "--help", "@1", "#2", "<b>", "</script><script>alert(1)</script>", "<!--", "-->", "<!--TABLE-->", "/*DATA*/null", "]]>", "&lt;",
    "\u202eabc\u202c", "\u2066a\u2069", "\u200fa", "\u2028", "a\u2029b", "\ufeff", "\u200b", "\u00ad", "\U000e0041", "\u00e9", "\u65e5\u672c",
    "\U0001f600", "int", "struct", "operator()", "this", "INT", "Int", "pinned x", "bytes=0 x", "again", "lr", "step", "seed", "tensors", "nan",
    "x" * 65536]
# In the order of the hostile ones: whatever sorts by name sorts alike.
HARMLESS = [f"q{i:02}" for i in range(len(HOSTILE))]
HOSTILE.sort()
# The first one gives its name to kernels that all share.
FIRST = HOSTILE.index("a\\")
HOSTILE, HARMLESS = (names[FIRST:] + names[:FIRST] for names in (HOSTILE, HARMLESS))
REFUSED = [b"b\n__builtin_trap();//", b"\x1b[2J", b"\x7f", b"a\rb", "\u009b2J".encode(), b"\xff", b"\xc0\xaf", b"\xed\xa0\x80"]
WIDTH, STEPS = 4, 3
FLAGS = ["--effort=1", "--optimizer=sgd"]


def weight(i):
    """Small fractions that are exact."""
    return struct.pack(f"<{WIDTH * WIDTH}f", *((i * 7 + k * 5) % 11 / 32 - 0.15625 for k in range(WIDTH * WIDTH)))


def onnx(names):
    """Products and sums, each under names of its own."""
    initializers, nodes, inputs, functions = [], [], [], []
    previous = "i" + names[0]
    for i, name in enumerate(names):
        initializers.append(wire.tensor(name, WIDTH, WIDTH, raw_data=weight(i)))
        inputs.append(wire.value("i" + name, "d" + names[0], WIDTH))
        product, total, out = "m" + name, "s" + name, "o" + name
        nodes.append(wire.message(reads=[previous, name], makes=product, op_type="MatMul", node_name=name))
        nodes.append(wire.message(reads=[product, "i" + name], makes=total, op_type="Add", node_name="n" + name))
        nodes.append(wire.message(reads=total, makes=out, op_type="f" + name, node_name="c" + name, node_domain="d" + name))
        functions.append(wire.message(
            function_name="f" + name, function_reads="a" + name, function_makes="b" + name, function_domain="d" + name,
            function_node=wire.message(reads="a" + name, makes="b" + name, op_type="Tanh", node_name="t" + name),
            function_sets=wire.message(set_domain="", version=18)))
        previous = out
    nodes.append(wire.message(reads=[previous, previous], makes="q", op_type="Mul", node_name="q"))
    nodes.append(wire.message(reads="q", makes="l" + names[0], op_type="ReduceMean", node_name="l", attribute=wire.integer("keepdims", 0)))
    return wire.model(nodes, inputs, [wire.value("l" + names[0])], initializers, functions)


def torch(names, path):
    """The same as an exported program."""
    def meta(*sizes, trains=False):
        strides = [WIDTH, 1][2 - len(sizes):]
        return dict(dtype=7, sizes=[dict(as_int=n) for n in sizes], requires_grad=trains, device=dict(type="cpu", index=None),
                    strides=[dict(as_int=n) for n in strides], storage_offset=dict(as_int=0), layout=7)

    def tensor(name):
        return dict(as_tensor=dict(name=name))

    values, inputs, specs, nodes, config, storages = {}, [], [], [], {}, []

    def call(target, made, name, stack, *read):
        given = [dict(name=key, arg=tensor(each), kind=1) for key, each in zip(("self", "mat2" if target.startswith("mm.") else "other"), read)]
        values.setdefault(made, meta(2, WIDTH))
        nodes.append(dict(target="torch.ops.aten." + target, inputs=given, outputs=[tensor(made)], name=name,
                          metadata=dict(nn_module_stack=f"L__self__x,{stack},N", stack_trace=f'File "{stack}.py", line 3, in forward')))

    previous = "i" + names[0]
    for i, name in enumerate(names):
        values["p" + name], values["i" + name] = meta(WIDTH, WIDTH, trains=True), meta(2, WIDTH)
        inputs += [tensor("p" + name), tensor("i" + name)]
        specs += [dict(parameter=dict(arg=dict(name="p" + name), parameter_name=name)), dict(user_input=dict(arg=tensor("i" + name)))]
        config[name] = dict(path_name=f"w{i}", is_param=True, use_pickle=False, tensor_meta=values["p" + name])
        storages.append((f"data/weights/w{i}", weight(i)))
        call("mm.default", "m" + name, name, name, previous, "p" + name)
        call("add.Tensor", "s" + name, "n" + name, name, "m" + name, "i" + name)
        call("tanh.default", "o" + name, "t" + name, name, "s" + name)
        previous = "o" + name
    call("mul.Tensor", "q", "q", names[0], previous, previous)
    values["l" + names[0]] = meta()
    call("mean.default", "l" + names[0], "l", names[0], "q")
    program = dict(
        graph_module=dict(
            graph=dict(inputs=inputs, outputs=[tensor("l" + names[0])], nodes=nodes, tensor_values=values, sym_int_values={}, sym_bool_values={},
                       is_single_tensor_return=False, custom_obj_values={}),
            signature=dict(input_specs=specs, output_specs=[dict(user_output=dict(arg=tensor("l" + names[0])))]),
            module_call_graph=[dict(fqn="", signature=dict(out_spec=json.dumps([1, dict(
                type="builtins.dict", context=json.dumps(["k" + names[0]]), children_spec=[dict(type=None, context=None, children_spec=[])])])))]),
        opset_version=dict(aten=10), range_constraints={}, schema_version=dict(major=8, minor=0), torch_version="unnamed")
    with zipfile.ZipFile(path, "w") as target:
        for name, text in [("models/model.json", json.dumps(program)), ("archive_format", "pt2"), ("byteorder", "little"),
                           ("data/weights/model_weights_config.json", json.dumps(dict(config=config))), *storages]:
            target.writestr(zipfile.ZipInfo("model/" + name), text)


def safetensors(path, tensors):
    """`tensors`: names, shapes and bytes of floats."""
    header, at = {}, 0
    for name, shape, data in tensors:
        header[name] = dict(dtype="F32", shape=shape, data_offsets=[at, at + len(data)])
        at += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors))


def description(name):
    """A target file, of the oldest schema, which is short."""
    roofline = dict(launch_seconds=1e-6, flops_per_second=1e11, bytes_per_second=1e10)
    return dict(schema=1, name=name, backend="cpu", arch="v3", memory_bytes=None, reserved_bytes=0, host_bytes_per_second=1e10, arena_alignment=64,
                roofline=roofline, families={})


def is_hidden(character):
    return unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") and character not in "\n\t"


def fault_of(text, what):
    """"" where a reader sees all of `text`, which is bytes."""
    try:
        text = text.decode()
    except UnicodeDecodeError as error:
        return f"{what} isn't UTF-8: {error}"
    hidden = sorted({hex(ord(c)) for c in text if is_hidden(c)})
    return f"{what} holds {', '.join(hidden)}" if hidden else ""


def bare(source):
    """C++ without comments and with empty strings, and the strings."""
    code, strings = [], []
    source = re.sub(r"\\[ \t]*\n", "", source)  # A line that ends in a backslash goes on.
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|.', re.S)
    for match in token.finditer(source):
        text = match.group()
        if text.startswith(("//", "/*")):
            continue
        if text[0] == '"' and len(text) > 1:
            strings.append(text[1:-1])
            text = '""'
        code.append(text)
    return "".join(code), strings


def unescaped(text):
    """What C++ makes of a string."""
    raw = re.sub(rb"\\([0-7]{1,3}|.)", lambda m: bytes([int(m[1], 8)]) if m[1][0:1].isdigit() else m[1], text.encode("latin-1"))
    return raw.decode()


class Tags(html.parser.HTMLParser):
    """The tags of a page, in order, and its scripts' lines."""

    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, attributes))

    def handle_endtag(self, tag):
        self.tags.append(("/" + tag, []))


def shape(value):
    """JSON without its texts."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return "" if isinstance(value, str) else type(value).__name__


class Names:
    def __init__(self, options, scratch):
        self.tmc = os.path.join(options.build, "bin", "tmc")
        self.scratch = scratch
        self.tally = Tally()

    def run(self, *command, code=0):
        """What is said, and a fault where it can't be all seen or the end is another."""
        done = subprocess.run(command, capture_output=True, cwd=self.scratch)
        what = " ".join(os.path.basename(c) for c in command[:2])
        fault = fault_of(done.stdout + done.stderr, "what " + what + " says")
        if done.returncode != code:
            fault = f"{what} ended with {done.returncode}, not {code}: {(done.stdout + done.stderr)[-2000:].decode(errors='replace')}"
        return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), fault

    def read(self, *path):
        with open(os.path.join(self.scratch, *path), "rb") as file:
            return file.read()

    def one(self, form, kind, names, flags):
        """Compiles, plans, explains, verifies and trains a model; what the comparison takes, and a fault."""
        directory = os.path.join(self.scratch, f"{form}-{kind}")
        os.makedirs(directory)
        step = os.path.join(directory, "step")
        stem = 'm"*\\' + "\u202e\\" if kind == "hostile" else "m"
        model = os.path.join(directory, stem + "." + form)
        target = os.path.join(directory, "target.json")
        with open(target, "w") as file:
            json.dump(description('t"*/\\\u202e\\' if kind == "hostile" else "t"), file)
        flags = [*flags, f"--target={target}"]
        if form == "onnx":
            with open(model, "wb") as file:
                file.write(onnx(names))
            flags = [*flags, "--batch=2"]
        else:
            torch(names, model)
        data = os.path.join(directory, "data.safetensors")
        safetensors(data, [("i" + name, [2, WIDTH], weight(i + 3)[:8 * WIDTH]) for i, name in enumerate(names)])
        weights = os.path.join(directory, "weights.safetensors")
        safetensors(weights, [(name, [WIDTH, WIDTH], weight(i)) for i, name in enumerate(names)])
        ways = [
            [self.tmc, "compile", model, *FLAGS, *flags, "-o", step, "--snapshot=s.pickle", "--trace=t.json", f"--weights={weights}"],
            [self.tmc, "plan", model, *FLAGS, *flags, f"--problem={directory}/problem.txt"],
            [self.tmc, "plan", model, *FLAGS, *flags, "--json", f"--report={directory}/report.html"],
            [self.tmc, "explain", model, *FLAGS, *flags], [self.tmc, "explain", step], [self.tmc, "explain", step, "--tensor=*"],
            [self.tmc, "verify", step, "--threads=1"], [os.path.join(step, "train"), "--help"],
            [os.path.join(step, "train"), f"--data={data}", f"--steps={STEPS}", f"--save={directory}/saved", "--threads=1",
             f"--trace={directory}/ran.json"],
            [os.path.join(step, "train"), f"--data={data}", f"--steps={STEPS}", "--quiet", "--threads=1", "--profile",
             f"--resume={directory}/saved"],
            [os.path.join(step, "train"), f"--data={data}", f"--steps={STEPS}", "--quiet", "--threads=1",
             f"--profile={directory}/profile.json", f"--weights={weights}"]]
        said = []
        for way in ways:
            out, err, fault = self.run(*way)
            if fault:
                return None, fault
            said.append(len(out.splitlines()))
        result = dict(lines=said, checkpoint=Checkpoint(os.path.join(directory, "saved")))
        for name in ("step/step.cpp", "step/step.h", "step/step.mlir"):
            text = self.read(directory, name)
            if any(not (32 <= byte < 127 or byte == 10) for byte in text):
                return None, f"{name} isn't plain ASCII"
            if not name.endswith("mlir"):
                result[name] = bare(text.decode())
        for name in ("step/plan.json", "step/plan-trace.json", "step/t.json", "ran.json", "profile.json"):
            text = self.read(directory, name)
            fault = fault_of(text, name)
            if fault:
                return None, fault
            result[name] = shape(json.loads(text))
            result["names of " + name] = json.loads(text)
        for name in ("step/report.html", "report.html"):
            page = self.read(directory, name)
            if fault := fault_of(page, name):
                return None, fault
            result[name] = Tags(page.decode()).tags
        pickle.loads(self.read(directory, "step/s.pickle"))
        result["problem"] = [line.split(" ")[0] for line in self.read(directory, "problem.txt").decode().split("\n")]
        return result, ""

    def pair(self, form, *flags):
        hostile, fault = self.one(form, "hostile", HOSTILE, flags)
        if fault:
            return self.tally.test(f"{form}: hostile names", fault)
        harmless, fault = self.one(form, "harmless", HARMLESS, flags)
        if fault:
            return self.tally.test(f"{form}: harmless names", fault)
        self.tally.test(f"{form}: whatever is said is visible", "" if hostile["lines"] == harmless["lines"] else
                        f"outputs of {hostile['lines']} lines, not {harmless['lines']}")

        def named(text):
            return re.sub(r"q\d\d", lambda m: HOSTILE[HARMLESS.index(m[0])], text)

        for name in ("step/step.cpp", "step/step.h"):
            (code, strings), (wanted, others) = hostile[name], harmless[name]
            fault = "" if code == wanted and len(strings) == len(others) else "the text without comments is another"
            self.tally.test(f"{form}: {os.path.basename(name)}", fault)
        names = [[unescaped(s) for s in re.findall(r'\{\.name = "((?:[^"\\]|\\.)*)"', self.read(f"{form}-{kind}", "step/step.cpp").decode())]
                 for kind in ("hostile", "harmless")]
        # The learning rate and the step's number give way to the model's names.
        wanted = [{"lr": "optimizer.lr", "step": "optimizer.step"}.get(n, named(n)) for n in names[1]]
        self.tally.test(f"{form}: the table's names", "" if names[0] == wanted else "they are others")
        mine, other = hostile["checkpoint"], harmless["checkpoint"]
        fault = "" if mine.tensors == {named(n): data for n, data in other.tensors.items()} else "the checkpoints differ"
        self.tally.test(f"{form}: bits after {STEPS} steps", fault)
        for name in ("step/plan.json", "step/plan-trace.json", "step/t.json", "ran.json", "profile.json", "step/report.html", "report.html", "problem"):
            same = hostile[name] == harmless[name]
            self.tally.test(f"{form}: {os.path.basename(name)}", "" if same else "it has another shape")
        values = [r["names of step/plan.json"]["values"]["trained"]["names"] for r in (hostile, harmless)]
        self.tally.test(f"{form}: plan.json's names", "" if values[0] == [named(n) for n in values[1]] else "they are others")

    def refusals(self):
        """Names that can't be one, in each kind of file."""
        for bad in REFUSED:
            model = os.path.join(self.scratch, "bad.onnx")
            with open(model, "wb") as file:
                file.write(self.with_name(bad))
            _, said, fault = self.run(self.tmc, "plan", model, "--target=cpu", "--batch=2", code=1)
            where = "the name graph.node[0].input[1], at byte " in said and (" at byte " in said.split("of the file, ")[-1])
            self.tally.test(f"refused: {bad!r} in ONNX", fault or ("" if where else said))
            try:
                text = bad.decode()
            except UnicodeDecodeError:
                text = ""
            archive = os.path.join(self.scratch, "bad.pt2")
            torch([text or "q"], archive)
            if not text:  # JSON's escapes can't say it.
                with zipfile.ZipFile(archive) as source:
                    parts = [(info.filename, source.read(info)) for info in source.infolist()]
                with zipfile.ZipFile(archive, "w") as target:
                    for name, content in parts:
                        target.writestr(zipfile.ZipInfo(name), content.replace(b'"pq"', b'"p' + bad + b'"'))
            _, said, fault = self.run(self.tmc, "plan", archive, "--target=cpu", code=1)
            self.tally.test(f"refused: {bad!r} in an exported program", fault)
            if not text:
                continue
            step = os.path.join(self.scratch, "onnx-harmless/step")
            weights = os.path.join(self.scratch, "bad.safetensors")
            safetensors(weights, [(text, [1], b"\0" * 4)])
            _, said, fault = self.run(os.path.join(step, "train"), f"--weights={weights}", "--steps=1",
                                      f"--data={self.scratch}/onnx-harmless/data.safetensors", code=1)
            self.tally.test(f"refused: {bad!r} in a file of weights", fault or ("" if "at byte" in said else said))
            target = os.path.join(self.scratch, "bad.json")
            with open(target, "w") as file:
                json.dump(description(text), file)
            _, said, fault = self.run(self.tmc, "plan", os.path.join(self.scratch, "onnx-harmless/m.onnx"), "--batch=2", f"--target={target}", code=1)
            self.tally.test(f"refused: {bad!r} in a target file", fault or ("" if "at byte" in said else said))

    @staticmethod
    def with_name(name):
        return wire.model([wire.message(reads=["x", name], makes="y", op_type="Mul")], tensors=[wire.tensor(name, 3, raw_data=b"\0" * 12)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--keep")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    with tempfile.TemporaryDirectory() as folder:
        if options.keep:
            folder = os.path.abspath(options.keep)
            os.makedirs(folder)
        names = Names(options, folder)
        names.pair("onnx")
        names.pair("pt2", "--offload=all", "--budget=11500")
        names.refusals()
    print(f"{names.tally.passed} passed, {names.tally.failed} failed")
    return names.tally.failed != 0


if __name__ == "__main__":
    sys.exit(main())
