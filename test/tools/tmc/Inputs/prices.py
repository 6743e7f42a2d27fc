"""Profiles of steps that never ran, and what a card measured.

    prices.py profile STEP.CU DEVICE      a profile in which each kernel object of the step takes a millisecond
    prices.py near PLAN.json LOG.jsonl    the plan's step takes what the log's steps took, to 15 %
"""

import json
import re
import statistics
import sys


def profile(source, device):
    with open(source) as file:
        text = file.read()
    table = re.search(r"^const ObjectInfo objects\[\] = \{\n(.*?)^\};", text, re.M | re.S).group(1)
    objects = dict(re.findall(r'^ +\{"([^"]+)", "([^"]+)"\},$', table, re.M))
    json.dump({"schema": 3, "steps": 1, "device": device, "objects": objects,
               "launches": [{"kernel": name, "runs": 2, "seconds": 2e-3} for name in objects]}, sys.stdout)


def near(plan, log):
    with open(plan) as file:
        predicted = json.load(file)["step_time_s"]
    with open(log) as file:
        seconds = [json.loads(line)["seconds"] for line in file]
    measured = statistics.median(seconds[5:])
    print("predicted %.2f ms, measured %.2f ms" % (predicted * 1e3, measured * 1e3))
    sys.exit(not 0.85 <= predicted / measured <= 1.15)


{"profile": profile, "near": near}[sys.argv[1]](*sys.argv[2:])
