"""Arrays of others as arrays of a step: numpy, torch and DLPack, with checks.

numpy has no bfloat16 and no 8-bit floats. A tensor of bf16 is read as float32, which holds each
of its numbers, and is written from float32, rounded to the nearest (ties to even). Tensors of
8-bit floats are read and written as the bytes of their codes (uint8).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from ._abi import DType

Array = npt.NDArray[Any]

# The numpy type of each element type's storage.
STORAGE: dict[DType, np.dtype[Any]] = {
    DType.F32: np.dtype(np.float32),
    DType.F16: np.dtype(np.float16),
    DType.BF16: np.dtype(np.uint16),
    DType.F64: np.dtype(np.float64),
    DType.I1: np.dtype(np.bool_),
    DType.I8: np.dtype(np.int8),
    DType.U8: np.dtype(np.uint8),
    DType.I16: np.dtype(np.int16),
    DType.U16: np.dtype(np.uint16),
    DType.I32: np.dtype(np.int32),
    DType.I64: np.dtype(np.int64),
    DType.F8E4M3: np.dtype(np.uint8),
    DType.F8E5M2: np.dtype(np.uint8),
}
_NAMES = {DType.I1: "bool", DType.F8E4M3: "f8e4m3", DType.F8E5M2: "f8e5m2"}


def dtype_name(dtype: DType) -> str:
    """ "f32", "bf16", "i64", "bool", ..."""
    return _NAMES.get(dtype, dtype.name.lower())


@dataclass(frozen=True)
class Given:
    """An array of the caller. `is_bf16`: `array` holds the codes of bfloat16."""

    array: Array
    is_bf16: bool = False
    is_python: bool = False  # Numbers or lists of Python, which have no width.

    def __str__(self) -> str:
        kind = "bf16" if self.is_bf16 else _short(self.array.dtype)
        return f"{kind} {list(self.array.shape)}"


def _short(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "fiu":
        return f"{dtype.kind}{8 * dtype.itemsize}"
    return "bool" if dtype.kind == "b" else str(dtype)


def _of_torch(tensor: Any) -> Given:
    torch = sys.modules["torch"]
    values = tensor.detach()
    if values.layout is not torch.strided or values.is_meta:
        raise TypeError(
            "a tensor without values" if values.is_meta else f"a tensor of layout {values.layout}"
        )
    values = values.resolve_conj().resolve_neg().cpu()
    if values.dtype is torch.bfloat16:
        return Given(values.contiguous().view(torch.int16).numpy().view(np.uint16), is_bf16=True)
    return Given(values.numpy())


def given(value: object) -> Given:
    """An array, a torch tensor, an object with __dlpack__, or numbers of Python; no copy where
    the memory can be shared. Raises TypeError with the reason for anything else."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _of_torch(value)
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.name == "bfloat16":  # Of the package ml_dtypes.
            return Given(array.view(np.uint16), is_bf16=True)
    elif hasattr(value, "__dlpack__"):
        try:
            array = np.from_dlpack(value)
        except Exception as error:
            raise TypeError(f"a {type(value).__name__} that numpy can't read: {error}") from None
    elif isinstance(value, (bool, int, float, list, tuple)):
        try:
            array = np.asarray(value)
        except ValueError:
            raise TypeError("lists of different lengths") from None
        if array.dtype.kind in "biuf":
            return Given(array, is_python=True)
    else:
        raise TypeError(f"a {type(value).__name__}")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"an array of {array.dtype}")
    return Given(array.astype(array.dtype.newbyteorder("="), copy=False))


def bf16_to_f32(codes: Array) -> Array:
    """The numbers of bfloat16 codes (uint16, any shape) as float32, exactly."""
    return (codes.astype(np.uint32) << 16).view(np.float32)


def f32_to_bf16(values: Array) -> Array:
    """bfloat16 codes (uint16) of float32 numbers, rounded to the nearest, ties to even."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), (bits >> 16) | 0x40, rounded).astype(np.uint16)


def _misfit(array: Array, target: np.dtype[Any]) -> Optional[str]:
    """A number of an integer array that `target` can't hold; None if it holds all."""
    if array.size == 0:
        return None
    limits = np.iinfo(target)
    for extreme in (array.argmin(), array.argmax()):
        number = int(array.reshape(-1)[extreme])
        if not limits.min <= number <= limits.max:
            place = [int(i) for i in np.unravel_index(extreme, array.shape)]
            return f"{number} at {place} doesn't fit"
    return None


def fault(got: Given, dtype: DType, shape: tuple[int, ...], rounds: bool) -> Optional[str]:
    """The reason why `got` can't be a tensor of `dtype` and `shape`; None if it can.

    Shapes are equal. Types are equal or hold all numbers of `got`: integers that fit, wider
    floats. `rounds`: floats are rounded to bf16, too.
    """
    target = STORAGE[dtype]
    wanted = f"takes {dtype_name(dtype)} {list(shape)}, and got {got}"
    if got.array.shape != shape:
        return wanted
    if got.is_bf16:
        return None if dtype in (DType.BF16, DType.F32, DType.F64) else wanted
    kind, size = got.array.dtype.kind, got.array.dtype.itemsize
    if dtype is DType.BF16:
        return None if rounds and kind == "f" and size <= 4 else wanted
    if dtype in (DType.F8E4M3, DType.F8E5M2):
        return None if got.array.dtype == np.uint8 else wanted
    if target.kind == "f":
        fits = kind == "f" and (size <= target.itemsize or got.is_python)
        return None if fits or got.is_python else wanted
    if target.kind == "b":
        return None if kind == "b" else wanted
    if kind not in "biu":
        return wanted
    misfit = None if kind == "b" else _misfit(got.array, target)
    return f"{wanted}: {misfit}" if misfit else None


def stored(got: Given, dtype: DType) -> Array:
    """`got`, which has no fault, as the contiguous array of a tensor's storage."""
    array = got.array
    if got.is_bf16 and dtype is not DType.BF16:
        array = bf16_to_f32(array)
    elif dtype is DType.BF16 and not got.is_bf16:
        array = f32_to_bf16(array.astype(np.float32, copy=False))
    return np.ascontiguousarray(array, dtype=STORAGE[dtype]).reshape(array.shape)


def shown(storage: Array, dtype: DType) -> Array:
    """A tensor's storage as the array for the caller."""
    return bf16_to_f32(storage) if dtype is DType.BF16 else storage
