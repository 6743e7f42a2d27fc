#!/usr/bin/env python3
"""Prices of kernels from what a card measured.

    prices.py kernels STEP=PROFILE[:STEP.CU] ... -o kernels.json
    prices.py fit kernels.json --card cuda:h200 --processors 132 [-o compiler/target/cards/h200.json]
              [--without STEP]

`kernels` gathers the profiles of steps (`train --profile`) by object
(compiler/target/Prices.h): a row for each object of each step with its mean
seconds and its runs in a step. It adds the card, the day, and the version of each
family's kernels. Profiles before schema 3 name neither objects nor the card: the
emitted step beside the colon names the objects, and flags say the rest.

`fit` finds a class of kernels for each family, says how far the classes explain
the rows, and writes the card's description. With --without, a step's rows are
left out of the fit and are explained all the same.
"""
import argparse
import collections
import datetime
import gzip
import json
import math
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(ROOT, "compiler/target"))
from kernel_versions import Sources  # noqa: E402

# A class for each of these conditions, the first that holds: by family.
CLASSES = {
    "Matmul": ["products=16-bit", "products=tf32 transposeLhs=true", "products=tf32"],
    "Attention": ["products=16-bit dropout=0 headDim<=64", "products=16-bit dropout=0",
                  "products=16-bit", "products=f32"],
    "Fused": ["finish=true wholeRows=true", "finish=true", "wholeRows=true", ""],
    "Concat": ["bytes<=16777216", ""],
    "AdamW": ["bytes<=1048576", ""],
    "BatchNorm": ["bytes<=134217728", ""],
    "Conv": ["products=16-bit"],
}
CLASSES["AttentionGrad"] = CLASSES["Attention"]
CLASSES["CudnnAttention"] = CLASSES["CudnnAttentionGrad"] = ["headDim<=64", ""]
CLASSES["BatchNormGrad"] = CLASSES["BatchNorm"]
CLASSES["ConvGradInput"] = CLASSES["ConvGradFilter"] = CLASSES["Conv"]
WAVES = {"Matmul"}
# What a family without a class of its own costs, by type: as products do, or as
# generated kernels do.
# Products of f32 weren't measured: as those of TF32, they reach a share of their peak.
F32_OVER_TF32 = 67 / 494.5
OTHERS = [("products=8-bit", "Matmul", "products=16-bit", 2.0),
          ("products=16-bit", "Matmul", "products=16-bit", 1.0),
          ("products=tf32", "Matmul", "products=tf32", 1.0),
          ("products=f32", "Matmul", "products=tf32", F32_OVER_TF32),
          ("", "Fused", "", 1.0)]
TILES = ((128, 256), (256, 128), (128, 128))
UNBOUNDED = 1e18


def opened(path):
    return gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="utf-8")


# --- objects ------------------------------------------------------------------

def value_text(text):
    return re.sub(r"\s+", "", text.replace("DType::", ""))


PRODUCTS = ("Matmul", "Attention", "AttentionGrad", "CudnnAttention", "CudnnAttentionGrad", "Conv", "ConvGradInput",
            "ConvGradFilter")


def products_of(family, fields):
    kind = fields.get("lhs") or fields.get("type")
    if family not in PRODUCTS:
        return "f32"
    if kind in ("BF16", "F16"):
        return "16-bit"
    return "tf32" if fields.get("tf32") == "true" else "f32"


