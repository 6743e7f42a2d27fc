#!/usr/bin/env python3
"""Steps with moves over slow links, predicted and measured, on this machine's CPU.

    throttled.py [--build build] [--scratch DIR] [--target FILE.json] [--batch 2] [--sequence 256]
                 [--bandwidths 0.5,1,2] [--shares 0.9,0.6,0.4] [--steps 6] [-o FILE.md]

Calibrates the machine first (unless --target is given): kernels on one thread, links and updates on
the host as they run beside them. Two tables in Markdown:

1. GPT-2 124M with all that may leave allowed to, at each bandwidth of the links and at budgets that are
   shares of what the step takes without moves. The target's links have that bandwidth, and so have
   those of the run, by the trainer's --link-bandwidth. Predicted seconds of a step beside the measured
   median of --steps of them (one more comes first and isn't counted).
2. Activations alone, where transfers take as long as kernels: of plans at several budgets and bandwidths
   the one in which the seconds of both links together are nearest to those of the kernels (over slower
   links yet, plans recompute). The hidden part of them is 1 - (step - step with links that aren't held
   back) / transfers, of the same program.

The machine should be idle: other programs lengthen steps, and their share of a core is nobody's plan.
"""

import argparse
import copy
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "bench"))
from tables import publish  # noqa: E402

MODEL = os.path.join(ROOT, "examples", "gpt2-124m-nodropout.onnx")
DATA = os.path.join(ROOT, "examples", "data", "text.u16.bin")
MIB = 1 << 20
BUDGET_UNMET = 3
# Of the second table: how far budgets are on the way to the smallest one, and bandwidths as multiples of what
# would move all that is over the budget, there and back, in the kernels' time.
OVERLAP_WAYS = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9)
OVERLAP_SPEEDS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0)


def say(text):
    print(text, file=sys.stderr, flush=True)


def busy(trace):
    """How long each engine worked in a traced step, and how long it was planned to, in seconds."""
    with open(trace) as file:
        events = json.load(file)["traceEvents"]
    lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    works = {lane: sum(e["dur"] for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == lane) * 1e-6 for lane in lanes}
    return ", ".join(f"{name} {works[1, engine]:.2f} of {works.get((2, engine), 0):.2f}"
                     for (process, engine), name in sorted(lanes.items()) if process == 1)


