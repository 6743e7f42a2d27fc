"""Modules of torch: export, losses against torch in double, values back into the module."""

from __future__ import annotations

import copy
import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

import numpy as np

from . import helpers
from .helpers import TARGET, needs, tmc
from tmc import exporting

if helpers.has("torch"):
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Net(nn.Module):
        """A net with dropout's mode, a batch norm's statistics and a tied weight."""

        def __init__(self, dropout: float = 0.0) -> None:
            super().__init__()
            # Its bias would have a gradient of nothing but rounding.
            self.first = nn.Linear(6, 8, bias=False)
            self.norm = nn.BatchNorm1d(8)
            self.drop = nn.Dropout(dropout)
            self.second = nn.Linear(8, 6, bias=False)
            self.last = nn.Linear(8, 6, bias=False)
            self.last.weight = self.second.weight

        def forward(self, x: Any, target: Any) -> Any:
            h = self.drop(F.relu(self.norm(self.first(x))))
            return {"loss": F.mse_loss(self.second(h) + self.last(torch.tanh(h)), target)}


@needs("torch")
class ExportTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)
        self.x, self.target = torch.randn(5, 6), torch.randn(5, 6)

    def compile(self, module: Any, batch: Any, **more: Any) -> tmc.Step:
        step = tmc.compile(module, batch, target=TARGET, threads=1, **more)
        self.addCleanup(step.close)
        return step

    def test_losses_and_values_are_those_of_torch_in_double(self) -> None:
        module = Net()
        peer = copy.deepcopy(module).double().train()
        step = self.compile(module, (self.x, self.target), optimizer="adamw(weight_decay=0.1,clip=1.0)")
        step.learning_rate = 1e-2
        optimizer = torch.optim.AdamW(peer.parameters(), lr=1e-2, weight_decay=0.1)
        for _ in range(10):
            loss = peer(self.x.double(), self.target.double())["loss"]
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(peer.parameters(), 1.0)
            optimizer.step()
            self.assertAlmostEqual(step(x=self.x, target=self.target), loss.item(), delta=5e-6)
        state = step.state_dict()
        self.assertEqual(set(state), set(peer.state_dict()))  # Tied names, num_batches_tracked.
        step.load_into(module)
        for name, value in peer.state_dict().items():
            np.testing.assert_allclose(module.state_dict()[name].double(), value, atol=2e-5, err_msg=name)
        self.assertIs(module.last.weight, module.second.weight)

    def test_a_module_of_another_model_stays_as_it_is(self) -> None:
        step = self.compile(Net(), (self.x, self.target))
        other = nn.Sequential(nn.Linear(6, 8))
        before = copy.deepcopy(other.state_dict())
        with self.assertRaisesRegex(tmc.BadInputError, "the module has no 'first.weight'"):
            step.load_into(other)
        wide = Net()
        wide.first = nn.Linear(7, 8)
        with self.assertRaisesRegex(
            tmc.BadInputError, r"'first.weight' is \[8, 6\] in the step and \[8, 7\]"
        ):
            step.load_into(wide)
        for name, value in before.items():
            self.assertTrue(torch.equal(other.state_dict()[name], value))

    def test_a_module_in_eval_is_trained(self) -> None:
        module = Net(dropout=0.5).eval()
        step = self.compile(module, dict(x=self.x, target=self.target))
        self.assertFalse(any(part.training for part in module.modules()))
        step.learning_rate = 0.0
        self.assertNotEqual(step(x=self.x, target=self.target), step(x=self.x, target=self.target))

    def test_a_part_in_eval_stays_fixed(self) -> None:
        module = Net(dropout=0.5).train()
        module.drop.eval()
        module.norm.eval()
        step = self.compile(module, dict(x=self.x, target=self.target))
        self.assertEqual([m.training for m in (module, module.drop, module.norm)], [True, False, False])
        step.learning_rate = 0.0
        self.assertEqual(step(x=self.x, target=self.target), step(x=self.x, target=self.target))

    def test_frozen_parameters(self) -> None:
        module = Net()
        module.first.weight.requires_grad_(False)
        step = self.compile(module, (self.x, self.target))
        before = step.tensors["first.weight"].copy()
        step(x=self.x, target=self.target)
        self.assertFalse(step.tensors.info("first.weight").trainable)
        np.testing.assert_array_equal(step.tensors["first.weight"], before)

    def test_aliased_inputs_are_separate(self) -> None:
        one = torch.randn(5, 6)
        for batch in (
            dict(x=one, target=one),
            dict(x=one, target=one.view(5, 6)),
            dict(x=one.numpy(), target=one.numpy()),
        ):
            step = self.compile(Net(), batch)
            losses = [step(x=self.x, target=t) for t in (self.x, self.target)]
            self.assertNotEqual(*losses)

    def test_torch_tensors_of_all_kinds(self) -> None:
        losses = []
        for x in (
            self.x.half().float(),
            self.x.half(),
            self.x.half().float().requires_grad_(),
            self.x.half().float().t().contiguous().t(),
            self.x.half().float().numpy(),
        ):
            step = self.compile(Net(), (self.x, self.target)) if not losses else step  # noqa: F821
            step.learning_rate = 0.0
            losses.append(step(x=x, target=self.target))
        self.assertEqual(len(set(losses)), 1)
        rounded = self.x.bfloat16()
        self.assertEqual(step(x=rounded, target=self.target), step(x=rounded.float(), target=self.target))
        for wrong in (self.x.double(), self.x.to_sparse(), self.x[:2], torch.empty(5, 6, device="meta")):
            with self.assertRaises(tmc.BadInputError):
                step(x=wrong, target=self.target)

    def test_names_of_dimensions_are_kept(self) -> None:
        path = tmc.export(
            Net(),
            (self.x, self.target),
            dynamic_dims={"x": {0: "rows"}, "target": {0: "rows"}},
            path=self.place / "net.pt2",
        )
        self.assertEqual(exporting.dims_of(path), {"rows": "x.0"})
        with tmc.compile(path, dim={"rows": 9}, target=TARGET, threads=1) as step:
            self.assertEqual(step.inputs["x"].shape, (9, 6))
            self.assertTrue(np.isfinite(step(x=torch.randn(9, 6), target=torch.randn(9, 6))))
        self.assertEqual(tmc.plan(path, dim={"x.0": 3}, target=TARGET).model, "net")
        self.assertEqual(exporting.dims_of(helpers.MLP), {})

    def test_wrong_calls(self) -> None:
        for batch, dims in (
            (3, None),
            ((), None),
            ({}, None),
            ((self.x,) * 3, None),
            (dict(x=self.x, target=self.target), {"y": {0: "rows"}}),
            (dict(x=self.x, target=self.target), {"x": {2: "rows"}}),
            (dict(x=self.x, target=self.target), {"x": {0: "a b"}}),
        ):
            with self.subTest(str(batch)[:20]), self.assertRaises(tmc.UsageError):
                tmc.export(Net(), batch, dims, self.place / "net.pt2")
        with self.assertRaisesRegex(tmc.UsageError, "a path or a torch module"):
            tmc.export(object(), (self.x,))
        with self.assertRaisesRegex(tmc.UsageError, "needs example_inputs"):
            tmc.compile(Net())
        self.assertEqual(os.listdir(self.place), [])

    def test_a_failed_export_leaves_the_old_file(self) -> None:
        class Data(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.training_weight = nn.Parameter(torch.ones(3))

            def forward(self, x: Any) -> Any:
                return self.training_weight.sum() if x.sum() > 0 else x.sum()

        path = self.place / "net.pt2"
        path.write_text("old")
        module = Data().eval()
        with self.assertRaises(Exception):
            tmc.export(module, (self.x,), path=path)
        self.assertEqual((path.read_text(), os.listdir(self.place)), ("old", ["net.pt2"]))
        self.assertFalse(module.training)

    def test_a_step_in_sixteen_bits(self) -> None:
        module = Net().bfloat16()
        step = self.compile(module, (self.x.bfloat16(), self.target.bfloat16()))
        name = "first.weight"
        self.assertEqual(step.tensors[name].dtype, np.float32)
        np.testing.assert_array_equal(step.tensors[name], module.first.weight.detach().float().numpy())
        step.tensors[name] = module.first.weight * 2
        np.testing.assert_array_equal(step.tensors[name], 2 * module.first.weight.detach().float().numpy())


@needs("torch", "transformers")
class PretrainedTest(unittest.TestCase):
    def model(self, **more: Any) -> Any:
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(0)
        config = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                      num_key_value_heads=2, max_position_embeddings=32)  # fmt: skip
        return LlamaForCausalLM(LlamaConfig(**dict(config, **more)))

    def test_a_directory_for_from_pretrained(self) -> None:
        for tied in (False, True):
            model = self.model(tie_word_embeddings=tied)
            ids = torch.randint(0, 96, (2, 8))
            with (
                tmc.compile(model, dict(input_ids=ids, labels=ids), target=TARGET, threads=1) as step,
                tempfile.TemporaryDirectory() as place,
            ):
                self.assertTrue(model.config.use_cache)
                step(input_ids=ids, labels=ids)
                for most in ("5GB", 10_000):
                    step.save_pretrained(place, max_shard_size=most)
                    again, info = type(model).from_pretrained(place, output_loading_info=True)
                    self.assertEqual(
                        [len(info[key]) for key in ("missing_keys", "unexpected_keys", "mismatched_keys")],
                        [0, 0, 0],
                    )
                    self.assertEqual(again.config.architectures, ["LlamaForCausalLM"])
                    step.load_into(model)
                    for name, value in model.state_dict().items():
                        self.assertTrue(torch.equal(again.state_dict()[name], value), name)
                    if most != "5GB":
                        self.shards_are_those_of_transformers(model, place, most)

    def shards_are_those_of_transformers(self, model: Any, place: str, most: Any) -> None:
        import json

        with tempfile.TemporaryDirectory() as other:
            model.save_pretrained(other, max_shard_size=most)
            maps = [
                json.loads((Path(d) / "model.safetensors.index.json").read_text()) for d in (other, place)
            ]
        if not model.config.tie_word_embeddings:  # transformers writes one name of a tied weight.
            self.assertEqual(*maps)

    @needs("peft")
    def test_an_adapter_of_peft(self) -> None:
        import peft

        model = peft.get_peft_model(self.model(), peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
        ids = torch.randint(0, 96, (2, 8))
        peer = copy.deepcopy(model).double().train()
        trained = [p for p in peer.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=1e-2, weight_decay=0)
        with tmc.compile(
            model,
            dict(input_ids=ids, labels=ids),
            target=TARGET,
            threads=1,
            optimizer="adamw(weight_decay=0)",
        ) as step:
            self.assertEqual(sum(step.tensors.info(name).trainable for name in step.tensors), len(trained))
            step.learning_rate = 1e-2
            for _ in range(5):
                loss = peer(input_ids=ids, labels=ids).loss
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                self.assertAlmostEqual(step(input_ids=ids, labels=ids), loss.item(), delta=5e-6)
            step.load_into(model)
            with tempfile.TemporaryDirectory() as place, self.assertRaisesRegex(tmc.UsageError, "PEFT"):
                step.save_pretrained(place)
        for name, value in peer.named_parameters():
            torch.testing.assert_close(
                model.state_dict()[name].double(), value.data.double(), atol=2e-5, rtol=0
            )

    def test_files_beside_the_model_are_copied(self) -> None:
        model = self.model()
        ids = torch.randint(0, 96, (2, 8))
        with tempfile.TemporaryDirectory() as source, tempfile.TemporaryDirectory() as place:
            model.save_pretrained(source)
            (Path(source) / "tokenizer.json").write_text("{}")
            path = tmc.export(model, dict(input_ids=ids, labels=ids), path=Path(source) / "model.pt2")
            with tmc.compile(path, target=TARGET, threads=1) as step:
                step.save_pretrained(place, dtype="bf16")
            self.assertLessEqual(
                {"config.json", "generation_config.json", "tokenizer.json", "model.safetensors"},
                set(os.listdir(place)),
            )
            self.assertNotIn("model.pt2", os.listdir(place))
