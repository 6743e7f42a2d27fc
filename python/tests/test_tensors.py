"""Tensors of a step without a copy: numpy, torch and DLPack over the bytes of the arena."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

from . import helpers
from .helpers import compile_mlp, digits, needs, tmc

WEIGHT = "layers.0.weight"


class TensorsTest(unittest.TestCase):
    place: "tempfile.TemporaryDirectory[str]"
    directory: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.place = tempfile.TemporaryDirectory()
        cls.directory = Path(cls.place.name) / "step"
        compile_mlp(directory=cls.directory).close()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.place.cleanup()

    def open(self) -> tmc.Step:
        step = tmc.Step(self.directory, threads=1)
        self.addCleanup(step.close)
        step.init_random(1)
        return step

    def test_an_array_is_the_steps_memory(self) -> None:
        step = self.open()
        weight = step.tensors[WEIGHT]
        before = weight.copy()
        self.assertEqual((weight.shape, weight.dtype), ((256, 784), np.float32))
        self.assertEqual(weight.ctypes.data, step.tensors[WEIGHT].ctypes.data)
        step(**digits())
        self.assertGreater(np.abs(weight - before).max(), 0)
        # The step reads what is written there.
        step.tensors["layers.2.weight"][:] = 0
        step.tensors["layers.2.bias"][:] = 0
        self.assertAlmostEqual(step(**digits()), np.log(10), delta=1e-6)

    def test_a_batch_is_written_in_place(self) -> None:
        step, other, batch = self.open(), self.open(), digits()
        self.assertEqual(step(**batch), other(**batch))
        image, label = step.tensors["image"], step.tensors["label"]
        for round in range(3):
            image[:] = np.roll(batch["image"], round, 0)
            label[:] = np.roll(batch["label"], 2 * round, 0)
            self.assertEqual(
                step(),
                other(image=np.roll(batch["image"], round, 0), label=np.roll(batch["label"], 2 * round, 0)),
            )
        label[3] = 10
        with self.assertRaisesRegex(tmc.BadInputError, r"element 3 of 'label' is 10, outside \[0, 10\)"):
            step()
        with self.assertRaises(tmc.BadInputError):
            step.evaluate()

    def test_what_the_step_ignores_is_read_only(self) -> None:
        step = self.open()
        loss = step(**digits())
        for name in "lr", "step", "loss":
            self.assertFalse(step.tensors[name].flags.writeable, name)
        self.assertAlmostEqual(float(step.tensors["loss"]), loss, delta=1e-6)
        with self.assertRaises(ValueError):
            step.tensors["loss"][...] = 1

    def test_an_array_outlives_the_step(self) -> None:
        step = self.open()
        weight = step.tensors[WEIGHT]
        before = weight.copy()
        step.close()
        np.testing.assert_array_equal(weight, before)
        other = tmc.Step(self.directory, threads=1)
        other.init_random(2)
        part = other.tensors[WEIGHT][3:5]
        before = part.copy()
        del other
        gc.collect()
        np.testing.assert_array_equal(part, before)

    def test_the_arena_goes_with_the_last_array(self) -> None:
        def mapped() -> int:
            with open("/proc/self/statm") as file:
                return int(file.read().split()[0]) * 4096

        steps = [tmc.Step(self.directory, threads=1) for _ in range(2)]
        arena = steps[0].plan.arena_bytes
        arrays = [step.tensors[WEIGHT] for step in steps]
        capsules = [step.tensors.dlpack(WEIGHT).__dlpack__(max_version=(1, 0)) for step in steps]
        before = mapped()
        for step in steps:
            step.close()
        self.assertGreater(mapped(), before - arena)
        arrays.clear()
        gc.collect()
        self.assertGreater(mapped(), before - arena)
        capsules.clear()
        self.assertLess(mapped(), before - arena)

    def test_a_tensor_without_a_place_is_a_copy(self) -> None:
        step = self.open()
        step(**digits())
        self.assertIn("isOverwritten", (self.directory / "step.cpp").read_text())
        norm = step.tensors["grad_norm"]
        self.assertTrue(norm.flags.owndata)
        self.assertAlmostEqual(float(norm), step.statistics.grad_norm or 0, delta=1e-6)
        with self.assertRaisesRegex(tmc.UnsupportedError, "keeps other values at its place within a step"):
            step.tensors.dlpack("grad_norm")
        with self.assertRaises(KeyError):
            step.tensors.dlpack("nobody")

    def test_tensors_that_move_or_are_codes_are_copies(self) -> None:
        with compile_mlp(offload="optimizer", optimizer="adamw") as step:
            step.init_random(1)
            away = [n for n in step.tensors if n.endswith("exp_avg") and step.tensors[n].flags.owndata]
            self.assertTrue(away)
            self.assertGreater(step.spaces[1].arena_bytes, 0)
            for name in away:
                with self.assertRaisesRegex(tmc.UnsupportedError, "on the host and moves it in each step"):
                    step.tensors.dlpack(name)
        with compile_mlp(optimizer="adamw8bit") as step:
            step.init_random(1)
            codes = [n for n in step.tensors if step.tensors.info(n).dtype in ("u8", "i8")]
            self.assertTrue(codes)
            for name in codes:
                self.assertTrue(step.tensors[name].flags.owndata)
                with self.assertRaisesRegex(tmc.UnsupportedError, "is stored as codes"):
                    step.tensors.dlpack(name)

    def test_numpy_takes_dlpack(self) -> None:
        step = self.open()
        array = np.from_dlpack(step.tensors.dlpack(WEIGHT))
        self.assertEqual(array.ctypes.data, step.tensors[WEIGHT].ctypes.data)
        shared = step.tensors.dlpack(WEIGHT)
        self.assertEqual(shared.__dlpack_device__(), (1, 0))
        for wrong in dict(copy=True), dict(dl_device=(2, 0)):
            with self.assertRaises(BufferError):
                shared.__dlpack__(**wrong)
        with self.assertRaises(BufferError):
            step.tensors.dlpack("loss").__dlpack__()
        step.close()
        np.testing.assert_array_equal(array, array.copy())
        with self.assertRaises(tmc.UsageError):
            shared.__dlpack__()

    @needs("torch")
    def test_torch_takes_dlpack(self) -> None:
        import torch

        step = self.open()
        weight = torch.from_dlpack(step.tensors.dlpack(WEIGHT))
        self.assertEqual(weight.data_ptr(), step.tensors[WEIGHT].ctypes.data)
        before = weight.clone()
        step(**digits())
        self.assertFalse(torch.equal(weight, before))
        weight.zero_()
        self.assertEqual(float(np.abs(step.tensors[WEIGHT]).max()), 0)
        del step
        gc.collect()
        self.assertEqual(float(weight.abs().max()), 0)
        model = torch.nn.Linear(8, 1).bfloat16()

        class Loss(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = model

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.inner(x).float().square().mean()

        batch = {"x": torch.ones(4, 8, dtype=torch.bfloat16)}
        with tmc.compile(Loss(), batch, target=helpers.TARGET, threads=1, optimizer="sgd") as narrow:
            narrow(**batch)
            self.assertEqual(narrow.tensors.info("x").dtype, "bf16")
            self.assertEqual(narrow.tensors["x"].dtype, np.float32)
            shared = torch.from_dlpack(narrow.tensors.dlpack("x"))
            self.assertTrue(torch.equal(shared, batch["x"]))

    def test_python_ends_with_arrays_and_capsules(self) -> None:
        program = f"""
import tmc
step = tmc.Step({os.fspath(self.directory)!r}, threads=1)
step.init_random(1)
weight = step.tensors["{WEIGHT}"]
capsule = step.tensors.dlpack("{WEIGHT}").__dlpack__()
print(weight.shape)
"""
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=dict(os.environ, PYTHONPATH=str(helpers.ROOT / "python")),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stdout), (0, "(256, 784)\n"))


if __name__ == "__main__":
    unittest.main()
