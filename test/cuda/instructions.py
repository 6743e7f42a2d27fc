"""What the main loop of each kernel executes, as SASS, against a table in the tree.

    instructions.py TABLE [--update] [--nvcc VERSION] OBJECT...

An object is what nvcc made of one file of the runtime, or of an emitted step; its name up to
the first dot is the file's. A row of the table is a kernel. The longest loop is the one of most
instructions that holds no other loop:

    loop    its instructions; 0: the kernel has no loop
    mma     products of tensor cores among them (HMMA, QMMA, IMMA)
    16 8 4 less   loads from memory (LDG), by the bytes of a thread
    store   stores to memory (STG)
    f64     instructions on doubles, of the whole kernel

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

FIGURES = ("loop", "mma", "16", "8", "4", "less", "store", "f64")
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


def kernels(folder, path):
    """{mangled name: [(address, instruction)]} of an object."""
    done = subprocess.run([os.path.join(folder, "cuobjdump"), "-sass", "-arch", ARCHITECTURE, path], capture_output=True, text=True,
                          env=dict(os.environ, PATH=folder + os.pathsep + os.environ["PATH"]))
    if done.returncode:
        sys.exit(f"{path}: {done.stderr.strip()}")
    found = {}
    for part in done.stdout.split("Function : ")[1:]:
        lines = re.findall(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?);", part, re.MULTILINE)
        found[part.split()[0]] = [(int(address, 16), text) for address, text in lines]
    return found


def operation(text):
    """`LDG.E.128` of an instruction, without its predicate."""
    return re.sub(r"^@!?U?P\w+\s+", "", text).split()[0]


def main_loop(code):
    """The instructions of a kernel's loop; see above."""
    places = {address: i for i, (address, _) in enumerate(code)}
    loops = []
    for i, (_, text) in enumerate(code):
        jump = re.search(r"\bBRA\b.*?\b0x([0-9a-f]+)", text)
        start = places.get(int(jump[1], 16)) if jump else None
        # The jump of a kernel's last line to itself is padding. Behind the last EXIT stands what a warp does
        # whose threads don't come together: it jumps back, too.
        if start is not None and start < i and not any(text.startswith("EXIT") for _, text in code[start:i]):
            loops.append(code[start:i + 1])
    products = [loop for loop in loops if any(operation(text).startswith(PRODUCTS) for _, text in loop)]
    if products:
        return min(products, key=len)
    inner = [loop for loop in loops if not any(len(o) < len(loop) and loop[0] <= o[0] and o[-1] <= loop[-1] for o in loops)]
    return max(inner, key=len, default=[])


def figures(code):
    loop = [operation(text) for _, text in main_loop(code)]
    counts = collections.Counter()
    for op in loop:
        counts["mma"] += op.startswith(PRODUCTS)
        counts["store"] += op.startswith("STG")
        if op.startswith("LDG."):
            parts = op.split(".")
            counts["16" if "128" in parts else "8" if "64" in parts else "less" if set(parts) & {"U8", "S8", "U16", "S16"} else "4"] += 1
    counts["loop"] = len(loop)
    counts["f64"] = sum(bool(re.match(r"D(ADD|MUL|FMA|SETP|MNMX)|MUFU\.\w*64H|\w*2\w*\.F64|DMMA", operation(text))) for _, text in code)
    return counts


def table(folder, objects, version):
    lines = [f"# nvcc {version}, {ARCHITECTURE}", f"{'# kernel':<78} " + " ".join(f"{name:>5}" for name in FIGURES)]
    for path in sorted(objects):
        file = os.path.basename(path).partition(".")[0]
        found = kernels(folder, path)
        names = demangled(sorted(found))
        rows = sorted((short(names[name]), figures(code)) for name, code in found.items())
        lines += [f"{file + ' ' + name:<78} " + " ".join(f"{counts[key]:>5}" for key in FIGURES) for name, counts in rows]
    return lines


def rows_of(kept, now):
    if len(now) == 2:
        return f"the kernels aren't compiled for {ARCHITECTURE}"
    return kept[2:], now[2:], ARCHITECTURE


def main():
    options = arguments(__doc__).parse_args()
    folder = disassemblers()
    if folder is None:
        print("skipped: no cuobjdump and nvdisasm (PyPI: nvidia-cuda-cuobjdump, nvidia-cuda-nvdisasm)")
        return SKIPPED
    return settle(options, table(folder, options.files, options.nvcc), rows_of)


if __name__ == "__main__":
    sys.exit(main())
