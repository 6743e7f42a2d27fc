"""List what ATen's operators write: `make_written.py`, needs torch 2.9 or later.

written.txt has a line for each overload that takes tensors and whose schema marks arguments as written, with their
names, and one without names for each that writes nothing though it is called as if it did. WrittenArguments.inc, of
frontends/torch, has those that no rule of WrittenArguments.cpp tells.
"""

import os
import re

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "..", "..", "..", "frontends", "torch", "WrittenArguments.inc")


def by_rule(op, overload):
    """What WrittenArguments.cpp says of what isn't in its table."""
    if re.search(r"[^_]_$", op):
        return ["self"]
    if overload == "out" or overload.endswith("_out"):
        return ["out"]
    return ["grad_input"] if overload == "grad_input" else []


def main():
    lines, table = [], []
    for schema in torch._C._jit_get_all_schemas():
        space, name = schema.name.split("::")
        if space != "aten":
            continue
        overload = schema.overload_name or "default"
        written = [a for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        if any(str(a.type) not in ("Tensor", "List[Tensor]", "Optional[Tensor]") for a in written):
            continue  # Lists and dictionaries of TorchScript, generators.
        names = [a.name for a in written]
        expected = by_rule(name, overload)
        if names or expected:
            lines.append(" ".join([f"{name}.{overload}", *names]))
        if names != expected:
            table.append(f'WRITES("{name}.{overload}", "{" ".join(names)}")')
    with open(os.path.join(HERE, "written.txt"), "w") as file:
        file.write("\n".join(sorted(set(lines))) + "\n")
    with open(TABLE, "w") as file:
        file.write("// Made by test/unit/frontends/make_written.py: what no rule tells, and the\n// arguments that it writes.\n")
        file.write("\n".join(sorted(set(table))) + "\n")


main()
