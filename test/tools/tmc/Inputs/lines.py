"""Writes the data of data.test: rows in JSON lines for a model of 256 tokens, 32 in a row."""
import json
import os
import sys


def row(number, length):
    tokens = [(number * 37 + k * k) % 256 for k in range(length)]
    return dict(input_ids=tokens, labels=tokens, name=f"row {number}")


def write(name, rows):
    with open(os.path.join(sys.argv[1], name), "w") as file:
        file.writelines(json.dumps(each) + "\n" for each in rows)


write("rows-1.jsonl", [row(i, 4 + 3 * i) for i in range(7)])
write("rows-2.jsonl", [row(i, 32) for i in range(7, 10)])
write("long.jsonl", [row(0, 32), row(1, 5), row(2, 33)])
write("range.jsonl", [dict(input_ids=[1, 256], labels=[1, 2])])
