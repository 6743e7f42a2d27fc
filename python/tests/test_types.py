"""The package's types, by mypy --strict."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest

from . import helpers
from .helpers import needs


class TypesTest(unittest.TestCase):
    @needs("mypy", "torch", "transformers")
    def test_the_types_are_sound(self) -> None:
        # Reading torch takes 45 s of a processor; what is read is kept by its content beside the other caches.
        caches = os.environ.get("XDG_CACHE_HOME")
        with tempfile.TemporaryDirectory() as scratch:
            place = os.path.join(caches, "mypy") if caches else scratch
            done = subprocess.run(
                [sys.executable, "-m", "mypy", "--strict", "--cache-dir", place, "--config-file", "pyproject.toml", "python/tmc"],
                cwd=helpers.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)
