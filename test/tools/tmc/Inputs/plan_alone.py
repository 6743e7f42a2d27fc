"""Prints a plan.json without what says who made it and when: equal plans print the same.

    plan_alone.py FILE
"""

import json
import re
import sys


def alone(text):
    plan = json.loads(text)
    del plan["plan_seconds"], plan["made"]["command"], plan["made"]["date"]
    return json.dumps(plan, indent=1)


def page_alone(text):
    """The same of a report.html."""
    alone, count = re.subn(rb'<dl class="made">.*?</dl>', b"", text)
    assert count == 1
    return alone


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        print(alone(file.read()))
