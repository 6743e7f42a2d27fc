"""The recipes of docs/cookbook run as they are read, and print what their pages say.

In the order of a page: a block of Python or C is written to the file that the text before it names, a block `sh` is run,
and a block `text` is what the last one printed. Fractions may differ by a tenth: processors round otherwise.
"""

from __future__ import annotations

import array
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from . import helpers

PAGES = sorted((helpers.ROOT / "docs" / "cookbook").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
SUFFIXES = {"python": ".py", "c": ".c", "cmake": "CMakeLists.txt"}
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def _same(got: str, wanted: str) -> bool:
    if NUMBER.split(got) != NUMBER.split(wanted):
        return False
    for a, b in zip(NUMBER.findall(got), NUMBER.findall(wanted)):
        near = abs(float(a) - float(b)) <= 0.1 * abs(float(b)) + 0.06 if "." in b else a == b
        if not near:
            return False
    return True


class CookbookTest(unittest.TestCase):
    def check(self, page: Path) -> None:
        text = page.read_text()
        lacking = [m for m in ("torch", "transformers", "peft") if re.search(rf"^(from|import) .*\b{m}\b", text, re.M) and not helpers.has(m)]
        lacking += [tool for tool in ("cmake",) if "```cmake" in text and not shutil.which(tool)]
        if lacking:
            self.skipTest("no " + ", ".join(lacking))
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.here = Path(place.name)
        self.begin()
        at, printed = 0, ""
        for block in BLOCK.finditer(text):
            kind, body = block.groups()
            before, at = text[at : block.start()], block.end()
            if kind in SUFFIXES:
                names = [name for name in re.findall(r"`([\w.-]+)`", before) if name.endswith(SUFFIXES[kind])]
                (self.here / names[-1]).write_text(body)
            elif kind == "sh":
                printed = self.run_shell(body)
            else:
                self.assertEqual(kind, "text")
                self.assertTrue(_same(printed, body), f"printed:\n{printed}\nthe page says:\n{body}")

    def begin(self) -> None:
        """What a reader has: the examples, a text, and the commands on the path."""
        os.symlink(helpers.ROOT / "examples", self.here / "examples")
        tokens = array.array("H")
        tokens.frombytes((helpers.ROOT / "examples" / "data" / "text.u16.bin").read_bytes())
        (self.here / "text.txt").write_bytes(bytes(tokens.tolist()))
        (self.here / ".bin").mkdir()
        # A link would leave the interpreter without its packages.
        python = self.here / ".bin" / "python"
        python.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} \"$@\"\n")
        python.chmod(0o755)
        os.symlink(os.path.abspath(os.environ["TMC_BIN"]), self.here / ".bin" / "tmc")

    def run_shell(self, script: str) -> str:
        paths = f"{self.here / '.bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-e", "-c", script], cwd=self.here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=dict(os.environ, PATH=paths, PYTHONPATH=str(helpers.ROOT / "python")))  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return done.stdout

    def test_numbers_that_are_near(self) -> None:
        self.assertTrue(_same("loss 2.1 in 300", "loss 2.0 in 300"))
        self.assertFalse(_same("loss 2.1 in 301", "loss 2.1 in 300"))
        self.assertFalse(_same("loss 2.5 in 300", "loss 2.1 in 300"))
        self.assertFalse(_same("2.1", "loss 2.1"))

    def test_all_pages_have_a_test(self) -> None:
        self.assertGreaterEqual(len(PAGES), 5)
        index = (helpers.ROOT / "docs" / "README.md").read_text()
        for page in PAGES:
            self.assertIn(f"cookbook/{page.name}", index)
            self.assertIn("```text", page.read_text())


def _test_of(page: Path):  # type: ignore[no-untyped-def]
    return lambda self: self.check(page)


for page in PAGES:
    setattr(CookbookTest, "test_" + page.stem.replace("-", "_"), _test_of(page))
