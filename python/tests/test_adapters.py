"""Adapters of a step by the package, and the values that a compilation recorded."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

import numpy as np

from tmc import weights

from . import helpers
from .helpers import ROOT, TARGET, needs, tmc

if helpers.has("torch", "transformers"):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

GRAPH = ROOT / "test" / "models" / "llama-tiny.pt2"
LORA = "r=4,alpha=8,targets=q_proj,v_proj"


def batch() -> dict[str, np.ndarray]:
    return {
        name: np.load(ROOT / "test" / "golden" / f"llama-tiny.{name}.npy") for name in ("input_ids", "labels")
    }


class AdapterTest(unittest.TestCase):
    """One compiled step for all."""

    _place: Any

    @classmethod
    def setUpClass(cls) -> None:
        cls._place = tempfile.TemporaryDirectory()
        cls.place = cls._place.name
        cls.directory = os.path.join(cls.place, "step")
        tmc.compile(GRAPH, directory=cls.directory, target=TARGET, lora=LORA, effort=1).close()

    @classmethod
    def tearDownClass(cls) -> None:
        cls._place.cleanup()

    def open(self) -> tmc.Step:
        step = tmc.Step(self.directory, threads=1)
        self.addCleanup(step.close)
        return step

    def trained(self) -> tmc.Step:
        step = self.open()
        step.init_random(1)
        step.learning_rate = 1e-2
        for _ in range(2):
            step(**batch())
        return step

    def test_an_adapter_goes_out_and_in(self) -> None:
        step, other = self.trained(), self.open()
        saved = os.path.join(self.place, "saved")
        step.save_adapter(saved)
        files = sorted(os.listdir(saved))
        self.assertEqual(files, ["adapter_config.json", "adapter_model.safetensors"])
        tensors = dict(weights.read(Path(saved) / files[1]))
        self.assertEqual(len(tensors), 2 * 2 * 2)
        other.init_random(1)
        before = other(**batch())
        other.load_adapter(saved)
        for name, array in tensors.items():
            own = name.removeprefix("base_model.model.")
            np.testing.assert_array_equal(array, step.tensors[own])
            np.testing.assert_array_equal(array, other.tensors[own])
        loss = step.evaluate(**batch())
        self.assertEqual(other.evaluate(**batch()), loss)
        self.assertNotEqual(before, loss)
        self.assertEqual(other.statistics.steps, 1)

    def test_what_isnt_its_adapter(self) -> None:
        step = self.trained()
        saved = Path(self.place) / "other"
        step.save_adapter(saved)
        config = saved / "adapter_config.json"
        text = config.read_text()
        loss = step.evaluate(**batch())
        for old, new, error in (
            ('"lora_alpha": 8', '"lora_alpha": 16', tmc.BadInputError),
            ('"peft_type": "LORA"', '"peft_type": "IA3"', tmc.UnsupportedError),
        ):
            self.assertIn(old, text)
            config.write_text(text.replace(old, new))
            with self.assertRaises(error):
                step.load_adapter(saved)
        with self.assertRaises(tmc.Error):
            step.load_adapter(os.path.join(self.place, "absent"))
        self.assertEqual(step.evaluate(**batch()), loss)

    def test_a_step_without_values(self) -> None:
        step = self.open()
        for call in (step.save_adapter, step.load_adapter):
            with self.assertRaises(tmc.UsageError):
                call(os.path.join(self.place, "none"))
        self.assertFalse(os.path.exists(os.path.join(self.place, "none")))

    def test_a_step_without_adapters(self) -> None:
        with helpers.compile_mlp() as step:
            step.init_random(1)
            for call in (step.save_adapter, step.load_adapter):
                with self.assertRaisesRegex(tmc.UsageError, "no adapters"):
                    call(os.path.join(self.place, "none"))


class RecordedTest(unittest.TestCase):
    def test_a_step_begins_with_the_recorded_values(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            with helpers.compile_mlp() as first:
                first.init_random(3)
                first.save_pretrained(os.path.join(place, "model"), max_shard_size=300_000)
                values = first.state_dict()
            directory = os.path.join(place, "step")
            with helpers.compile_mlp(directory=directory, weights=os.path.join(place, "model")) as step:
                self.assertFalse(os.path.exists(os.path.join(directory, "weights.safetensors")))
                for name, value in values.items():
                    np.testing.assert_array_equal(step.tensors[name], value)
            os.rename(os.path.join(place, "model"), os.path.join(place, "moved"))
            with self.assertRaisesRegex(tmc.BadInputError, "weights.json' names it"):
                tmc.Step(directory)


@needs("torch", "transformers", "peft")
class PeftTest(unittest.TestCase):
    def test_peft_loads_a_saved_adapter(self) -> None:
        import peft

        torch.manual_seed(0)
        model = LlamaForCausalLM(
            LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                        num_key_value_heads=2, max_position_embeddings=32, use_cache=False))  # fmt: skip
        ids = torch.randint(0, 64, (2, 16))
        with tempfile.TemporaryDirectory() as place:
            base, saved = os.path.join(place, "base"), os.path.join(place, "adapter")
            model.save_pretrained(base)
            graph = os.path.join(place, "model.pt2")
            torch.export.save(torch.export.export(model, (), dict(input_ids=ids, labels=ids.clone())), graph)
            step = tmc.compile(graph, target=TARGET, weights=base, threads=1, lora="r=4,targets=all-linear")
            with step:
                step.learning_rate = 1e-2
                for _ in range(3):
                    step(input_ids=ids, labels=ids)
                step.save_adapter(saved)
                loss = step.evaluate(input_ids=ids, labels=ids)
            theirs = peft.PeftModel.from_pretrained(LlamaForCausalLM.from_pretrained(base), saved)
            with torch.no_grad():
                self.assertAlmostEqual(theirs(input_ids=ids, labels=ids).loss.item(), loss, delta=1e-5)
                plain = LlamaForCausalLM.from_pretrained(base)(input_ids=ids, labels=ids).loss.item()
            self.assertGreater(abs(plain - loss), 1e-3)
