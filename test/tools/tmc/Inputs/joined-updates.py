"""Plans a step with the smallest budget for which a plan is known, and compares the
launches of its updates with those of all memory."""

import json
import subprocess
import sys


def plan(*budget):
    done = subprocess.run(["tmc", "plan", *sys.argv[1:], *budget, "--json"],
                          stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def updates(made):
    return made["families"]["AdamW"]["device_launches"]


loose = plan()
least = plan("--budget=%d" % loose["smallest_found_bytes"])
fits = least["arena_bytes"] <= loose["smallest_found_bytes"]
print("fits" if fits else "too large",
      "fewer updates wait" if updates(least) > updates(loose) else "as many wait",
      sep=", ")