class Bench:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.tmc = os.path.join(options.build, "bin", "tmc")
        self.flags = [MODEL, f"--batch={options.batch}", f"--dim=sequence={options.sequence}"]
        path = options.target or os.path.join(scratch, "here.json")
        if not options.target:
            subprocess.run([self.tmc, "calibrate", "-o", path, "--threads=1", f"--nvme={scratch}"], check=True)
        with open(path) as file:
            self.here = json.load(file)

    def target(self, gigabytes):
        """A target file whose links have this bandwidth, or what was measured if that is less; None: as measured."""
        described = copy.deepcopy(self.here)
        for link in "d2h", "h2d":
            channel = described["engines"][link]
            if gigabytes:
                channel["bytes_per_second"] = min(channel["bytes_per_second"], gigabytes * 1e9)
        path = os.path.join(self.scratch, f"links-{gigabytes}.json")
        with open(path, "w") as file:
            json.dump(described, file)
        return path

    def plan(self, gigabytes, *more):
        """plan.json, or None where the budget isn't met."""
        done = subprocess.run([self.tmc, "plan", *self.flags, f"--target={self.target(gigabytes)}", "--json", *more],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def smallest(self, *more):
        done = subprocess.run([self.tmc, "plan", *self.flags, f"--target={self.target(None)}", "--json", "--budget=1", *more],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return json.loads(done.stdout)["smallest_found_bytes"]

    def compile(self, name, gigabytes, *more):
        """The step's directory and plan.json; None where the budget isn't met."""
        step = os.path.join(self.scratch, name)
        done = subprocess.run([self.tmc, "compile", *self.flags, f"--target={self.target(gigabytes)}", "-o", step, *more],
                              stderr=subprocess.PIPE, text=True)
        if done.returncode == BUDGET_UNMET:
            return None, None
        if done.returncode:
            sys.exit(done.stderr)
        with open(os.path.join(step, "plan.json")) as file:
            return step, json.load(file)

    def median(self, step, gigabytes):
        """Seconds of a step."""
        log, trace = (os.path.join(step, name) for name in ("log.jsonl", "trace.json"))
        throttle = [f"--link-bandwidth={gigabytes}GB"] if gigabytes else []
        subprocess.run([os.path.join(step, "train"), f"--data={DATA}", "--init=random:1", "--lr=1e-4", "--threads=1",
                        "--host-threads=1", f"--steps={self.options.steps + 1}", f"--log={log}", f"--trace={trace}", "--quiet", *throttle], check=True)
        with open(log) as file:
            seconds = [line["seconds"] for line in map(json.loads, file) if line["kind"] == "step"][1:]
        os.remove(log)
        say(f"{os.path.basename(step)} at {gigabytes} GB/s: {' '.join(f'{s:.3f}' for s in seconds)} s; {busy(trace)}")
        return statistics.median(seconds)

    def table_of_predictions(self):
        lines = ["| links, GB/s | device, MiB | host, MiB | out, MiB | in, MiB | updates on the host | launches again "
                 "| kernels wait, s | predicted, s | measured, s | apart |", "|---|---|---|---|---|---|---|---|---|---|---|"]
        step, plan = self.compile("stays", None)
        self.most, self.kernels = plan["arena_bytes"], plan["step_time_s"]
        self.add(lines, ["", plan["arena_bytes"] // MIB, "", "", "", "", 0, ""], plan, self.median(step, None))
        for gigabytes in self.options.bandwidths:
            for share in self.options.shares:
                name = f"all-{gigabytes}-{share}"
                more = ["--offload=all", f"--budget={int(self.most * share)}"]
                step, plan = self.compile(name, gigabytes, *more)
                if not plan or not plan["spaces"]:
                    say(f"{name} {'moves nothing' if plan else 'does not fit'}")
                    continue
                spaces = plan["spaces"]
                figures = [gigabytes, plan["arena_bytes"] // MIB, spaces["host"]["arena_bytes"] // MIB, spaces["moved_bytes"]["d2h"] // MIB,
                           spaces["moved_bytes"]["h2d"] // MIB, spaces["host_updates"], plan["recomputed_ops"],
                           f"{sum(spaces['waits_s'].values()):.2f}"]
                self.add(lines, figures, plan, self.median(step, gigabytes))
        return lines

    @staticmethod
    def add(lines, figures, plan, seconds):
        predicted = plan["step_time_s"]
        lines.append("| " + " | ".join(map(str, figures)) + f" | {predicted:.3f} | {seconds:.3f} | {100 * (predicted / seconds - 1):+.1f} % |")

    @staticmethod
    def seconds_of_links(plan):
        busy = plan["spaces"]["busy_s"]
        return busy["d2h"] + busy["h2d"]

    def balanced(self):
        """The bandwidth and the budget at which transfers take as long as kernels."""
        best, least = None, self.smallest("--offload=activations")
        for way in OVERLAP_WAYS:
            over = int((self.most - least) * way)
            for speed in OVERLAP_SPEEDS:
                gigabytes = round(speed * 2 * over / self.kernels * 1e-9, 4)
                more = ["--offload=activations", f"--budget={self.most - over}"]
                plan = self.plan(gigabytes, *more)
                if not plan or not plan["spaces"] or not plan["spaces"]["moved_bytes"]["d2h"]:
                    continue
                part = self.seconds_of_links(plan) / plan["spaces"]["busy_s"]["compute"]
                say(f"budget {(self.most - over) // MIB} MiB, {gigabytes} GB/s: transfers take {part:.2f} of kernels, "
                    f"the step {plan['step_time_s']:.2f} s")
                if best is None or abs(part - 1) < best[0]:
                    best = abs(part - 1), gigabytes, more
        if best is None:
            sys.exit("no plan moves activations alone")
        return best[1:]

    def table_of_overlap(self):
        gigabytes, more = self.balanced()
        step, plan = self.compile("activations", gigabytes, *more)
        free, held = self.median(step, None), self.median(step, gigabytes)
        busy, links = plan["spaces"]["busy_s"], self.seconds_of_links(plan)
        predicted = 1 - (plan["step_time_s"] - busy["compute"]) / links
        return ["| links, GB/s | device, MiB | out and in, MiB | launches again | kernels, s | transfers, s | predicted, s "
                "| hidden | measured, s | links not held back, s | hidden |", "|---|---|---|---|---|---|---|---|---|---|---|",
                f"| {gigabytes} | {plan['arena_bytes'] // MIB} of {self.most // MIB} | {plan['spaces']['moved_bytes']['d2h'] // MIB} each "
                f"| {plan['recomputed_ops']} | {busy['compute']:.2f} | {links:.2f} | {plan['step_time_s']:.2f} | {100 * predicted:.1f} % "
                f"| {held:.2f} | {free:.2f} | {100 * (1 - (held - free) / links):.1f} % |"]


def numbers(text):
    return [float(number) for number in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--scratch", help="where steps are compiled, and files' rates measured (default: a temporary directory)")
    parser.add_argument("--target", help="a calibration (default: one is made)")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--sequence", type=int, default=256)
    parser.add_argument("--bandwidths", type=numbers, default=[0.5, 1.0, 2.0], help="GB/s, with commas (default 0.5,1,2)")
    parser.add_argument("--shares", type=numbers, default=[0.9, 0.6, 0.4], help="budgets, of what the step takes (default 0.9,0.6,0.4)")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("-o", "--output", help="write the tables there, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="throttled-", dir=options.scratch) as scratch:
        bench = Bench(options, scratch)
        lines = [*bench.table_of_predictions(), "", *bench.table_of_overlap()]
    publish(lines, options.output)


if __name__ == "__main__":
    main()
