"""Archives that no exporter writes: each must end with one clear message and the right exit code.

    hostile.py TMC-IMPORT MODEL.pt2 FOLDER

MODEL is a sound archive with stored entries. Every case changes it a little; the unchanged
archive, written by the same code, must be read.
"""

import json
import os
import struct
import subprocess
import sys
import zipfile
import zlib

TOOL, MODEL, FOLDER = sys.argv[1:4]
GRAPH, WEIGHTS = "model/models/model.json", "model/data/weights/model_weights_config.json"


def entries():
    with zipfile.ZipFile(MODEL) as source:
        return [(info.filename, source.read(info)) for info in source.infolist()]


def write(path, parts, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as target:
        for name, data in parts:
            target.writestr(zipfile.ZipInfo(name), data, method)


def edited(name, edit):
    """The entries with a JSON one changed by `edit`."""
    parts = []
    for entry, data in entries():
        if entry == name:
            value = json.loads(data)
            data = json.dumps(edit(value) or value).encode()
        parts.append((entry, data))
    return parts


def first_weight(change):
    def edit(root):
        change(next(iter(root["config"].values())))
    return edited(WEIGHTS, edit)


def meta(**fields):
    return first_weight(lambda payload: payload["tensor_meta"].update(fields))


def untyped(root):
    """The tree of the outputs has inner nodes that don't say what they are."""
    for call in root["graph_module"]["module_call_graph"]:
        if call["fqn"] == "":
            call["signature"]["out_spec"] = json.dumps([1, dict(children_spec=[dict(children_spec=[])])])


def node(change):
    return edited(GRAPH, lambda root: change(root["graph_module"]["graph"]["nodes"][0]) and None)


def sizes(*numbers):
    return [dict(as_int=n) for n in numbers]


def patched(path, edit):
    """The sound archive with its bytes changed."""
    write(path, entries())
    with open(path, "rb") as file:
        data = bytearray(file.read())
    data = edit(data) or data
    with open(path, "wb") as file:
        file.write(data)


def central(data, number):
    """Where the directory's record `number` begins."""
    at = struct.unpack_from("<I", data, data.rfind(b"PK\5\6") + 16)[0]
    for _ in range(number):
        name, extra, comment = struct.unpack_from("<HHH", data, at + 28)
        at += 46 + name + extra + comment
    return at


INNER = b"model/inner"


def header(data):
    """A local header with its data, as a zip begins with."""
    return struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, 0, 0, 0, 33, zlib.crc32(data), len(data), len(data), len(INNER), 0) + INNER + data


def overlapping(path):
    """An entry whose bytes hold another entry, which the directory lists, too."""
    inside = b"twice"
    write(path, entries() + [("model/outer", header(inside))])
    with open(path, "rb") as file:
        data = bytearray(file.read())
    at = data.find(header(inside))
    record = struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 20, 20, 0, 0, 0, 33, zlib.crc32(inside), len(inside), len(inside),
                         len(INNER), 0, 0, 0, 0, 0, at) + INNER
    end = data.rfind(b"PK\5\6")
    tail = bytearray(data[end:])
    count = struct.unpack_from("<H", tail, 10)[0] + 1
    struct.pack_into("<HHI", tail, 8, count, count, struct.unpack_from("<I", tail, 12)[0] + len(record))
    with open(path, "wb") as file:
        file.write(data[:end] + record + tail)


def huge(data):
    struct.pack_into("<I", data, central(data, 2) + 24, 0xFFFFFFF0)


def encrypted(data):
    at = central(data, 0)
    struct.pack_into("<H", data, at + 8, struct.unpack_from("<H", data, at + 8)[0] | 1)


def run(name, make, code, *texts):
    path = os.path.join(FOLDER, name.replace(" ", "-") + ".pt2")
    parts = make(path)
    if parts is not None:
        write(path, parts)
    done = subprocess.run([TOOL, path, "--weights", "--quiet"], capture_output=True, text=True)
    said = done.stderr
    good = done.returncode == code and all(text in said for text in texts) and said.count("error: ") == (code != 0)
    print(f"{'PASS' if good else 'FAIL'}: {name}")
    if not good:
        print(f"  ended with {done.returncode}, not {code}, and said\n{said}")
    return good


