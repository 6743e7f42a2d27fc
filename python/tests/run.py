"""Runs the tests of the package: a line for each, as tools/check.py reads them.

    python3 python/tests/run.py --tmc build/bin/tmc [NAME ...]

A NAME is a part of a test's name. TMC_PYTHON names the interpreter to run them with. A test that
needs a package that it lacks is skipped, and says which.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


class Lines(unittest.TestResult):
    """Prints PASS, FAIL and SKIP with times."""

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.start = time.monotonic()
        self.failed = False

    def name(self, test: object) -> str:
        # A test of a class or a module that couldn't be set up has a name of another form.
        return test.id() if isinstance(test, unittest.TestCase) else str(test)

    def say(self, verdict: str, test: object, text: str = "") -> None:
        seconds = time.monotonic() - getattr(self, "start", time.monotonic())
        print(
            f"{verdict}: {self.name(test)} ({seconds:.1f} s)" + ("\n" + text.rstrip() if text else ""),
            flush=True,
        )

    def fault(self, test: object, text: str) -> None:
        self.failed = True
        self.say("FAIL", test, text)

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        if not self.failed:
            self.say("PASS", test)

    def addFailure(self, test, err) -> None:  # type: ignore[no-untyped-def]
        super().addFailure(test, err)
        self.fault(test, self.failures[-1][1])

    def addError(self, test, err) -> None:  # type: ignore[no-untyped-def]
        super().addError(test, err)
        self.fault(test, self.errors[-1][1])

    def addSubTest(self, test, subtest, err) -> None:  # type: ignore[no-untyped-def]
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.fault(subtest, (self.failures + self.errors)[-1][1])

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        print(f"SKIP: {self.name(test)}: {reason}", flush=True)


def each(suite: unittest.TestSuite):  # type: ignore[no-untyped-def]
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


def main() -> int:
    other = os.environ.get("TMC_PYTHON")
    if other:  # The link of a virtual environment is another interpreter than its target.
        del os.environ["TMC_PYTHON"]
        os.execv(other, [other, *sys.argv])
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--tmc", default=os.environ.get("TMC_BIN", os.path.join(HERE, "..", "..", "build", "bin", "tmc"))
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args()
    if importlib.util.find_spec("numpy") is None:
        print("SKIP: all tests: no numpy")
        return 0
    os.environ["TMC_BIN"] = os.path.abspath(given.tmc)
    # A library's drawings and words must not depend on the user's settings.
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    sys.path.insert(0, os.path.dirname(HERE))
    suite = unittest.TestLoader().discover(HERE, top_level_dir=os.path.dirname(HERE))
    if given.names:
        suite = unittest.TestSuite(
            test for test in each(suite) if any(name in test.id() for name in given.names)
        )
    result = Lines()
    suite.run(result)
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
