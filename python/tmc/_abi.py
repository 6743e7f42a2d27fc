"""The C interface of a compiled step (runtime/tmc.h) by ctypes."""

from __future__ import annotations

import ctypes
import enum
import itertools
import os
from ctypes import c_char_p, c_double, c_int, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from .errors import BadInputError, MachineError, error_of_code

# TMC_ABI_VERSION.
VERSION = 1
MOST_DIMENSIONS = 8


class DType(enum.IntEnum):
    """Element types, in the order of tmc_dtype."""

    F32 = 0
    F16 = 1
    BF16 = 2
    F64 = 3
    I1 = 4
    I8 = 5
    U8 = 6
    I16 = 7
    U16 = 8
    I32 = 9
    I64 = 10
    F8E4M3 = 11
    F8E5M2 = 12


class Role(enum.IntEnum):
    """The part of a tensor in a step, in the order of tmc_role."""

    PARAM = 0
    STATE = 1
    MOMENT = 2
    BATCH = 3
    SCALAR = 4
    OUTPUT = 5
    COPY = 6


class Sized(ctypes.Structure):
    """A struct that begins with its size, by which a library knows its fields."""

    def __init__(self) -> None:
        super().__init__()
        self.size = ctypes.sizeof(self)


class Options(Sized):
    """tmc_options."""

    _fields_ = [
        ("size", c_uint32),
        ("threads", c_int32),
        ("host_threads", c_int32),
        ("guard_pages", c_int32),
        ("poison", c_int32),
        ("check_finite", c_int32),
        ("no_graph", c_int32),
        ("seed", c_uint64),
        ("nvme_directory", c_char_p),
        ("link_bytes_per_second", c_double),
        ("peers", c_void_p),
    ]


class CPeers(Sized):
    """tmc_peers."""

    _fields_ = [
        ("size", c_uint32),
        ("ranks", c_int32 * 3),
        ("place", c_int32 * 3),
        ("context", c_void_p),
        ("gather", c_void_p),
        ("exchange", c_void_p),
        ("share", c_void_p),
    ]


class CTensor(Sized):
    """tmc_tensor."""

    _fields_ = [
        ("size", c_uint32),
        ("dtype", c_int),
        ("name", c_char_p),
        ("role", c_int),
        ("rank", c_int32),
        ("dims", c_int64 * MOST_DIMENSIONS),
        ("bytes", c_int64),
        ("trainable", c_int32),
        ("fed", c_int32),
    ]


class CView(Sized):
    """tmc_view."""

    _fields_ = [
        ("size", c_uint32),
        ("dtype", c_int),
        ("data", c_void_p),
        ("device", c_int),
        ("device_number", c_int32),
        ("rank", c_int32),
        ("read_only", c_int32),
        ("dims", c_int64 * MOST_DIMENSIONS),
        ("strides", c_int64 * MOST_DIMENSIONS),
        ("bytes", c_int64),
    ]


class CStatistics(Sized):
    """tmc_statistics."""

    _fields_ = [
        ("size", c_uint32),
        ("arena_bytes", c_int64),
        ("high_water_bytes", c_int64),
        ("allocations", c_int64),
        ("largest_allocation_bytes", c_int64),
        ("steps", c_int64),
        ("last_step_seconds", c_double),
        ("grad_norm", c_double),
        ("loss_scale", c_double),
        ("skipped_steps", c_int64),
        ("saturations", c_int64),
    ]


class CSpace(Sized):
    """tmc_space."""

    _fields_ = [
        ("size", c_uint32),
        ("name", c_char_p),
        ("arena_bytes", c_int64),
        ("high_water_bytes", c_int64),
    ]


class ManagedTensor(ctypes.Structure):
    """DLManagedTensorVersioned, as far as it is used here: its deleter takes its address."""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, c_void_p)),
        ("flags", c_uint64),
        ("data", c_void_p),
    ]


