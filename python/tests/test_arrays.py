"""Conversions of arrays, and files of weights, without a compiler."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

import numpy as np

from .helpers import tmc
from tmc import _arrays, weights
from tmc._abi import DType


class Bfloat16Test(unittest.TestCase):
    def test_every_code_comes_back(self) -> None:
        codes = np.arange(2**16, dtype=np.uint16)
        back = _arrays.f32_to_bf16(_arrays.bf16_to_f32(codes))
        quiet = np.where(np.isnan(_arrays.bf16_to_f32(codes)), codes | 0x40, codes)
        np.testing.assert_array_equal(back, quiet)

    def test_ties_go_to_even(self) -> None:
        one = 0x3F80
        for low, want in ((0x7FFF, one), (0x8000, one), (0x8001, one + 1)):
            bits = np.array([(one << 16) | low], np.uint32)
            self.assertEqual(_arrays.f32_to_bf16(bits.view(np.float32))[0], want)
        odd = np.array([((one + 1) << 16) | 0x8000], np.uint32)
        self.assertEqual(_arrays.f32_to_bf16(odd.view(np.float32))[0], one + 2)
        self.assertEqual(
            _arrays.f32_to_bf16(np.array([3.4e38, np.inf, -np.inf], np.float32)).tolist(),
            [0x7F80, 0x7F80, 0xFF80],
        )
        nan = np.array([0x7F800001], np.uint32).view(np.float32)
        self.assertTrue(np.isnan(_arrays.bf16_to_f32(_arrays.f32_to_bf16(nan)))[0])


class FaultTest(unittest.TestCase):
    def fault(self, value: object, dtype: DType, shape: tuple[int, ...]) -> "str | None":
        return _arrays.fault(_arrays.given(value), dtype, shape, rounds=False)

    def test_numbers_that_fit(self) -> None:
        self.assertIsNone(self.fault(np.array([127, -128]), DType.I8, (2,)))
        self.assertIn("128 at [1] doesn't fit", self.fault(np.array([127, 128]), DType.I8, (2,)) or "")
        self.assertIn("-1 at [0, 1] doesn't fit", self.fault(np.array([[0, -1]]), DType.U16, (1, 2)) or "")
        self.assertIsNone(self.fault(np.array([True]), DType.I64, (1,)))
        self.assertIsNone(self.fault(np.empty((0, 3), np.int64), DType.I8, (0, 3)))

    def test_floats(self) -> None:
        self.assertIsNone(self.fault(np.float16([1]), DType.F32, (1,)))
        self.assertIsNotNone(self.fault(np.float64([1]), DType.F32, (1,)))
        self.assertIsNone(self.fault([1.5, 2], DType.F32, (2,)))
        self.assertIsNone(self.fault(2.5, DType.F32, ()))
        self.assertIsNotNone(self.fault(np.float32([1]), DType.BF16, (1,)))
        self.assertIsNotNone(self.fault(np.array([1]), DType.I1, (1,)))
        self.assertIsNotNone(self.fault(np.array([1.0]), DType.I64, (1,)))

    def test_dlpack(self) -> None:
        class Exporter:
            def __init__(self, array: np.ndarray) -> None:
                self.array = array

            def __dlpack__(self, **more: object) -> object:
                return self.array.__dlpack__(**more)

            def __dlpack_device__(self) -> "tuple[int, int]":
                return self.array.__dlpack_device__()

        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        got = _arrays.given(Exporter(array))
        np.testing.assert_array_equal(got.array, array)
        self.assertTrue(np.shares_memory(got.array, array))

        class Broken(Exporter):
            def __dlpack__(self, **more: object) -> object:
                raise BufferError("on another planet")

        with self.assertRaisesRegex(TypeError, "on another planet"):
            _arrays.given(Broken(array))


class FilesTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)

    def write(self, name: str, tensors: "dict[str, np.ndarray]") -> Path:
        path = self.place / name
        with open(path, "wb") as file:
            weights.write_header(
                file, {n: ("F32", t.shape, t.nbytes) for n, t in tensors.items()}, {"format": "pt"}
            )
            for tensor in tensors.values():
                file.write(tensor.tobytes())
        return path

    def test_shards_follow_the_rule(self) -> None:
        # As the libraries of Hugging Face split 6, 6, 2, 6, 2, 2 within 10.
        sizes = {str(i): size for i, size in enumerate((6, 6, 2, 6, 2, 2))}
        self.assertEqual(weights.split(sizes, 10), [["0"], ["1", "2"], ["3", "4", "5"]])
        self.assertEqual(weights.split({"a": 3, "b": 20, "c": 3}, 10), [["b"], ["a", "c"]])
        self.assertEqual(weights.split({"a": 10, "b": 10}, 10), [["a"], ["b"]])
        self.assertEqual(weights.split({}, 10), [[]])

    def test_shards_and_back(self) -> None:
        tensors = {f"t{i}": np.full((i + 1, 4), i, np.float32) for i in range(5)}
        self.write(weights.MODEL_FILE, tensors)
        weights.shard(self.place, 100, order=list(reversed(tensors)))
        index = json.loads((self.place / weights.INDEX_FILE).read_text())
        self.assertEqual(index["metadata"], {"total_parameters": 60, "total_size": 240})
        self.assertEqual(
            set(index["weight_map"].values()), {p.name for p in self.place.glob("*.safetensors")}
        )
        found = {
            name: array.copy()
            for shard in set(index["weight_map"].values())
            for name, array in weights.read(self.place / shard)
            if index["weight_map"][name] == shard
        }
        self.assertEqual(set(found), set(tensors))
        for name, tensor in tensors.items():
            np.testing.assert_array_equal(found[name], tensor)

    def test_hostile_files(self) -> None:
        def entry(**more: object) -> "dict[str, object]":
            return dict({"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, **more)

        def write(fields: object, data: bytes = bytes(8)) -> Path:
            text = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
            path = self.place / "hostile.safetensors"
            path.write_bytes(len(text).to_bytes(8, "little") + text + data)
            return path

        self.assertEqual(weights.names(write({"a": entry()})), {"a"})
        for fields in (
            {"a": entry(shape=[3])},
            {"a": entry(shape=[2**40, 2**40])},
            {"a": entry(shape=[-2])},
            {"a": entry(shape=[2.0])},
            {"a": entry(shape=[True, 2])},
            {"a": entry(data_offsets=[8, 16])},
            {"a": entry(data_offsets=[-8, 0])},
            {"a": entry(data_offsets=[8])},
            {"a": entry(dtype="C64")},
            {"a": entry(dtype=[])},
            {"a": 3},
            [],
            3,
            b"{",
            b"[" * 100_000,
            b"\xff",
        ):
            with self.subTest(str(fields)[:60]), self.assertRaises(tmc.BadInputError):
                weights.header(write(fields))
        for content in (
            b"",
            b"1234",
            (2**63).to_bytes(8, "little") + b"{}",
            (9).to_bytes(8, "little") + b"{}",
        ):
            path = self.place / "short.safetensors"
            path.write_bytes(content)
            with self.assertRaises(tmc.BadInputError):
                weights.header(path)

    def test_a_failed_save_leaves_the_old_one(self) -> None:
        target = self.place / "model"
        with weights.replacing(target) as place:
            (place / weights.MODEL_FILE).write_text("old")
        with self.assertRaises(RuntimeError), weights.replacing(target) as place:
            (place / weights.MODEL_FILE).write_text("new")
            raise RuntimeError
        self.assertEqual([p.name for p in target.iterdir()], [weights.MODEL_FILE])
        self.assertEqual((target / weights.MODEL_FILE).read_text(), "old")
        with weights.replacing(target) as place:
            (place / "model-00001-of-00001.safetensors").write_text("new")
            (place / weights.INDEX_FILE).write_text("new")
        self.assertFalse((target / weights.MODEL_FILE).exists())
        with self.assertRaises(RuntimeError), weights.replacing(self.place / "never"):
            raise RuntimeError
        self.assertFalse((self.place / "never").exists())

    def test_sizes(self) -> None:
        self.assertEqual([weights.size_of(s) for s in (7, "5GB", "1.5 KiB", "20")], [7, 5 * 10**9, 1536, 20])
        for wrong in ("5XB", "GB", "", 0, -1, True, 1.5, None):
            with self.assertRaises(tmc.UsageError):
                weights.size_of(wrong)  # type: ignore[arg-type]
