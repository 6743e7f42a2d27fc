"""The place of the compiler that this package runs.

An installed wheel has it in `tmc/_native`, laid out like any installation of tmc:

    _native/bin/tmc             the command
    _native/lib/tmc/*.a         the runtime that steps are linked with
    _native/include/tmc         its headers

From a source tree, set TMC_BIN to the `tmc` of a build or an installation, or have it on PATH.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Iterator

from .errors import MachineError

VARIABLE = "TMC_BIN"
NATIVE = Path(__file__).resolve().parent / "_native"


def _is_binary(path: Path) -> bool:
    """True for the compiled command. A script of the same name may be this package's own."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF" and os.access(path, os.X_OK)
    except OSError:
        return False


def _on_path() -> Iterator[Path]:
    for directory in os.environ.get("PATH", "").split(os.pathsep):
        if directory:
            yield Path(directory) / "tmc"


def program() -> Path:
    """The `tmc` command: that of TMC_BIN, of the wheel, or the first on PATH.

    Raises MachineError if there is none, or if TMC_BIN names no program.
    """
    given = os.environ.get(VARIABLE)
    if given:
        path = Path(given)
        if not _is_binary(path):
            raise MachineError(f"{VARIABLE} is '{given}', which is no program")
        return path.resolve()
    for path in (NATIVE / "bin" / "tmc", *_on_path()):
        if _is_binary(path):
            return path.resolve()
    raise MachineError(
        "the command tmc isn't there",
        [f"set {VARIABLE} to the tmc of a build or an installation", f"looked in '{NATIVE}' and on PATH"],
    )


def cmake_directory() -> Path:
    """The directory for CMAKE_PREFIX_PATH or tmc_DIR: that of tmcConfig.cmake.

    Raises MachineError if this installation has no CMake package.
    """
    prefix = program().parent.parent
    for place in (
        *sorted(prefix.glob("lib*/cmake/tmc")),
        *sorted(prefix.glob("lib/*/cmake/tmc")),
        prefix / "share/cmake/tmc",
        prefix,
    ):
        if (place / "tmcConfig.cmake").is_file():
            return place
    raise MachineError(f"the installation in '{prefix}' has no tmcConfig.cmake")
