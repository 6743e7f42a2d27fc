"""Runs every test of a built tree and counts; the standard library only.

    python3 tools/check.py --build build [--only SUITE ...] [--full]

Suites: format, rules, tidy, unit, lit, ctest, install, golden, steps, emulated, fuzz, python.
Kernels and goldens run twice: as this build was configured, and as a processor with
AVX2 would run them. A suite of UNREAD that passed in this build folder runs again when
something changes that it depends on (tools/verdicts.py); --full runs all. The closing
line is `N passed, M failed`, with `, K skipped` where something could not be run here, or
takes longer than every change can wait and is left to --full; what and why is named above
it.
"""

import argparse
import concurrent.futures
import glob
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import classes
import docs
import escapes
import sequence
import verdicts

# What every processor with AVX2 runs.
AVX2_TARGET = "cpu:v3"

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Whoever builds, or runs what builds: two builds at once would spoil each other's files.
BUILDS = threading.Lock()
LLVM = "/usr/lib/llvm-22/bin"


class Tally:
    def __init__(self, full):
        self.passed = 0
        self.failed = []
        self.skipped = []
        self.times = []  # (seconds, case)
        self.kept = 0  # Of those that passed: in an earlier run.
        self.full = full

    def is_left(self, what):
        """Whether `what` is left to --full; it is named at the end."""
        if not self.full:
            self.skipped.append("%s (left to --full)" % what)
        return not self.full

    def test(self, name, ok, output=""):
        if ok:
            self.passed += 1
            return
        self.failed.append(name)
        print("FAILED: %s\n%s" % (name, output.strip()), flush=True)


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **more)


def tracked(*patterns):
    out = run(["git", "-C", ROOT, "ls-files", "--", *patterns]).stdout
    return [os.path.join(ROOT, line) for line in out.splitlines()]


def check_format(tally, build):
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    if not tool:
        tally.skipped.append("format: no clang-format-14")
        return
    files = tracked("*.cpp", "*.h", "*.cu", "*.cuh")
    done = run([tool, "--dry-run", "--Werror", *files])
    tally.test("format", done.returncode == 0, done.stdout[-4000:])


def check_rules(tally, build):
    """No model's or parameter's name in what must work for any model."""
    places = ["frontends", "dialects", "passes", "compiler", "driver", "runtime"]
    names = (r"(?<![a-z])(gpt2|gpt-2|resnet|llama|bert|mistral|wte|wpe|c_attn|"
             r"c_fc|lm_head)(?![a-z])")
    files = [f for f in tracked(*[p + "/**" for p in places], "tools/*.cpp")
             if f.endswith((".cpp", ".h", ".td", ".cu", ".in"))]
    bad = []
    for path in files:
        with open(path) as text:
            for number, line in enumerate(text, 1):
                # Comments may name an example.
                code = line.split("//")[0]
                if re.search(names, code, re.I) and "///" not in line:
                    bad.append("%s:%d: %s" % (os.path.relpath(path, ROOT),
                                              number, line.strip()))
    # Records explain themselves with examples; only code counts there.
    bad = [b for b in bad if ".td:" not in b]
    tally.test("rules: no model by its name", not bad, "\n".join(bad))
    check_includes(tally, build)
    check_lengths(tally)
    check_classes(tally)
    check_picture(tally)
    check_pages(tally)
    check_names(tally)
    check_order(tally)


def read(path):
    """The name of a file from the root, and its text."""
    with open(path) as text:
        return os.path.relpath(path, ROOT), text.read()


def check_order(tally):
    """The order of operations doesn't depend on the compiler that compiles tmc."""
    rooms = ("compiler", "dialects", "driver", "frontends", "passes", "tools", "test/unit")
    bad = sequence.faults(map(read, tracked(*[room + "/**" + end for room in rooms for end in (".cpp", ".h")])))
    tally.test("rules: operations have one order (tools/sequence.py)", not bad, "\n".join(bad))


def check_names(tally):
    """Nobody prints a text of a file past the function of its language."""
    rooms = ("compiler", "driver", "frontends", "passes", "dialects", "tools", "runtime")
    bad = escapes.faults(map(read, tracked(*[room + "/**" + end for room in rooms for end in (".cpp", ".h", ".cu")])))
    tally.test("rules: texts of files are escaped (tools/escapes.py)", not bad, "\n".join(bad))


