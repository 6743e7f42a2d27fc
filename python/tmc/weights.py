"""Files of weights: safetensors, shards with an index, and what lies beside them.

A file is a header in JSON behind its length in 8 bytes (little endian), then the tensors' bytes.
Sizes and places of a stranger's file are checked before anything is read through them.
Source: the format of safetensors; shards as huggingface_hub splits them.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Iterator, Mapping, Optional, Sequence, Union

import numpy as np

from ._arrays import Array, bf16_to_f32
from .errors import BadInputError, Error, MachineError, UsageError

MODEL_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
# The limit of the reference implementation for a header.
_MOST_HEADER_BYTES = 100_000_000
_COPY_BYTES = 16 << 20

# The numpy type of each type's storage. bf16 and 8-bit floats have none of their own.
_TYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(kind)
    for name, kind in {
        "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "F8_E4M3": "u1", "F8_E5M2": "u1",
        "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
        "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
    }.items()
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A tensor of a file: its type as the file names it, its shape, and its bytes [begin, end)
    in the file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def header(path: Path) -> tuple[dict[str, Entry], dict[str, str]]:
    """The tensors of a file in the order of their bytes, and its metadata.

    Raises BadInputError if the file isn't there, or is no sound safetensors file.
    """

    def bad(why: str) -> BadInputError:
        return BadInputError(f"'{path}' is no sound safetensors file: {why}")

    try:
        with open(path, "rb") as file:
            total = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if total < 8 or length > min(total - 8, _MOST_HEADER_BYTES):
                raise bad("its header is longer than the file")
            text = file.read(length)
    except OSError as error:
        raise BadInputError(f"can't read '{path}': {error.strerror}") from None
    try:
        fields = json.loads(text)
        metadata = fields.pop("__metadata__", {})
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise bad("its header is no object of JSON") from None
    entries: dict[str, Entry] = {}
    for name, field in fields.items():
        try:
            dtype, shape, (begin, end) = field["dtype"], field["shape"], field["data_offsets"]
        except (TypeError, KeyError, ValueError):
            raise bad(f"'{name}' lacks a type, a shape or offsets") from None
        if not isinstance(dtype, str) or dtype not in _TYPES:
            raise BadInputError(f"'{path}' has '{name}' in the type {dtype}, which tmc can't read")
        if not isinstance(shape, list) or not all(map(_is_count, [*shape, begin, end])):
            raise bad(f"'{name}' has a shape or offsets that are no counts")
        count = 1
        for size in shape:
            count *= size  # Python's integers don't overflow.
        if end - begin != count * _TYPES[dtype].itemsize or end > total - 8 - length:
            raise bad(f"the bytes of '{name}' aren't those of its shape, or lie outside of the file")
        entries[name] = Entry(dtype, tuple(shape), 8 + length + begin, 8 + length + end)
    ordered = dict(sorted(entries.items(), key=lambda item: item[1].begin))
    return ordered, metadata if isinstance(metadata, dict) else {}


def names(path: Path) -> set[str]:
    """The names of a file's tensors."""
    return set(header(path)[0])


def read(path: Path) -> Iterator[tuple[str, Array]]:
    """The tensors of a file; views of the mapped file, but bf16, which becomes float32."""
    entries, _ = header(path)
    mapped = np.memmap(path, np.uint8, "r") if entries else np.empty(0, np.uint8)
    for name, entry in entries.items():
        storage = mapped[entry.begin : entry.end].view(_TYPES[entry.dtype]).reshape(entry.shape)
        yield name, bf16_to_f32(storage) if entry.dtype == "BF16" else storage


def write_header(
    file: BinaryIO, entries: Mapping[str, tuple[str, Sequence[int], int]], metadata: Mapping[str, str]
) -> None:
    """Writes the header for tensors (type, shape, bytes), which follow in this order."""
    fields: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    at = 0
    for name, (dtype, shape, count) in entries.items():
        fields[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + count]}
        at += count
    text = json.dumps(fields, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)


def _gather(path: Path, parts: Sequence[tuple[Path, str, Entry]], metadata: Mapping[str, str]) -> None:
    """Writes a file of tensors of other files, a bounded number of bytes at a time."""
    with open(path, "wb") as out, contextlib.ExitStack() as opened:
        write_header(out, {name: (e.dtype, e.shape, e.end - e.begin) for _, name, e in parts}, metadata)
        files: dict[Path, BinaryIO] = {}
        for source, _, entry in parts:
            if source not in files:
                files[source] = opened.enter_context(open(source, "rb"))
            files[source].seek(entry.begin)
            left = entry.end - entry.begin
            while left:
                piece = files[source].read(min(left, _COPY_BYTES))
                if not piece:
                    raise BadInputError(f"'{source}' was cut while it was read")
                out.write(piece)
                left -= len(piece)


