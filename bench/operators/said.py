"""What model-numbers says of files."""

import json
import subprocess

BATCH = 60  # Files that one process reads.


def interpreted(command, paths):
    """{path: what model-numbers says}; a crash is an answer, too."""
    said = {}
    left = list(paths)
    while left:
        batch, left = left[:BATCH], left[BATCH:]
        done = subprocess.run(command + batch, capture_output=True, text=True)
        begun = None
        for line in done.stdout.splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            if "begin" in entry:
                begun = entry["begin"]
            else:
                said[entry["file"]] = entry
        if begun is not None and begun not in said:
            said[begun] = dict(code=done.returncode, why="crashes: " + done.stderr.strip()[-200:], notes=[])
            left = batch[batch.index(begun) + 1:] + left
    return said