# Who may include what: a room, and the rooms below it. Within a room anything goes.
# The runtime is a house of its own; the compiler shares what kernels are called and
# how files of values look.
ROOMS = {
    "runtime/kernels": [],
    "runtime/step": ["runtime/kernels", "runtime/tmc.h"],
    # Between processes. A step for one device has nothing of it.
    "runtime/network": ["runtime/kernels", "runtime/step"],
    "runtime/cpu": ["runtime/kernels", "runtime/step"],
    # Updates on the host beside a card are the cpu backend's.
    "runtime/cuda": ["runtime/kernels", "runtime/step", "runtime/cpu"],
    "runtime/tmc.h": [],
    # Names are shown alike by the compiler and by a trainer.
    "compiler/support": ["runtime/kernels"],
    # A plan's way: the model states and checks, bounds and packings build on it, the
    # search on both, the driver on all. The peers get no more than the model and the
    # linear problem with its schedules, in which they say their answers; the driver
    # runs them by name.
    "compiler/planning/model": ["compiler/support", "runtime/kernels"],
    "compiler/planning/bound": ["compiler/planning/model"],
    "compiler/planning/pack": ["compiler/planning/model"],
    "compiler/planning/search": ["compiler/planning/model", "compiler/planning/bound",
                                 "compiler/planning/pack"],
    "compiler/planning/moves": ["compiler/planning/model"],
    "compiler/planning/peers": ["compiler/planning/model", "compiler/planning/search",
                                "compiler/planning/moves"],
    "compiler/planning/driver": ["compiler/planning/model", "compiler/planning/bound",
                                 "compiler/planning/pack", "compiler/planning/search",
                                 "compiler/planning/moves", "compiler/planning/peers",
                                 "compiler/support"],
    # What the compiler doesn't link: exact solvers, peers that need a library, problems
    # of any size, the files of tmc-solve. tmc-solve and the tests do.
    "compiler/planning/laboratory": ["compiler/planning/model", "compiler/planning/pack",
                                     "compiler/planning/search", "compiler/planning/moves",
                                     "compiler/planning/peers", "compiler/support",
                                     "runtime/kernels", "runtime/step/JsonReader.h"],
    "compiler/target": ["compiler/support", "runtime/kernels"],
    "dialects": ["compiler/target", "compiler/support", "runtime/kernels"],
    # What operators mean is said once; a format knows that, and no other format.
    "frontends/common": ["frontends/Checked.h", "dialects", "compiler/support"],
    "frontends/onnx": ["frontends/common", "frontends/Checked.h", "frontends/SafeFile.h",
                       "dialects", "compiler/support"],
    "frontends/torch": ["frontends/common", "frontends/Checked.h", "frontends/SafeFile.h",
                        "dialects", "compiler/support"],
    "frontends": ["compiler/support"],
    "compiler/analysis": ["dialects", "compiler/planning", "compiler/target",
                          "compiler/support"],
    "compiler/reference": ["compiler/analysis", "dialects", "compiler/support",
                           "runtime/kernels"],
    "compiler/emit": ["compiler/analysis", "dialects", "compiler/target",
                      "compiler/support", "runtime/kernels"],
    "compiler/report": ["compiler/emit", "compiler/analysis", "compiler/planning",
                        "compiler/target", "compiler/support", "dialects",
                        "runtime/kernels"],
    "passes": ["compiler/analysis", "compiler/planning", "compiler/target",
               "compiler/support", "dialects", "runtime/kernels"],
    "driver/pipeline": ["passes", "frontends", "dialects", "compiler/report",
                        "compiler/emit", "compiler/analysis", "compiler/planning",
                        "compiler/target", "compiler/support", "runtime/kernels",
                        "runtime/step", "runtime/network"],
    "driver/verify": ["compiler/reference", "driver/pipeline", "compiler/emit", "dialects",
                      "compiler/support", "runtime/tmc.h", "runtime/kernels",
                      "runtime/step"],
    # Weights alone: no model is compiled.
    "driver/merge": ["driver/pipeline/Folder.h", "driver/pipeline/Interrupt.h",
                     "compiler/support", "runtime/kernels", "runtime/step"],
    "driver/calibrate": ["driver/pipeline", "compiler/report", "compiler/emit",
                         "compiler/target", "compiler/support", "dialects",
                         "runtime/kernels"],
    "tools": ["compiler", "driver", "passes", "dialects", "frontends", "runtime/kernels",
              "runtime/step", "runtime/tmc.h"],
    "test": ["compiler", "driver", "passes", "dialects", "frontends", "runtime", "tools"],
}


