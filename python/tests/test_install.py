"""The package with an installation of its own, as a wheel lays it out."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from . import helpers
from .helpers import tmc
from tmc import _install

BUILD = Path(os.environ["TMC_BIN"]).resolve().parent.parent


@unittest.skipUnless(
    (BUILD / "cmake_install.cmake").exists() and shutil.which("cmake"), "no build folder with cmake"
)
class InstallTest(unittest.TestCase):
    def test_a_tree_like_a_wheels(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            package = Path(place) / "tmc"
            shutil.copytree(
                helpers.ROOT / "python" / "tmc",
                package,
                ignore=shutil.ignore_patterns("__pycache__", "_native"),
            )
            subprocess.run(
                [
                    "cmake",
                    "--install",
                    str(BUILD),
                    "--prefix",
                    str(package / "_native"),
                    "--component",
                    "Unspecified",
                ],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            there = {path.name for path in (package / "_native" / "bin").iterdir()}
            self.assertEqual(there, {"tmc"})
            program = (
                "import json, sys, tmc, numpy as np\n"
                f"step = tmc.compile({str(helpers.MLP)!r}, batch=4, target={helpers.TARGET!r}, threads=1)\n"
                "step.init_random(1)\n"
                "loss = step(image=np.zeros((4, 784), np.float32), label=np.zeros(4, np.int64))\n"
                "print(json.dumps([loss, tmc.__file__]))"
            )
            environment = {
                name: value for name, value in os.environ.items() if name not in ("TMC_BIN", "PYTHONPATH")
            }
            done = subprocess.run(
                [sys.executable, "-c", program],
                cwd=place,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            loss, file = json.loads(done.stdout)
            self.assertEqual(Path(file).parent, package)
            self.assertAlmostEqual(loss, 2.30, delta=0.1)
            for words, code in (
                (["--program"], 0),
                (["--version"], 0),
                (["plan", "none.onnx"], 1),
                (["--cmake-dir"], 0),
            ):
                done = subprocess.run(
                    [sys.executable, "-m", "tmc", *words],
                    cwd=place,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                self.assertEqual(done.returncode, code, done.stderr)
                if words == ["--program"]:
                    self.assertEqual(done.stdout.strip(), str(package / "_native" / "bin" / "tmc"))
            # CMake finds the command of this tree by the last one's answer.
            (Path(place) / "CMakeLists.txt").write_text(
                "cmake_minimum_required(VERSION 3.20)\nproject(here NONE)\nfind_package(tmc REQUIRED)\n"
                'message(STATUS "it is ${tmc_PROGRAM}")\n'
            )
            made = subprocess.run(
                ["cmake", "-S", place, "-B", os.path.join(place, "out"), f"-Dtmc_DIR={done.stdout.strip()}"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
            self.assertIn(f"it is {package / '_native' / 'bin' / 'tmc'}", made.stdout)


class CmakeDirectoryTest(unittest.TestCase):
    def test_the_directory_of_the_package_for_cmake(self) -> None:
        before = os.environ[_install.VARIABLE]
        self.addCleanup(os.environ.__setitem__, _install.VARIABLE, before)
        for place in ("lib/cmake/tmc", "lib/x86_64-linux-gnu/cmake/tmc", "share/cmake/tmc"):
            with tempfile.TemporaryDirectory() as prefix:
                program = Path(prefix) / "bin" / "tmc"
                program.parent.mkdir()
                program.write_bytes(b"\x7fELF")
                program.chmod(0o755)
                os.environ[_install.VARIABLE] = str(program)
                with self.assertRaisesRegex(tmc.MachineError, "has no tmcConfig.cmake"):
                    _install.cmake_directory()
                (Path(prefix) / place).mkdir(parents=True)
                (Path(prefix) / place / "tmcConfig.cmake").write_text("")
                self.assertEqual(_install.cmake_directory(), (Path(prefix) / place).resolve())


class VersionTest(unittest.TestCase):
    def test_there_is_one_version(self) -> None:
        project = re.search(
            r"^project\(tmc VERSION ([\d.]+)", (helpers.ROOT / "CMakeLists.txt").read_text(), re.M
        )
        package = re.search(r'^version = "([\d.]+)"', (helpers.ROOT / "pyproject.toml").read_text(), re.M)
        assert project and package
        self.assertEqual({project.group(1), package.group(1)}, {tmc.__version__})
