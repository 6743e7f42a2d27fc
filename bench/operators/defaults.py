"""Writes the tables of arguments' defaults that the importers read: frontends/torch/Defaults.inc of ATen's
schemas, frontends/onnx/Defaults.inc of ONNX's.

    python bench/operators/defaults.py [--check]

An argument that a file gives, though it has its default, asks for nothing. An importer that doesn't read it
takes it by these tables; any other value it doesn't read is refused. Needs torch and onnx; `--check` writes
nothing and says what differs.
"""

import argparse
import os
import re
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def written(value):
    """A default as the tables have it; a list without blanks."""
    return value if isinstance(value, str) else repr(value).replace(" ", "")


def aten():
    """{operator: {argument: default}}; a default that is None isn't there, and neither is what only writes."""
    import torch
    table = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space != "aten" or name.startswith("_test"):
            continue
        for argument in schema.arguments:
            if not argument.has_default_value() or argument.default_value is None or argument.is_out:
                continue
            if isinstance(argument.default_value, str) and not re.fullmatch(r"\w+", argument.default_value):
                continue  # Of texts, no importer's.
            # Of a padding that may be a word, the numbers are the default that a file may give.
            if isinstance(argument.default_value, str) and isinstance(table.get(name, {}).get(argument.name, ""), list):
                continue
            defaults = table.setdefault(name, {})
            known = defaults.get(argument.name)
            if known is None or isinstance(known, str) and not isinstance(argument.default_value, str):
                defaults[argument.name] = argument.default_value
            elif known != argument.default_value and not isinstance(argument.default_value, str):
                sys.exit(f"overloads of {name} differ in the default of {argument.name}")
    return table


def onnx_domains():
    """{operator: {attribute: default}}: those of every operator set that has one, the newest first."""
    import onnx
    table = {}
    for schema in sorted(onnx.defs.get_all_schemas_with_history(), key=lambda s: -s.since_version):
        name = schema.name if schema.domain in ("", "ai.onnx") else schema.domain + "." + schema.name
        for attribute in schema.attributes.values():
            value = onnx.helper.get_attribute_value(attribute.default_value) if attribute.default_value.type else None
            if value is None or isinstance(value, (onnx.TensorProto, onnx.GraphProto)):
                continue
            value = value.decode() if isinstance(value, bytes) else list(value) if not isinstance(value, (int, float)) else value
            table.setdefault(name, {}).setdefault(attribute.name, value)
    return table


def lines(what, table):
    yield f"// Defaults.inc - defaults of {what}, as bench/operators/defaults.py writes them."
    yield "// clang-format off"
    for name in sorted(table):
        yield 'TMC_DEFAULTS("%s", "%s")' % (name, " ".join(f"{key}={written(value)}" for key, value in sorted(table[name].items())))
    yield "// clang-format on"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="write nothing, say what differs")
    given = options.parse_args()
    differs = False
    for folder, what, build in (("torch", "the arguments of ATen's operators", aten), ("onnx", "the attributes of ONNX's operators", onnx_domains)):
        path = os.path.join(ROOT, "frontends", folder, "Defaults.inc")
        text = "\n".join(lines(what, build())) + "\n"
        if not given.check:
            with open(path, "w") as file:
                file.write(text)
            continue
        with open(path) as file:
            old = file.read().splitlines()
        for line in sorted(set(text.splitlines()) ^ set(old)):
            print(("only in the file: " if line in old else "missing: ") + line)
            differs = True
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