def below(path, room):
    return path == room or path.startswith(room + "/")


def check_includes(tally, build):
    """Includes point one way: down the rooms."""
    bad = []
    for path in tracked("*.cpp", "*.h", "*.cu", "*.td", "*.inc"):
        name = os.path.relpath(path, ROOT)
        room = next((r for r in ROOMS if below(name, r)), None)
        if room is None:
            continue
        with open(path) as text:
            for number, line in enumerate(text, 1):
                found = re.match(r'\s*#?include "([\w/.-]+)"', line)
                if not found or "/" not in found.group(1):
                    continue
                target = found.group(1)
                if not any(below(target, top) for top in
                           ("compiler", "dialects", "driver", "passes", "frontends",
                            "runtime", "tools", "test")):
                    continue  # A library's.
                if not any(below(target, r) for r in [room] + ROOMS[room]):
                    bad.append("%s:%d: %s may not include %s" %
                               (name, number, room, target))
    tally.test("rules: includes point one way", not bad, "\n".join(bad))


# The planner is read more often than any other part: no file of it has as many lines. No
# function of these places has as many.
PLANNER = "compiler/planning"
SHORT_FUNCTIONS = ["compiler", "dialects", "driver", "frontends", "passes", "runtime", "tools"]
MOST_FILE_LINES, MOST_FUNCTION_LINES = 500, 100


def functions(lines):
    """(first line, lines) of each function, as clang-format lays it out: a header with
    parentheses that ends in an opening brace, and the brace that closes it at its own
    indentation, outside of any function or inside of a class."""
    number = 0
    while number < len(lines):
        line = lines[number]
        indent = len(line) - len(line.lstrip())
        starts = re.match(r"(  )?[A-Za-z_~\[:]", line) and not re.match(
            r" *(public:|private:|protected:|namespace |class |struct |enum |union |using |#)", line)
        if not starts:
            number += 1
            continue
        end = number
        while end + 1 < len(lines) and not lines[end].rstrip().endswith(("{", ";", "}")):
            end += 1
        header = " ".join(lines[number:end + 1])
        if "(" not in header or not lines[end].rstrip().endswith("{"):
            number = end + 1
            continue
        close = end + 1
        while close < len(lines) and not re.match(" {%d}}" % indent, lines[close]):
            close += 1
        yield number + 1, close - number + 1
        number = close + 1


def check_lengths(tally):
    """Files of the planner and functions that are too long."""
    long_files, long_functions = [], []
    for path in tracked(*[place + "/**" for place in SHORT_FUNCTIONS]):
        if not path.endswith((".cpp", ".h", ".cu")):
            continue
        with open(path) as text:
            lines = text.read().splitlines()
        name = os.path.relpath(path, ROOT)
        if below(name, PLANNER) and len(lines) >= MOST_FILE_LINES:
            long_files.append("%s has %d lines" % (name, len(lines)))
        long_functions += ["%s:%d: a function of %d lines" % (name, number, count)
                           for number, count in functions(lines) if count >= MOST_FUNCTION_LINES]
    tally.test("rules: no long file in " + PLANNER, not long_files, "\n".join(long_files))
    tally.test("rules: no long function in " + ", ".join(SHORT_FUNCTIONS), not long_functions,
               "\n".join(long_functions))


def check_classes(tally):
    """Classes with too many functions: tools/classes.py counts."""
    bad = []
    for path in tracked(*[place + "/**" for place in SHORT_FUNCTIONS]):
        if path.endswith((".cpp", ".h", ".cu")):
            with open(path) as text:
                bad += classes.too_many(os.path.relpath(path, ROOT), text.read())
    tally.test("rules: no class of more than %d functions" % classes.MOST_FUNCTIONS, not bad, "\n".join(bad))


