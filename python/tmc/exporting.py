"""From a torch module to a .pt2 file, by torch.export."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

from .errors import MachineError, UsageError

__all__ = ["export"]

# The member of the archive that keeps the names of dimensions: {"sequence": "input_ids.1"}.
# torch.export drops them. tmc calls a dimension by the first input that has it.
_DIMS_MEMBER = "tmc_dims.json"
_MOST_DIMS_BYTES = 1 << 20

Dims = Mapping[str, Mapping[int, str]]


@contextlib.contextmanager
def _training(module: Any) -> Iterator[None]:
    """The module in training mode, and as it was afterwards. Parts in eval() of a module in
    training mode stay so: they are meant to be fixed."""
    modes = [(part, part.training) for part in module.modules()]
    if not module.training:
        module.train()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


@contextlib.contextmanager
def _without_cache(module: Any) -> Iterator[None]:
    """No part keeps keys and values for generation: `use_cache` of its configuration is False."""
    configs: dict[int, Any] = {}
    for part in module.modules():
        config = getattr(part, "config", None)
        if hasattr(config, "use_cache"):
            configs[id(config)] = config
    before = [(config, config.use_cache) for config in configs.values()]
    for config, _ in before:
        config.use_cache = False
    try:
        yield
    finally:
        for config, value in before:
            config.use_cache = value


def _separate(value: Any, seen: list[Any]) -> Any:
    """`value` as a tensor of its own: one that shares memory with an earlier input is cloned."""
    import numpy as np
    import torch

    if isinstance(value, np.ndarray):
        value = torch.from_numpy(np.ascontiguousarray(value))
    if not isinstance(value, torch.Tensor):
        return value
    storage = value.untyped_storage()
    if any(
        value is other or (storage.data_ptr() == other.untyped_storage().data_ptr() and storage.nbytes())
        for other in seen
    ):
        value = value.clone()
    seen.append(value)
    return value


def _shapes(dims: Dims, names: Sequence[str], values: Mapping[str, Any], torch: Any) -> dict[str, Any]:
    """dynamic_shapes of torch.export: one Dim for each name, wherever it occurs."""
    known: dict[str, Any] = {}
    shapes: dict[str, Any] = {name: None for name in names}
    for name, axes in dims.items():
        if name not in shapes:
            raise UsageError(
                f"dynamic_dims has '{name}', which is no input", [f"the inputs are {', '.join(names)}"]
            )
        rank = getattr(values[name], "ndim", 0)
        for axis, dim in axes.items():
            if not isinstance(axis, int) or not 0 <= axis < rank or not str(dim).isidentifier():
                raise UsageError(
                    f"dynamic_dims of '{name}' has {axis!r}: {dim!r}, and takes an axis below {rank} with a name"
                )
            known.setdefault(dim, torch.export.Dim(dim))
        shapes[name] = {axis: known[dim] for axis, dim in axes.items()}
    return shapes


def _forward_names(module: Any, count: int) -> list[str]:
    import inspect

    parameters = [
        p
        for p in inspect.signature(module.forward).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(parameters) < count:
        raise UsageError(f"forward takes {len(parameters)} inputs in order, and the batch has {count}")
    return [p.name for p in parameters[:count]]


def export(
    module: Any,
    batch: Union[Mapping[str, Any], Sequence[Any]],
    dynamic_dims: Optional[Dims] = None,
    path: "Union[str, os.PathLike[str], None]" = None,
) -> Path:
    """Exports a module for training, and gives the path of the .pt2 file.

    module: a torch module whose forward gives the loss, or logits with the flag `loss`.
    batch: the inputs of forward, by name or in order: torch tensors or numpy arrays. Inputs that
        share memory (labels=input_ids) are cloned.
    dynamic_dims: names of dimensions that stay open, {"input_ids": {0: "batch", 1: "sequence"}}.
        Plans and compilations of the file set them: `batch=8, dim={"sequence": 512}`.
    path: of the file; None: the class's name in the current directory.

    A module in eval() is exported in training mode. Keys and values aren't kept (use_cache). The
    module is unchanged afterwards.
    Raises ImportError without torch, UsageError for names that forward doesn't have, and what
    torch.export raises for a module that it can't take.
    """
    try:
        import torch
    except ImportError:
        raise ImportError("tmc.export needs torch: pip install 'tmc-train[torch]'") from None
    if not isinstance(module, torch.nn.Module):
        raise UsageError(f"a model is a path or a torch module, not a {type(module).__name__}")
    seen: list[Any] = []
    if isinstance(batch, Mapping):
        names = [str(name) for name in batch]
    elif isinstance(batch, (list, tuple)):
        names = _forward_names(module, len(batch))
        batch = dict(zip(names, batch))
    else:
        raise UsageError(f"a batch is a mapping by name or a sequence in order, not a {type(batch).__name__}")
    if not names:
        raise UsageError("the batch has no inputs")
    inputs = {name: _separate(batch[name], seen) for name in names}
    dims = dict(dynamic_dims or {})
    shapes = _shapes(dims, names, inputs, torch) if dims else None
    target = Path(path) if path is not None else Path(type(module).__name__ + ".pt2")
    with _training(module), _without_cache(module):
        program = torch.export.export(module, (), inputs, dynamic_shapes=shapes)
    named: dict[str, str] = {}
    for name in names:
        for axis, dim in sorted(dims.get(name, {}).items()):
            named.setdefault(dim, f"{name}.{axis}")
    _save(program, target, {_DIMS_MEMBER: json.dumps(named)} if named else {}, torch)
    return target


def _save(program: Any, path: Path, extra: dict[str, str], torch: Any) -> None:
    """Writes the whole file or leaves the old one."""
    try:
        handle, staging = tempfile.mkstemp(prefix=path.name + "-", suffix=".pt2", dir=path.parent)
    except OSError as error:
        raise MachineError(f"can't write into '{path.parent}': {error.strerror}") from None
    os.close(handle)
    try:
        torch.export.save(program, staging, extra_files=extra)
        os.chmod(staging, 0o666 & ~_umask())
        os.replace(staging, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(staging)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def dims_of(path: Path) -> Mapping[str, str]:
    """The names of dimensions that `export` left in a file; empty for any other file."""
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.filename.endswith("/" + _DIMS_MEMBER) and info.file_size <= _MOST_DIMS_BYTES:
                    fields = json.loads(archive.read(info))
                    return {str(name): str(dim) for name, dim in fields.items()}
    except (
        OSError,
        ValueError,
        AttributeError,
        RecursionError,
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
    ):
        pass  # The compiler says why it can't read the file.
    return {}


def named_dims(path: Path, dims: Mapping[Any, Any]) -> dict[str, object]:
    """Sizes by the names that tmc knows, for sizes by the names of `dynamic_dims`."""
    known = dims_of(path)
    return {known.get(str(name), str(name)): size for name, size in dims.items()}
