"""A curve over levers: budgets rise, times never do, and several levers are in use along it."""

import csv
import sys

rows = list(csv.DictReader(open(sys.argv[1])))
seconds = [float(row["step_time_s"]) for row in rows]
budgets = [0] + [int(row["budget_bytes"]) for row in rows]
assert len(rows) > 4, rows
assert all(a < b for a, b in zip(budgets, budgets[1:])), budgets
assert all(a >= b for a, b in zip(seconds, seconds[1:])), seconds
assert len({row["levers"] for row in rows}) > 1, rows