def check_picture(tally):
    """docs/planning.md draws the planner's flow: each box is a folder of it, each name
    in a box a file, and each folder has a box."""
    bad, boxes = [], set()
    with open(os.path.join(ROOT, "docs/planning.md")) as text:
        picture = re.search(r"(?:^(?: {4}.*)?\n)*^ +\+- .*\n(?:^ {4}.*\n)+", text.read(), re.M).group(0)
    folders = {os.path.basename(os.path.dirname(p)) for p in tracked(PLANNER + "/**")
               if os.path.dirname(os.path.relpath(p, ROOT)) != PLANNER}
    files = {os.path.splitext(os.path.basename(p))[0] for p in tracked(PLANNER + "/**")}
    for line in picture.splitlines():
        boxes |= set(re.findall(r"\+- (\w+)/ -", line))
        inside = "|".join(line.split("|")[1:])
        bad += ["%s is no file of %s" % (word, PLANNER)
                for word in re.findall(r"\b[A-Z][a-z]\w*", inside) if word not in files]
    bad += ["%s/ is no folder of %s" % (box, PLANNER) for box in sorted(boxes - folders)]
    bad += ["%s/ has no box" % folder for folder in sorted(folders - boxes)]
    tally.test("rules: the picture of docs/planning.md shows what is there", not bad,
               "\n".join(bad))


# A page that is read at a glance: README.md is a door, and sentences are short.
MOST_README_LINES, MOST_README_BYTES, MOST_MEAN_WORDS = 120, 7000, 20


def check_pages(tally):
    """README.md and docs/ are short where they can be, and docs/architecture.md shows the
    table of rooms. `tools/docs.py --words` says how sentences are counted."""
    with open(os.path.join(ROOT, "README.md")) as text:
        readme = text.read()
    lines, count = len(readme.splitlines()), len(readme.encode())
    tally.test("rules: README.md is a door", lines <= MOST_README_LINES and count <= MOST_README_BYTES,
               "%d lines of at most %d, %d bytes of at most %d" %
               (lines, MOST_README_LINES, count, MOST_README_BYTES))
    pages = docs.pages()
    bad = ["%s: %.1f words in the mean sentence, at most %d" % (name, mean, MOST_MEAN_WORDS)
           for name, mean in (("README.md", docs.mean_words(pages[:1])), ("docs/", docs.mean_words(pages[1:])))
           if mean > MOST_MEAN_WORDS]
    tally.test("rules: sentences of README.md and docs/ are short", not bad, "\n".join(bad))
    bad = docs.broken_links()
    tally.test("rules: links of README.md and docs/ lead somewhere", not bad, "\n".join(bad))
    rows = ["| `%s` | %s |" % (room, ", ".join("`%s`" % each for each in may) or "none")
            for room, may in ROOMS.items()]
    with open(os.path.join(ROOT, "docs/architecture.md")) as text:
        shown = re.findall(r"^\| `[\w/.]+` \| (?:`[\w/.]+`(?:, )?|none)+ \|$", text.read(), re.M)
    tally.test("rules: docs/architecture.md shows the rooms", shown == rows,
               "\n".join(sorted(set(rows) ^ set(shown))))


def check_tidy(tally, build):
    """clang-tidy over what a change touches."""
    done = run([sys.executable, os.path.join(ROOT, "tools/tidy.py"), "--build", build])
    if done.returncode == 74:
        tally.skipped.append("tidy: no clang-tidy-22")
    else:
        tally.test("tidy", done.returncode == 0, done.stdout[-6000:])


# Shares of a program's tests for each core: tests differ in length, and the more shares
# there are, the less a core waits for the last one.
SHARES = 4


def each_shard(programs, arguments, **options):
    """(program, what its run gave, times, skipped tests) of GoogleTest programs, in order:
    each one's tests are shared among several processes, as many at a time as there are
    cores. The times are those of Tally."""
    cores = os.cpu_count() or 1
    shards = SHARES * cores
    env = options.pop("env", os.environ)

    def part(job, folder):
        program, shard = job
        name = os.path.basename(program)
        report = os.path.join(folder, "%s.%d" % (name, shard))
        done = run([program, *arguments, "--gtest_output=json:" + report], **options,
                   env=dict(env, GTEST_TOTAL_SHARDS=str(shards), GTEST_SHARD_INDEX=str(shard)))
        cases = [("%s.%s" % (case["classname"], case["name"]), case)
                 for suite in report_of(report).get("testsuites", []) for case in suite["testsuite"]]
        return (program, done, [(float(case["time"].rstrip("s")), name + " " + of) for of, case in cases],
                [of for of, case in cases if case.get("result") == "SKIPPED"])

    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(cores) as pool:
        yield from pool.map(lambda job: part(job, folder),
                            [(program, shard) for program in programs for shard in range(shards)])