def objects_of(path):
    """The objects of an emitted step, by their names there."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    shapes = dict(re.findall(r"^struct (\w+) \{\n.*?\n.*?shape\{(.*?)\};", text, re.M))
    found = {}
    for family, name, params in re.findall(r"^  ([\w<>]+) (\w+)\{\{(.*)\}\};$", text, re.M):
        body = re.fullmatch(r"Fused<(\w+)>", family)
        if body:
            family, params = "Fused", shapes[body.group(1)]
        fields = {k: value_text(v) for k, v in re.findall(r"\.(\w+) = (\{[^}]*\}|[^,]*)", params)}
        for dropped in ("scratchBytes", "stream", "streams"):
            fields.pop(dropped, None)
        words = [family] + ["%s=%s" % field for field in fields.items()]
        found[name] = (" ".join(words), products_of(family, fields))
    return found


def joined(launches):
    """Launches that ran together (schema 3: `together`) are one, with the work of all."""
    at = 0
    while at < len(launches):
        parts = launches[at:at + launches[at].get("together", 1)]
        yield dict(parts[0], **{work: sum(part[work] for part in parts) for work in ("flops", "bytes")})
        at += len(parts)


def gather(arguments):
    rows, devices = {}, set()
    for given in arguments.profiles:
        step, _, files = given.partition("=")
        profile, _, source = files.partition(":")
        with opened(profile) as file:
            data = json.load(file)
        named = objects_of(source) if source else {
            name: (text, products_of(text.split()[0], dict(w.split("=", 1) for w in text.split()[1:])))
            for name, text in data["objects"].items()}
        devices.add(data.get("device", ""))
        for launch in joined(data["launches"]):
            if not launch["runs"]:
                continue
            text, products = named.get(launch["kernel"], ("", "f32"))
            started = sum(each["runs"] for each in launch.get("device_launches", [])) / launch["runs"]
            key = (step, text, launch["bytes"], launch["flops"])
            row = rows.setdefault(key, {
                "step": step, "family": launch["family"], "object": text, "products": products,
                "flops": launch["flops"], "bytes": launch["bytes"], "launches": round(started) or 1,
                "runs": 0, "seconds": 0.0})
            row["runs"] += launch["runs"] / data["steps"]
            row["seconds"] += launch["seconds"] / data["steps"]
    for row in rows.values():
        row["seconds"] = float("%.5g" % (row["seconds"] / row["runs"]))
        row["runs"] = round(row["runs"], 3)
    measured_on = arguments.measured_on or ", ".join(sorted(devices))
    if len(devices) > 1 or not measured_on:
        sys.exit("error: the profiles must be of one device; --measured-on names it")
    versions = Sources(ROOT).versions()
    if arguments.versions:
        with open(arguments.versions, encoding="utf-8") as file:
            versions = json.load(file)
    head = {"measured_on": measured_on, "date": arguments.date or str(datetime.date.today()),
            "versions": versions}
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(json.dumps(head, indent=1)[:-2] + ',\n "rows": [\n'
                   + ",\n".join(json.dumps(row) for row in rows.values()) + "\n]}\n")
    print("%d objects of %d steps" % (len(rows), len({row["step"] for row in rows.values()})))


# --- prices, as compiler/target/Prices.cpp has them ----------------------------

def parameter(row, name):
    if name == "products" and row["family"] not in PRODUCTS:
        return None
    if name in ("products", "flops", "bytes", "launches"):
        return str(row[name])
    match = re.search(r" %s=(\S+)" % name, row["object"])
    return match.group(1) if match else None


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def holds(where, row):
    for part in where.split():
        name, relation, wanted = re.fullmatch(r"(\w+)([<>=]+)(.+)", part).groups()
        own = parameter(row, name)
        if own is None:
            return False
        a, b = number(own), number(wanted)
        if a is None or b is None:
            if not (relation == "=" and own == wanted):
                return False
        elif not {"=": a == b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[relation]:
            return False
    return True


def waves(row, flops, wave_bytes, tile, processors):
    m, n, k, batch = (float(parameter(row, name) or 1) for name in ("m", "n", "k", "batch"))
    best = math.inf
    for rows, columns in TILES:
        tiles = math.ceil(m / rows) * math.ceil(n / columns) * batch
        for cut in (1, 2, 3, 4, 6, 8):
            if cut > 1 and tiles * cut > 2 * processors:
                break
            own = 2 * rows * columns * math.ceil(k / cut) * processors / flops
            seconds = math.ceil(tiles * cut / processors) * (own + tile)
            if cut > 1:
                seconds += 2 * 4 * m * n * batch * cut / wave_bytes
            best = min(best, seconds)
    return best


def price(row, its, processors):
    launch, flops, of_bytes, tile = its
    work = waves(row, flops, of_bytes, tile, processors) if tile else row["flops"] / flops
    return launch * row["launches"] + max(row["bytes"] / of_bytes, work)


# --- fits ---------------------------------------------------------------------

def error(rows, its, processors):
    """Log errors by the time they stand for: long kernels must fit best, but a
    kernel's own runs count little."""
    return sum(math.sqrt(row["seconds"] * math.sqrt(row["runs"]))
               * abs(math.log(price(row, its, processors) / row["seconds"])) for row in rows)


def descend(rows, its, processors):
    """Changes a parameter at a time, on a logarithmic scale, by ever smaller steps."""
    best, least = list(its), error(rows, its, processors)
    step = 2.0
    while step > 1.004:
        better = False
        for i, value in enumerate(best):
            if value == 0 or value >= UNBOUNDED:
                continue
            for factor in (step, 1 / step):
                tried = best[:i] + [value * factor] + best[i + 1:]
                found = error(rows, tried, processors)
                if found < least - 1e-12:
                    best, least, better = tried, found, True
        if not better:
            step = math.sqrt(step)
    return best, least


def fit(rows, in_waves, processors):
    quickest = min(row["seconds"] / row["launches"] for row in rows)
    of_bytes = max(row["bytes"] / row["seconds"] for row in rows)
    flops = max(row["flops"] / row["seconds"] for row in rows) or UNBOUNDED
    starts = [(quickest * launch, flops * f, max(of_bytes, 1) * b, 1e-6 if in_waves else 0)
              for launch in (0.2, 0.9) for f in (1, 4) for b in (1, 2)]
    return min((descend(rows, list(start), processors) for start in starts), key=lambda t: t[1])[0]