def graph(change):
    return edited(GRAPH, lambda root: change(root["graph_module"]["graph"]) and None)


def cycle(nodes):
    """The first node reads what the last one makes."""
    nodes["nodes"][0]["inputs"][0]["arg"] = nodes["nodes"][-1]["outputs"][0]


def with_argument(**value):
    """A list of sizes that the program asks for: the first node becomes a view."""
    def change(n):
        first = n["inputs"][0]
        first["name"] = "self"
        n.update(target="torch.ops.aten.view.default", inputs=[first, dict(name="size", arg=value, kind=1)])
    return node(change)


def block(inner, *operands, target="wrap_with_set_grad_enabled"):
    """The first node becomes a call with a graph."""
    def change(n):
        out = n["outputs"]
        n.update(target="torch.ops.higher_order." + target, outputs=out, inputs=[
            dict(name="", arg=dict(as_bool=False), kind=1), dict(name="", arg=dict(as_graph=dict(name="g", graph=inner)), kind=1)] +
            [dict(name="", arg=dict(as_tensor=dict(name=o)), kind=1) for o in operands])
    return node(change)


def inner(nodes=(), reads=("a",), makes=("a",)):
    return dict(inputs=[dict(as_tensor=dict(name=n)) for n in reads], outputs=[dict(as_tensor=dict(name=n)) for n in makes],
                nodes=list(nodes), tensor_values={})


def lying(offset, width, value):
    """The directory's record of the second entry says `value` at `offset`."""
    def edit(data):
        at = central(data, 1) + offset
        data[at:at + width] = value.to_bytes(width, "little")
    return lambda path: patched(path, edit)


