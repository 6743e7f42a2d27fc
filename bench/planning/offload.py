"""Plans real steps on a device with a host beside it, and says what each planner's plan
costs; the standard library only.

    python3 bench/planning/offload.py [--bin build/bin] [--bandwidths 6,25,55]
        [--budgets 0.9,0.8,0.6] [--jobs 1] [--only NAME] [--steps FILE] [-o FILE.json]

For each step, link and budget: what recomputing alone (`tmc-solve offload --planner
recompute`), the oldest activations first, a knapsack, a chain's dynamic program, every
update on the host (ZeRO-Offload), and the search make of it, with activations alone, with
all that may move, and with all coarsely; in percent of the step that moves nothing. `above`
is the distance of the search's plan from what is proved; seconds are the processor's, file
and checks included. A budget is a share of what all live values take without recomputation
or moves. For the sake of fewer bytes on the host the search may take 0.1 % longer than its
fastest plan, and it may give up a gain of less than 0.5 % on the step that moves nothing.
Prints a table; ends with 1 if the search loses more than that to one of the others.

`--steps` is a JSON file of more steps, {"NAME": ["MODEL.onnx", "FLAG", ...]}; models.py
writes one of ResNet-50 and of a model with experts.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.normpath(os.path.join(HERE, "..", "..", "examples"))
STEPS = {
    "GPT-2 124M, 2 x 512": ["gpt2-124m.onnx", "--batch=2", "--dim=sequence=512"],
    "GPT-2 124M, 16 x 512": ["gpt2-124m.onnx", "--batch=16", "--dim=sequence=512"],
    "GPT-2 124M, 2 x 512, bf16": ["gpt2-124m.onnx", "--batch=2", "--dim=sequence=512", "--precision=bf16"],
    "GPT-2 XL, 1 x 1024": ["gpt2-xl.onnx"],
    "GPT-2 XL, 4 x 1024": ["gpt2-xl.onnx", "--batch=4"],
    "GPT-2 XL, 4 x 1024, bf16": ["gpt2-xl.onnx", "--batch=4", "--precision=bf16"],
    "BERT, 4 x 128": ["bert-base.onnx"],
    "BERT, 32 x 512": ["bert-base.onnx", "--batch=32", "--dim=sequence=512"],
    "Mistral 7B, 1 x 2048": ["mistral-7b.onnx"],
    "Mistral 7B, 1 x 2048, bf16": ["mistral-7b.onnx", "--precision=bf16"],
}
PLANNERS = {
    "recompute": ["--planner=recompute", "--move=activations"],
    "oldest": ["--planner=oldest-first", "--move=activations"],
    "knapsack": ["--planner=knapsack", "--move=activations"],
    "chain": ["--planner=chain", "--move=activations"],
    "zero": ["--planner=zero-offload"],
    "activations": ["--move=activations"],
    "all": [],
    "coarse": ["--coarse"],
}
LEAN = 0.001 + 1e-9  # kLeanPart of compiler/planning/driver/MovesAmounts.h.
SMALL_GAIN = 0.5  # Percent: kSmallGainPart of compiler/planning/driver/TakeLess.h.
ALONE = ("recompute", "oldest", "knapsack", "chain")  # Of activations.


def counted(percent):
    """The overhead of a plan, without a gain that is too small to count."""
    return 0 if -SMALL_GAIN <= percent < 0 else percent


def run(*command):
    """The command's exit code, what it said, and its processor's seconds."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(command, stdout=out, stderr=errors)
        _, status, usage = os.wait4(child.pid, 0)
        out.seek(0), errors.seek(0)
        return os.waitstatus_to_exitcode(status), out.read(), errors.read(), usage.ru_utime


