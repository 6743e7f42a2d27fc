"""A compiled step: batches in, losses out, its tensors by name.

    with tmc.Step("gpt2", threads=8) as step:      # a directory that tmc compile wrote
        step.init_random(1)
        step.learning_rate = 3e-4
        for tokens in batches:
            loss = step(tokens=tokens)
        step.save_pretrained("trained")

Batches are copied into the step's arena. Tensors are views of it where they stay at their place.
"""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import tempfile
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Optional, TypeVar, Union

from . import _arrays, weights
from ._abi import CSpace, CStatistics, CTensor, DType, Library, Options, Role
from ._arrays import Array
from .errors import BadInputError, UsageError
from .plan import Plan
from .tensors import TensorInfo, Tensors

__all__ = ["Space", "Statistics", "Step", "TensorInfo", "Tensors"]

PathLike = Union[str, "os.PathLike[str]"]
_Self = TypeVar("_Self", bound="Step")

CHECKPOINT_FILE = "checkpoint.safetensors"


@dataclass(frozen=True)
class Statistics:
    """Figures of a step so far. None: the step doesn't have this figure.

    arena_bytes: planned bytes of the device. high_water_bytes: its pages that were touched.
    allocations: blocks of more than 1 KiB outside of it, in the last step; the largest has
    largest_allocation_bytes. Only the trainer's program counts them.
    steps: done so far, resumed ones included. last_step_seconds: of wall time.
    grad_norm: of the last step. loss_scale: of the next one.
    skipped_steps: with gradients that weren't finite. saturations: of 8-bit codes.
    """

    arena_bytes: int
    high_water_bytes: int
    allocations: Optional[int]
    largest_allocation_bytes: Optional[int]
    steps: int
    last_step_seconds: float
    grad_norm: Optional[float]
    loss_scale: Optional[float]
    skipped_steps: int
    saturations: Optional[int]


@dataclass(frozen=True)
class Space:
    """A memory of the step: "device", "host" or "file", with its planned and touched bytes."""

    name: str
    arena_bytes: int
    high_water_bytes: int


def _destroy(library: Library, handle: int, owner: int, temporary: Optional[str]) -> None:
    if os.getpid() != owner:
        return  # A forked child has a copy of the memory, but none of the threads.
    library.step_destroy(handle)
    if temporary:
        shutil.rmtree(temporary, ignore_errors=True)


