"""Runs the command tmc of this installation, or says where its parts are.

python -m tmc compile model.onnx --budget 12GiB
python -m tmc --cmake-dir       the directory of tmcConfig.cmake, for CMAKE_PREFIX_PATH
python -m tmc --program         the command itself
"""

from __future__ import annotations

import os
import sys
from typing import Optional, Sequence

from . import _install
from .errors import Error
from .log import _report


def main(arguments: Optional[Sequence[str]] = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words == ["--cmake-dir"]:
            print(_install.cmake_directory())
            return 0
        program = str(_install.program())
    except Error as error:
        return _report(error)
    if words == ["--program"]:
        print(program)
        return 0
    os.execv(program, [program, *words])


if __name__ == "__main__":
    sys.exit(main())