def plan(options, problem, bandwidth, budget, flags):
    """What tmc-solve says of one plan, or None where none fits."""
    words = [word for flag in flags for word in flag.split("=", 1)]
    code, out, errors, seconds = run(os.path.join(options.bin, "tmc-solve"), "offload", problem, "--budget", f"{budget}x",
                                     "--bandwidth", str(bandwidth), "--json", "-", *words)
    if code not in (0, 3):
        raise RuntimeError(errors)
    told = json.loads(out)
    again = re.search(r"(\d+) kernels again", errors)
    if not told["feasible"]:
        return dict(seconds=seconds, percent=None)
    base, bound = told["base_makespan"], told["lower_bound"]
    return dict(percent=100 * (told["makespan"] / base - 1), above=100 * (told["makespan"] / bound - 1),
                milliseconds=told["makespan"] / 1e9, peaks=told["peaks"], seconds=seconds,
                kernels_again=int(again.group(1)) if again else None)


def percent(row):
    return "none" if row["percent"] is None else f"{row['percent']:+.1f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--target", default="cuda:a100-40")
    parser.add_argument("--bandwidths", default="6,25,55")
    parser.add_argument("--budgets", default="0.9,0.8,0.6")
    parser.add_argument("--only", default="")
    parser.add_argument("--steps")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    steps = dict(STEPS)
    if options.steps:
        with open(options.steps) as file:
            steps.update(json.load(file))
    rows, lost = [], []
    print("| step | GB/s | budget | recomputing alone | oldest first | knapsack | chain | search, activations | above | seconds | "
          "ZeRO-Offload | search, all | above | host GiB | seconds | coarsely | seconds |")
    print("|" + "---|" * 17)
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, (model, *flags) in steps.items():
            if options.only not in name:
                continue
            problem = os.path.join(scratch, "problem")
            # Planned where everything fits: the problem doesn't depend on a budget.
            code, _, errors, _ = run(os.path.join(options.bin, "tmc"), "plan", os.path.join(EXAMPLES, model), "--target",
                                     options.target, *flags, "--budget", "4TiB", "--problem", problem)
            if code:
                sys.exit(errors)
            for bandwidth in map(int, options.bandwidths.split(",")):
                for budget in map(float, options.budgets.split(",")):
                    futures = {key: pool.submit(plan, options, problem, bandwidth, budget, words)
                               for key, words in PLANNERS.items()}
                    made = {key: future.result() for key, future in futures.items()}
                    rows.append(dict(step=name, bandwidth=bandwidth, budget=budget, plans=made))
                    best, few = made["all"], made["activations"]
                    for other in (*ALONE, "zero"):
                        mine = few if other in ALONE else best
                        theirs = made[other]["percent"]
                        if theirs is not None and (mine["percent"] is None or
                                                   100 + mine["percent"] > (100 + counted(theirs)) * (1 + LEAN)):
                            lost.append(f"{name}, {bandwidth} GB/s, {budget}: {percent(mine)}, {other} {percent(made[other])}")
                    above = [f"{row['above']:.1f} %" if row["percent"] is not None else "" for row in (few, best)]
                    host = f"{best['peaks'][1] / 2**30:.2f}" if best["percent"] is not None else ""
                    cells = [percent(made[key]) for key in ALONE] + [percent(few), above[0], f"{few['seconds']:.1f}",
                                                                     percent(made["zero"]), percent(best), above[1], host,
                                                                     f"{best['seconds']:.1f}", percent(made["coarse"]),
                                                                     f"{made['coarse']['seconds']:.2f}"]
                    print(f"| {name} | {bandwidth} | {100 * budget:.0f} % | " + " | ".join(cells) + " |", flush=True)
    for key, label in (("activations", "activations alone"), ("all", "all"), ("coarse", "all, coarsely")):
        gaps = sorted(row["plans"][key]["above"] for row in rows if row["plans"][key]["percent"] is not None)
        if gaps:
            print(f"# {label}: {len(gaps)} of {len(rows)} with a plan; above what is proved {gaps[len(gaps) // 2]:.1f} % "
                  f"in the median, {gaps[-1]:.1f} % at most")
            times = sorted(row["plans"][key]["seconds"] for row in rows)
            print(f"# {label}: {times[len(times) // 2]:.2f} s in the median, {times[-1]:.2f} s at most")
    for line in lost:
        print("# LOST: " + line)
    if options.output:
        with open(options.output, "w") as file:
            json.dump(rows, file, indent=1)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
