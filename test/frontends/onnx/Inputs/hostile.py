"""Models that no exporter writes: each must end with one clear message and the right exit code.

    hostile.py TMC-IMPORT MODEL.onnx FOLDER

Most are built here, byte by byte; MODEL, a sound one, is cut and changed. What isn't hostile at all
must be read.
"""

import os
import struct
import subprocess
import sys

from wire import body, field, graph, integer, integers, message, model, node, number, tensor, value

TOOL, MODEL, FOLDER = sys.argv[1:4]


RELU = node("Relu", ["x"], ["y"])
WEIGHT = tensor("w", 3, raw_data=b"\0" * 12)
ADD = node("Add", ["x", "w"], ["y"])


def sound():
    with open(MODEL, "rb") as file:
        return file.read()


def function(name, nodes, domain="f"):
    return message(function_name=name, function_reads="a", function_makes="b", function_node=list(nodes), function_domain=domain,
                   function_sets=message(set_domain="", version=18))


def call(name, reads="x", makes="y"):
    return node(name, [reads], [makes], domain="f")


def deep(levels):
    inner = graph([node("Identity", ["x"], ["y"])], makes=[value("y", 2, 3)])
    for _ in range(levels):
        inner = graph([node("If", ["c"], ["y"], body("then_branch", inner), body("else_branch", inner[:0]))], makes=[value("y", 2, 3)])
    return model([node("If", ["c"], ["y"], body("then_branch", inner), body("else_branch", inner))],
                 tensors=[tensor("c", kind=9, raw_data=b"\1")])


def external(**entries):
    return tensor("w", 3, location=1, external=[message(key=k, value=v) for k, v in entries.items()])


def loop(trips):
    inner = graph([node("Identity", ["c"], ["c2"]), node("Relu", ["v"], ["v2"])],
                  reads=[value("i", kind=7), value("c", kind=9), value("v", 2, 3)], makes=[value("c2", kind=9), value("v2", 2, 3)])
    return model([node("Loop", ["n", "t", "x"], ["y"], body("body", inner))],
                 tensors=[tensor("n", kind=7, raw_data=struct.pack("<q", trips)), tensor("t", kind=9, raw_data=b"\1")])


def shaped(kind, tail, *sizes, **more):
    """`kind` with a list of numbers for its second input."""
    return model([node(kind, ["x", "s"] + list(tail), ["y"])], tensors=[tensor("s", len(sizes), kind=7, raw_data=struct.pack("<%dq" % len(sizes), *sizes))], **more)


def twice(levels):
    """Functions that call the next one twice."""
    nodes = lambda i: [call("F%d" % i, "a", "c"), call("F%d" % i, "c", "b")]  # noqa: E731
    return model([call("F0")], functions=[function("F%d" % i, nodes(i + 1)) for i in range(levels)] + [function("F%d" % levels, [node("Relu", ["a"], ["b"])])])


def loops(levels, nodes=()):
    """Loops in loops; the innermost one may do nothing."""
    def inner(*content):
        return graph(content, reads=[value("i", kind=7), value("c", kind=9), value("v", 2, 3)],
                     makes=[value("c", kind=9), value("w" if content else "v", 2, 3)])

    body_graph = inner(*nodes)
    for _ in range(levels):
        body_graph = inner(node("Loop", ["n", "t", "v"], ["w"], body("body", body_graph)))
    return model([node("Loop", ["n", "t", "x"], ["y"], body("body", body_graph))],
                 tensors=[tensor("n", kind=7, raw_data=struct.pack("<q", 4096)), tensor("t", kind=9, raw_data=b"\1")])


def named(**place):
    """A sound model with a name that can't be one in one place."""
    bad = lambda where, good: place.get(where, good)  # noqa: E731
    return message(
        ir_version=8, opset_import=message(set_domain=bad("set", ""), version=18),
        graph=message(node=[message(reads=[bad("reads", "x"), "w"], makes=bad("makes", "y"), op_type=bad("op", "Add"), node_name=bad("node", "n"),
                                    node_domain=bad("domain", ""), attribute=message(attribute_name=bad("attribute", "k"), kind=2, i=1))],
                      initializer=tensor(bad("tensor", "w"), 3, raw_data=b"\0" * 12),
                      input=value(bad("input", "x"), bad("dim", 2), 3), output=value(bad("output", "y"), 2, 3), value_info=value(bad("info", "z"), 2, 3)))


BIG = 1 << 62
BAD_NAMES = [("a line feed", b"b\n__builtin_trap();//"), ("an escape", b"\x1b[2J"), ("a delete", b"a\x7f"), ("a zero", b"\0"),
             ("a control of two bytes", "\u009b2J".encode()), ("half a character", b"\xe2\x80"), ("a surrogate", b"\xed\xa0\x80"), ("latin-1", b"\xe9t\xe9")]
