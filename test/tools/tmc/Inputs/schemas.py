"""Holds JSON files to the schemas of docs/schemas.

    schemas.py SCHEMA FILE...     SCHEMA: plan, plan-trace, target, or log, whose files have a document a line

Ends with 1 where a document isn't as the schema says. To be sure that a schema says anything, it is also given the
document without each of its keys in turn that the schema requires, with one key more, and with another schema's
number: it must refuse them all.
"""

import json
import os
import sys

from jsonschema import Draft202012Validator

PLACE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "..", "docs", "schemas")


def faults(check, document):
    found = [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in check.iter_errors(document)]
    if found:
        return found
    others = {f"without {key}": {name: value for name, value in document.items() if name != key} for key in required(check.schema, document)}
    others["with a key more"] = dict(document, surprise=1)
    if "schema" in document:
        others["of another schema"] = dict(document, schema=document["schema"] + 1)
    return [f"the schema takes it {how}" for how, other in others.items() if check.is_valid(other)]


def required(schema, document):
    """The keys that a document must have."""
    for kind in schema.get("oneOf", []):
        if kind["properties"]["kind"]["const"] == document["kind"]:
            return kind["required"]
    return schema["required"]


def main():
    name, *files = sys.argv[1:]
    with open(os.path.join(PLACE, f"{name}.schema.json")) as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    check = Draft202012Validator(schema)
    kinds = set()
    for path in files:
        with open(path) as file:
            documents = [json.loads(line) for line in file] if name == "log" else [json.load(file)]
        for number, document in enumerate(documents, 1):
            kinds.add(document.get("kind", ""))
            for fault in faults(check, document):
                sys.exit(f"{path}, document {number}: {fault}")
    print(f"{len(files)} files are as {name} says" + (f": {' '.join(sorted(kinds))}" if name == "log" else ""))


main()
