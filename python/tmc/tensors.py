"""The tensors of a step: arrays over their bytes in its arena, or copies.

    weight = step.tensors["layers.0.weight"]       # follows the step, and the step reads it
    tensor = torch.from_dlpack(step.tensors.dlpack("layers.0.weight"))
"""

from __future__ import annotations

import ctypes
import os
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterator, MutableMapping, Optional

import numpy as np

from . import _arrays
from ._abi import CView, DType, ManagedTensor, ManagedTensorBefore
from ._arrays import Array
from .errors import BadInputError, UnsupportedError, UsageError

if TYPE_CHECKING:
    from .step import Step

__all__ = ["SharedTensor", "TensorInfo", "Tensors"]

_CPU = 1  # TMC_DEVICE_CPU, and DLPack's number.
_READ_ONLY = 1  # A flag of DLPack.


@dataclass(frozen=True)
class TensorInfo:
    """A tensor of a step.

    dtype: "f32", "bf16", "i64", ... role: "param", "state", "moment", "batch", "scalar",
    "output" or "copy". trainable: the optimizer updates it. fed: the step writes it by itself,
    as it does the learning rate and seeds; each other batch and scalar tensor is an input.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str
    trainable: bool
    fed: bool
    bytes: int


class Tensors(MutableMapping[str, Array]):
    """The tensors of a step by name.

    `tensors[name]` is an array of the tensor's type and shape over the step's own bytes: it
    changes with each step, and the step reads what is written there. It is read-only for
    outputs, for what the step writes by itself, and for parameters with 16-bit copies. It stays
    valid when the step is closed.
    `tensors[name]` is a copy instead: of a tensor on a card; of bf16, which becomes float32,
    exactly; of a tensor that the plan moves or overwrites within a step, or stores as codes.
    8-bit floats are the bytes of their codes.
    `tensors[name] = values` writes the whole tensor, and checks type, shape and range. Outputs and
    copies can't be written. An input needs such values, or a batch, before its view counts.
    """

    def __init__(self, step: "Step") -> None:
        self._step = step
        self._infos = step._infos

    def _find(self, name: str) -> tuple[TensorInfo, DType]:
        try:
            return self._infos[name]
        except KeyError:
            raise KeyError(f"no tensor has the name '{name}'") from None

    def info(self, name: str) -> TensorInfo:
        """The type, shape and role of a tensor. Raises KeyError."""
        return self._find(name)[0]

    def __getitem__(self, name: str) -> Array:
        info, dtype = self._find(name)
        if dtype is not DType.BF16:
            view = self._view(info, dtype)
            if view is not None:
                return view
        storage = np.empty(info.shape, _arrays.STORAGE[dtype])
        self._step._call("step_read", name.encode(), storage.ctypes.data, storage.nbytes)
        return _arrays.shown(storage, dtype)

    def _view(self, info: TensorInfo, dtype: DType) -> Optional[Array]:
        """An array over the step's bytes; None if there is none."""
        try:
            if SharedTensor(self._step, info.name).__dlpack_device__()[0] != _CPU:
                return None
            address = _managed(self._step, "step_dlpack", info.name)
        except UnsupportedError:
            return None
        keeper = _Keeper(address)
        managed = ManagedTensor.from_address(address)
        if info.bytes == 0:
            return None
        buffer = (ctypes.c_uint8 * info.bytes).from_address(managed.data)
        setattr(buffer, "keeper", keeper)  # The array has the buffer, and the buffer the step's memory.
        array: Array = np.ndarray(info.shape, _arrays.STORAGE[dtype], buffer=memoryview(buffer))
        array.flags.writeable = not managed.flags & _READ_ONLY
        return array

    def dlpack(self, name: str) -> "SharedTensor":
        """A tensor for `from_dlpack` of torch, numpy or another library: the same bytes, on a card
        as well, and bf16 and 8-bit floats in their own types.

        Raises KeyError, and UnsupportedError where `tensors[name]` would be a copy for another
        reason than those.
        """
        self._find(name)
        return SharedTensor(self._step, name)

    def __setitem__(self, name: str, values: object) -> None:
        """Raises BadInputError for values of another shape or of a type that doesn't fit, UsageError
        for a tensor that the step writes."""
        info, dtype = self._find(name)
        if info.fed:
            raise UsageError(f"the step writes '{name}' by itself")
        try:
            got = _arrays.given(values)
        except TypeError as error:
            raise BadInputError(f"'{name}' takes an array, and got {error}") from None
        fault = _arrays.fault(got, dtype, info.shape, rounds=True)
        if fault:
            raise BadInputError(f"'{name}' {fault}")
        self._step._write(name, _arrays.stored(got, dtype))

    def __delitem__(self, name: str) -> None:
        raise TypeError("a step keeps all of its tensors")

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)

    def __repr__(self) -> str:
        return f"<{len(self)} tensors of a step>"


class SharedTensor:
    """A tensor in a step's arena, by the protocol of DLPack.

    A step's calls end when its work is done, so no stream has to wait for it. Finish your own work
    on the tensor (`torch.cuda.synchronize()`) before the next call of the step.
    """

    def __init__(self, step: "Step", name: str) -> None:
        """Raises UnsupportedError, with the reason, if the tensor has no place of its own."""
        self._step, self._name = step, name
        self._about = CView()
        step._call("step_view", name.encode(), ctypes.byref(self._about))

    def __dlpack_device__(self) -> tuple[int, int]:
        """(1, 0) on the cpu; (2, number) on a card."""
        return self._about.device, self._about.device_number

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: Optional[tuple[int, int]] = None,
        dl_device: Optional[tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any:
        """A capsule over the step's bytes. Raises BufferError if the consumer wants a copy or another
        device, or can't know that the tensor is read-only."""
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("a step's tensor is shared at its place, and not copied")
        if max_version is not None and max_version[0] >= 1:
            return _capsule(_managed(self._step, "step_dlpack", self._name), _VERSIONED)
        if self._about.read_only:
            raise BufferError("the tensor is read-only, which DLPack says from version 1 on")
        return _capsule(_managed(self._step, "step_dlpack_unversioned", self._name), _UNVERSIONED)


def _managed(step: "Step", function: str, name: str) -> int:
    """The address of a managed tensor, whose deleter must be called."""
    address = ctypes.c_void_p()
    step._call(function, name.encode(), ctypes.byref(address))
    assert address.value is not None
    return address.value


def _release(address: int, kind: type[Any], owner: int) -> None:
    if os.getpid() == owner:  # A forked child has a copy of the memory, but none of the threads.
        kind.from_address(address).deleter(address)


class _Keeper:
    """Keeps the memory of a step, until the last array over it goes."""

    def __init__(self, address: int) -> None:
        # Arrays that are alive when Python ends keep their memory.
        weakref.finalize(self, _release, address, ManagedTensor, os.getpid()).atexit = False


_VERSIONED, _UNVERSIONED = b"dltensor_versioned", b"dltensor"
_KINDS: tuple[tuple[bytes, type[Any]], ...] = (
    (_VERSIONED, ManagedTensor),
    (_UNVERSIONED, ManagedTensorBefore),
)
# Prototypes of our own: those of ctypes.pythonapi belong to everybody.
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Destructor)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _end_capsule(capsule: int) -> None:
    """Frees a tensor that nobody took: who takes one renames its capsule."""
    for name, kind in _KINDS:
        if _is_valid(capsule, name):
            _release(_pointer_of(capsule, name), kind, os.getpid())


_destructor = _Destructor(_end_capsule)


def _capsule(address: int, name: bytes) -> Any:
    return _new_capsule(address, name, _destructor)
