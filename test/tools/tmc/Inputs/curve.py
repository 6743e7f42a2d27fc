"""A curve over levers: curve.py FILE.csv [--coarse] COMMAND... Budgets rise, several levers are in
use along it, and COMMAND, which plans for one budget, says the same of a point as the curve. Times
don't rise by more than the search leaves open; with --coarse, by three hundredths."""

import csv
import json
import subprocess
import sys

LEFT_OPEN = 0.001  # Of a step: leaner plans, and gains that aren't sought.
COARSE = 0.03  # Coarse plans of settings are off by as much (LeverSearch.cpp).

command = sys.argv[2:]
isCoarse = command[0] == "--coarse"
if isCoarse:
    del command[0]
rows = list(csv.DictReader(open(sys.argv[1])))
seconds = [float(row["step_time_s"]) for row in rows]
budgets = [0] + [int(row["budget_bytes"]) for row in rows]
assert len(rows) > 4, rows
assert all(a < b for a, b in zip(budgets, budgets[1:])), budgets
assert all(b <= a * (1 + (COARSE if isCoarse else LEFT_OPEN)) for a, b in zip(seconds, seconds[1:])), seconds
assert len({row["levers"] for row in rows}) > 1, rows
for row in (rows[1], rows[len(rows) // 2]):
    told = subprocess.run([*command, "--json", "--budget", row["budget_bytes"]], check=True, stdout=subprocess.PIPE)
    plan = json.loads(told.stdout)
    assert "%.9g" % plan["step_time_s"] == row["step_time_s"], (plan["step_time_s"], row)
    assert plan["arena_bytes"] == int(row["arena_bytes"]), (plan["arena_bytes"], row)