CASES = [
    ("sound", sound(), 0, "--batch=2"), ("built", model([RELU]), 0), ("built with a weight", model([ADD], tensors=[WEIGHT]), 0),
    # Bytes.
    ("empty", b"", 1), ("zeros", b"\0" * 4096, 1), ("ones", b"\xff" * 4096, 1), ("an archive", b"PK\3\4" + b"\0" * 100, 1),
    ("a number without end", b"\x08" + b"\x80" * 64, 1), ("a number of eleven bytes", b"\x08" + b"\xff" * 10 + b"\1", 1),
    ("a length beyond the file", number(7 << 3 | 2) + number(1 << 40) + b"abc", 1),
    ("a length beyond all files", number(7 << 3 | 2) + number((1 << 64) - 1), 1),
    ("a group without end", number(7 << 3 | 3) * 1000, 1), ("an unknown wire type", number(7 << 3 | 7), 1), ("field zero", b"\0\0", 1),
    ("nested too deep", deep(40), 1), ("an empty model", message(ir_version=8), 1), ("no operator set", message(ir_version=8, graph=graph([RELU])), 1),
    # Names and the graph.
    ("reads itself", model([node("Add", ["x", "y"], ["y"])]), 1),
    ("a cycle of two", model([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]), 1),
    ("reads what comes later", model([node("Relu", ["a"], ["y"]), node("Relu", ["x"], ["a"])]), 1),
    ("defined twice", model([RELU, RELU]), 1), ("an output that isn't there", model([node("Relu", ["x"], ["z"])]), 1),
    ("two inputs of one name", model([RELU], reads=[value("x", 2, 3)] * 2), 1),
    ("two tensors of one name", model([ADD], tensors=[WEIGHT, WEIGHT]), 1),
    ("no input at all", model([node("Relu", [], ["y"])]), 1), ("too few inputs", model([node("Add", ["x"], ["y"])]), 1),
    ("an unknown operator", model([node("Twist", ["x"], ["y"])]), 4), ("an operator of a name of 64 KiB", model([node("T" * 65536, ["x"], ["y"])]), 4),
    ("a name with a zero byte", model([node("Relu", ["x\0x"], ["y"])]), 1), ("a name that isn't UTF-8", model([message(reads=b"\xff\xfe", makes="y", op_type="Relu")]), 1),
    ("a function that calls itself", model([call("F")], functions=[function("F", [call("F", "a", "b")])]), 1),
    ("functions that call each other", model([call("F")], functions=[function("F", [call("G", "a", "b")]), function("G", [call("F", "a", "b")])]), 1),
    ("a function with no such output", model([call("F")], functions=[function("F", [node("Relu", ["a"], ["c"])])]), 1),
    ("functions that call the next one twice", twice(30), 4), ("loops in loops", loops(8, [node("Relu", ["v"], ["w"])]), 4),
    ("loops in loops that do nothing", loops(8), 4),
    *[("%s in the name of %s" % (what, place), named(**{place: bad}), 1) for what, bad in BAD_NAMES
      for place in ("reads", "makes", "op", "node", "domain", "attribute", "tensor", "input", "output", "info", "dim", "set")],
    # Types and shapes.
    ("a negative size", model([RELU], reads=[value("x", -2, 3)]), 2), ("a huge size", model([RELU], reads=[value("x", BIG, 3)]), 1),
    ("sizes that overflow", model([RELU], reads=[value("x", 1 << 32, 1 << 32)]), 1), ("an unknown type", model([RELU], reads=[value("x", 2, 3, kind=99)]), 4),
    ("an input that is no tensor", model([RELU], reads=[message(value_name="x", value_type=b"")]), 4),
    ("a rank of a thousand", model([RELU], reads=[value("x", *[1] * 1000)]), 0),
    ("shapes that don't fit", model([node("MatMul", ["x", "x"], ["y"])]), 1),
    # Stored tensors.
    ("too few bytes", model([ADD], tensors=[tensor("w", 3, raw_data=b"\0" * 11)]), 1), ("too many bytes", model([ADD], tensors=[tensor("w", 3, raw_data=b"\0" * 13)]), 1),
    ("no bytes", model([ADD], tensors=[tensor("w", 3)]), 1), ("a negative dimension", model([ADD], tensors=[tensor("w", -3, raw_data=b"\0" * 12)]), 1),
    ("dimensions that overflow", model([ADD], tensors=[tensor("w", BIG, BIG, raw_data=b"\0" * 12)]), 1),
    ("dimensions that wrap to the right size", model([ADD], tensors=[tensor("w", 1 << 32, 1 << 32, 3, raw_data=b"\0" * 12)]), 1),
    ("a tensor of an unknown type", model([ADD], tensors=[tensor("w", 3, kind=99, raw_data=b"\0" * 12)]), 4),
    ("text in place of numbers", model([ADD], tensors=[tensor("w", 3, kind=8, raw_data=b"\0" * 12)]), 4),
    ("a sparse tensor", model([ADD], sparse=b""), 4),
    # Files beside it.
    ("outside", model([ADD], tensors=[external(location="../../etc/passwd")]), 1), ("absolute", model([ADD], tensors=[external(location="/etc/passwd")]), 1),
    ("itself as weights", model([ADD], tensors=[external(location=".")]), 1), ("no place", model([ADD], tensors=[external(offset="0")]), 1),
    ("a negative offset", model([ADD], tensors=[external(location="w", offset="-1")]), 1),
    ("an offset of many digits", model([ADD], tensors=[external(location="w", offset="9" * 40)]), 1),
    ("an offset in hexadecimal", model([ADD], tensors=[external(location="w", offset="0x10")]), 1),
    ("a length that isn't the tensor's", model([ADD], tensors=[external(location="w", length="13")]), 1),
    ("a file with a zero byte in its name", model([ADD], tensors=[external(location="w\0.data")]), 1),
    ("an absent file", model([ADD], tensors=[external(location="absent.data")]), 74),
    # Attributes and sizes that nodes ask for.
    ("a loop of a billion trips", loop(10**9), 4), ("a loop of negative trips", loop(-1), 0), ("a loop of all trips", loop((1 << 63) - 1), 4),
    ("a reshape to a huge shape", shaped("Reshape", (), BIG, 3), 1), ("a reshape to two unknowns", shaped("Reshape", (), -1, -1), 1),
    ("a reshape to nothing", shaped("Reshape", (), 0, -1), None), ("an expansion to a huge shape", shaped("Expand", (), 1 << 40, 1 << 20, 2, 3), 1),
    ("tiles without number", shaped("Tile", (), BIG, BIG), 1), ("tiles less than none", shaped("Tile", (), -1, 1), 1),
    ("padding beyond all sizes", shaped("Pad", (), 0, 0, BIG, BIG), 1), ("padding that leaves less than nothing", shaped("Pad", (), 0, 0, -9, 0), 1),
    ("a constant of a huge shape", model([node("ConstantOfShape", ["s"], ["y"])], tensors=[tensor("s", 2, kind=7, raw_data=struct.pack("<2q", 1 << 40, 1 << 40))]), 1),
    ("a range without end", model([node("Range", ["a", "b", "d"], ["y"])], tensors=[tensor(n, kind=7, raw_data=struct.pack("<q", v)) for n, v in (("a", 0), ("b", BIG), ("d", 1))]), 1),
    ("a range of steps of zero", model([node("Range", ["a", "b", "d"], ["y"])], tensors=[tensor(n, kind=7, raw_data=struct.pack("<q", v)) for n, v in (("a", 0), ("b", 5), ("d", 0))]), 1),
    ("an axis beyond the rank", model([node("Softmax", ["x"], ["y"], integer("axis", 7))]), 1), ("the smallest axis", model([node("Softmax", ["x"], ["y"], integer("axis", -(1 << 63)))]), 1),
    ("a permutation with one twice", model([node("Transpose", ["x"], ["y"], integers("perm", 0, 0))]), 1),
    ("a permutation of too many", model([node("Transpose", ["x"], ["y"], integers("perm", 0, 1, 2))]), 1),
    ("a permutation out of range", model([node("Transpose", ["x"], ["y"], integers("perm", 0, BIG))]), 1),
    ("a split into no pieces", model([node("Split", ["x"], ["y"], integer("num_outputs", 0))]), None),
    ("a pool with steps of zero", model([node("MaxPool", ["x"], ["y"], integers("kernel_shape", 2, 2), integers("strides", 0, 0))], reads=[value("x", 1, 1, 4, 4)]), 1),
    ("a pool of negative size", model([node("MaxPool", ["x"], ["y"], integers("kernel_shape", -2, -2))], reads=[value("x", 1, 1, 4, 4)]), 1),
    ("a pool with huge padding", model([node("MaxPool", ["x"], ["y"], integers("kernel_shape", 2, 2), integers("pads", BIG, BIG, BIG, BIG))], reads=[value("x", 1, 1, 4, 4)]), 1),
    ("a convolution in no groups", model([node("Conv", ["x", "x"], ["y"], integer("group", 0))], reads=[value("x", 1, 1, 4, 4)]), 1),
    ("a grid over an image of eight dimensions", model([node("GridSample", ["x", "g"], ["y"], message(attribute_name="mode", kind=3, s="cubic"))], reads=[value("x", 1, 1, *8 * [2]), value("g", 1, *8 * [2], 8)]), 4),
    ("places of the largest of a huge window", model([node("MaxPool", ["x"], ["y", "z"], integers("kernel_shape", 1 << 30, 1), integers("pads", 1 << 30, 0, 1 << 30, 0))], reads=[value("x", 1, 1, 4, 4)], makes=[value("y"), value("z", kind=7)]), 4),
    ("columns of a huge window", model([node("Col2Im", ["x", "i", "b"], ["y"], integers("pads", 1 << 30, 0, 1 << 30, 0))], tensors=[tensor(n, 2, kind=7, raw_data=struct.pack("<2q", a, 1)) for n, a in (("i", 4), ("b", 1 << 30))], reads=[value("x", 1, 1 << 30, 1 << 30)]), None),
    ("a filter of a million slices", model([node("Conv", ["x", "w"], ["y"])], reads=[value("x", 1, 1, 1 << 20, 1, 1), value("w", 1, 1, 1 << 20, 1, 1)]), 4),
    ("a transposed filter of a million slices", model([node("ConvTranspose", ["x", "w"], ["y"])], reads=[value("x", 1, 1, 1, 1, 1), value("w", 1, 1, 1 << 20, 1, 1)]), 4),
    ("boxes of a billion points", model([node("RoiAlign", ["x", "r", "b"], ["y"], integer("output_height", 4096), integer("output_width", 4096), integer("sampling_ratio", 4096))], reads=[value("x", 1, 1, 4, 4), value("r", 1, 4), value("b", 1, kind=7)]), 4),
    ("a transform of a million points", model([node("DFT", ["x"], ["y"])], reads=[value("x", 1, 1 << 20, 1)]), 4),
    ("a transform of a huge length", model([node("DFT", ["x", "n"], ["y"])], tensors=[tensor("n", kind=7, raw_data=struct.pack("<q", BIG))], reads=[value("x", 1, 4, 1)]), 4),
    ("attention of a million steps", model([node("LinearAttention", ["x", "x", "x"], ["y"], integer("q_num_heads", 1), integer("kv_num_heads", 1), message(attribute_name="update_rule", kind=3, s="linear"))], reads=[value("x", 1, 1 << 20, 2)]), 4),
    ("a determinant of a thousand rows", model([node("Det", ["x"], ["y"])], reads=[value("x", 1000, 1000)]), 4),
    ("sequences with a billion gaps", model([node("TfIdfVectorizer", ["x"], ["y"], integers("ngram_counts", 0), integers("ngram_indexes", 0), integers("pool_int64s", 1), integer("max_skip_count", 1 << 30), integer("max_gram_length", 1))], reads=[value("x", 9, kind=7)]), 4),
    ("sequences in a column out of range", model([node("TfIdfVectorizer", ["x"], ["y"], integers("ngram_counts", 0), integers("ngram_indexes", BIG), integers("pool_int64s", 1), integer("max_gram_length", 1))], reads=[value("x", 9, kind=7)]), 1),
    ("a cast to an unknown type", model([node("Cast", ["x"], ["y"], integer("to", 12345))]), 4),
    ("an equation of letters without end", model([node("Einsum", ["x"], ["y"], message(attribute_name="equation", kind=3, s="a" * 5000))]), None),
    ("an attribute of another kind", model([node("Softmax", ["x"], ["y"], message(attribute_name="axis", kind=3, s="one"))]), None),
]
CASES += [("cut at %d bytes" % size, sound()[:size], 1) for size in range(1024, len(sound()), 1024)]


def run(name, data, code, *more):
    path = os.path.join(FOLDER, name.replace(" ", "-").replace("'", "") + ".onnx")
    with open(path, "wb") as file:
        file.write(data)
    done = subprocess.run([TOOL, path, "--no-loss", "--quiet", *(more or ["--weights"])], capture_output=True, timeout=60)
    said = done.stderr.decode()  # Whatever the file holds.
    if " in the name of " in name and "the name " not in said:
        code = "a message that names it"
    # None: an error of whatever kind.
    right = done.returncode == code if code is not None else done.returncode in (0, 1, 2, 4)
    good = right and said.count("error: ") == (done.returncode != 0)
    print("%s: %s" % ("PASS" if good else "FAIL", name))
    if not good:
        print("  ended with %d, not %s, and said\n%s" % (done.returncode, code, said[:2000]))
    return good


failed = [case[0] for case in CASES if not run(*case)]
print("%d passed, %d failed" % (len(CASES) - len(failed), len(failed)))
sys.exit(1 if failed else 0)