def report_of(path):
    """What a test program wrote to `path`; nothing if it ended before."""
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def check_unit(tally, build):
    # Not what was built for `ctest -L cuda`: that knows what can't run emulated.
    tally.is_left("unit: two thirds of some tests' random problems")
    programs = sorted(set(glob.glob(os.path.join(build, "bin", "tmc-*-tests")))
                      - {os.path.join(build, "bin", "tmc-cuda-tests")})
    tally.test("unit: there are test programs", bool(programs))
    for program, done, times, skipped in each_shard(programs, ["--gtest_brief=1"], cwd=build):
        name = os.path.basename(program)
        tally.times += times
        ran = re.search(r"(\d+) tests? ran|PASSED\s+\] (\d+) test", done.stdout)
        passed = re.search(r"PASSED\s+\] (\d+) test", done.stdout)
        for failure in re.findall(r"^\[  FAILED  \] ([\w/.]+)",
                                  done.stdout, re.M):
            if name + ": " + failure not in tally.failed:
                tally.test(name + ": " + failure, False)
        tally.skipped += [name + ": " + skip for skip in skipped]
        tally.passed += int(passed.group(1)) if passed else 0
        if done.returncode != 0 or not ran:
            tally.test(name, False, done.stdout[-6000:])


def check_lit(tally, build):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "lit.json")
        done = run([os.path.join(LLVM, "lit") if os.path.exists(
            os.path.join(LLVM, "lit")) else "lit-22", "-q", "--show-all", "--output", report,
            os.path.join(ROOT, "test")],
            env=dict(os.environ, TMC_BUILD=os.path.abspath(build)))
        tally.times += [(case["elapsed"], case["name"].replace("tmc :: ", "lit "))
                        for case in report_of(report).get("tests", [])]
    results = re.findall(r"^(PASS|FAIL|XFAIL|XPASS|UNRESOLVED|UNSUPPORTED|"
                         r"TIMEOUT): (.*?) \(\d+ of", done.stdout, re.M)
    tally.test("lit: there are tests", bool(results), done.stdout[-3000:])
    for verdict, name in results:
        if verdict == "UNSUPPORTED":
            tally.skipped.append(name)
        else:
            tally.test(name, verdict in ("PASS", "XFAIL"))
    if any(v in ("FAIL", "UNRESOLVED", "TIMEOUT") for v, _ in results):
        print(done.stdout[-8000:])


def check_ctest(tally, build):
    """What only ctest knows of: comparisons' own tests, compilations by nvcc."""
    # The unit suite has run the test programs already; the emulated suite runs the
    # cuda ones.
    command = ["ctest", "--output-on-failure", "-j", str(os.cpu_count() or 1)]
    if tally.is_left("ctest cuda-matrix*: every CUDA architecture, minutes"):
        command += ["-LE", "full"]
    with BUILDS:
        done = run([*command, "-E", r"^tmc-.*-tests$|^ir$|\.|^cuda-emulated"], cwd=build)
    if not os.path.exists("/usr/share/libonnx-testdata"):
        tally.skipped.append("ctest onnx node cases: no libonnx-testdata")
    for name, verdict in re.findall(
            r"Test +#\d+: (\S+) \.*\s*(Passed|\*\*\*\w+)", done.stdout):
        if "Skipped" in verdict:
            tally.skipped.append(name)
        else:
            tally.test(name, verdict == "Passed", done.stdout[-4000:])


def search_paths(*places):
    """Programs and libraries in `places` that look for libraries where it depends on the
    user's directory: a part of their RPATH or RUNPATH is empty or relative."""
    bad, seen = [], 0
    for place in places:
        for path in [place] if os.path.isfile(place) else glob.glob(os.path.join(place, "**"), recursive=True):
            if not os.path.isfile(path) or path.endswith((".a", ".o")):
                continue
            with open(path, "rb") as file:
                if file.read(4) != b"\x7fELF":
                    continue
            seen += 1
            said = run(["readelf", "-dW", path]).stdout
            for parts in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", said):
                if not all(part.startswith("/") for part in parts.split(":")):
                    bad.append("%s has '%s'" % (path, parts))
    return bad if seen else ["there is no program"]