class ManagedTensorBefore(ctypes.Structure):
    """DLManagedTensor, of DLPack before version 1. Its DLTensor takes 48 bytes."""

    _fields_ = [
        ("tensor", c_uint64 * 6),
        ("context", c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, c_void_p)),
    ]


_TENSOR, _SPACE, _STATISTICS, _VIEW = (
    ctypes.POINTER(each) for each in (CTensor, CSpace, CStatistics, CView)
)
# Result and parameters of each function, by its name without the prefix.
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "abi_version": (c_int32, []),
    "options_init": (None, [ctypes.POINTER(Options), c_uint32]),
    "step_create_of": (c_int, [c_char_p, ctypes.POINTER(Options), ctypes.POINTER(c_void_p)]),
    "step_destroy": (None, [c_void_p]),
    "last_error": (c_char_p, []),
    "step_load": (c_int, [c_void_p, c_char_p]),
    "step_init_random": (c_int, [c_void_p, c_uint64]),
    "step_tensor_count": (c_int64, [c_void_p]),
    "step_tensor": (c_int, [c_void_p, c_int64, _TENSOR]),
    "step_write": (c_int, [c_void_p, c_char_p, c_void_p, c_int64]),
    "step_read": (c_int, [c_void_p, c_char_p, c_void_p, c_int64]),
    "step_view": (c_int, [c_void_p, c_char_p, _VIEW]),
    "step_dlpack": (c_int, [c_void_p, c_char_p, ctypes.POINTER(c_void_p)]),
    "step_dlpack_unversioned": (c_int, [c_void_p, c_char_p, ctypes.POINTER(c_void_p)]),
    "step_set_learning_rate": (None, [c_void_p, c_double]),
    "step_run": (c_int, [c_void_p, ctypes.POINTER(c_double)]),
    "step_evaluate": (c_int, [c_void_p, ctypes.POINTER(c_double)]),
    "step_save": (c_int, [c_void_p, c_char_p]),
    "step_save_weights": (c_int, [c_void_p, c_char_p, c_char_p]),
    "step_resume": (c_int, [c_void_p, c_char_p]),
    "step_save_adapter": (c_int, [c_void_p, c_char_p]),
    "step_load_adapter": (c_int, [c_void_p, c_char_p]),
    "step_get_statistics": (c_int, [c_void_p, _STATISTICS]),
    "step_space_count": (c_int64, [c_void_p]),
    "step_space": (c_int, [c_void_p, c_int64, _SPACE]),
}

_openings = itertools.count(1)


class Library:
    """A step's library with its functions bound.

    A library of another compilation at the same path is another library, and two steps of one
    file share it. The loader knows libraries by their path first. So each opening spells the
    path in its own way.
    """

    def __init__(self, path: Path) -> None:
        spelled = os.path.join(path.resolve().parent, *["."] * next(_openings), path.name)
        try:
            self._library = ctypes.CDLL(spelled)
        except OSError as error:
            raise MachineError(f"can't load '{path}': {error}") from None
        stem = path.name[len("lib") : -len(".so")]
        prefix = "tmc" if stem == "step" else stem
        for name, (result, parameters) in _FUNCTIONS.items():
            try:
                function = getattr(self._library, f"{prefix}_{name}")
            except AttributeError:
                raise BadInputError(f"'{path}' has no {prefix}_{name}: it is no step of this tmc") from None
            function.restype, function.argtypes = result, parameters
            setattr(self, name, function)
        version = self.abi_version()
        if version != VERSION:
            raise BadInputError(
                f"'{path}' has version {version} of the C interface, and this package knows {VERSION}"
            )

    def __getattr__(self, name: str) -> Any:  # The functions, for type checkers.
        raise AttributeError(name)

    def last_error(self) -> bytes:
        """Replaced by the library's own function; that of the calling thread."""
        raise NotImplementedError

    def check(self, code: int) -> None:
        """Raises the exception for the code that a function gave."""
        if code:
            raise error_of_code(code, self.last_error().decode(errors="replace"))
