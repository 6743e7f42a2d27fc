"""What the main loop of each kernel executes, as SASS, against a table in the tree.

    instructions.py TABLE [--update] [--nvcc VERSION] [--narrow FILE] [--steps] OBJECT...

An object is what nvcc made of one file of the runtime, or of an emitted step; its name up to
the first dot is the file's. A row of the table is a kernel. The longest loop is the one of most
instructions that holds no other loop:

    loop    its instructions; 0: the kernel has no loop
    mma     products of tensor cores among them (HMMA, QMMA, IMMA)
    16 8 4 less   loads from memory (LDG), by the bytes of a thread
    store   stores to memory (STG)
    f64     instructions on doubles, of the whole kernel

A kernel for operands at any address often has its longest loop, or branch, for addresses that aren't multiples of
16 bytes. So a row also has the wide way: the part of the kernel that a thread can go round without a load of less
than 16 bytes, and that has the most accesses of 16 bytes. Where a kernel has no such loop, a thread that ends
starts again, so that a kernel without a loop has a wide way, too:

    way     its instructions; 0: there is none
    in      its loads, all of 16 bytes
    out     its stores of 16 bytes
    thin    its narrower stores

--narrow names a file with lines `PATTERN: reason`. Each kernel of the files in NARROW without a wide way must match
one of the patterns, and each pattern must match such a kernel.

With --steps objects are those of emitted steps with aligned shapes, in folders whose names end in `-NAME`. Rows are the kernels for aligned operands
alone, and each has its registers and its bytes of stack, which hold spilled ones. All kernels are in NARROW.

The disassemblers are cuobjdump and nvdisasm, beside nvcc or from PyPI (nvidia-cuda-cuobjdump and
nvidia-cuda-nvdisasm, found if this Python has them). Without them, and with another version of nvcc
than the table's, the table is skipped, with code 77. --update writes it.
"""

import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import sysconfig

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from resources import SKIPPED, arguments, demangled, settle, short  # noqa: E402

FIGURES = ("loop", "mma", "16", "8", "4", "less", "store", "f64", "way", "in", "out", "thin")
RESOURCES = ("regs", "stack")
# The files whose kernels should read 16 bytes a thread where operands are aligned: updates, losses, movement.
NARROW = ("Adafactor", "Adam4bit", "CrossEntropy", "Lion", "Movement", "Optimizer", "RotaryEmbedding")
ALIGNED = ", true>"  # Of a fused kernel for aligned operands.
PRODUCTS = ("HMMA", "QMMA", "IMMA")
ARCHITECTURE = "sm_90a"  # One is enough: the others have the same loops.


def disassemblers():
    """The folder of cuobjdump and nvdisasm, or None."""
    folders = [os.path.dirname(found) for found in [shutil.which("cuobjdump")] if found] + ["/usr/local/cuda/bin"]
    folders += sorted(glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "*", "bin")))
    for folder in folders:
        if all(os.access(os.path.join(folder, tool), os.X_OK) for tool in ("cuobjdump", "nvdisasm")):
            return folder
    return None


def dumped(folder, path, what):
    done = subprocess.run([os.path.join(folder, "cuobjdump"), what, "-arch", ARCHITECTURE, path], capture_output=True, text=True,
                          env=dict(os.environ, PATH=folder + os.pathsep + os.environ["PATH"]))
    if done.returncode:
        sys.exit(f"{path}: {done.stderr.strip()}")
    return done.stdout


def kernels(folder, path):
    """{mangled name: [(address, instruction)]} of an object."""
    found = {}
    for part in dumped(folder, path, "-sass").split("Function : ")[1:]:
        lines = re.findall(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?);", part, re.MULTILINE)
        found[part.split()[0]] = [(int(address, 16), text) for address, text in lines]
    return found


def resources(folder, path):
    """{mangled name: {"regs": ..., "stack": ...}} of an object."""
    rows = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+)", dumped(folder, path, "-res-usage"))
    return {name: dict(regs=int(registers), stack=int(stack)) for name, registers, stack in rows}


