"""A Trainer for models of transformers, whose steps tmc compiles.

    trainer = tmc.hf.Trainer(model, TrainingArguments("run", max_steps=100, use_cpu=True), train_dataset=data,
                             budget="12GiB")
    trainer.train()
    trainer.save_model("trained")

It is transformers' Trainer: data loading, schedules, logging, callbacks (TensorBoard, W&B),
checkpoints and evaluation are its own. Forward, backward, clipping and update of a training step
are one call of a compiled step. Evaluation runs in PyTorch on the CPU, from the step's values.

- Each batch has the shapes of the first: pad to one length (`padding="max_length"`).
- `gradient_accumulation_steps` become micro-batches of one step over all of their samples.
- `gradient_checkpointing` isn't taken: tmc recomputes by its plan, as the budget asks for.
- An argument that can't be honoured is refused by its name, before anything is compiled.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Optional, Union

import torch
import transformers

from .compiling import compile
from .errors import BadInputError, UsageError
from .step import Step

__all__ = ["Trainer"]

_CHECKPOINT = "tmc"  # The step's own checkpoint within one of the Trainer.
_SCHEDULER = "scheduler.pt"

# Arguments that a compiled step has no place for, and their values that ask for nothing. A name
# that this version of transformers doesn't have asks for nothing, too.
_ONLY: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "label_smoothing_factor": ((0, 0.0), "put the loss into the model's forward"),
    "neftune_noise_alpha": ((None,), ""),
    "optim_args": ((None, ""), "give the flag optimizer to tmc.hf.Trainer"),
    "optim_target_modules": ((None,), ""),
    "gradient_checkpointing": ((False, None), "tmc recomputes as the budget asks for"),
    "activation_checkpointing": ((False, None), "tmc recomputes as the budget asks for"),
    "fp16": ((False,), "give the flag precision='fp16' to tmc.hf.Trainer"),
    "tf32": ((None, False), "give the flag precision='tf32' to tmc.hf.Trainer"),
    "torch_compile": ((False,), ""),
    "fsdp": ((None, False, "", []), ""),
    "deepspeed": ((None,), ""),
    "parallelism_config": ((None,), ""),
    "use_liger_kernel": ((False,), ""),
    "auto_find_batch_size": ((False,), "tmc.plan says which batch fits"),
    "torch_empty_cache_steps": ((None,), ""),
    "debug": (("", []), "give check_finite=True to tmc.hf.Trainer"),
    "use_cache": ((False, None), "training keeps no keys and values"),
}
# Optimizers with the same update, by transformers' name.
_ADAMW = {
    "adamw_torch": "adamw",
    "adamw_torch_fused": "adamw",
    "adamw_8bit": "adamw8bit",
    "adamw_bnb_8bit": "adamw8bit",
}


def refused(args: Any) -> list[str]:
    """The arguments that can't be honoured, each with its value and the way out if there is one."""
    found = []
    for name, (harmless, way) in _ONLY.items():
        value = getattr(args, name, harmless[0])
        if not any(value is each or value == each for each in harmless):
            found.append(f"{name}={value!r}" + (f" ({way})" if way else ""))
    optim = str(getattr(args.optim, "value", args.optim))
    if optim not in _ADAMW and optim != "sgd":
        found.append(f"optim={optim!r} (there are {', '.join([*_ADAMW, 'sgd'])}, or the flag optimizer)")
    if args.world_size > 1 or args.n_gpu > 1:
        found.append(f"{max(args.world_size, args.n_gpu)} devices (a step has one)")
    elif args.device.type != "cpu":
        found.append(
            f"use_cpu={args.use_cpu!r} (evaluation runs on the CPU; the step's device is the flag target)"
        )
    return found


def optimizer_spec(args: Any, undecayed: list[str]) -> str:
    """The flag `optimizer` of the same update. undecayed: parameters without weight decay."""
    optim = str(getattr(args.optim, "value", args.optim))
    fields: dict[str, object] = {"weight_decay": repr(float(args.weight_decay))}
    if optim in _ADAMW:
        fields.update(
            beta1=repr(float(args.adam_beta1)),
            beta2=repr(float(args.adam_beta2)),
            eps=repr(float(args.adam_epsilon)),
        )
    else:
        fields["momentum"] = "0"
    if args.weight_decay and undecayed:
        fields["no_decay"] = "|".join(undecayed)
    if args.max_grad_norm and args.max_grad_norm > 0:
        fields["clip"] = repr(float(args.max_grad_norm))
    return f"{_ADAMW.get(optim, 'sgd')}({','.join(f'{name}={value}' for name, value in fields.items())})"


