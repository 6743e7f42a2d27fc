"""Converted data: streams, rows, columns; and that a step trains from them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import numpy as np

from . import helpers
from .helpers import needs, tmc
from tmc import data, weights

BYTES = data.tokenizer("bytes")
END = 256


class ConvertTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)

    def write(self, name: str, content: "str | bytes | list[Any]") -> Path:
        path = self.place / name
        if isinstance(content, list):
            content = "".join(json.dumps(row) + "\n" for row in content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def rows(self, path: Path) -> "dict[str, np.ndarray]":
        return {name: array.copy() for name, array in weights.read(path)}

    def fails(self, kind: type, text: str, *arguments: Any, **more: Any) -> None:
        before = sorted(os.listdir(self.place))
        with self.assertRaisesRegex(kind, text):
            data.convert(*arguments, **more)
        self.assertEqual(sorted(os.listdir(self.place)), before)

    def test_a_stream_behind_a_header(self) -> None:
        one, two = self.write("one.txt", "ab\nc"), self.write("two.jsonl", [{"text": "é"}, {"text": ""}])
        out = self.place / "out.bin"
        self.assertEqual(data.convert([one, two], out, words=BYTES), 4 + 1 + 2 + 1 + 1)
        header = np.fromfile(out, "<i4", 256)
        self.assertEqual(header[:3].tolist(), [20240520, 1, 9])
        self.assertEqual(
            np.fromfile(out, "<u2", offset=1024).tolist(), [*b"ab\nc", END, 0xC3, 0xA9, END, END]
        )

    def test_a_large_vocabulary_takes_32_bits(self) -> None:
        words = data.Tokenizer(lambda text: [70_000] * len(text), 80_000, None, "")
        out = self.place / "out.bin"
        data.convert([self.write("a.txt", "xyz")], out, words=words)
        self.assertEqual(np.fromfile(out, "<i4", 3).tolist(), [20240801, 7, 3])
        self.assertEqual(np.fromfile(out, "<u4", offset=1024).tolist(), [70_000] * 3)
        narrow = data.Tokenizer(lambda text: [65_535], 2**16, None, "")
        data.convert([self.write("a.txt", "xyz")], out, words=narrow)
        self.assertEqual(np.fromfile(out, "<u2", offset=1024).tolist(), [65_535])

    def test_packed_rows(self) -> None:
        out = self.place / "out.safetensors"
        path = self.write("a.jsonl", [{"text": "abcde"}, {"text": "fg"}])
        self.assertEqual(data.convert([path], out, words=BYTES, pack=4), 3)
        rows = self.rows(out)
        self.assertEqual(
            rows["input_ids"].tolist(), [[97, 98, 99, 100], [101, END, 102, 103], [END, END, END, END]]
        )
        self.assertEqual(
            rows["labels"].tolist(), [[97, 98, 99, 100], [101, END, 102, 103], [END, -100, -100, -100]]
        )
        self.assertEqual(rows["attention_mask"].tolist(), [[1] * 4, [1] * 4, [1, 0, 0, 0]])
        self.assertEqual(weights.header(out)[1]["tokenizer"], "bytes")

    def test_padded_rows(self) -> None:
        out = self.place / "out.safetensors"
        path = self.write("a.jsonl", [{"body": "abcdefgh"}, {"body": "ij"}, {"body": "klm"}])
        self.assertEqual(data.convert([path], out, words=BYTES, pad=4, columns=["body"]), 3)
        rows = self.rows(out)
        self.assertEqual(rows["input_ids"].tolist(), [[*b"abcd"], [*b"ij", END, END], [*b"klm", END]])
        self.assertEqual(rows["labels"].tolist(), [[*b"abcd"], [*b"ij", END, -100], [*b"klm", END]])
        self.assertEqual(rows["attention_mask"].tolist(), [[1] * 4, [1, 1, 1, 0], [1] * 4])

    def test_rows_that_have_tokens(self) -> None:
        out = self.place / "out.safetensors"
        path = self.write(
            "a.jsonl",
            [
                {"input_ids": [1, 2, 3], "labels": [-100, 2, 3]},
                {"input_ids": [4], "labels": [4]},
                {"input_ids": [], "labels": []},
            ],
        )
        data.convert([path], out, pad=2, columns=["input_ids", "labels"])
        rows = self.rows(out)
        self.assertEqual(
            (rows["input_ids"].tolist(), rows["labels"].tolist()), ([[1, 2], [4, 0]], [[-100, 2], [4, -100]])
        )
        data.convert([path], out, pack=2, columns=["input_ids", "labels"])
        rows = self.rows(out)
        self.assertEqual(
            (rows["input_ids"].tolist(), rows["labels"].tolist()), ([[1, 2], [3, 4]], [[-100, 2], [3, 4]])
        )

    def test_a_column_of_numbers(self) -> None:
        out = self.place / "out.npy"
        path = self.write("a.jsonl", [{"x": [[1.5, 2], [3, 4]]}, {"x": [[5, 6], [7, 8]]}])
        self.assertEqual(data.convert([path], out, columns=["x"]), 2)
        np.testing.assert_array_equal(
            np.load(out), np.array([[[1.5, 2], [3, 4]], [[5, 6], [7, 8]]], np.float32)
        )
        data.convert([self.write("b.jsonl", [{"x": 3}, {"x": 2**40}])], out, columns=["x"])
        self.assertEqual((np.load(out).tolist(), np.load(out).dtype), ([3, 2**40], np.int64))

    def test_text_is_cut_at_lines(self) -> None:
        text = "".join(f"line {i} of the text\n" for i in range(120_000))  # More than two pieces.
        path, out = self.write("a.txt", text), self.place / "out.bin"
        calls: list[str] = []

        def encode(piece: str) -> "list[int]":
            calls.append(piece)
            return list(piece.encode())

        data.convert([path], out, words=data.Tokenizer(encode, 257, END, ""))
        self.assertGreater(len(calls), 2)
        self.assertTrue(all(piece.endswith("\n") for piece in calls))
        self.assertEqual(np.fromfile(out, "<u2", offset=1024).tolist(), [*text.encode(), END])

    def test_memory_is_bounded(self) -> None:
        path = self.place / "large.txt"
        with open(path, "w") as file:
            for _ in range(100):
                file.write("a line of forty characters, more or less\n" * 5_000)  # 20 MB in all.
        program = (
            "import resource, sys; sys.path.insert(0, sys.argv[1]); from tmc import data\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "assert data.main(['convert', sys.argv[2], '-o', sys.argv[3], '--tokenizer', 'bytes', '--pack', '1024']) == 0\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(helpers.ROOT / "python"), str(path), str(self.place / "out.safetensors")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        # All tokens at once would take 160 MB as integers of 64 bits.
        self.assertLess(int(done.stdout) * 1024, 120 << 20)
        self.assertGreater((self.place / "out.safetensors").stat().st_size, 150 << 20)

    def test_data_at_fault(self) -> None:
        out = self.place / "out.safetensors"
        bad = tmc.BadInputError
        self.fails(bad, "there is no file", [self.place / "none.txt"], out, words=BYTES, pack=4)
        path = self.write("bad.txt", b"abc\xff")
        self.fails(bad, "is no text in UTF-8", [path], out, words=BYTES, pack=4)
        for text, message in (
            ("{", "line 1 of .* is no JSON"),
            ("[]", "line 1 of .* is no object"),
            ('\n{"a": 1}', "row 1 of .* has no 'text'"),
            ('{"text": 3}', "'text' is no text"),
            ("[" * 100_000, "is no JSON"),
        ):
            path = self.write("bad.jsonl", text)
            self.fails(bad, message, [path], out, words=BYTES, pack=4)
        for row, message in (
            ({"input_ids": [1, -1]}, r"token -1 is outside of \[0, 2147483648\)"),
            ({"input_ids": [2**31]}, "is outside"),
            ({"input_ids": [1.5]}, "no list of whole numbers"),
            ({"input_ids": 3}, "no list"),
            ({"input_ids": [[1], [1, 2]]}, "no list"),
            ({"input_ids": "text"}, "no list"),
            ({"input_ids": [2**70]}, "no list"),
        ):
            path = self.write("bad.jsonl", [row])
            self.fails(bad, message, [path], out, pack=4, columns=["input_ids"])
        path = self.write("bad.jsonl", [{"input_ids": [1, 2], "labels": [1]}])
        self.fails(
            bad,
            "has no label of 32 bits for each of 2 tokens",
            [path],
            out,
            pack=4,
            columns=["input_ids", "labels"],
        )
        path = self.write("bad.jsonl", "")
        self.fails(bad, "nothing to write", [path], out, words=BYTES, pack=4)
        self.fails(
            bad,
            "nothing to write",
            [path],
            self.place / "out.bin",
            words=data.Tokenizer(BYTES.encode, 257, None, ""),
        )
        for rows in (
            [{"x": 1}, {"x": 1.5}],
            [{"x": [1]}, {"x": [1, 2]}],
            [{"x": "a"}],
            [{"x": None}],
            [{"x": [[1], [2, 3]]}],
            [{"x": 2**63}],
        ):
            path = self.write("bad.jsonl", rows)
            self.fails(bad, "row [12] of", [path], self.place / "out.npy", columns=["x"])
        over = data.Tokenizer(lambda text: [300], 257, None, "")
        self.fails(
            bad, r"token 300 is outside of \[0, 257\)", [self.write("a.txt", "x")], out, words=over, pack=4
        )
        self.fails(
            bad, "there is no directory", [self.place / "a.txt"], self.place / "none" / "out.bin", words=BYTES
        )

    def test_options_that_dont_go_together(self) -> None:
        text, table = self.write("a.txt", "x"), self.write("a.jsonl", [{"text": "x"}])
        use = tmc.UsageError
        out, stream, column = self.place / "o.safetensors", self.place / "o.bin", self.place / "o.npy"
        self.fails(use, "needs --tokenizer", [text], stream)
        self.fails(use, "give --tokenizer", [table], stream)
        self.fails(use, "--pack N or --pad N", [text], out, words=BYTES)
        self.fails(use, "--pack N or --pad N", [text], out, words=BYTES, pack=4, pad=4)
        self.fails(use, "at least 2 tokens", [text], out, words=BYTES, pack=1)
        self.fails(use, "one stream", [text], stream, words=BYTES, pack=4)
        self.fails(use, "one column of numbers", [table], column, columns=["a", "b"])
        self.fails(use, "ends in none of", [text], self.place / "o.txt", words=BYTES, pack=4)
        self.fails(use, "at most one column", [table], out, words=BYTES, pack=4, columns=["a", "b"])

    def test_an_older_file_stays(self) -> None:
        out = self.write("out.bin", "old")
        with self.assertRaises(tmc.BadInputError):
            data.convert([self.write("bad.txt", b"abc\xff")], out, words=BYTES)
        self.assertEqual(out.read_text(), "old")

    def test_the_command(self) -> None:
        path, out = self.write("a.txt", "x"), self.place / "out.bin"
        self.assertEqual(data.main(["convert", str(path), "-o", str(out), "--tokenizer", "bytes"]), 0)
        self.assertEqual(data.main(["convert", str(path), "-o", str(out)]), 2)
        self.assertEqual(
            data.main(["convert", str(self.place / "none"), "-o", str(out), "--tokenizer", "bytes"]), 1
        )
        (self.place / "no.json").write_text("{}")
        code = data.main(["convert", str(path), "-o", str(out), "--tokenizer", str(self.place / "no.json")])
        self.assertIn(code, (1, 74))  # 74 where the package tokenizers isn't there.

    def test_the_trainer_reads_them(self) -> None:
        lines = [{"text": f"{i} little lines of text for a small model"} for i in range(40)]
        path = self.write("a.jsonl", lines)
        stream, rows = self.place / "stream.bin", self.place / "rows.safetensors"
        model = helpers.ROOT / "test" / "models" / "gpt2-tiny.pt2"
        narrow = data.Tokenizer(lambda text: [ord(c) % 100 for c in text], 101, 100, "")
        data.convert([path], stream, words=narrow)
        data.convert([path], rows, words=narrow, pack=32)
        step = self.place / "step"
        tmc.compile(model, target=helpers.TARGET, directory=step, emit="exe").close()
        for fed in ([f"{stream}"], [f"input_ids={rows}", f"labels={rows}"]):
            command = [str(step / "train"), "--steps", "2", "--threads", "1", "--init", "random:1"] + [
                word for each in fed for word in ("--data", each)
            ]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("step 2/2", done.stdout)

    @needs("pyarrow")
    def test_parquet_and_arrow(self) -> None:
        import pyarrow as arrow
        import pyarrow.ipc
        import pyarrow.parquet

        texts = [f"text {i}" for i in range(1000)]
        table = arrow.table({"text": texts, "x": list(range(1000)), "ids": [[i, i + 1] for i in range(1000)]})
        arrow.parquet.write_table(table, self.place / "a.parquet")
        with arrow.ipc.new_file(self.place / "a.arrow", table.schema) as file:
            file.write_table(table)
        with arrow.ipc.new_stream(self.place / "b.arrow", table.schema) as file:  # As datasets writes it.
            file.write_table(table)
        reference = self.write("a.jsonl", [{"text": text} for text in texts])
        wanted, out = self.place / "wanted.bin", self.place / "out.bin"
        data.convert([reference], wanted, words=BYTES)
        for name in ("a.parquet", "a.arrow", "b.arrow"):
            data.convert([self.place / name], out, words=BYTES)
            self.assertEqual(out.read_bytes(), wanted.read_bytes(), name)
            data.convert([self.place / name], self.place / "o.npy", columns=["x"])
            self.assertEqual(np.load(self.place / "o.npy").tolist(), list(range(1000)))
            data.convert([self.place / name], self.place / "o.safetensors", columns=["ids"], pad=2)
            self.assertEqual(
                self.rows(self.place / "o.safetensors")["input_ids"].tolist(),
                [[i, i + 1] for i in range(1000)],
            )
            self.fails(
                tmc.BadInputError,
                "has no column 'nothing'",
                [self.place / name],
                out,
                words=BYTES,
                columns=["nothing"],
            )
            self.write(name, "no table")
            self.fails(tmc.BadInputError, "can't read", [self.place / name], out, words=BYTES)

    @needs("tokenizers")
    def test_a_tokenizer_file(self) -> None:
        import tokenizers

        vocabulary = {"a": 0, "b": 1, "[UNK]": 2, "</s>": 3}
        words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
        words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        words.save(str(self.place / "tokenizer.json"))
        path, out = self.write("a.txt", "a b c"), self.place / "out.bin"
        prints = set()
        for name in (self.place, self.place / "tokenizer.json"):
            loaded = data.tokenizer(str(name))
            self.assertEqual((loaded.size, loaded.end), (4, 3))
            prints.add(loaded.fingerprint)
            data.convert([path], out, words=loaded)
            self.assertEqual(np.fromfile(out, "<u2", offset=1024).tolist(), [0, 1, 2, 3])
        self.assertEqual(len(prints), 1)
