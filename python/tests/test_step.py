"""A compiled step from numpy alone: losses, tensors, checkpoints, bad input."""

from __future__ import annotations

import copy
import gc
import os
import tempfile
import threading
import unittest
import unittest.mock
from pathlib import Path

import numpy as np

from . import helpers
from .helpers import BATCH, DoubleMlp, compile_mlp, digits, tmc
from tmc import _arrays, weights


class StepTest(unittest.TestCase):
    """Tests of one step, which is compiled once."""

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

    def open(self, **more: object) -> tmc.Step:
        step = tmc.Step(self.directory, threads=1, **more)  # type: ignore[arg-type]
        self.addCleanup(step.close)
        return step

    def test_losses_are_those_of_the_mathematics(self) -> None:
        step, batch = self.open(), digits()
        step.init_random(3)
        step.learning_rate = 1e-3
        peer = DoubleMlp(step.state_dict(), rate=1e-3, decay=0.1, clip=1.0)
        for _ in range(10):
            self.assertAlmostEqual(step(**batch), peer.step(**batch), delta=5e-6)
        for name, value in peer.values.items():
            np.testing.assert_allclose(step.tensors[name], value, atol=5e-5)
        self.assertEqual(step.statistics.steps, 10)

    def test_a_seed_gives_the_same_bits(self) -> None:
        first, second = self.open(), self.open()
        first.init_random(5)
        second.init_random(5)
        self.assertEqual([first(**digits()) for _ in range(3)], [second(**digits()) for _ in range(3)])
        second.init_random(6)
        self.assertGreater(
            np.abs(first.tensors["layers.0.weight"] - second.tensors["layers.0.weight"]).max(), 0
        )

    def test_the_tensors_are_listed(self) -> None:
        step = self.open()
        info = step.tensors.info("layers.0.weight")
        self.assertEqual(
            (info.dtype, info.shape, info.role, info.trainable), ("f32", (256, 784), "param", True)
        )
        self.assertEqual(set(step.inputs), {"image", "label"})
        self.assertEqual(step.inputs["label"].dtype, "i64")
        roles = {step.tensors.info(name).role for name in step.tensors}
        self.assertLessEqual({"param", "moment", "batch"}, roles)
        with self.assertRaisesRegex(KeyError, "no tensor has the name 'nobody'"):
            step.tensors["nobody"]

    def test_tensors_can_be_written(self) -> None:
        step = self.open()
        step.init_random(1)
        name = "layers.1.weight"
        new = step.tensors[name].copy()
        new[:] = np.arange(256)
        step.tensors[name] = new
        np.testing.assert_array_equal(step.tensors[name], new)
        step.tensors[name] = new[::-1].T.copy().T  # In another order of memory.
        np.testing.assert_array_equal(step.tensors[name], new[::-1])
        for wrong, text in (
            (new[:2], r"takes f32 \[256, 256\], and got f32 \[2, 256\]"),
            ("no", "got a str"),
            (new.astype(int), r"got i64 \[256, 256\]"),
            (new.astype("f8"), "got f64"),
        ):
            with self.assertRaisesRegex(tmc.BadInputError, text):
                step.tensors[name] = wrong

    def test_what_the_step_writes_cant_be_written(self) -> None:
        with self.assertRaisesRegex(tmc.UsageError, "the step writes 'lr' by itself"):
            self.open().tensors["lr"] = 1.0

    def test_places_that_cant_be_written(self) -> None:
        step = self.open()
        with self.assertRaises(tmc.UsageError):  # There are no values yet.
            step.save_pretrained(os.path.join(self.place.name, "none"))
        self.assertFalse(os.path.exists(os.path.join(self.place.name, "none")))
        step.init_random(1)
        for save in (step.save, step.save_weights, step.save_pretrained):
            with self.assertRaises(tmc.MachineError):
                save("/proc/nowhere")
        with self.assertRaisesRegex(tmc.BadInputError, "is no directory"):
            step.save_pretrained(self.directory / "plan.json")

    def test_a_step_cant_be_copied(self) -> None:
        with self.assertRaisesRegex(TypeError, "save it"):
            copy.copy(self.open())
        with self.assertRaises(tmc.UsageError):
            self.open().load_into(None)

    def test_a_written_parameter_counts_in_the_loss(self) -> None:
        step = self.open()
        step.init_random(1)
        step.tensors["layers.2.weight"] = np.zeros((10, 256), np.float32)
        step.tensors["layers.2.bias"] = np.zeros(10, np.float32)
        self.assertAlmostEqual(step(**digits()), np.log(10), delta=1e-6)

    def test_inputs_are_checked_all_at_once(self) -> None:
        step, batch = self.open(), digits()
        step.init_random(1)
        with self.assertRaises(tmc.BadInputError) as caught:
            step(image=batch["image"][:2], lable=batch["label"])
        text = str(caught.exception)
        self.assertIn(f"input 'image' takes f32 [{BATCH}, 784], and got f32 [2, 784]", text)
        self.assertIn("there is no input 'lable'", text)
        self.assertIn("input 'label' is missing", text)
        self.assertIn(f"note: the step takes image: f32 [{BATCH}, 784], label: i64 [{BATCH}]", text)
        self.assertEqual(caught.exception.code, 1)
        self.assertEqual(step.statistics.steps, 0)

    def test_an_input_of_another_type(self) -> None:
        step, batch = self.open(), digits()
        step.init_random(1)
        for name, wrong in (
            ("image", batch["image"].astype(np.float64)),
            ("image", batch["image"].astype(np.int32)),
            ("label", batch["label"].astype(np.float32)),
            ("label", batch["label"].astype(np.complex64)),
            ("label", None),
            ("label", {}),
            ("image", [[1.0], [2.0, 3.0]]),
            ("label", np.full(BATCH, 2**63, np.uint64)),
            ("label", np.array(["a"] * BATCH)),
        ):
            with self.assertRaises(tmc.BadInputError) as caught:
                step(**dict(batch, **{name: wrong}))
            self.assertIn(f"input '{name}' takes", caught.exception.message)

    def test_types_that_hold_all_numbers(self) -> None:
        batch = digits()
        half = batch["image"].astype(np.float16)
        losses = []
        for image, label in (
            (half.astype(np.float32), batch["label"]),
            (half, batch["label"].astype(np.uint8)),
            (half.astype(">f4"), batch["label"].astype(">i2")),
            (half[:, ::-1][:, ::-1], list(map(int, batch["label"]))),
        ):
            step = self.open()
            step.init_random(2)
            losses.append(step(image=image, label=label))
        self.assertEqual(len(set(losses)), 1)

    def test_an_input_keeps_its_values(self) -> None:
        first, second, batch = self.open(), self.open(), digits()
        first.init_random(1)
        second.init_random(1)
        self.assertEqual(first(**batch), second(**batch))
        self.assertEqual(first(), second(**batch))

    def test_an_evaluation_changes_nothing(self) -> None:
        first, second = self.open(), self.open()
        for step in (first, second):
            step.init_random(5)
        other = {"image": digits()["image"][::-1].copy(), "label": digits()["label"]}
        for _ in range(3):
            foretold = first.evaluate(**digits())
            self.assertNotEqual(first.evaluate(**other), foretold)
            self.assertEqual(first(**digits()), foretold)
            self.assertEqual(second(**digits()), foretold)
        self.assertEqual(first.statistics.steps, 3)
        for name in first.tensors:
            np.testing.assert_array_equal(first.tensors[name], second.tensors[name])
        with self.assertRaises(tmc.BadInputError):
            first.evaluate(label=np.full(32, 10))

    def test_a_label_outside_of_the_range(self) -> None:
        step, batch = self.open(), digits()
        step.init_random(1)
        batch["label"][3] = 10
        with self.assertRaisesRegex(tmc.BadInputError, "10"):
            step(**batch)

    def test_a_step_without_values(self) -> None:
        with self.assertRaises(tmc.UsageError):
            self.open()(**digits())

    def test_checkpoints_go_on_bit_by_bit(self) -> None:
        whole, parts = self.open(), self.open()
        for step in (whole, parts):
            step.init_random(1)
            step.learning_rate = 1e-2
        losses = [whole(**digits()) for _ in range(6)]
        for _ in range(3):
            parts(**digits())
        with tempfile.TemporaryDirectory() as place:
            parts.save(place)
            later = self.open()
            later.load(place)
        later.learning_rate = 1e-2
        self.assertEqual(later.statistics.steps, 3)
        self.assertEqual([later(**digits()) for _ in range(3)], losses[3:])

    def test_weights_go_out_and_in(self) -> None:
        step, other = self.open(), self.open()
        step.init_random(1)
        step(**digits())
        other.init_random(9)
        for most, files in ((10**9, 1), (300_000, 2), (1000, 6)):
            with tempfile.TemporaryDirectory() as place:
                step.save_pretrained(place, max_shard_size=most)
                self.assertEqual(len(list(Path(place).glob("*.safetensors"))), files)
                # The files are read where they are.
                with unittest.mock.patch.object(tempfile, "TemporaryDirectory", side_effect=AssertionError):
                    other.load(place)
            for name, value in step.state_dict().items():
                np.testing.assert_array_equal(other.tensors[name], value)

    def test_saved_in_sixteen_bits(self) -> None:
        step = self.open()
        step.init_random(1)
        with tempfile.TemporaryDirectory() as place:
            step.save_weights(place, "bf16")
            saved = dict(weights.read(Path(place) / "model.safetensors"))
        for name, value in step.state_dict().items():
            np.testing.assert_array_equal(saved[name], _arrays.bf16_to_f32(_arrays.f32_to_bf16(value)))
        with self.assertRaises(tmc.UsageError):
            step.save_weights(place, "f8")

    def test_files_that_are_no_weights(self) -> None:
        step = self.open()
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "model.safetensors"
            with self.assertRaisesRegex(tmc.BadInputError, "can't open .*No such file"):
                step.load(path)
            with self.assertRaisesRegex(tmc.BadInputError, "has no model.safetensors and no model.safetensors.index.json"):
                step.load(place)
            path.write_bytes(b"hello")
            with self.assertRaises(tmc.BadInputError):
                step.load(place)

    def test_learning_rates(self) -> None:
        step = self.open()
        step.init_random(1)
        self.assertIsNone(step.learning_rate)
        step.learning_rate = 0
        before = step.tensors["layers.0.weight"].copy()
        step(**digits())
        np.testing.assert_array_equal(step.tensors["layers.0.weight"], before)
        self.assertEqual(step.learning_rate, 0)
        with self.assertRaises(tmc.BadInputError):
            step.learning_rate = float("nan")

    def test_statistics(self) -> None:
        step = self.open()
        step.init_random(1)
        step(**digits())
        seen = step.statistics
        self.assertEqual((seen.steps, seen.skipped_steps, seen.loss_scale), (1, 0, None))
        self.assertIsNone(seen.allocations)
        self.assertGreater(seen.grad_norm or 0, 0)
        self.assertEqual(seen.arena_bytes, step.plan.arena_bytes)
        self.assertEqual([space.name for space in step.spaces], ["device", "host", "file"])
        self.assertEqual(step.spaces[0].arena_bytes, seen.arena_bytes)

    def test_a_closed_step(self) -> None:
        with tmc.Step(self.directory, threads=1) as step:
            step.init_random(1)
        for use in (
            lambda: step(**digits()),
            lambda: step.tensors["layers.0.weight"],
            lambda: step.statistics,
            lambda: step.spaces,
            lambda: step.save("nowhere"),
            lambda: setattr(step, "learning_rate", 1.0),
        ):
            with self.assertRaisesRegex(tmc.UsageError, "the step is closed"):
                use()
        step.close()
        self.assertIn("closed", repr(step))

    def test_threads_take_turns(self) -> None:
        # Each thread has a batch of its own, and gets the loss of that batch.
        step = self.open()
        step.init_random(1)
        step.learning_rate = 0.0
        batches = [{name: np.roll(values, i, 0) for name, values in digits().items()} for i in range(4)]
        for i, batch in enumerate(batches):
            batch["label"] = (batch["label"] + i) % 10
        wanted = [step(**batch) for batch in batches]
        self.assertEqual(len(set(wanted)), 4)
        losses: list[list[float]] = [[] for _ in batches]

        def train(own: int) -> None:
            losses[own] = [step(**batches[own]) for _ in range(50)]

        threads = [threading.Thread(target=train, args=(own,)) for own in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(losses, [[loss] * 50 for loss in wanted])

    def test_a_directory_without_a_step(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            with self.assertRaisesRegex(tmc.BadInputError, "has no plan.json"):
                tmc.Step(place)
            for text in ("no json", "[]", '{"library": "../x.so", "identity": ""}', "{}"):
                (Path(place) / "plan.json").write_text(text)
                with self.assertRaises(tmc.BadInputError):
                    tmc.Step(place)

    def test_bad_options(self) -> None:
        for wrong in ({"threads": -1}, {"seed": -1}, {"seed": 2**64}):
            with self.assertRaises(tmc.UsageError):
                tmc.Step(self.directory, **wrong)
        with self.assertRaises(tmc.UsageError):
            self.open().init_random(-1)


class LibrariesTest(unittest.TestCase):
    """Several steps in one process, and directories that come and go."""

    def test_a_directory_compiled_again_gives_the_new_step(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "step")
            first = compile_mlp(directory=path)
            with (
                tmc.compile(helpers.MLP, batch=8, target=helpers.TARGET, threads=1, directory=path) as second,
                first,
            ):
                self.assertEqual(
                    (first.inputs["label"].shape, second.inputs["label"].shape), ((BATCH,), (8,))
                )
                for step, count in ((first, BATCH), (second, 8)):
                    step.init_random(1)
                    self.assertTrue(np.isfinite(step(**digits(count))))

    def test_a_step_with_a_name_of_its_own(self) -> None:
        with compile_mlp(name="gan_d") as step:
            step.init_random(1)
            self.assertTrue(np.isfinite(step(**digits())))

    def test_temporary_directories_go(self) -> None:
        with compile_mlp() as step:
            place = step.directory
            self.assertTrue(place.is_dir())
        self.assertFalse(place.parent.exists())
        forgotten = compile_mlp()
        place = forgotten.directory
        gc.disable()  # The last reference alone closes a step: its arena may be large.
        self.addCleanup(gc.enable)
        del forgotten
        self.assertFalse(place.parent.exists())

    def test_a_library_of_another_compilation_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            one, two = os.path.join(place, "one"), os.path.join(place, "two")
            compile_mlp(directory=one).close()
            compile_mlp(directory=two, micro_batches=2).close()
            os.replace(os.path.join(two, "libstep.so"), os.path.join(one, "libstep.so"))
            with self.assertRaises(tmc.UsageError):
                tmc.Step(one)

    def test_codes_of_eight_bits_are_listed_and_read(self) -> None:
        with compile_mlp(optimizer="adamw8bit") as step:
            step.init_random(1)
            step(**digits())
            kinds = {step.tensors.info(name).dtype for name in step.tensors}
            self.assertTrue(kinds & {"u8", "i8"}, kinds)
            for name in step.tensors:
                self.assertEqual(step.tensors[name].shape, step.tensors.info(name).shape)


class FedInputsTest(unittest.TestCase):
    def test_what_the_step_writes_isnt_asked_for(self) -> None:
        # Dropout draws by a seed and the numbers of the samples, which the step counts.
        model = helpers.ROOT / "test" / "models" / "gpt2-tiny-dropout.pt2"
        with tmc.compile(model, target=helpers.TARGET, threads=1) as step:
            self.assertEqual(set(step.inputs), {"input_ids", "labels"})
            self.assertTrue(all(step.tensors.info(name).fed for name in ("samples", "seed", "lr")))
            step.init_random(1)
            step.learning_rate = 0.0
            ids = np.arange(4 * 32).reshape(4, 32) % 100
            self.assertNotEqual(step(input_ids=ids, labels=ids), step(input_ids=ids, labels=ids))
