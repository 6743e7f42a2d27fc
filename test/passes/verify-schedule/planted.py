"""Plants faults into the placed program of a step with moves, one at a time, and wants
each of them named.

    planted.py TMC MODEL [flags of tmc compile]

A fault is a wait that the kernels or a stash need, dropped; a record, or a done, dropped; a
copy in front of the kernel that makes its source; a copy on the engine of the other
direction; a buffer moved onto another that is alive. Prints how many were planted, by kind.
"""

import re
import subprocess
import sys


def run(command, text=None):
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout, done.stderr


def faults(lines):
    """(kind, lines) of each fault."""
    for i, line in enumerate(lines):
        without = lines[:i] + lines[i + 1:]
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if re.search(r"mem\.wait \d+ on compute", line) and "mem.done" in following:
            yield "wait before a done", without
        stash = re.search(r"mem\.wait \d+ on d2h", line) and re.search(r"mem\.copy (%\w+) to", following)
        if stash:
            # What was made since d2h waited last.
            since = max((j for j in range(i) if re.search(r"mem\.wait \d+ on d2h", lines[j])), default=0)
            if any(re.search(rf"-> \(.*{stash[1]}\b", each) for each in lines[since:i]):
                yield "wait before a stash", without
        update = re.search(r"mem\.wait (\d+) on host", line)
        if update:
            # The last copy that makes what the update reads: it says that those before are over.
            at = next(j for j, each in enumerate(lines) if re.search(rf"mem\.record {update[1]} on", each))
            made = re.search(r"mem\.copy %\w+ to (%\w+) on d2h", lines[at - 1])
            until = next(j for j in range(i, len(lines)) if "mem.launch" in lines[j])
            launch, between = lines[until], "\n".join(lines[i + 1:until])
            if made and "on host" not in between and re.search(rf"\({'[^)]*'}{made[1]}\b", launch):
                yield "wait before an update", without
        if re.search(r"mem\.record \d+ on (d2h|h2d|host)", line):
            yield "record", without
        if "mem.done" in line:
            yield "done", without
        copy = re.search(r"mem\.copy (%\w+) to (%\w+) on (d2h|h2d)", line)
        if copy:
            other = "h2d" if copy[3] == "d2h" else "d2h"
            yield "engine", lines[:i] + [line.replace(f"on {copy[3]}", f"on {other}")] + lines[i + 1:]
        if copy and copy[3] == "d2h":
            makers = [j for j in range(i) if re.search(rf"-> \(.*{copy[1]}\b", lines[j])]
            if makers:
                j = makers[-1]
                yield "copy before its source", lines[:j] + [line, lines[i + 1], lines[j]] + lines[j + 1:i] + lines[i + 2:]
            home = next(k for k, each in enumerate(lines) if "persistent" in each and "#mem.space" not in each
                        and "mem.buffer" in each)
            place = re.search(r"offset = (\d+)", lines[home])[1]
            mine = next((k for k, each in enumerate(lines) if each.strip().startswith(f"{copy[1]} = mem.buffer")), None)
            if mine is not None and "persistent" not in lines[mine]:
                moved = re.sub(r"offset = \d+", f"offset = {place}", lines[mine])
                yield "buffer", lines[:mine] + [moved] + lines[mine + 1:]


def main():
    tmc, opt, model, *flags = sys.argv[1:]
    code, program, text = run([tmc, "compile", model, *flags, "--to=place"])
    if code:
        sys.exit(f"tmc ended with {code}: {text}")
    lines = [line for line in program.split("\n") if not line.startswith("#loc")]
    lines = [re.sub(r" loc\(.*$", "", line) for line in lines]
    planted = {}
    for kind, each in faults(lines):
        planted.setdefault(kind, []).append("\n".join(each))
    # Some of each kind, over the whole step.
    chosen = [(kind, each) for kind, list_ in planted.items() for each in list_[::max(1, len(list_) // 20)]]
    wanted = ["-split-input-file", "-pass-pipeline=builtin.module(mem.program(tmc-verify-schedule))", "-o", "/dev/null"]
    code, _, text = run([opt, *wanted], "\n".join(lines))
    if code:
        sys.exit(f"the step itself isn't right:\n{text}")
    code, _, text = run([opt, *wanted], "\n// -----\n".join(each for _, each in chosen))
    at = [int(number) for number in re.findall(r"^[^:\n]*:(\d+):\d+: error: a defect: it ", text, re.M)]
    begin = 1
    counts = {}
    for kind, each in chosen:
        end = begin + each.count("\n") + 1
        if not any(begin <= line <= end for line in at):
            sys.exit(f"not named: {kind}\n")
        counts[kind] = counts.get(kind, 0) + 1
        begin = end + 1
    print(f"{len(chosen)} faults, each named:", ", ".join(f"{n} x {kind}" for kind, n in sorted(counts.items())))


main()