def check_install(tally, build):
    """What `cmake --install` puts elsewhere compiles and trains by itself."""
    bad = search_paths(os.path.join(build, "bin"), os.path.join(build, "lib"))
    tally.test("install: programs of the build search no relative place", not bad, "\n".join(bad))
    with tempfile.TemporaryDirectory() as place:
        prefix, step = os.path.join(place, "prefix"), os.path.join(place, "step")
        done = run(["cmake", "--install", build, "--prefix", prefix])
        data = os.path.join(ROOT, "examples/data/digits-")
        for command in (
                [os.path.join(prefix, "bin", "tmc"), "compile",
                 os.path.join(ROOT, "examples/mlp.onnx"), "--target", "cpu",
                 "-o", step],
                [os.path.join(step, "train"), "--data",
                 "image=" + data + "image.npy", "--data",
                 "label=" + data + "label.npy", "--steps", "2", "--init",
                 "random:1"]):
            if done.returncode == 0:
                done = run(command, cwd=place)
        bad = search_paths(prefix, step)
    tally.test("install", done.returncode == 0, done.stdout[-4000:])
    tally.test("install: programs and steps search no relative place", not bad, "\n".join(bad))


def resolved_target(build):
    """What --target cpu is in this build."""
    with open(os.path.join(build, "CMakeCache.txt")) as cache:
        return "cpu:" + re.search(r"^TMC_CPU_TARGET:\w+=(.*)$", cache.read(),
                                  re.M).group(1)


def rows_of(tally, suite, script, build, *flags):
    """The PASS, FAIL and SKIP lines of a script of ours."""
    start = time.time()
    done = run([sys.executable, os.path.join(ROOT, script), *flags], cwd=build)
    tally.times.append((time.time() - start, "%s: all of %s" % (suite, script)))
    # Of a failure, what follows up to the next verdict.
    rows = re.findall(r"^(PASS|FAIL|SKIP): (.*?)(?: \([\d.]+ s\))?$"
                      r"((?:\n(?!(?:PASS|FAIL|SKIP|TIME): ).*)*)", done.stdout, re.M)
    tally.times += [(float(seconds), "%s %s" % (suite, name)) for name, seconds in
                    re.findall(r"^(?:PASS|FAIL|TIME): (.*) \(([\d.]+) s\)$", done.stdout, re.M)]
    tally.test(suite + ": there are cases", bool(rows), done.stdout[-4000:])
    for verdict, name, text in rows:
        if verdict == "SKIP":
            tally.skipped.append(suite + " " + name)
        else:
            tally.test(suite + " " + name, verdict == "PASS", text[-4000:])
    if done.returncode != 0 and all(verdict != "FAIL" for verdict, _, _ in rows):
        tally.test(suite + ": the run itself", False, done.stdout[-8000:])


def check_golden(tally, build):
    """Compiled steps against PyTorch, and the comparison against planted faults."""
    tmc = ["--tmc", os.path.join(build, "bin", "tmc")]
    # The format that a model was exported in doesn't depend on instructions: one target
    # runs all formats, the other one the first of each model. The bits of updates don't
    # either, as the steps suite shows: there one model has all optimizers.
    if resolved_target(build) != AVX2_TARGET:
        rows_of(tally, "golden", "test/golden/run.py", build, *tmc, "--first")
        if not tally.is_left("golden: autocast with this machine's instructions"):
            rows_of(tally, "golden", "test/golden/autocast.py", build, *tmc)
    rows_of(tally, "golden " + AVX2_TARGET, "test/golden/run.py", build, *tmc,
            "--target", AVX2_TARGET, "--planted")
    rows_of(tally, "golden " + AVX2_TARGET, "test/golden/autocast.py", build, *tmc,
            "--target", AVX2_TARGET, "--planted")
    # The text of updates is one for all instruction sets (test/steps/run.py compares them).
    rows_of(tally, "golden", "test/golden/formats.py", build, *tmc, "--planted")
    rows_of(tally, "golden", "test/golden/lora.py", build, *tmc)
    rows_of(tally, "golden", "test/golden/qlora.py", build, *tmc)
    rows_of(tally, "golden", "test/golden/jsonl.py", build, *tmc)