def operation(text):
    """`LDG.E.128` of an instruction, without its predicate."""
    return re.sub(r"^@!?U?P\w+\s+", "", text).split()[0]


def jumps(code):
    """{the place of a branch: the place that it goes to}."""
    places = {address: i for i, (address, _) in enumerate(code)}
    found = {i: re.search(r"\bBRA\b.*?\b0x([0-9a-f]+)", text) for i, (_, text) in enumerate(code)}
    return {i: places[int(jump[1], 16)] for i, jump in found.items() if jump and int(jump[1], 16) in places}


def main_loop(code):
    """The instructions of a kernel's loop; see above."""
    to = jumps(code)
    loops = []
    for i in range(len(code)):
        start = to.get(i)
        # The jump of a kernel's last line to itself is padding. Behind the last EXIT stands what a warp does
        # whose threads don't come together: it jumps back, too.
        if start is not None and start < i and not any(text.startswith("EXIT") for _, text in code[start:i]):
            loops.append(code[start:i + 1])
    products = [loop for loop in loops if any(operation(text).startswith(PRODUCTS) for _, text in loop)]
    if products:
        return min(products, key=len)
    inner = [loop for loop in loops if not any(len(o) < len(loop) and loop[0] <= o[0] and o[-1] <= loop[-1] for o in loops)]
    return max(inner, key=len, default=[])


def blocks(code):
    """The basic blocks of a kernel, each a list of operations, and the numbers of those that may follow each."""
    to = jumps(code)
    ends = [i for i, (_, text) in enumerate(code) if operation(text).startswith(("BRA", "EXIT", "RET"))]
    starts = sorted({0, *to.values(), *(i + 1 for i in ends if i + 1 < len(code))})
    number = {start: block for block, start in enumerate(starts)}
    found, following = [], []
    for start, end in zip(starts, [*starts[1:], len(code)]):
        found.append([operation(text) for _, text in code[start:end]])
        next_ones = [number[to[end - 1]]] if end - 1 in to else []
        if end < len(code) and not re.match(r"(BRA(\.U)? 0x|EXIT|RET)", code[end - 1][1]):
            next_ones.append(number[end])
        following.append(next_ones)
    return found, following


def reached(roots, following, done):
    """The nodes that can be reached from each root, without those of `done`, which grows; the last ones first."""
    order = []
    for root in roots:
        stack = [] if root in done else [(root, iter(following[root]))]
        done.add(root)
        while stack:
            node, left = stack[-1]
            step = next((each for each in left if each not in done), None)
            if step is None:
                order.append(stack.pop()[0])
            else:
                done.add(step)
                stack.append((step, iter(following[step])))
    return order


def rounds(following):
    """The groups of nodes that can be reached from each other: the strongly connected components with an edge.
    Source: Kosaraju."""
    before = {node: [] for node in following}
    for node, next_ones in following.items():
        for each in next_ones:
            before[each].append(node)
    done = set()
    groups = [reached([root], before, done) for root in reversed(reached(following, following, set()))]
    return [group for group in groups if len(group) > 1 or group and group[0] in following[group[0]]]


def is_wide(op):
    return "128" in op.split(".")


def wide_way(code):
    """The operations of a kernel's wide way; see above."""
    found, following = blocks(code)
    kept = {i for i, block in enumerate(found) if not any(op.startswith("LDG.") and not is_wide(op) for op in block)}
    again = [[*next_ones, 0] if "EXIT" in found[i] else next_ones for i, next_ones in enumerate(following)]
    accesses = lambda way: sum(op.startswith(("LDG.", "STG.")) and is_wide(op) for op in way)
    for edges in following, again:
        groups = rounds({i: [each for each in edges[i] if each in kept] for i in kept})
        ways = [[op for i in group for op in found[i]] for group in groups]
        best = max(ways, key=lambda way: (accesses(way), len(way)), default=[])
        if accesses(best):
            return best
    return []


