"""Reads messages of `--messages=json` from standard input and prints them for FileCheck; a line that is no
object of a known form ends with 1. `--bytes TMC`: prints what TMC says of a path that isn't UTF-8."""

import json
import subprocess
import sys

FIELDS = {"error": {"code", "kind", "message", "nodes", "notes", "numbers"}}

if sys.argv[1:2] == ["--bytes"]:
    command = [sys.argv[2].encode(), b"plan", b"a\xff\n.onnx", b"--messages=json"]
    sys.stdout.buffer.write(subprocess.run(command, stderr=subprocess.PIPE).stderr)
    sys.exit()
for line in sys.stdin.buffer.read().decode().splitlines():
    message = json.loads(line)
    kind, text = message["kind"], message["message"]
    lines = text.splitlines()
    text = text.replace("\n", "\\n")  # A line of output each.
    assert set(message) == FIELDS.get(kind, {"kind", "message"}), line
    if kind == "error":
        print("error %d: %s" % (message["code"], text))
        for note in message["notes"]:
            print("note: " + note)
        for name, value in sorted(message["numbers"].items()):
            print("number %s: %d" % (name, value))
        for node in message["nodes"]:
            print("node %(op)s '%(name)s' (%(line)s): %(reason)s" % node)
    elif kind == "summary":
        print("summary: %d lines, the last: %s" % (len(lines), lines[-1].strip()))
    else:
        print("%s: %s" % (kind, text))