def check_steps(tally, build):
    """Compiled steps against the interpreter and against themselves."""
    for suite, script in ("steps", "run"), ("offload", "offload"), ("pieces", "pieces"), ("names", "names"), (
            "evaluation", "evaluation"):
        rows_of(tally, suite, "test/steps/%s.py" % script, build, "--build", build)
    kills = "6" if tally.is_left("ranks: 44 of 50 kills") else "50"
    rows_of(tally, "ranks", "test/steps/ranks.py", build, "--build", build, "--kills", kills)
    tally.is_left("steps: 50 % and 75 % of the room for 16 and 8 bits; two offloads in micro-batches")
    # The first draw takes as long as all of the share.
    draws = ["8", "--from", "1"] if tally.is_left("draws: 59 of 67") else ["60", "--found"]
    rows_of(tally, "draws", "test/steps/draws.py", build, "--build", build, "--draws", *draws)
    # Two groups: one that moves nothing, and one with moves and levers as tmc chooses.
    claims = ["--build", build, "--draws", "10" if tally.is_left("claims: 190 of 200 draws") else "200"]
    rows_of(tally, "claims", "test/steps/claims.py", build, *claims)
    rows_of(tally, "false claims", "test/steps/claims.py", build, *claims, "--planted")
    # Half of the kills by io_uring, half by pread and pwrite.
    kills = 5 if tally.is_left("faults: 100 kills") else 50
    rows_of(tally, "faults", "test/steps/faults.py", build, "--build", build,
            "--kills", str(kills))
    if not tally.is_left("steps %s under budgets: a few minutes" % AVX2_TARGET):
        rows_of(tally, "steps " + AVX2_TARGET, "test/steps/run.py", build,
                "--build", build, "--target", AVX2_TARGET)


def check_emulated(tally, build):
    """The cuda backend in the emulator (docs/cuda.md): its kernels' unit tests,
    planted faults, and emitted steps."""
    with BUILDS:
        done = run(["cmake", "--build", build, "--target", "tmc-cuda-tests"])
    tally.test("emulated: the build", done.returncode == 0, done.stdout[-4000:])
    if done.returncode != 0:
        return
    few = tally.is_left("emulated: 50 seeds, all models, bench/gpu's scripts")

    def kernels(name, tests, **more):
        for _, done, times, _ in each_shard([os.path.join(build, "bin", "tmc-cuda-tests")],
                                  ["--gtest_brief=1", "--gtest_filter=" + tests],
                                  env=dict(os.environ, **more)):
            tally.times += [(seconds, "emulated %s, %s" % (case, name)) for seconds, case in times]
            passed = re.search(r"PASSED\s+\] (\d+) test", done.stdout)
            tally.passed += int(passed.group(1)) if passed else 0
            if done.returncode != 0 or not passed:
                tally.test("emulated: " + name, False, done.stdout[-6000:])

    # What only the cpu backend has; and which fault is named depends on the order. A wait
    # that is left out on purpose is a race, which the emulator names by itself.
    without = ("-*HighWater*:*GuardPages*:*AllocationHook*:*CountsItsMemory"
               ":*EveryWaitIsNeeded")
    for seed in [2] if few else range(50):
        kernels("kernels, seed %d" % seed,
                without + (":*ReportsAnIndex*" if seed else ""),
                TMC_EMULATOR_SEED=str(seed))
    # sm_75 gives a block 64 KiB of shared memory: other tiles.
    kernels("attention in 64 KiB", "Attention.*-*WidestHeads*",
            TMC_EMULATOR_SHARED_KIB="64")
    rows_of(tally, "emulated", "test/cuda/steps.py", build,
            "--tmc", os.path.join(build, "bin", "tmc"),
            "--library", os.path.join(build, "lib", "libTmcCudaEmulated.a"),
            *([] if few else ["--full"]))
    rows_of(tally, "emulated", "test/cuda/ranks.py", build, "--build", build,
            *([] if few else ["--full"]))
    if not few:
        with BUILDS:
            done = run(["ctest", "--output-on-failure", "-R", "^cuda-emulated-first-run"],
                       cwd=build)
        tally.test("emulated: bench/gpu's scripts", done.returncode == 0,
                   done.stdout[-4000:])


def check_fuzz(tally, build):
    """The readers of model files: the same changed models each time; with --full all of
    them, and a minute of what libFuzzer draws from a new seed."""
    few = tally.is_left("fuzz: seven eighths of the changed integers; a minute of a new seed")
    drawn = ["--edges", "8", "--runs", "8000"] if few else [
        "--seconds", "60", "--seed", str(secrets.randbelow(2**31))]
    done = run([sys.executable, os.path.join(ROOT, "bench/fuzz/run.py"), "--build", build,
                *drawn])
    if done.returncode == 77:
        tally.skipped.append("fuzz: no clang with libFuzzer")
    else:
        tally.test("fuzz", done.returncode == 0, done.stdout[-6000:])


