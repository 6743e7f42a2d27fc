"""tmc.hf.Trainer against transformers' Trainer."""

from __future__ import annotations

import copy
import json
import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

from . import helpers
from .helpers import TARGET, needs, tmc

if helpers.has("torch", "transformers", "accelerate"):
    import torch
    import transformers
    from transformers import LlamaConfig, LlamaForCausalLM, TrainingArguments

    import tmc.hf


@needs("torch", "transformers", "accelerate")
class TrainerTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)
        self.model = LlamaForCausalLM(
            LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                        num_key_value_heads=2, max_position_embeddings=32, tie_word_embeddings=False))  # fmt: skip
        draws = torch.Generator().manual_seed(1)
        self.data = []
        for i in range(24):
            ids = torch.randint(0, 64, (12,), generator=draws)
            labels = ids.clone()
            labels[: i % 5] = -100  # Batches differ in the tokens that count.
            self.data.append({"input_ids": ids, "labels": labels})
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name

    def arguments(self, folder: str = "run", **more: Any) -> Any:
        given: dict[str, Any] = dict(
            max_steps=20, per_device_train_batch_size=4, learning_rate=1e-3, weight_decay=0.1, warmup_steps=4,
            lr_scheduler_type="cosine", logging_steps=1, report_to=[], use_cpu=True, disable_tqdm=True,
            save_strategy="no", dataloader_pin_memory=False)  # fmt: skip
        return TrainingArguments(os.path.join(self.place, folder), **dict(given, **more))

    def trainer(self, arguments: Any, kind: Any = None, **more: Any) -> Any:
        model = copy.deepcopy(self.model)
        if kind is not None:
            return kind(model, arguments, train_dataset=self.data, eval_dataset=self.data[:8], **more)
        flags = dict(more.pop("flags", {}), target=TARGET)
        return tmc.hf.Trainer(
            model,
            arguments,
            train_dataset=self.data,
            eval_dataset=self.data[:8],
            flags=flags,
            threads=1,
            **more,
        )

    def losses(self, trainer: Any) -> "list[float]":
        trainer.train()
        return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]

    def compare(self, first: "list[float]", second: "list[float]", count: int = 20) -> None:
        self.assertEqual((len(first), len(second)), (count, count))
        for step, (one, two) in enumerate(zip(first, second), 1):
            self.assertAlmostEqual(one, two, delta=1e-5, msg=f"step {step}")

    def test_losses_are_those_of_transformers(self) -> None:
        one = self.trainer(self.arguments(), transformers.Trainer)
        two = self.trainer(self.arguments())
        self.compare(self.losses(one), self.losses(two))
        for a, b in zip(one.state.log_history, two.state.log_history):
            self.assertEqual(a.get("learning_rate"), b.get("learning_rate"))
            if "grad_norm" in a:
                self.assertAlmostEqual(a["grad_norm"], b["grad_norm"], delta=1e-5)
        # The model has the values of the end.
        self.assertAlmostEqual(one.evaluate()["eval_loss"], two.evaluate()["eval_loss"], delta=1e-5)
        for name, value in one.model.state_dict().items():
            torch.testing.assert_close(two.model.state_dict()[name], value, atol=2e-5, rtol=0)

    @needs("peft", "datasets")
    def test_an_adapter_on_padded_rows_of_json_lines(self) -> None:
        from datasets import load_dataset
        from peft import LoraConfig, get_peft_model

        def collate(rows: Any) -> Any:
            def padded(key: str, by: int) -> Any:
                return torch.tensor([row[key] + [by] * (12 - len(row[key])) for row in rows])

            return {"input_ids": padded("input_ids", 0), "attention_mask": (padded("input_ids", -1) >= 0).long(),
                    "labels": padded("labels", -100)}  # fmt: skip

        path = Path(self.place) / "rows.jsonl"
        with open(path, "w") as file:
            for i, row in enumerate(self.data):
                length = 6 + i % 7
                file.write(json.dumps({"input_ids": row["input_ids"].tolist()[:length],
                                       "labels": row["labels"].tolist()[:length]}) + "\n")  # fmt: skip
        rows = load_dataset("json", data_files=str(path), split="train", cache_dir=self.place)
        self.model = get_peft_model(self.model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights="gaussian"))
        self.data = rows
        trainers = [self.trainer(self.arguments(remove_unused_columns=False), kind, data_collator=collate)
                    for kind in (transformers.Trainer, None)]  # fmt: skip
        self.compare(*[self.losses(trainer) for trainer in trainers])
        for name, value in trainers[0].model.state_dict().items():
            torch.testing.assert_close(trainers[1].model.state_dict()[name], value, atol=2e-5, rtol=0)

    def test_accumulation_is_micro_batches(self) -> None:
        more = dict(per_device_train_batch_size=2, gradient_accumulation_steps=2)
        two = self.trainer(self.arguments(**more))
        self.compare(
            self.losses(self.trainer(self.arguments(**more), transformers.Trainer)), self.losses(two)
        )
        self.assertEqual(two.step.plan.micro_batches, 2)

    def test_bf16_is_the_steps_precision(self) -> None:
        two = self.trainer(self.arguments(bf16=True))
        losses = self.losses(two)
        self.assertEqual(two.step.plan.precision.asked, "bf16")
        wide = self.losses(self.trainer(self.arguments(), transformers.Trainer))
        self.assertNotEqual(losses, wide)
        for one, other in zip(losses, wide):
            self.assertLess(abs(one - other), 2**-8 * other)  # A rounding of bf16.
        self.assertIsNotNone(two.model._original_forward)  # Evaluation keeps its autocast.
        self.assertNotEqual(two.model.forward, two.model._original_forward)

    def test_an_optimizer_of_eight_bits(self) -> None:
        trainer = self.trainer(self.arguments(max_steps=2, optim="adamw_bnb_8bit"))
        self.assertTrue(trainer._made_flags()["optimizer"].startswith("adamw8bit("))
        self.assertEqual(len(self.losses(trainer)), 2)

    def test_sgd(self) -> None:
        more = dict(optim="sgd", weight_decay=0.0, max_grad_norm=0.0, learning_rate=0.1)
        self.compare(
            self.losses(self.trainer(self.arguments(**more), transformers.Trainer)),
            self.losses(self.trainer(self.arguments(**more))),
        )

    def test_resuming_goes_on_bit_by_bit(self) -> None:
        more = dict(save_strategy="steps", save_steps=10, save_total_limit=2)
        whole = self.trainer(self.arguments(**more))
        losses = self.losses(whole)
        checkpoint = os.path.join(self.place, "run", "checkpoint-10")
        later = self.trainer(self.arguments(**more))
        later.train(resume_from_checkpoint=checkpoint)
        again = [entry["loss"] for entry in later.state.log_history if "loss" in entry]
        self.assertEqual(again[:10], losses[:10])
        self.assertEqual(again[10:], losses[10:])
        loaded = LlamaForCausalLM.from_pretrained(os.path.join(self.place, "run", "checkpoint-20"))
        for name, value in whole.model.state_dict().items():
            self.assertTrue(torch.equal(loaded.state_dict()[name], value), name)
        with self.assertRaisesRegex(tmc.BadInputError, "has no step to resume"):
            os.rename(os.path.join(checkpoint, "tmc"), os.path.join(checkpoint, "gone"))
            self.trainer(self.arguments(**more)).train(resume_from_checkpoint=checkpoint)

    def test_a_second_training_goes_on(self) -> None:
        histories = []
        for kind in (transformers.Trainer, None):
            trainer = self.trainer(self.arguments(max_steps=5), kind)
            first = self.losses(trainer)
            with torch.no_grad():  # The user may change the model between them.
                trainer.model.lm_head.weight.mul_(1.5)
            histories.append(first + self.losses(trainer))
        self.compare(*histories, count=10)

    def test_the_best_model_comes_back(self) -> None:
        trainer = self.trainer(self.arguments(max_steps=6, save_strategy="steps", save_steps=2, eval_strategy="steps", eval_steps=2,
                                              load_best_model_at_end=True, learning_rate=3e-1, lr_scheduler_type="constant", warmup_steps=0))  # fmt: skip
        trainer.train()
        best = trainer.state.best_metric
        evals = [entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry]
        self.assertEqual(best, min(evals))
        self.assertAlmostEqual(trainer.evaluate()["eval_loss"], best, delta=1e-5)

    def test_callbacks_hear_the_training(self) -> None:
        heard: list[str] = []

        class Listener(transformers.TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
                heard.append("step")
                if state.global_step == 5:
                    control.should_training_stop = True

            def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
                heard.append("log " + ",".join(sorted(logs)))

        trainer = self.trainer(self.arguments(), callbacks=[Listener()])
        trainer.train()
        self.assertEqual(heard.count("step"), 5)
        self.assertIn("log epoch,grad_norm,learning_rate,loss", heard)
        self.assertEqual(trainer.step.statistics.steps, 5)

    def test_arguments_that_cant_be_honoured_are_named(self) -> None:
        arguments = self.arguments(label_smoothing_factor=0.1, neftune_noise_alpha=5.0, optim="adagrad")
        with self.assertRaises(tmc.UsageError) as caught:
            self.trainer(arguments)
        for text in ("label_smoothing_factor=0.1", "neftune_noise_alpha=5.0", "optim='adagrad'"):
            self.assertIn(text, caught.exception.message)
        with self.assertRaisesRegex(tmc.UsageError, "model_init"):
            tmc.hf.Trainer(args=self.arguments(), model_init=lambda: self.model)
        with self.assertRaisesRegex(tmc.UsageError, "optimizers"):
            self.trainer(self.arguments(), optimizers=(object(), None))

        class Own(tmc.hf.Trainer):
            def compute_loss(self, *arguments: Any, **more: Any) -> Any:
                return None

        with self.assertRaisesRegex(tmc.UsageError, "compute_loss"):
            Own(self.model, self.arguments())

    def test_a_smaller_last_batch_is_named(self) -> None:
        with self.assertRaisesRegex(
            tmc.UsageError, "dataloader_drop_last=False: 24 samples leave a smaller batch than 5 x 1"
        ):
            self.trainer(self.arguments(per_device_train_batch_size=5)).train()
        self.assertEqual(
            len(
                self.losses(
                    self.trainer(
                        self.arguments(per_device_train_batch_size=5, dataloader_drop_last=True, max_steps=6)
                    )
                )
            ),
            6,
        )

    def test_a_batch_of_another_shape_is_named(self) -> None:
        calls = iter(range(100))

        def shorter(rows: Any) -> Any:
            length = 12 - next(calls) // 2
            return {name: torch.stack([row[name][:length] for row in rows]) for name in rows[0]}

        with self.assertRaises(tmc.BadInputError) as caught:
            self.trainer(self.arguments(), data_collator=shorter).train()
        self.assertIn("input 'input_ids' takes i64 [4, 12], and got i64 [4, 11]", str(caught.exception))
        self.assertIn("pad to one length", str(caught.exception))

    def test_own_flags_come_first(self) -> None:
        trainer = self.trainer(
            self.arguments(max_steps=2, optim="adagrad"), flags={"optimizer": "lion(clip=1.0)"}
        )
        trainer.train()
        self.assertEqual(trainer.step.statistics.steps, 2)
        self.assertTrue(any("exp_avg" in name for name in trainer.step.tensors))

    def test_the_log_is_written(self) -> None:
        trainer = self.trainer(self.arguments(max_steps=2, save_strategy="steps", save_steps=2))
        trainer.train()
        state = json.loads((Path(self.place) / "run" / "checkpoint-2" / "trainer_state.json").read_text())
        self.assertEqual(state["global_step"], 2)