def figures(code):
    way = wide_way(code)
    loop = [operation(text) for _, text in main_loop(code)]
    counts = collections.Counter()
    for op in loop:
        counts["mma"] += op.startswith(PRODUCTS)
        counts["store"] += op.startswith("STG")
        if op.startswith("LDG."):
            parts = op.split(".")
            counts["16" if "128" in parts else "8" if "64" in parts else "less" if set(parts) & {"U8", "S8", "U16", "S16"} else "4"] += 1
    counts["loop"] = len(loop)
    counts["way"] = len(way)
    counts["in"] = sum(op.startswith("LDG.") for op in way)
    counts["out"] = sum(op.startswith("STG.") and is_wide(op) for op in way)
    counts["thin"] = sum(op.startswith("STG") and not is_wide(op) for op in way)
    counts["f64"] = sum(bool(re.match(r"D(ADD|MUL|FMA|SETP|MNMX)|MUFU\.\w*64H|\w*2\w*\.F64|DMMA", operation(text))) for _, text in code)
    return counts


def table(folder, objects, version, steps):
    """The lines of a table, and the labels of the kernels without a wide way that should have one."""
    columns = (*RESOURCES, *FIGURES) if steps else FIGURES
    lines = [f"# nvcc {version}, {ARCHITECTURE}", f"{'# kernel':<78} " + " ".join(f"{name:>5}" for name in columns)]
    narrow = []
    for path in sorted(objects):
        folder_of = os.path.basename(os.path.dirname(path))
        file = folder_of.rpartition("-")[2] if steps else os.path.basename(path).partition(".")[0]
        found = kernels(folder, path)
        taken = resources(folder, path) if steps else {}
        names = demangled(sorted(found))
        rows = sorted((short(names[name]), {**figures(code), **taken.get(name, {})}) for name, code in found.items())
        if steps:
            rows = [(name, counts) for name, counts in rows if name.endswith(ALIGNED)]
        lines += [f"{file + ' ' + name:<78} " + " ".join(f"{counts.get(key, 0):>5}" for key in columns) for name, counts in rows]
        narrow += [f"{file} {name}" for name, counts in rows if not counts["way"] and (steps or file in NARROW)]
    return lines, narrow


def unexplained(path, narrow):
    """What is wrong with the reasons in a file: lines to print."""
    with open(path) as file:
        reasons = [line.rstrip("\n").partition(": ") for line in file if line.strip() and not line.startswith("#")]
    bad = [f"{pattern}: has no reason" for pattern, _, reason in reasons if not reason]
    matches = lambda pattern, name: re.fullmatch(pattern, name)
    bad += [f"{name}: has no loop with loads of 16 bytes alone, and no reason in {path}" for name in narrow
            if not any(matches(pattern, name) for pattern, _, _ in reasons)]
    return bad + [f"{pattern}: is the name of no such kernel" for pattern, _, _ in reasons
                  if not any(matches(pattern, name) for name in narrow)]


def rows_of(kept, now):
    if len(now) == 2:
        return f"the kernels aren't compiled for {ARCHITECTURE}"
    return kept[2:], now[2:], ARCHITECTURE


def main():
    parser = arguments(__doc__)
    parser.add_argument("--narrow")
    parser.add_argument("--steps", action="store_true")
    options = parser.parse_args()
    folder = disassemblers()
    if folder is None:
        print("skipped: no cuobjdump and nvdisasm (PyPI: nvidia-cuda-cuobjdump, nvidia-cuda-nvdisasm)")
        return SKIPPED
    now, narrow = table(folder, options.files, options.nvcc, options.steps)
    code = settle(options, now, rows_of)
    bad = unexplained(options.narrow, narrow) if options.narrow and code != SKIPPED else []
    print("".join(line + "\n" for line in bad), end="")
    return 1 if bad else code


if __name__ == "__main__":
    sys.exit(main())