def bomb(path):
    """A program of which a thousandth is stored: two gigabytes of blanks."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    blanks, size, crc, packed = b" " * (1 << 24), 1 << 31, 0, []
    for _ in range(size >> 24):
        crc = zlib.crc32(blanks, crc)
        packed.append(packer.compress(blanks))
    data = b"".join(packed) + packer.flush()
    name = GRAPH.encode()
    fields = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, crc, len(data), size, len(name), 0)
    record = b"PK\1\2" + struct.pack("<H", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name
    local = b"PK\3\4" + fields + name + data
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(record), len(local), 0)
    with open(path, "wb") as file:
        file.write(local + record + end)


def twice(path):
    """Two records of the directory for one entry."""
    write(path, entries())
    with open(path, "rb") as file:
        data = bytearray(file.read())
    end = data.rfind(b"PK\5\6")
    first, second = central(data, 0), central(data, 1)
    tail = bytearray(data[end:])
    count = struct.unpack_from("<H", tail, 10)[0] + 1
    struct.pack_into("<HHI", tail, 8, count, count, struct.unpack_from("<I", tail, 12)[0] + second - first)
    with open(path, "wb") as file:
        file.write(data[:end] + data[first:second] + tail)


def deflated(path):
    write(path, entries(), zipfile.ZIP_DEFLATED)


def added(*more):
    return lambda path: entries() + list(more)


def without(name):
    return lambda path: [part for part in entries() if part[0] != name]


def replaced(name, data):
    return lambda path: [(n, data if n == name else d) for n, d in entries()]


CASES = [
    ("sound", lambda path: entries(), 0),
    ("deflated", deflated, 0),
    ("empty", lambda path: open(path, "wb").close(), 1, "has no program"),
    ("no zip", lambda path: open(path, "wb").write(b"not a zip" * 100) and None, 1, "no sound archive"),
    ("truncated", lambda path: patched(path, lambda d: d[:len(d) // 2]), 1, "no sound archive"),
    ("two entries of one range", overlapping, 1, "share bytes"),
    ("a size beyond the file", lambda path: patched(path, huge), 1, "no sound archive"),
    ("encrypted", lambda path: patched(path, encrypted), 1, "no sound archive"),
    ("climbs out", added(("model/../../etc/passwd", b"x")), 1, "'model/../../etc/passwd'"),
    ("absolute", added(("/etc/passwd", b"x")), 1, "'/etc/passwd'"),
    ("two folders", added(("other/models/model.json", b"{}")), 1, "aren't in one folder"),
    ("no graph", without(GRAPH), 1, "has no program"),
    ("an old archive", lambda path: [("serialized_exported_program.json", b"{}"), ("serialized_state_dict.pt", b"x")], 1, "no"),
    ("not JSON", replaced(GRAPH, b"{"), 1, "is no JSON"),
    ("not UTF-8", replaced(GRAPH, b'{"a": "\xff"}'), 1, "is no JSON"),
    ("nested a million deep", replaced(GRAPH, b"[" * 1000000), 1, "nested more than"),
    ("a list", replaced(GRAPH, b"[]"), 1, "it is no object"),
    ("another schema", lambda path: edited(GRAPH, lambda r: r["schema_version"].update(major=9)), 4, "schema 9"),
    ("a tree of outputs without types", lambda path: edited(GRAPH, untyped), 0),
    ("a node without target", lambda path: node(lambda n: n.pop("target")), 1, "has no target"),
    ("an argument of two kinds", lambda path: node(lambda n: n["inputs"][0].update(arg=dict(as_int=1, as_bool=True))), 1, "isn't of one kind"),
    ("an argument too many digits long", lambda path: node(lambda n: n["inputs"][0].update(arg=dict(as_int=2 ** 80))), 1, "no whole number"),
    ("a value that isn't there", lambda path: node(lambda n: n["inputs"][0]["arg"].update(as_tensor=dict(name="nowhere"))), 1, "nothing defines"),
    ("an argument missing", lambda path: node(lambda n: n.update(inputs=[])), 1, "linear"),
    ("unknown operators", lambda path: node(lambda n: n.update(target="torch.ops.acme.twist.default")), 4, "acme.twist.default, 1 time", "linear.py:"),
    ("a stride whose reach is no number", lambda path: meta(strides=sizes(2 ** 60, 1)), 1, "is no view of a storage"),
    ("a huge size", lambda path: meta(sizes=sizes(2 ** 40, 2 ** 40)), 1, "is no view of a storage"),
    ("a negative size", lambda path: meta(sizes=sizes(-1, 64)), 1, "a size is negative"),
    ("a negative stride", lambda path: meta(strides=sizes(-64, 1)), 1, "is no view of a storage"),
    ("a stride beyond the storage", lambda path: meta(strides=sizes(2 ** 50, 1)), 1, "bytes of 'data/weights/weight_0'"),
    ("an offset beyond the storage", lambda path: meta(storage_offset=dict(as_int=1)), 1, "bytes of 'data/weights/weight_0'"),
    ("a repeated storage", lambda path: meta(sizes=sizes(2 ** 20, 2 ** 20), strides=sizes(0, 0)), 1, "repeats 1 elements"),
    ("a storage that is too short", lambda path: [(n, d[:-4] if n.endswith("/weight_0") else d) for n, d in entries()], 1, "bytes of 'data/weights/weight_0'"),
    ("a pickle", lambda path: first_weight(lambda p: p.update(use_pickle=True)), 4, "is stored as a pickle", "torch 2.9"),
    ("an unknown type", lambda path: meta(dtype=99), 4, "elements of type number 99"),
    ("no storage", without("model/data/weights/weight_0"), 74, "has no entry 'data/weights/weight_0'", "it holds the values of"),
    ("a storage elsewhere", lambda path: first_weight(lambda p: p.update(path_name="../../../etc/passwd")), 74, "has no entry"),
    # Archives.
    ("a bomb", bomb, 1), ("one entry twice", twice, 1),
    ("a size that is too small", lying(24, 4, 10), 1), ("a size that is too large", lying(24, 4, 1 << 20), 1),
    ("a stored size that is too large", lying(20, 4, 1 << 30), 1), ("a wrong checksum", lying(16, 4, 1), 1),
    ("an unknown method", lying(10, 2, 93), 1), ("an entry behind the file", lying(42, 4, 0xFFFFFFF0), 1),
    ("a name beyond the directory", lying(28, 2, 0xFFFF), 1), ("an extra field beyond the directory", lying(30, 2, 0xFFFF), 1),
    ("climbs in the middle", added(("model/data/../../x", b"x")), 1), ("climbs with backslashes", added(("model\\..\\..\\x", b"x")), 1),
    ("an empty name", added(("", b"x")), 1), ("a dot", added(("model/./x", b"x")), 0),
    ("a name of 60000 letters", added(("model/" + "x" * 60000, b"x")), 0),
    ("a thousand entries", added(*(("model/data/x%d" % i, b"") for i in range(1000))), 0),
    # Numbers.
    ("a float beyond all floats", replaced(GRAPH, b'{"schema_version": {"major": 1e999}}'), 1),
    ("a number of a thousand digits", replaced(GRAPH, b'{"schema_version": {"major": ' + b"9" * 1000 + b"}}"), 1),
    ("a fraction for a whole number", replaced(GRAPH, b'{"schema_version": {"major": 8.5}}'), 1, "no whole number"),
    ("a size of 2 ** 80", lambda path: with_argument(as_ints=[2 ** 80]), 1),
    ("a size of 2 ** 62 twice", lambda path: with_argument(as_ints=[2 ** 62, 2 ** 62]), 1),
    ("the smallest size", lambda path: with_argument(as_ints=[-2 ** 63]), 1), ("two unknown sizes", lambda path: with_argument(as_ints=[-1, -1]), 1),
    ("sizes that are text", lambda path: with_argument(as_ints=["1"]), 1), ("sizes that are a number", lambda path: with_argument(as_int=7), 1),
    ("sizes of an unknown symbol", lambda path: with_argument(as_sym_ints=[dict(as_name="nowhere")]), 1),
    ("sizes of a tensor", lambda path: with_argument(as_tensor=dict(name="image")), 1),
    # Graphs.
    ("a cycle", lambda path: graph(cycle), 1, "nothing defines"),
    ("a node that reads itself", lambda path: node(lambda n: n["inputs"][0].update(arg=n["outputs"][0])), 1, "nothing defines"),
    ("a value made twice", lambda path: graph(lambda g: g["nodes"].insert(1, g["nodes"][0])), 1, "twice"),
    ("no nodes", lambda path: graph(lambda g: g.update(nodes=[])), 1),
    ("nodes that are none", lambda path: graph(lambda g: g.update(nodes=[1, 2])), 1, "a node is none"),
    ("a target of a megabyte", lambda path: node(lambda n: n.update(target="torch.ops." + "x" * (1 << 20))), 4),
    ("results that are numbers", lambda path: node(lambda n: n.update(outputs=[dict(as_int=1)])), 1),
    ("no results", lambda path: node(lambda n: n.update(outputs=[])), 1),
    ("a block that isn't there", lambda path: block(None, "image"), 1), ("a block without operands", lambda path: block(inner()), 4),
    ("a block of operands that aren't there", lambda path: block(inner(), "nowhere"), 1, "nothing defines"),
    ("a block with a result that isn't there", lambda path: block(inner(makes=("b",)), "image"), 1),
    ("a block that reads what isn't its own", lambda path: block(inner(
        [dict(target="torch.ops.aten.relu.default", name="r", metadata={}, outputs=[dict(as_tensor=dict(name="b"))],
              inputs=[dict(name="self", arg=dict(as_tensor=dict(name="image")), kind=1)])], makes=("b",)), "image"), 1, "nothing defines"),
    ("another call with a block", lambda path: block(inner(), "image", target="cond"), 4, "higher_order.cond"),
    ("nested 300 deep", replaced(GRAPH, b'{"a": ' * 300 + b"1" + b"}" * 300), 1, "nested more than"),
    # Types and places of values.
    ("strides of another length", lambda path: meta(strides=sizes(1)), 1), ("sizes that are none", lambda path: meta(sizes=[1]), 1),
    ("a size that is symbolic", lambda path: meta(sizes=[dict(as_expr=dict(expr_str="s0"))] * 2), 1),
    ("a negative offset", lambda path: meta(storage_offset=dict(as_int=-1)), 1),
    ("an offset that overflows", lambda path: meta(storage_offset=dict(as_int=2 ** 63 - 1)), 1),
    ("no type", lambda path: first_weight(lambda p: p.pop("tensor_meta")), 1, "has no type"),
]


def packed_storage(size):
    """The first weight is compressed, and `size` bytes of zeros."""
    def make(path):
        with zipfile.ZipFile(path, "w") as target:
            for name, data in entries():
                is_weight = name.endswith("/weight_0")
                target.writestr(zipfile.ZipInfo(name), bytes(size) if is_weight else data, zipfile.ZIP_DEFLATED if is_weight else zipfile.ZIP_STORED)
    return make


def context(text):
    def change(root):
        for call in root["graph_module"]["module_call_graph"]:
            if call["fqn"] == "":
                call["signature"]["out_spec"] = text
    return lambda path: edited(GRAPH, change)


def many_values(path):
    """Forty million empty lists, of which a thousandth is stored."""
    with zipfile.ZipFile(path, "w") as target:
        target.writestr(zipfile.ZipInfo(GRAPH), b"[" + b"[]," * 40_000_000 + b"[]]", zipfile.ZIP_DEFLATED)


def tree(context):
    return json.dumps([1, dict(type="builtins.dict", context=context, children_spec=[dict(type=None, context=None, children_spec=[])] * 2)])


def first_output(name):
    return lambda path: node(lambda n: n["outputs"][0].update(as_tensor=dict(name=name)))


BAD_NAMES = [("a line feed", "b\n__builtin_trap()//"), ("an escape", "\x1b[2J"), ("a delete", "a\x7f"), ("a zero", "\0"), ("a control of two bytes", "\u009b2J")]
for what, bad in BAD_NAMES:
    CASES += [
        (what + " in a value", first_output(bad), 1, "the name '", "holds the control character"),
        (what + " in a node", lambda path, bad=bad: node(lambda n: n.update(name=bad)), 1, "the name '", "holds the control character"),
        (what + " in a target", lambda path, bad=bad: node(lambda n: n.update(target=bad)), 1, "the name '", "holds the control character"),
        (what + " in a tensor", lambda path, bad=bad: edited(WEIGHTS, lambda root: root["config"].update({bad: next(iter(root["config"].values()))})), 1,
         "the name '", "holds the control character"),
        (what + " in a module", lambda path, bad=bad: node(lambda n: n["metadata"].update(nn_module_stack="L__self__x,%s,N" % bad)), 1,
         "the name '", "holds the control character"),
        (what + " in a key", context(tree(json.dumps([bad, "x"]))), 1, "the name '", "holds the control character")]
CASES += [
    ("a control character in an entry", added(("model/data/\u009b2J", b"x")), 1, "no sound archive"),
    ("a compressed storage of what its tensors take", packed_storage(24576), 0),
    ("a compressed storage of more", packed_storage(64 << 20), 1, "is compressed and has 67108864 bytes", "store it uncompressed"),
    ("a tree nested 40000 deep", context("[" * 40000), 0), ("keys nested 40000 deep", context(tree("[" * 40000)), 0),
    ("forty million values", many_values, 1, "has more than 16777216 values"),
]


def cut(kib):
    return lambda path: patched(path, lambda data: data[:kib << 10])


CASES += [("cut at %d KiB" % kib, cut(kib), 1) for kib in range(1, os.path.getsize(MODEL) >> 10)]

failed = [case[0] for case in CASES if not run(*case)]
print(f"{len(CASES) - len(failed)} passed, {len(failed)} failed")
sys.exit(1 if failed else 0)
