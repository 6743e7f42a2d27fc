"""The declarations of tmc/_abi.py are those of runtime/tmc.h, as a C compiler reads it."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from . import helpers
from tmc import _abi

HEADER = helpers.ROOT / "runtime" / "tmc.h"
STRUCTS = {
    "tmc_options": _abi.Options,
    "tmc_peers": _abi.CPeers,
    "tmc_tensor": _abi.CTensor,
    "tmc_view": _abi.CView,
    "tmc_statistics": _abi.CStatistics,
    "tmc_space": _abi.CSpace,
}


class AbiTest(unittest.TestCase):
    def setUp(self) -> None:
        self.text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)

    @unittest.skipUnless(shutil.which("cc"), "no cc")
    def test_structs_are_those_of_the_header(self) -> None:
        declared = {
            name: re.findall(r"(\w+)(?:\[\d+\])?;", body)
            for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", self.text, re.S)
        }
        self.assertEqual(set(declared), set(STRUCTS))
        lines = [
            f'printf("{name}.{field} %d %d\\n", (int)offsetof({name}, {field}), (int)sizeof((({name} *)0)->{field}));'
            for name, fields in declared.items()
            for field in fields
        ]
        with tempfile.TemporaryDirectory() as place:
            source = Path(place) / "shape.c"
            source.write_text(
                '#include "tmc.h"\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n'
                + "\n".join(lines)
                + "\nreturn 0;\n}\n"
            )
            program = Path(place) / "shape"
            subprocess.run(["cc", "-I", str(HEADER.parent), str(source), "-o", str(program)], check=True)
            found = subprocess.run([str(program)], check=True, stdout=subprocess.PIPE, text=True).stdout
        own = [
            f"{name}.{field[0]} {getattr(struct, field[0]).offset} {getattr(struct, field[0]).size}"
            for name, struct in STRUCTS.items()
            for field in struct._fields_
        ]
        self.assertEqual(sorted(found.splitlines()), sorted(own))
        for struct in STRUCTS.values():
            self.assertEqual(struct().size, ctypes.sizeof(struct))

    def test_constants_and_functions_are_those_of_the_header(self) -> None:
        enums = {
            name: [word.split("=")[0].strip() for word in body.split(",")]
            for body, name in re.findall(r"typedef enum \w+ \{(.*?)\} (\w+);", self.text, re.S)
        }
        self.assertEqual(enums["tmc_dtype"], ["TMC_" + each.name for each in _abi.DType])
        self.assertEqual(enums["tmc_role"], ["TMC_" + each.name for each in _abi.Role])
        self.assertIn(f"#define TMC_ABI_VERSION {_abi.VERSION}\n", self.text)
        declared = dict(re.findall(r"TMC_API[^;(]*?tmc_(\w+)\(([^;]*)\);", self.text))
        for name, (_, parameters) in _abi._FUNCTIONS.items():
            words = " ".join(declared[name].split())
            self.assertEqual(len(parameters), 0 if words == "void" else words.count(",") + 1, name)


if __name__ == "__main__":
    unittest.main()