_UNITS = {
    "": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}


def size_of(size: Union[int, str]) -> int:
    """Bytes of a size: an integer, or a text such as "5GB" or "1.5GiB". Raises UsageError."""
    if isinstance(size, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", size)
        if found and found.group(2).upper() in _UNITS:
            size = int(float(found.group(1)) * _UNITS[found.group(2).upper()])
    if not isinstance(size, int) or isinstance(size, bool) or size <= 0:
        raise UsageError(f"{size!r} is no size")
    return size


def split(sizes: Mapping[str, int], most: int) -> list[list[str]]:
    """Names by shard: in order, a new shard where the next tensor would exceed `most` bytes; a
    larger tensor is a shard by itself.

    Source: huggingface_hub, split_state_dict_into_shards_factory.
    """
    shards: list[list[str]] = []
    current: list[str] = []
    held = 0
    for name, size in sizes.items():
        if size > most:
            shards.append([name])
            continue
        if held + size > most:
            shards.append(current)
            current, held = [], 0
        current.append(name)
        held += size
    if current or not shards:
        shards.append(current)
    return shards


def shard(directory: Path, most: int, order: Sequence[str] = ()) -> None:
    """Splits `directory/model.safetensors` into shards of at most `most` bytes and an index; a
    model that fits one file stays as it is. `order`: names in the order of the model."""
    whole = directory / MODEL_FILE
    entries, metadata = header(whole)
    place = {name: i for i, name in enumerate(order)}
    ordered = sorted(entries, key=lambda name: place.get(name, len(place)))
    sizes = {name: entries[name].end - entries[name].begin for name in ordered}
    shards = split(sizes, most)
    if len(shards) == 1:
        return
    weight_map: dict[str, str] = {}
    for number, members in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        _gather(directory / file, [(whole, name, entries[name]) for name in members], metadata)
        weight_map.update((name, file) for name in members)
    counts = [sizes[name] // _TYPES[entries[name].dtype].itemsize for name in sizes]
    index = {
        "metadata": {"total_parameters": sum(counts), "total_size": sum(sizes.values())},
        "weight_map": dict(sorted(weight_map.items())),
    }
    (directory / INDEX_FILE).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    whole.unlink()


@contextlib.contextmanager
def replacing(directory: Path) -> Iterator[Path]:
    """A directory for new files, which replace those in `directory` at the end; weights of an
    older model are removed. After a failure `directory` is as it was."""
    made = not directory.exists()
    if not made and not directory.is_dir():
        raise BadInputError(f"'{directory}' is no directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".tmc-", dir=directory) as place:
            yield Path(place)
            new = sorted(Path(place).iterdir(), key=lambda path: path.name == INDEX_FILE)
            fresh = {path.name for path in new}
            for path in new:
                os.replace(path, directory / path.name)
            for old in (
                *directory.glob("model-*-of-*.safetensors"),
                directory / MODEL_FILE,
                directory / INDEX_FILE,
            ):
                if old.name not in fresh:
                    old.unlink(missing_ok=True)
    except BaseException as error:
        if made:
            with contextlib.suppress(OSError):
                directory.rmdir()
        if isinstance(error, OSError) and not isinstance(error, Error):
            raise MachineError(f"can't write into '{directory}': {error.strerror}") from None
        raise


# Beside the weights of a model of Hugging Face.
CONFIGURATIONS = ("config.json", "generation_config.json")
TOKENIZERS = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "vocab.txt", "merges.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "chat_template.jinja",
    "preprocessor_config.json",
)  # fmt: skip


def _copy(names: Sequence[str], source: Path, target: Path) -> None:
    for name in names:
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)


def copy_companions(source: object, target: Path, dtype: Optional[str]) -> None:
    """Writes the configuration and the tokenizer of a model beside its weights.

    source: a directory that has the files, or a module of transformers (with `config`, which may
    name the directory of its tokenizer). Anything else has none.
    dtype: the type of the saved floats, "f32", ...; None: that of the configuration.
    """
    if isinstance(source, (str, os.PathLike)):
        _copy((*CONFIGURATIONS, *TOKENIZERS), Path(source), target)
        return
    config = getattr(source, "config", None)
    if config is None or not hasattr(config, "save_pretrained"):
        return
    config = copy.deepcopy(config)
    config.architectures = [type(source).__name__]
    if dtype is not None:
        config.dtype = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}[dtype]
    config.save_pretrained(os.fspath(target))
    can_generate = getattr(source, "can_generate", None)
    if callable(can_generate) and can_generate():
        generation: Any = getattr(source, "generation_config", None)
        generation.save_pretrained(os.fspath(target))
    origin = getattr(config, "_name_or_path", "")
    if origin and os.path.isdir(origin):
        _copy(TOKENIZERS, Path(origin), target)
