"""Runs every test of a built tree and counts; the standard library only.

    python3 tools/check.py --build build [--only SUITE ...]

Suites: format, rules, unit, lit, ctest, install, golden, steps. The closing line is
`N passed, M failed`, with `, K skipped` where something could not be run here;
what and why is named above it.
"""

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LLVM = "/usr/lib/llvm-22/bin"


class Tally:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

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
    places = ["frontends", "dialects", "passes", "compiler", "runtime"]
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


def check_unit(tally, build):
    # Not what was built for `ctest -L cuda`: that knows what can't run emulated.
    programs = sorted(set(glob.glob(os.path.join(build, "bin", "tmc-*-tests")))
                      - {os.path.join(build, "bin", "tmc-cuda-tests")})
    tally.test("unit: there are test programs", bool(programs))
    for program in programs:
        done = run([program, "--gtest_brief=1"], cwd=build)
        name = os.path.basename(program)
        ran = re.search(r"(\d+) tests? ran|PASSED\s+\] (\d+) test", done.stdout)
        passed = re.search(r"PASSED\s+\] (\d+) test", done.stdout)
        for failure in re.findall(r"^\[  FAILED  \] ([\w/.]+)",
                                  done.stdout, re.M):
            if name + ": " + failure not in tally.failed:
                tally.test(name + ": " + failure, False)
        for skip in set(re.findall(r"^\[  SKIPPED \] ([\w/.]+)",
                                   done.stdout, re.M)):
            tally.skipped.append(name + ": " + skip)
        tally.passed += int(passed.group(1)) if passed else 0
        if done.returncode != 0 or not ran:
            tally.test(name, False, done.stdout[-6000:])


def check_lit(tally, build):
    done = run([os.path.join(LLVM, "lit") if os.path.exists(
        os.path.join(LLVM, "lit")) else "lit-22", "-q", "--show-all",
        os.path.join(ROOT, "test")],
        env=dict(os.environ, TMC_BUILD=os.path.abspath(build)))
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
    # The unit suite has run the test programs already; the emulated cuda tests
    # take minutes and are for those who work on that backend: ctest -L cuda.
    done = run(["ctest", "--output-on-failure", "-E",
                r"^tmc-.*-tests$|^ir$|\.|^cuda-emulated"], cwd=build)
    tally.skipped.append("ctest cuda-emulated*: minutes each (ctest -L cuda)")
    if not os.path.exists("/usr/share/libonnx-testdata"):
        tally.skipped.append("ctest onnx node cases: no libonnx-testdata")
    for name, verdict in re.findall(
            r"Test +#\d+: (\S+) \.*\s*(Passed|\*\*\*\w+)", done.stdout):
        if "Skipped" in verdict:
            tally.skipped.append(name)
        else:
            tally.test(name, verdict == "Passed", done.stdout[-4000:])


def check_install(tally, build):
    """What `cmake --install` puts elsewhere compiles and trains by itself."""
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
    tally.test("install", done.returncode == 0, done.stdout[-4000:])


def check_golden(tally, build):
    done = run([sys.executable, os.path.join(ROOT, "test/golden/run.py"),
                "--tmc", os.path.join(build, "bin", "tmc")], cwd=build)
    rows = re.findall(r"^(PASS|FAIL): (.*?) \(", done.stdout, re.M)
    tally.test("golden: there are cases", bool(rows), done.stdout[-4000:])
    for verdict, name in rows:
        tally.test("golden " + name, verdict == "PASS")
    if done.returncode != 0:
        print(done.stdout[-8000:])
        tally.test("golden: the run itself",
                   any(verdict == "FAIL" for verdict, _ in rows))


def check_steps(tally, build):
    """Compiled steps against the interpreter and against themselves."""
    done = run([sys.executable, os.path.join(ROOT, "test/steps/run.py"),
                "--build", build], cwd=build)
    rows = re.findall(r"^(PASS|FAIL): (.*)$", done.stdout, re.M)
    tally.test("steps: there are cases", bool(rows), done.stdout[-4000:])
    for verdict, name in rows:
        tally.test("steps " + name, verdict == "PASS")
    if done.returncode != 0:
        print(done.stdout[-8000:])
        tally.test("steps: the run itself",
                   any(verdict == "FAIL" for verdict, _ in rows))


SUITES = [("format", check_format), ("rules", check_rules),
          ("unit", check_unit), ("lit", check_lit), ("ctest", check_ctest),
          ("install", check_install), ("golden", check_golden), ("steps", check_steps)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", action="append", default=[])
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    os.chdir(ROOT)
    tally = Tally()
    for name, suite in SUITES:
        if args.only and name not in args.only:
            continue
        start, before = time.time(), tally.passed + len(tally.failed)
        suite(tally, build)
        print("%-8s %5d tests %7.1f s" %
              (name, tally.passed + len(tally.failed) - before,
               time.time() - start), flush=True)
    for skip in tally.skipped:
        print("skipped: " + skip)
    line = "%d passed, %d failed" % (tally.passed, len(tally.failed))
    if tally.skipped:
        line += ", %d skipped" % len(tally.skipped)
    print(line)
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
