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
]

failed = [case[0] for case in CASES if not run(*case)]
print(f"{len(CASES) - len(failed)} passed, {len(failed)} failed")
sys.exit(1 if failed else 0)
