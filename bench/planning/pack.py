#!/usr/bin/env python3
"""Packs published and random instances into 1,048,576 bytes, as a table.

    bench/planning/pack.py [DIR] [--solve build/bin/tmc-solve] [--seeds 3] [--count 25] [--limit 20]

DIR holds MiniMalloc's challenging instances (A.1048576.csv, ...). Random ones are cut
from a rectangle of time and bytes, by halves or in spirals of five, so that each fits
exactly, in the sizes of the published ones: 150 to 320 buffers with long and short
lives, about as many ends as half the buffers. A fifth each is left as cut; has some
lives shortened by a little; has sizes shrunk by up to 2.5 %; has lost small buffers;
has many lives shortened by up to an eighth at each end. A packing is checked again
here; times are processor seconds, "-" where none was found within the limit.
"""
import argparse
import csv
import os
import random
import resource
import subprocess
import tempfile

UNITS, UNIT = 1024, 1024
CAPACITY = UNITS * UNIT
KINDS = ["as cut", "some lives shortened", "sizes shrunk", "small ones lost", "lives shortened"]


def cut(r, spirals, t0, t1, b0, b1, count, out):
    """Cuts [t0, t1) x [b0, b1) into about `count` boxes (begin, end, size)."""
    if count <= 1 or (t1 - t0 < 2 and b1 - b0 < 2):
        out.append((t0, t1, b1 - b0))
        return
    if count >= 5 and t1 - t0 >= 3 and b1 - b0 >= 3 and r.random() < spirals:
        a, c = sorted(r.sample(range(t0 + 1, t1), 2))
        x, y = sorted(r.sample(range(b0 + 1, b1), 2))
        if r.random() < 0.5:
            parts = [(t0, c, b0, x), (c, t1, b0, y), (a, t1, y, b1), (t0, a, x, b1), (a, c, x, y)]
        else:
            parts = [(a, t1, b0, x), (t0, a, b0, y), (t0, c, y, b1), (c, t1, x, b1), (a, c, x, y)]
    elif t1 - t0 >= 2 and (b1 - b0 < 2 or r.random() < 0.5):
        a = r.randrange(t0 + 1, t1)
        parts = [(t0, a, b0, b1), (a, t1, b0, b1)]
    else:
        x = r.randrange(b0 + 1, b1)
        parts = [(t0, t1, b0, x), (t0, t1, x, b1)]
    areas = [(p[1] - p[0]) * (p[3] - p[2]) for p in parts]
    counts = [1 + (count - len(parts)) * area // sum(areas) for area in areas]
    for _ in range(count - sum(counts)):
        counts[r.choices(range(len(parts)), areas)[0]] += 1
    for part, many in zip(parts, counts):
        cut(r, spirals, *part, many, out)


def instance(seed):
    r, boxes = random.Random(seed), []
    cut(r, r.choice([0, 0.2, 0.5]), 0, UNITS, 0, UNITS, r.randrange(150, 320), boxes)
    kind = seed % len(KINDS)
    if kind == 1:
        for i in r.sample(range(len(boxes)), len(boxes) // 20):
            begin, end, size = boxes[i]
            boxes[i] = (begin, max(begin + 1, end - 1), size)
    elif kind == 2:
        boxes = [(begin, end, size - size // 40) for begin, end, size in boxes]
    elif kind == 3:
        boxes = [b for b in boxes if r.random() > 0.04 or b[2] * (b[1] - b[0]) > 20000]
    elif kind == 4:
        for i, (begin, end, size) in enumerate(boxes):
            if r.random() < 0.3 and end - begin > 8:
                boxes[i] = (begin + r.randrange(end - begin) // 8, end - r.randrange(end - begin) // 8, size)
    r.shuffle(boxes)
    return "cut %d, %s" % (seed, KINDS[kind]), boxes


def check(path, answer):
    rows = list(csv.DictReader(open(answer)))
    assert len(rows) == sum(1 for _ in open(path)) - 1
    boxes = [tuple(int(row[k]) for k in ("lower", "upper", "size", "offset")) for row in rows]
    for i, (lower, upper, size, offset) in enumerate(boxes):
        assert 0 <= offset and offset + size <= CAPACITY, (path, i)
        for low, up, other, at in boxes[:i]:
            assert up <= lower or upper <= low or at + other <= offset or offset + size <= at, (path, i)


def pack(args, path, seed):
    with tempfile.NamedTemporaryFile(suffix=".csv") as out:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (args.limit, args.limit))
        done = subprocess.run([args.solve, "pack", path, "--capacity", str(CAPACITY), "--seed", str(seed), "-o", out.name],
                              stderr=subprocess.DEVNULL, preexec_fn=limit)
        if done.returncode:
            return None
        check(path, out.name)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?")
    parser.add_argument("--solve", default="build/bin/tmc-solve")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--count", type=int, default=25)
    parser.add_argument("--limit", type=int, default=20)
    args = parser.parse_args()
    print("| instance | buffers | seconds by seed |\n|---|---|---|")
    missing = []
    with tempfile.TemporaryDirectory() as folder:
        cases = []
        if args.directory:
            cases = [(name.split(".")[0], os.path.join(args.directory, name))
                     for name in sorted(os.listdir(args.directory)) if name.endswith(".%d.csv" % CAPACITY)]
        for seed in range(1, args.count + 1):
            name, boxes = instance(seed)
            path = os.path.join(folder, "%d.csv" % seed)
            with open(path, "w") as file:
                file.write("id,lower,upper,size\n")
                for i, (begin, end, size) in enumerate(boxes):
                    file.write("%d,%d,%d,%d\n" % (i, begin * UNIT, end * UNIT, size * UNIT))
            cases.append((name, path))
        for name, path in cases:
            times = [pack(args, path, seed) for seed in range(1, args.seeds + 1)]
            missing += [name] * times.count(None)
            print("| %s | %d | %s |" % (name, sum(1 for _ in open(path)) - 1,
                                        ", ".join("-" if t is None else "%.2f" % t for t in times)), flush=True)
    print("\n%d of %d without a packing within %d s" % (len(missing), len(cases) * args.seeds, args.limit))


if __name__ == "__main__":
    main()
