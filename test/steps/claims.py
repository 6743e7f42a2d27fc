#!/usr/bin/env python3
"""No plan contradicts what another plan claims about all plans; needs only the standard library.

    claims.py --build build [--draws N] [--seed S] [--only SUBSTRING] [--jobs N]

A draw is a model, flags (target, precision, optimizer, micro-batches, what may leave the device) and a
budget. Draws of the same model and flags form a group, and are planned in random order by
`tmc plan --json`. Of each two plans of a group, in either order:

- no arena is smaller than the other's `impossible_below_bytes`;
- no step that has no larger a budget, and the same levers, is quicker than the other's lower bound;
- both name the same `unconstrained_time_s` and `unconstrained_bytes`.

The smallest budget that a group names works when it is given, and is no larger than one that worked.
--planted raises a claim of each group above its smallest arena, and passes if that is found. Ends with one
line `N passed, M failed`.
"""

import itertools
import json
import os
import random
import subprocess
import sys

from case import run_cases
from draws import MODELS
from trained import EFFORT, ROOT, run

DRAWS, SEED, OF_A_GROUP = 200, 431, 5
TARGETS = ["cpu:v3", "cuda:sm_89", "cuda:sm_90"]
PRECISIONS = ["f32", "bf16", "fp16", "fp8", "auto"]
OPTIMIZERS = ["adamw", "adamw8bit", "sgd(momentum=0.9)", "adafactor", "auto"]
OFFLOADS = ["none", "auto", "auto", "auto", "all", "activations", "optimizer", "parameters"]
# Picoseconds are whole; seconds in JSON have 15 digits.
ALIKE = 1e-9


class Plan:
    def __init__(self, budget, code, text):
        self.budget, self.code = budget, code
        figures = json.loads(text)
        self.arena, self.seconds = (figures["arena_bytes"], figures["step_time_s"]) if code == 0 else (None, None)
        self.smallest, self.impossible = figures["smallest_found_bytes"], figures["impossible_below_bytes"]
        self.base = (figures["unconstrained_time_s"], figures["unconstrained_bytes"])
        # The bound holds for the chosen levers.
        self.levers = str([(each["lever"], each["value"]) for each in (figures["chosen_levers"] or {"levers": []})["levers"]])
        self.bound = None
        if code == 0 and figures["lower_bound_pct"] is not None:
            self.bound = self.base[0] * (1 + figures["lower_bound_pct"] / 100)

    def contradiction(self, claim):
        """The figure of this plan that `claim`, another plan, says no plan has; "" if there is none."""
        if self.code:
            return ""
        if claim.impossible is not None and self.arena < claim.impossible:
            return f"{self.arena} bytes are enough, {claim.impossible} were said to be the least (budget {claim.budget})"
        if claim.bound is not None and self.levers == claim.levers and (claim.budget is None or (
                self.budget is not None and self.budget <= claim.budget)) and self.seconds < claim.bound * (1 - ALIKE):
            return f"{self.seconds} s in {self.budget} bytes, at least {claim.bound} was said (budget {claim.budget})"
        if claim.code == 0 and claim.base != self.base:
            return f"without a budget {self.base} and {claim.base} (budget {claim.budget})"
        return ""


class Group:
    """Plans of one model with one set of flags."""

    def __init__(self, number, count, options):
        draw = self.draw = random.Random(f"{options.seed}:{number}")
        self.options, self.count = options, count
        self.kind = draw.choices(list(MODELS), [known["weight"] for known in MODELS.values()])[0]
        known = MODELS[self.kind]
        batch = draw.choice(known["batches"])
        pieces = draw.choice(["1", "1", "2", "auto"]) if not known["fixed"] else "1"
        offload = draw.choice(OFFLOADS)
        self.flags = [f"--target={draw.choice(TARGETS)}", f"--precision={draw.choice(PRECISIONS)}",
                      f"--optimizer={draw.choice(OPTIMIZERS)}", f"--micro-batches={pieces}", f"--offload={offload}", *known["options"]]
        if not known["fixed"]:
            self.flags.append(f"--batch={batch}")
        if known["norm"] and pieces != "1":
            self.flags.append("--batchnorm=per-micro-batch")
        if offload != "none" and draw.random() < 0.3:
            self.flags.append(f"--host-budget={draw.choice([4, 64])}MiB")
        self.graph = os.path.join(ROOT, known["graph"])
        self.name = f"group {number}"
        self.commands = []

    def plan(self, budget):
        command = [os.path.join(self.options.build, "bin", "tmc"), "plan", self.graph, *self.flags, *EFFORT, "--json",
                   *([f"--budget={budget}"] if budget is not None else [])]
        self.commands.append(" ".join(command))
        code, text = run(command, stderr=subprocess.DEVNULL)
        if code not in (0, 3):
            raise ValueError(f"tmc plan ended with {code}")
        return Plan(budget, code, text)

    def fault(self):
        free = self.plan(None)
        least = self.plan(1)
        plans = [free, least]
        low = least.smallest or free.arena // 4
        for _ in range(self.count - len(plans)):
            plans.append(self.plan(int(low + self.draw.uniform(-0.1, 1) * (free.arena - low))))
        self.draw.shuffle(plans)
        known = [plan.smallest for plan in plans if plan.smallest]
        if known:
            plans.append(self.plan(min(known)))
            if plans[-1].code:
                return f"{min(known)} bytes were said to work"
        for plan in plans:
            if plan.code == 0 and plan.smallest and plan.budget and plan.smallest > plan.budget:
                return f"{plan.budget} bytes work, the smallest is said to be {plan.smallest}"
        if self.options.planted:
            plant(plans)
        for plan, claim in itertools.permutations(plans, 2):
            if fault := plan.contradiction(claim):
                return fault
        return ""

    def check(self, tally):
        try:
            fault = self.fault()
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
        if self.options.planted:
            fault = "" if fault else "a false claim isn't found"
        tally.test(f"{self.name}, {self.count} draws: {self.kind} {' '.join(self.flags)}",
                   fault and "\n".join([fault, *self.commands]))


def plant(plans):
    """Makes one claim of the plans false."""
    fit = [plan for plan in plans if plan.code == 0]
    best = min(fit, key=lambda plan: plan.arena)
    next(plan for plan in plans if plan is not best).impossible = best.arena + 1


def add_options(parser):
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--planted", action="store_true", help="make a claim of each group false, and find it")


def cases(options, _):
    counts = [min(OF_A_GROUP, options.draws - begin) for begin in range(0, options.draws, OF_A_GROUP)]
    return [group for number, count in enumerate(counts) for group in [Group(number, count, options)]
            if options.only in f"{group.name},"]


if __name__ == "__main__":
    sys.exit(run_cases(__doc__, "claims", cases, add_options))
