"""The code of docs/python.md runs, and prints what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import unittest

from . import helpers

PAGE = helpers.ROOT / "docs" / "python.md"
# A block of code, and the output below it if the page shows one.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\nprints\n\n^```text\n(.*?)^```)?", re.M | re.S)


class PageTest(unittest.TestCase):
    def check(self, code: str, output: str) -> None:
        lacking = [
            m
            for m in ("torch", "transformers", "peft", "datasets")
            if re.search(rf"^(from|import) .*\b{m}\b", code, re.M) and not helpers.has(m)
        ]
        if "TrainingArguments" in code and not helpers.has("accelerate"):
            lacking.append("accelerate")
        if lacking:
            self.skipTest("no " + ", ".join(lacking))
        with tempfile.TemporaryDirectory() as place:
            os.symlink(helpers.ROOT / "examples", os.path.join(place, "examples"))
            done = subprocess.run([sys.executable, "-c", code], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=dict(os.environ, PYTHONPATH=str(helpers.ROOT / "python")))  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        if output:
            self.assertEqual(done.stdout, output)

    def test_the_page_has_blocks(self) -> None:
        blocks = BLOCK.findall(PAGE.read_text())
        self.assertEqual(len(blocks), PAGE.read_text().count("```python"))
        self.assertEqual(len(blocks), len([name for name in dir(PageTest) if name.startswith("test_block_")]))
        # From a model to a checkpoint in twelve lines of code.
        self.assertLessEqual(len([line for line in blocks[0][0].splitlines() if line.strip()]), 12)


def _test_of(code: str, output: str):  # type: ignore[no-untyped-def]
    return lambda self: self.check(code, output)


for number, (code, output) in enumerate(BLOCK.findall(PAGE.read_text()), 1):
    setattr(PageTest, f"test_block_{number}", _test_of(code, output))