@contextlib.contextmanager
def _without_autocast(model: Any) -> Iterator[None]:
    """The forward of the model without the autocast that accelerate puts around it for bf16: the
    flag `precision` says which products are narrow."""
    wrapped, plain = model.forward, getattr(model, "_original_forward", None)
    if plain is not None:
        model.forward = plain
    try:
        yield
    finally:
        if plain is not None:
            model.forward = wrapped


class _RateHolder(torch.optim.Optimizer):
    """The learning rate for schedulers. The step makes the updates."""

    def __init__(self, parameters: Any, rate: float) -> None:
        super().__init__([{"params": list(parameters)}], {"lr": rate})

    def step(self, closure: Optional[Callable[[], float]] = None) -> None:  # type: ignore[override]
        return None


class Trainer(transformers.Trainer):
    """transformers' Trainer over a compiled step.

    model: a module whose forward gives the loss. args, train_dataset, eval_dataset,
    data_collator and more: as transformers' Trainer takes them, but for `optimizers`,
    `compute_loss_func` and `model_init`.
    budget, progress, threads, check_finite, flags: as of `tmc.compile`; `optimizer`, `precision`
    and `micro_batches` are made from `args` unless they are given.

    step: the compiled step, from the first batch on; None before. While it trains, it has the
        values: the model gets them for an evaluation, a save, and at the end of `train()`.
    Raises UsageError with all arguments that can't be honoured.
    """

    def __init__(
        self,
        model: Any = None,
        args: Any = None,
        data_collator: Any = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        *,
        budget: Union[int, str, None] = None,
        progress: Optional[Callable[[str], None]] = None,
        threads: int = 0,
        check_finite: bool = False,
        flags: Optional[Mapping[str, object]] = None,
        **more: Any,
    ) -> None:
        args = args if args is not None else transformers.TrainingArguments("trainer_output")
        found = (
            refused(args)
            if "optimizer" not in (flags or {})
            else [f for f in refused(args) if not f.startswith("optim=")]
        )
        found += [
            f"{name} (the step has its own)"
            for name in ("optimizers", "optimizer_cls_and_kwargs")
            if more.get(name) not in (None, (None, None))
        ]
        found += [
            f"{name} (put it into the model's forward)"
            for name in ("compute_loss_func",)
            if more.get(name) is not None
        ]
        if more.get("model_init") is not None or model is None:
            found.append("model_init (give the model)")
        if type(self).compute_loss is not transformers.Trainer.compute_loss:
            found.append("compute_loss of a subclass (put it into the model's forward)")
        if found:
            raise UsageError("tmc.hf.Trainer can't honour " + "; ".join(found))
        super().__init__(
            model=model,
            args=args,
            data_collator=data_collator,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            **more,
        )
        self.step: Optional[Step] = None
        self._compile_options: dict[str, Any] = dict(
            budget=budget, progress=progress, threads=threads, check_finite=check_finite
        )
        self._flags = dict(flags or {})
        self._waiting: list[dict[str, Any]] = []  # Batches of an unfinished accumulation.
        self._resume_from: Optional[Path] = None
        self._model_is_current = True

    # The step.

    def train(self, *arguments: Any, **more: Any) -> Any:
        """As transformers' Trainer. Raises UsageError if the last batch of an epoch is smaller.

        Another training goes on from the model's values and the optimizer's moments.
        """
        self._check_batches()
        self._waiting = []
        model: Any = self.model
        if self.step is not None:
            self._sync()
            for name, value in model.state_dict().items():
                if name in self.step.tensors:
                    self.step.tensors[name] = value
        result = super().train(*arguments, **more)
        self._sync()
        return result

    def _check_batches(self) -> None:
        data, args = self.train_dataset, self.args
        if data is None or not hasattr(data, "__len__") or args.dataloader_drop_last:
            return
        batch = args.train_batch_size
        updates = args.gradient_accumulation_steps
        if len(data) % (batch * updates):
            raise UsageError(
                f"tmc.hf.Trainer can't honour dataloader_drop_last=False: {len(data)} samples leave a smaller batch"
                " than "
                f"{batch} x {updates}",
                [
                    "give dataloader_drop_last=True"
                    if updates == 1
                    else f"give a multiple of {batch * updates} samples"
                ],
            )

    def _made_flags(self) -> dict[str, object]:
        model: Any = self.model
        decayed = set(self.get_decay_parameter_names(model))
        undecayed = [n for n, p in model.named_parameters() if p.requires_grad and n not in decayed]
        made: dict[str, object] = {"optimizer": optimizer_spec(self.args, undecayed)}
        if self.args.bf16:
            made["precision"] = "bf16"
        if self.args.gradient_accumulation_steps > 1:
            made["micro_batches"] = self.args.gradient_accumulation_steps
        return {**made, **self._flags}

    def _compile(self, batch: dict[str, Any]) -> Step:
        options: dict[str, Any] = {**self._compile_options, **self._made_flags()}
        with _without_autocast(self.model):
            step = compile(self.model, batch, seed=self.args.seed, **options)
        if self._resume_from is not None:
            step.load(self._resume_from)
            self._resume_from = None
        return step

    def training_step(
        self, model: Any, inputs: Mapping[str, Any], num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """Runs a step, at the last batch of an accumulation, and gives its loss; 0 before."""
        self._waiting.append({name: value for name, value in inputs.items() if torch.is_tensor(value)})
        if not self.accelerator.gradient_state.sync_gradients:
            return torch.zeros((), device=self.args.device)
        parts, self._waiting = self._waiting, []
        try:
            batch = {
                name: torch.cat([part[name] for part in parts]) if len(parts) > 1 else parts[0][name]
                for name in parts[0]
            }
        except (KeyError, RuntimeError) as error:
            raise BadInputError(
                f"the batches of an accumulation differ: {error}", ["pad all samples to one length"]
            ) from None
        if self.step is None:
            self.step = self._compile(batch)
        self.step.learning_rate = self._get_learning_rate()
        try:
            loss = self.step(**batch)
        except BadInputError as error:
            raise BadInputError(
                error.message, [*error.notes, "each batch has the shapes of the first: pad to one length"]
            ) from None
        self._model_is_current = False
        return torch.tensor(loss, device=self.args.device)

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """An optimizer that holds the learning rate for the scheduler."""
        if self.optimizer is None:
            owner: Any = self.model if model is None else model
            trained = [p for p in owner.parameters() if p.requires_grad]
            if not trained:
                raise BadInputError("the model has no parameter to train")
            self.optimizer = _RateHolder(trained, self.args.learning_rate)
        return self.optimizer

    def _clip_grad_norm(self, model: Any) -> Optional[float]:
        return self.step.statistics.grad_norm if self.step is not None else None

    def _get_grad_norm(self, model: Any, grad_norm: Optional[float] = None) -> Optional[float]:
        return grad_norm

    # The model.

    def _sync(self) -> None:
        """Copies the step's values into the model, if a step ran since the last time."""
        if self.step is not None and not self._model_is_current:
            self.step.load_into(self.model)
            self._model_is_current = True

    def evaluation_loop(self, *arguments: Any, **more: Any) -> Any:
        self._sync()
        return super().evaluation_loop(*arguments, **more)

    def save_model(self, *arguments: Any, **more: Any) -> None:
        """Writes the model as `save_pretrained` of transformers does."""
        self._sync()
        super().save_model(*arguments, **more)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if self.step is not None:
            self.step.save(os.path.join(output_dir, _CHECKPOINT))
        scheduler: Any = self.lr_scheduler
        torch.save(scheduler.state_dict(), os.path.join(output_dir, _SCHEDULER))

    def _load_optimizer_and_scheduler(self, checkpoint: Optional[str]) -> None:
        if checkpoint is None:
            return
        place = Path(checkpoint) / _CHECKPOINT
        if not place.is_dir():
            raise BadInputError(
                f"'{checkpoint}' has no step to resume: save_only_model left it out, or another Trainer wrote it"
            )
        if self.step is not None:
            self.step.load(place)
        else:
            self._resume_from = place
        scheduler: Any = self.lr_scheduler
        scheduler.load_state_dict(torch.load(Path(checkpoint) / _SCHEDULER, weights_only=True))

    def _load_best_model(self) -> None:
        super()._load_best_model()
        self._model_is_current = True