def errors(rows, its, processors):
    """The error of each kernel of a step, as shares; sorted."""
    return sorted(abs(price(row, its, processors) / row["seconds"] - 1)
                  for row in rows for _ in range(max(1, round(row["runs"]))))


def at(sorted_values, share):
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]


def rounded(value):
    return float("%.4g" % value)


def class_of(family, where, its, version, errors_found=()):
    made = {"family": family, "where": where, "launch_seconds": rounded(its[0]),
            "flops_per_second": rounded(its[1]), "bytes_per_second": rounded(its[2])}
    if its[3]:
        made["tile_seconds"] = rounded(its[3])
    made["error"] = round(at(errors_found, 0.9), 3) if errors_found else 0
    made["version"] = version
    return made


def fit_card(arguments):
    with open(arguments.kernels, encoding="utf-8") as file:
        measured = json.load(file)
    rows = [row for row in measured["rows"] if row["step"] not in arguments.without]
    versions, processors = measured["versions"], arguments.processors
    card = {"card": arguments.card, "measured_on": measured["measured_on"], "date": measured["date"],
            "processors": processors}
    by_family = collections.defaultdict(list)
    for row in rows:
        by_family[row["family"]].append(row)
    classes, fits = [], {}
    for family, of_family in sorted(by_family.items()):
        left = of_family
        for where in CLASSES.get(family, [""]):
            some = [row for row in left if holds(where, row)]
            left = [row for row in left if not holds(where, row)]
            if not some:
                continue
            its = fit(some, family in WAVES, processors)
            found = errors(some, its, processors)
            fits[family, where] = its
            classes.append(class_of(family, where, its, versions[family], found))
            print("%-16s %-40s %4d objects, median %4.1f %%, 9 of 10 %4.1f %%, sum %.2f"
                  % (family, where, len(some), 100 * at(found, 0.5), 100 * at(found, 0.9),
                     sum(r["runs"] * price(r, its, processors) for r in some)
                     / sum(r["runs"] * r["seconds"] for r in some)))
        if family in ("Attention", "AttentionGrad"):
            # Attention in TF32 has no measurement: half of what 16 bits reach.
            for where in ("dropout=0 headDim<=64", "dropout=0", ""):
                known = fits.get((family, ("products=16-bit " + where).strip()))
                if known:
                    scaled = [known[0], known[1] / 2, known[2] / 2, 0]
                    classes.append(class_of(family, ("products=tf32 " + where).strip(), scaled, ""))
    for where, family, like, factor in OTHERS:
        known = fits[family, like]
        classes.append(class_of("*", where, [known[0], known[1] * factor, known[2], 0], ""))
    card["classes"] = classes
    explain(measured["rows"], classes, processors)
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            json.dump(card, file, indent=1)
            file.write("\n")


def explain(rows, classes, processors):
    """Prices each row anew, and says how far off steps and launches are."""
    steps = collections.defaultdict(lambda: [0.0, 0.0])
    each = []
    for row in rows:
        its = next(c for c in classes if c["family"] in ("*", row["family"]) and holds(c["where"], row))
        seconds = price(row, (its["launch_seconds"], its["flops_per_second"], its["bytes_per_second"],
                              its.get("tile_seconds", 0)), processors)
        steps[row["step"]][0] += row["runs"] * seconds
        steps[row["step"]][1] += row["runs"] * row["seconds"]
        each += [abs(seconds / row["seconds"] - 1)] * max(1, round(row["runs"]))
    each.sort()
    for step, (predicted, measured) in steps.items():
        print("%-28s predicted %8.2f ms, kernels took %8.2f ms: %.3f"
              % (step, predicted * 1e3, measured * 1e3, predicted / measured))
    print("launches: median error %.1f %%, nine of ten within %.1f %%" % (100 * at(each, .5), 100 * at(each, .9)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("kernels")
    one.add_argument("profiles", nargs="+")
    one.add_argument("-o", dest="output", required=True)
    one.add_argument("--measured-on", help="the card, driver and CUDA, if the profiles don't say")
    one.add_argument("--date")
    one.add_argument("--versions", help="kernel_versions.py --json of the sources that were measured")
    two = commands.add_parser("fit")
    two.add_argument("kernels")
    two.add_argument("--card", required=True)
    two.add_argument("--processors", type=int, required=True)
    two.add_argument("--without", action="append", default=[], metavar="STEP")
    two.add_argument("-o", dest="output")
    arguments = parser.parse_args()
    (gather if arguments.command == "kernels" else fit_card)(arguments)


if __name__ == "__main__":
    main()