def check_python(tally, build):
    """The package for Python; TMC_PYTHON names an interpreter with numpy, torch and
    transformers, where that of this program lacks them."""
    rows_of(tally, "python", "python/tests/run.py", build, "--tmc", os.path.join(build, "bin", "tmc"))


# In the order in which they start: the longest first, after what says something at once.
SUITES = [("format", check_format), ("rules", check_rules), ("steps", check_steps),
          ("golden", check_golden), ("emulated", check_emulated), ("unit", check_unit),
          ("ctest", check_ctest), ("lit", check_lit), ("tidy", check_tidy),
          ("fuzz", check_fuzz), ("install", check_install), ("python", check_python)]
# Suites with verdicts that are kept, and the folders and files that each doesn't read. A
# folder of sources is read through programs, which count by themselves.
BUILT = ["compiler", "dialects", "passes", "frontends"]
TEXTS = ["README.md", "docs", "bench", ".clang-format", ".clang-tidy"]
LIT = ["test/compiler", "test/dialects", "test/docs", "test/passes", "test/tools"]
STEPS = BUILT + TEXTS + LIT + ["test/unit"]
UNREAD = {"unit": BUILT + TEXTS + ["test/golden", "test/steps", "test/cuda", "bin/tmc-cuda-tests"],
          "lit": ["bin/tmc-*-tests"],
          "golden": STEPS + ["test/steps", "test/cuda", "test/frontends", "bin/tmc-*-tests"],
          "steps": STEPS + ["test/cuda", "bin/tmc-*-tests"],
          "emulated": STEPS + ["test/frontends"]}
# Cases of each suite that are shown with their times.
SLOWEST = 10
# At a time. Each suite keeps all cores busy by itself, but for its last test: then
# another one does.
SUITES_AT_A_TIME = 2


def check_anew(keeper, suite, check, tally, build):
    """Runs a suite, unless it passed with what it reads today."""
    states = keeper.states(UNREAD[suite])
    counts = keeper.kept(suite, states)
    if counts:
        tally.passed = tally.kept = counts["passed"]
        tally.skipped = counts["skipped"]
        return
    check(tally, build)
    if not tally.failed:
        keeper.keep(suite, states, {"passed": tally.passed, "skipped": tally.skipped}, UNREAD[suite])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--full", action="store_true",
                        help="also what takes longer than every change can wait")
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    os.chdir(ROOT)
    # Not the user's; and what one suite has compiled no other compiles again.
    os.environ["XDG_CACHE_HOME"] = os.path.join(build, "cache")
    if args.full:
        os.environ["TMC_TEST_FULL"] = "1"  # test/unit/Rounds.h
    keeper = verdicts.Verdicts(ROOT, build)

    def one(suite):
        name, check = suite
        tally, start = Tally(args.full), time.time()
        if suite in UNREAD and not args.full:
            check_anew(keeper, suite, check, tally, build)
        else:
            check(tally, build)
        print("%-8s %5d tests %7.1f s" % (name, tally.passed + len(tally.failed),
                                          time.time() - start), flush=True)
        for seconds, case in sorted(tally.times, reverse=True)[:SLOWEST]:
            print("    %7.1f s  %s" % (seconds, case), flush=True)
        return tally

    with concurrent.futures.ThreadPoolExecutor(SUITES_AT_A_TIME) as pool:
        tallies = list(pool.map(one, [suite for suite in SUITES
                                      if not args.only or suite[0] in args.only]))
    passed = sum(tally.passed for tally in tallies)
    failed = sum(len(tally.failed) for tally in tallies)
    skipped = [skip for tally in tallies for skip in tally.skipped]
    for skip in skipped:
        print("skipped: " + skip)
    kept = sum(tally.kept for tally in tallies)
    if kept:
        print("kept: %d of those that passed did so in an earlier run of this folder, with the same"
              " programs and files" % kept)
    line = "%d passed, %d failed" % (passed, failed)
    if skipped:
        line += ", %d skipped" % len(skipped)
    print(line)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
