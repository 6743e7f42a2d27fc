"""Makes profiles and logs that a trainer doesn't write: measured.py PROFILE LOG PLACE."""

import json
import os
import sys

profile, log, place = sys.argv[1:]
with open(profile) as file:
    rows = json.load(file)
with open(log) as file:
    lines = file.read().splitlines()


def write(name, text):
    with open(os.path.join(place, name), "w") as file:
        file.write(text)


def changed(file, **fields):
    """A profile whose first launch has these fields."""
    write(file, json.dumps(dict(rows, launches=[dict(rows["launches"][0], **fields), *rows["launches"][1:]])))


changed("slow.json", seconds=1e3)
changed("negative.json", seconds=-1)
changed("huge.json", seconds=1e308, least_seconds=1e308, runs=1e308, family="<b>\u202e")
changed("nameless.json", name=3)
write("others.json", json.dumps(dict(rows, launches=[dict(row, name="q") for row in rows["launches"]])))
write("short.json", json.dumps(dict(rows, launches=rows["launches"][1:])))
write("schema.json", json.dumps(dict(rows, schema=2)))
write("none.json", json.dumps(dict(rows, steps=0)))
# A step is being written, and one has no loss.
write("cut.jsonl", "\n".join([*lines[:3], '{"kind":"step","step":3,"loss":null,"seconds":1}', lines[-1][:40]]))
run = json.loads(lines[0])
write("another.jsonl", "\n".join([json.dumps(dict(run, plan_fingerprint="0" * 16)), *lines[1:], ""]))
write("then.jsonl", "\n".join([json.dumps(dict(run, plan_fingerprint="0" * 16)), *lines[1:], *lines[:3], ""]))
write("bad.jsonl", lines[0] + "\n{\n" + lines[1] + "\n")
write("first.jsonl", "\n".join('{"step":%d,"loss":2.5,"seconds":0.5}' % k for k in range(3)) + "\n")
write("empty.jsonl", "")
