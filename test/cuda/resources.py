"""What nvcc's assembler says that kernels take, against a table in the tree.

    resources.py TABLE [--update] [--nvcc VERSION] [--steps] LOG...

A log is what `nvcc -Xptxas -v` printed for one file; its name up to the first dot is
the file's. A row of the table is a kernel, with its static shared memory in bytes, and
for each architecture its registers, `+` and the bytes that it spills where it does:

    # nvcc 13.0.88
    # kernel                                 shared  sm_75  sm_80
    AttentionGrad gradientOfKeys<64, 64>          0 128+52    128

With --steps a row is an emitted step: the most of each, and the number of kernels
(they are generated; their names say little). Registers differ between versions of nvcc: a table of
another one is skipped, with code 77. Logs may be of some of its architectures. --update writes the table.
"""

import argparse
import os
import re
import subprocess
import sys

SKIPPED = 77


def demangled(names):
    done = subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True, text=True)
    return dict(zip(names, done.stdout.split("\n")))


def short(name):
    """`gradientOfKeys<64, 64>` of a demangled kernel."""
    name = re.sub(r"^void ", "", name)
    name = re.sub(r"\((?:\w+|tmc::[\w:]+)\)(-?\w+)", r"\1", name)  # template arguments as casts
    name = re.sub(r"\(anonymous namespace\)::|_GLOBAL__N_\w*?::", "", name)
    depth = 0
    for at, character in enumerate(name):  # parameters, not those within template arguments
        depth += (character == "<") - (character == ">")
        if character == "(" and depth == 0:
            name = name[:at]
            break
    name = re.sub(r"\b(?:\w+::)+", "", name)
    return re.sub(r"\bTileShape<([^<>]*)>", r"\1", name).replace(" >", ">")


def read(path):
    """{kernel: {architecture: (registers, spilled bytes, static shared bytes)}} of a log."""
    with open(path) as file:
        text = file.read()
    found = {}
    for part in text.split("Compiling entry function '")[1:]:
        name, architecture = re.match(r"(\S+)' for '(\w+)'", part).groups()
        spilled = sum(map(int, re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part).groups()))
        registers = int(re.search(r"Used (\d+) registers", part)[1])
        shared = re.search(r"(\d+) bytes smem", part)
        found.setdefault(name, {})[architecture] = (registers, spilled, int(shared[1]) if shared else 0)
    names = demangled(sorted(found))
    return {short(names[name]): by for name, by in found.items()}


def cell(registers, spilled):
    return f"{registers}+{spilled}" if spilled else str(registers)


def row(label, by, architectures):
    shared = max(figures[2] for figures in by.values())
    cells = [cell(*by[a][:2]) if a in by else "-" for a in architectures]
    return f"{label:<58} {shared:>6} " + " ".join(f"{text:>7}" for text in cells)


def table(logs, version, steps):
    files = {os.path.basename(log).partition(".")[0]: read(log) for log in logs}
    architectures = sorted({a for kernels in files.values() for by in kernels.values() for a in by},
                           key=lambda a: int(re.search(r"\d+", a)[0]))
    lines = [f"# nvcc {version}",
             f"{'# kernels' if steps else '# kernel':<58} shared " + " ".join(f"{a:>7}" for a in architectures)]
    for file, kernels in sorted(files.items()):
        if not kernels:
            sys.exit(f"{file}: the log names no kernel")
        if steps:
            most = {a: tuple(max(by[a][i] for by in kernels.values()) for i in range(3)) for a in architectures}
            lines.append(row(f"{file}, {len(kernels)} kernels", most, architectures))
        else:
            lines += [row(f"{file} {name}", by, architectures) for name, by in sorted(kernels.items())]
    return lines


def columns(line, known, wanted):
    """A row of a table with the columns `wanted` alone; "" if the kernel isn't compiled for any of them."""
    label, shared, *cells = line.rsplit(None, 1 + len(known))
    picked = [cells[known.index(name)] for name in wanted]
    return f"{label:<58} {shared:>6} " + " ".join(f"{text:>7}" for text in picked) if set(picked) != {"-"} else ""


def arguments(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--nvcc", default="unknown")
    parser.add_argument("--update", action="store_true")
    return parser


def settle(options, now, rows_of):
    """Writes the table `now` with --update; otherwise compares it with the one in the tree. Returns the exit code.
    `rows_of(kept, now)` is the rows of both that are compared, and of what they are; or why they can't be."""
    if options.update:
        with open(options.table, "w") as file:
            file.write("\n".join(now) + "\n")
        return 0
    with open(options.table) as file:
        kept = file.read().splitlines()
    if kept[:1] != now[:1]:
        print(f"skipped: the table is of '{kept[0][2:]}', this is '{now[0][2:]}'")
        return SKIPPED
    compared = rows_of(kept, now)
    if isinstance(compared, str):
        print("skipped: " + compared)
        return SKIPPED
    kept, now, of = compared
    changed = [("-", line) for line in kept if line not in now] + [("+", line) for line in now if line not in kept]
    for sign, line in changed:
        print(sign + line)
    if changed:
        print(f"{options.table} isn't what nvcc makes; if that is meant: --update")
        return 1
    print(f"{len(now)} rows, {of}")
    return 0


def rows_of(kept, now):
    known, compiled = kept[1].split()[3:], now[1].split()[3:]
    if not set(compiled) <= set(known):
        return "the kernels are compiled for " + ", ".join(compiled)
    kept = [columns(line, known, compiled) for line in kept[2:]]
    return [line for line in kept if line], [columns(line, compiled, compiled) for line in now[2:]], ", ".join(compiled)


def main():
    parser = arguments(__doc__)
    parser.add_argument("--steps", action="store_true")
    options = parser.parse_args()
    return settle(options, table(options.files, options.nvcc, options.steps), rows_of)


if __name__ == "__main__":
    sys.exit(main())