class Step:
    """A step of a directory that `tmc compile` wrote, with its library and its arena.

    directory: it needs `libstep.so` and `plan.json`. If the compilation recorded or copied the
        values of all parameters, they are loaded, and adapters start by their rules.
    threads: of the kernels; 0: one per core.
    seed: of dropout and other draws.
    check_finite: fail at the first launch that makes NaN or infinity.
    poison: overwrite each buffer at its death, a check.

    A step is closed by `close()`, by `with`, with its last reference, or when Python ends. Arrays of
    `tensors` stay valid; the arena goes with the last one of them.
    Several threads may call it: the calls are made one after the other.
    Raises BadInputError if the directory has no step, MachineError if the machine can't run it,
    BudgetError if a library wants more memory than planned.
    """

    def __init__(
        self,
        directory: PathLike,
        *,
        threads: int = 0,
        seed: int = 0,
        check_finite: bool = False,
        poison: bool = False,
        _temporary: Optional[str] = None,
        _source: object = None,
    ) -> None:
        self.directory = Path(directory)
        self.plan = Plan.of_directory(self.directory)
        name, identity = self.plan.get("library"), self.plan.get("identity")
        if not isinstance(name, str) or not isinstance(identity, str) or os.path.basename(name) != name:
            raise BadInputError(f"'{self.directory}' has a plan without a library: compile with emit='lib'")
        if threads < 0 or seed < 0 or seed >= 2**64:
            raise UsageError(
                f"threads={threads}, seed={seed}: neither may be negative, and a seed has 64 bits"
            )
        library = Library(self.directory / name)
        options = Options()
        library.options_init(ctypes.byref(options), options.size)
        options.threads, options.seed = threads, seed
        options.check_finite, options.poison = int(check_finite), int(poison)
        handle = ctypes.c_void_p()
        library.check(library.step_create_of(identity.encode(), ctypes.byref(options), ctypes.byref(handle)))
        assert handle.value is not None
        self._library = library
        self._lock = threading.RLock()
        self._handle: Optional[int] = handle.value
        self._finalizer = weakref.finalize(self, _destroy, library, handle.value, os.getpid(), _temporary)
        self._learning_rate: Optional[float] = None
        self._source = _source
        self._infos = self._list()
        self._inputs = {
            name: (info, dtype)
            for name, (info, dtype) in self._infos.items()
            if info.role in ("batch", "scalar") and not info.fed
        }
        self._written: set[str] = set()
        self._load_shipped()

    # Its life.

    def close(self) -> None:
        """Unmaps the arena, if no array of `tensors` is left. Every later call raises UsageError; closing
        again does nothing."""
        with self._lock:
            self._handle = None
            self._finalizer()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a step can't be copied or pickled: save it")

    def __repr__(self) -> str:
        inputs = ", ".join(f"{i.name}: {i.dtype} {list(i.shape)}" for i in self.inputs.values())
        return f"<Step '{self.directory}' ({inputs}){'' if self._handle else ', closed'}>"

    def _call(self, name: str, *arguments: Any) -> None:
        """Calls a function of the C interface that gives a code."""
        with self._lock:
            if self._handle is None:
                raise UsageError("the step is closed")
            self._library.check(getattr(self._library, name)(self._handle, *arguments))

    def _write(self, name: str, storage: Array) -> None:
        self._call("step_write", name.encode(), storage.ctypes.data, storage.nbytes)
        self._written.add(name)

    def _list(self) -> dict[str, tuple[TensorInfo, DType]]:
        infos: dict[str, tuple[TensorInfo, DType]] = {}
        tensor = CTensor()
        for index in range(self._library.step_tensor_count(self._handle)):
            self._call("step_tensor", index, ctypes.byref(tensor))
            dtype = DType(tensor.dtype)
            info = TensorInfo(
                tensor.name.decode(),
                _arrays.dtype_name(dtype),
                tuple(tensor.dims[: tensor.rank]),
                Role(tensor.role).name.lower(),
                bool(tensor.trainable),
                bool(tensor.fed),
                tensor.bytes,
            )
            infos[info.name] = info, dtype
        return infos

    # Training.

    @property
    def inputs(self) -> Mapping[str, TensorInfo]:
        """The inputs of the model by name."""
        return {name: info for name, (info, _) in self._inputs.items()}

    def __call__(self, **batch: object) -> float:
        """Runs one training step (forward, backward, update), and gives the loss.

        batch: an array for each input: numpy, torch or anything with __dlpack__, of the
            input's shape, and of its type or one whose numbers all fit: narrower or wider
            integers that are in range, narrower floats. An input that is left out keeps its last
            values.
        Raises BadInputError, with all that is wrong with the batch, before anything is changed.
        Integers outside of the model's range (tokens, labels) are a BadInputError as well.
        """
        return self._loss_of("step_run", batch)

    def evaluate(self, **batch: object) -> float:
        """The loss of a batch without dropout, as `__call__` takes it. Nothing is trained, and
        later steps have the same bits as without the evaluation. Normalizations over the batch take
        its own statistics.

        Raises what `__call__` raises, and UnsupportedError where the forward pass draws random
        numbers in another way than dropout.
        """
        return self._loss_of("step_evaluate", batch)

    def _loss_of(self, function: str, batch: dict[str, object]) -> float:
        """Checks and writes a batch, and calls a function that gives its loss."""
        ready: dict[str, Array] = {}
        faults: list[str] = []
        for name, value in batch.items():
            if name not in self._inputs:
                faults.append(f"there is no input '{name}'")
                continue
            info, dtype = self._inputs[name]
            try:
                got = _arrays.given(value)
            except TypeError as error:
                faults.append(f"input '{name}' takes {info.dtype} {list(info.shape)}, and got {error}")
                continue
            fault = _arrays.fault(got, dtype, info.shape, rounds=False)
            if fault:
                faults.append(f"input '{name}' {fault}")
            else:
                ready[name] = _arrays.stored(got, dtype)
        faults += [
            f"input '{name}' is missing"
            for name in self._inputs
            if name not in batch and name not in self._written
        ]
        if faults:
            known = ", ".join(f"{i.name}: {i.dtype} {list(i.shape)}" for i in self.inputs.values())
            raise BadInputError("; ".join(faults), [f"the step takes {known}"])
        loss = ctypes.c_double()
        with self._lock:
            for name, storage in ready.items():
                self._write(name, storage)
            self._call(function, ctypes.byref(loss))
        return loss.value

    @property
    def learning_rate(self) -> Optional[float]:
        """The learning rate of all later steps. None: it wasn't set, and is 0.001."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        value = float(rate)
        if not math.isfinite(value):
            raise BadInputError(f"a learning rate of {value} isn't finite")
        with self._lock:
            if self._handle is None:
                raise UsageError("the step is closed")
            self._library.step_set_learning_rate(self._handle, value)
        self._learning_rate = value

    @property
    def statistics(self) -> Statistics:
        """Figures of the step so far."""
        c = CStatistics()
        self._call("step_get_statistics", ctypes.byref(c))
        return Statistics(
            c.arena_bytes,
            c.high_water_bytes,
            None if c.allocations < 0 else c.allocations,
            None if c.largest_allocation_bytes < 0 else c.largest_allocation_bytes,
            c.steps,
            c.last_step_seconds,
            None if math.isnan(c.grad_norm) else c.grad_norm,
            None if math.isnan(c.loss_scale) else c.loss_scale,
            c.skipped_steps,
            None if c.saturations < 0 else c.saturations,
        )

    @property
    def spaces(self) -> tuple[Space, ...]:
        """The memories of the step, the device first."""
        found = []
        space = CSpace()
        for index in range(self._library.step_space_count(self._handle)):
            self._call("step_space", index, ctypes.byref(space))
            found.append(Space(space.name.decode(), space.arena_bytes, space.high_water_bytes))
        return tuple(found)

    # Values.

    @property
    def tensors(self) -> Tensors:
        """The tensors by name, to read and to write."""
        return Tensors(self)  # Kept by nobody: the last reference to a step closes it at once.

    def _load_shipped(self) -> None:
        """Loads the values that the compilation recorded or copied, if they are all parameters but
        adapters."""
        try:
            self._call("step_load", None)
        except UsageError:
            pass  # It left none, or not all.

    def init_random(self, seed: int) -> None:
        """Draws the parameters anew, each from a stream of its own name, and begins at step 0.

        A parameter that isn't trained keeps its value, or has that of the compilation.
        """
        if not 0 <= seed < 2**64:
            raise UsageError(f"a seed has 64 bits, and {seed} isn't such a number")
        self._call("step_init_random", seed)

    def load(self, path: PathLike) -> None:
        """Loads a checkpoint or weights, and forgets all earlier values.

        path: a `.safetensors` file; a `model.safetensors.index.json` with its shards; a directory
            of `save()`, which also brings back moments, counts and the seed; or a directory with
            one of these files of weights, as Hugging Face writes it. Weights begin anew at step 0.
        Raises BadInputError if the file is of another model, is damaged, or holds NaN.
        """
        place = Path(path)
        if place.is_dir() and (place / CHECKPOINT_FILE).exists():
            self._call("step_resume", os.fsencode(place))
            return
        self._call("step_load", os.fsencode(place))

    def save(self, directory: PathLike) -> None:
        """Writes a checkpoint, `directory/checkpoint.safetensors`: parameters, states, moments,
        counts and the seed. It replaces an older one whole; `load` goes on from it."""
        self._call("step_save", os.fsencode(directory))

    def save_weights(self, directory: PathLike, dtype: Optional[str] = None) -> None:
        """Writes the model alone, `directory/model.safetensors`, under the names of its state_dict.

        dtype: "f32", "bf16" or "f16", rounded to the nearest; None: as the step keeps them.
        """
        self._call("step_save_weights", os.fsencode(directory), dtype.encode() if dtype is not None else None)

    def save_adapter(self, directory: PathLike) -> None:
        """Writes the adapters, and what is trained whole, as `PeftModel.from_pretrained` reads them:
        `directory/adapter_model.safetensors` and `directory/adapter_config.json`, under the names of
        the files that the base came from.

        Raises UsageError if the step has no adapters (`tmc compile --lora`) or no values yet.
        """
        self._call("step_save_adapter", os.fsencode(directory))

    def load_adapter(self, directory: PathLike) -> None:
        """Loads an adapter of PEFT into a step that has its other values. Moments and counts stay.

        Raises BadInputError if the adapter has other tensors, shapes, ranks or scales than the step,
        UnsupportedError for another method than LoRA, UsageError as `save_adapter`.
        """
        self._call("step_load_adapter", os.fsencode(directory))

    def state_dict(self) -> dict[str, Array]:
        """The model's values under the names of its state_dict, every name of a tied weight included.

        The arrays are read from a temporary file as large as the model. bf16 becomes float32.
        """
        with tempfile.TemporaryDirectory(prefix="tmc-") as place:
            self.save_weights(place)
            return {name: array.copy() for name, array in weights.read(Path(place) / weights.MODEL_FILE)}

    def load_into(self, module: Any) -> None:
        """Copies the values into a torch module of the same names, whatever its device and type.

        Raises BadInputError if names or shapes differ; the module is unchanged then.
        """
        if not callable(getattr(module, "load_state_dict", None)):
            raise UsageError(f"values go into a torch module, not into a {type(module).__name__}")
        import torch

        state = {name: torch.from_numpy(array) for name, array in self.state_dict().items()}
        own: Mapping[str, Any] = module.state_dict()
        # The names of a step are those of the module that was exported.
        faults = [f"the module has no '{name}'" for name in state if name not in own]
        faults += [f"the step has no '{name}'" for name in own if name not in state]
        faults += [
            f"'{name}' is {list(state[name].shape)} in the step and {list(own[name].shape)} in the module"
            for name in own
            if name in state and own[name].shape != state[name].shape
        ]
        if faults:
            more = len(faults) - 4
            raise BadInputError(
                "the module isn't of the step's model: "
                + "; ".join(faults[:4])
                + (f"; and {more} more" if more > 0 else "")
            )
        module.load_state_dict(state)

    def _names_in_order(self) -> list[str]:
        """The names of the model in the order of its state_dict, where the step has its object."""
        state_dict = getattr(self._source, "state_dict", None)
        return list(state_dict()) if callable(state_dict) else []

    def save_pretrained(
        self,
        directory: PathLike,
        *,
        dtype: Optional[str] = None,
        max_shard_size: Union[int, str] = "5GB",
        tokenizer: Any = None,
    ) -> None:
        """Writes a directory that `from_pretrained` of transformers reads.

        It holds model.safetensors, or shards of at most `max_shard_size` bytes (an integer, or a
        text with KB, MB, GB, KiB, MiB or GiB) with model.safetensors.index.json. If the
        step's model came from an object or a directory with config.json, generation_config.json
        or a tokenizer, those are written, too.

        dtype: as of `save_weights`.
        tokenizer: an object with save_pretrained, to be written as well.
        Raises UsageError for a model of PEFT, which writes its adapter by itself.
        """
        if hasattr(self._source, "peft_config"):
            raise UsageError(
                "a model of PEFT writes its adapter by itself",
                ["call step.load_into(model), then model.save_pretrained(directory)"],
            )
        most = weights.size_of(max_shard_size)
        place = Path(directory)
        with weights.replacing(place) as staging:
            self.save_weights(staging, dtype)
            weights.shard(staging, most, self._names_in_order())
            weights.copy_companions(self._source, staging, dtype)
            if tokenizer is not None:
                tokenizer.save_pretrained(os.fspath(staging))
