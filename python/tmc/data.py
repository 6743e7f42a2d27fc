"""Converts data sets to files that the trainer reads (docs/runtime.md, "Data").

    python -m tmc.data convert IN... -o OUT [--tokenizer NAME] [--pack N | --pad N] [--columns ...]

IN is text, JSON Lines (.jsonl, .ndjson), Parquet (.parquet) or Arrow (.arrow, .feather); the last
two need the package pyarrow. The name of OUT says the result:

    OUT.bin           one stream of tokens behind llm.c's header: 16 bits each, or 32 for a large
                      vocabulary. A token of the tokenizer's end of text stands behind each document.
    OUT.safetensors   rows of N tokens: input_ids, labels and attention_mask. `--pack N` joins the
                      documents and cuts rows out of them; `--pad N` makes a row of each document,
                      cut at N. If a row isn't full, labels are -100 and attention_mask is 0 at its end.
    OUT.npy           one column of numbers, or of lists of one length.

The column `text` of JSON Lines, Parquet and Arrow is tokenized, or the one that --columns names.
Without a tokenizer, --columns names columns of tokens: input_ids, and labels if they differ.

--tokenizer: `bytes` (a token is a byte, 256 ends a text), a tokenizer.json or a directory with one
(the package tokenizers), or a name of Hugging Face's hub (transformers).

Memory is bounded, whatever the size of the data: files are read in pieces, and what is written is
gathered beside OUT. OUT appears when it is whole, and replaces an older one.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Callable, Iterable, Iterator, Mapping, Optional, Sequence

import numpy as np

from . import weights
from ._arrays import Array
from .errors import BadInputError, Error, MachineError, UsageError
from .log import _report

__all__ = ["Tokenizer", "convert", "tokenizer"]

IGNORED = -100  # A label that the loss leaves out.
_TEXT_CHARACTERS = 1 << 20
_MOST_LINE_BYTES = 64 << 20
_BATCH_ROWS = 256
_COPY_BYTES = 16 << 20
_HEADER_INTS = 256
_MOST_COUNTED = 2**31 - 1  # llm.c's header has 32 bits for it.


@dataclass(frozen=True)
class Tokenizer:
    """encode: a text's tokens. size: of the vocabulary. end: the token behind a document, or None.
    fingerprint: a hash of the vocabulary and its rules."""

    encode: Callable[[str], Sequence[int]]
    size: int
    end: Optional[int]
    fingerprint: str


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def tokenizer(name: str) -> Tokenizer:
    """The tokenizer of --tokenizer. Raises BadInputError if there is none, MachineError if its
    package isn't installed."""
    if name == "bytes":
        return Tokenizer(lambda text: text.encode(), 257, 256, "bytes")
    path = Path(name)
    file = path / "tokenizer.json" if path.is_dir() else path
    if path.exists() and not (path.is_dir() and not file.exists()):
        try:
            import tokenizers
        except ImportError:
            raise MachineError(
                "a tokenizer.json needs the package tokenizers: pip install tokenizers"
            ) from None
        try:
            loaded = tokenizers.Tokenizer.from_file(os.fspath(file))
        except Exception as error:
            raise BadInputError(f"'{file}' is no tokenizer: {error}") from None
        ends = [
            t
            for t in map(loaded.token_to_id, ("<|endoftext|>", "</s>", "<eos>", "[SEP]", "<|end_of_text|>"))
            if t is not None
        ]
        return Tokenizer(
            lambda text: loaded.encode(text, add_special_tokens=False).ids,
            loaded.get_vocab_size(),
            ends[0] if ends else None,
            _hash(loaded.to_str()),
        )
    try:
        import transformers
    except ImportError:
        raise MachineError(
            f"there is no file '{name}', and names of the hub need transformers: pip install transformers"
        ) from None
    try:
        hub: Any = transformers.AutoTokenizer.from_pretrained(name)
    except Exception as error:
        raise BadInputError(
            f"there is no tokenizer '{name}': {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        ) from None
    return Tokenizer(
        lambda text: hub(text, add_special_tokens=False)["input_ids"],
        len(hub),
        hub.eos_token_id,
        _hash(json.dumps(sorted(hub.get_vocab().items()))),
    )


# Reading: rows of columns, a piece at a time.


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with open(path, "rb") as file:
        number = 0
        while line := file.readline(_MOST_LINE_BYTES + 1):
            number += 1
            if len(line) > _MOST_LINE_BYTES:
                raise BadInputError(f"line {number} of '{path}' has more than {_MOST_LINE_BYTES >> 20} MiB")
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise BadInputError(f"line {number} of '{path}' is no JSON: {error}") from None
            if not isinstance(row, dict):
                raise BadInputError(f"line {number} of '{path}' is no object")
            yield row


def _table_batches(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    try:
        import pyarrow as arrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise MachineError(f"'{path}' needs the package pyarrow: pip install pyarrow") from None
    try:
        if path.suffix == ".parquet":
            table = arrow.parquet.ParquetFile(path)
            yield from _with_columns(
                path,
                table.schema_arrow.names,
                columns,
                table.iter_batches(_BATCH_ROWS, columns=list(columns)),
            )
            return
        with arrow.memory_map(os.fspath(path)) as source:
            try:
                reader = arrow.ipc.open_file(source)
                batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
            except arrow.ArrowInvalid:
                source.seek(0)
                reader = arrow.ipc.open_stream(source)
                batches = iter(reader)
            yield from _with_columns(path, reader.schema.names, columns, batches)
    except (arrow.ArrowException, OSError) as error:
        raise BadInputError(f"can't read '{path}': {error}") from None


def _with_columns(
    path: Path, there: Sequence[str], columns: Sequence[str], batches: Iterable[Any]
) -> Iterator[Any]:
    for name in columns:
        if name not in there:
            raise BadInputError(f"'{path}' has no column '{name}'", [f"it has {', '.join(map(str, there))}"])
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            yield batch.select(list(columns)).slice(start, _BATCH_ROWS)


def _rows(path: Path, columns: Sequence[str]) -> Iterator[list[Any]]:
    """The values of `columns` in each row of a file."""
    if path.suffix in (".parquet", ".arrow", ".feather"):
        for batch in _table_batches(path, columns):
            yield from (list(row) for row in zip(*(column.to_pylist() for column in batch.columns)))
        return
    for number, row in enumerate(_lines(path), 1):
        for name in columns:
            if name not in row:
                raise BadInputError(
                    f"row {number} of '{path}' has no '{name}'", [f"it has {', '.join(map(str, row))}"]
                )
        yield [row[name] for name in columns]


def _is_table(path: Path) -> bool:
    return path.suffix in (".jsonl", ".ndjson", ".parquet", ".arrow", ".feather")


def _texts(path: Path, column: str) -> Iterator[tuple[str, bool]]:
    """Texts of a file, and whether a document ends behind each. Plain text is one document, and is
    cut at the ends of lines; a longer line is cut where a piece is full."""
    if _is_table(path):
        for number, (text,) in enumerate(_rows(path, [column]), 1):
            if not isinstance(text, str):
                raise BadInputError(f"row {number} of '{path}': '{column}' is no text")
            yield text, True
        return
    with open(path, encoding="utf-8", newline="") as file:
        try:
            piece = file.read(_TEXT_CHARACTERS) + file.readline(_TEXT_CHARACTERS)
            while piece:
                more = file.read(_TEXT_CHARACTERS)
                more += file.readline(_TEXT_CHARACTERS) if more else ""
                yield piece, not more
                piece = more
        except UnicodeDecodeError as error:
            raise BadInputError(f"'{path}' is no text in UTF-8: {error.reason}") from None


# Writing: spools beside OUT, which become OUT at the end.


@dataclass(frozen=True)
class _Place:
    """A directory beside OUT for a conversion, and its open files."""

    directory: Path
    opened: contextlib.ExitStack


class _Spool:
    """Numbers of one column, gathered in a file."""

    def __init__(self, place: _Place, name: str, dtype: str) -> None:
        self.dtype = np.dtype(dtype)
        self.path = place.directory / name
        self.count = 0
        self._file: BinaryIO = place.opened.enter_context(open(self.path, "wb"))

    def add(self, values: Any) -> None:
        array = np.ascontiguousarray(values, self.dtype)
        self._file.write(array.tobytes())
        self.count += array.size

    def copy_to(self, out: BinaryIO) -> None:
        self._file.close()
        with open(self.path, "rb") as file:
            while piece := file.read(_COPY_BYTES):
                out.write(piece)


@contextlib.contextmanager
def _gathering(out: Path) -> Iterator[_Place]:
    if not out.parent.is_dir():
        raise BadInputError(f"there is no directory '{out.parent}'")
    with (
        tempfile.TemporaryDirectory(prefix=".tmc-", dir=out.parent) as directory,
        contextlib.ExitStack() as opened,
    ):
        yield _Place(Path(directory), opened)


def _publish(place: _Place, out: Path, write: Callable[[BinaryIO], None]) -> None:
    whole = place.directory / "whole"
    with open(whole, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(whole, out)


def _checked(tokens: Any, place: str, size: Optional[int]) -> Array:
    """Tokens as an array, if they are whole numbers of the vocabulary."""
    try:
        array = np.asarray(tokens)
    except ValueError:  # Lists of different lengths; older versions of numpy make objects of them.
        raise BadInputError(f"{place}: no list of whole numbers") from None
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise BadInputError(f"{place}: no list of whole numbers")
    most = 2**31 if size is None else size
    if array.min() < 0 or array.max() >= most:
        raise BadInputError(
            f"{place}: token {array.min() if array.min() < 0 else array.max()} is outside of [0, {most})"
        )
    return array.astype(np.int64)


class _Rows:
    """Rows of `length` tokens: input_ids, labels, attention_mask."""

    COLUMNS = {"input_ids": ("I32", "<i4"), "labels": ("I32", "<i4"), "attention_mask": ("U8", "u1")}

    def __init__(self, place: _Place, length: int, filler: int) -> None:
        self.length, self.filler, self.count = length, filler, 0
        self._spools = {name: _Spool(place, name, dtype) for name, (_, dtype) in self.COLUMNS.items()}

    def add(self, tokens: Array, labels: Array) -> None:
        """As many rows as the tokens fill; the last one is filled up."""
        lacking = -len(tokens) % self.length
        for name, values, filler in (
            ("input_ids", tokens, self.filler),
            ("labels", labels, IGNORED),
            ("attention_mask", np.ones(len(tokens)), 0),
        ):
            self._spools[name].add(np.concatenate([values, np.full(lacking, filler)]))
        self.count += (len(tokens) + lacking) // self.length

    def publish(self, place: _Place, out: Path, metadata: Mapping[str, str]) -> None:
        def write(file: BinaryIO) -> None:
            shape = [self.count, self.length]
            weights.write_header(
                file,
                {
                    n: (kind, shape, self.count * self.length * self._spools[n].dtype.itemsize)
                    for n, (kind, _) in self.COLUMNS.items()
                },
                metadata,
            )
            for spool in self._spools.values():
                spool.copy_to(file)

        if not self.count:
            raise BadInputError("there is nothing to write: the data has no tokens")
        _publish(place, out, write)


Documents = Iterator[tuple[Array, Optional[Array], bool]]


def _documents(paths: Sequence[Path], columns: Sequence[str], words: Optional[Tokenizer]) -> Documents:
    """Tokens, labels (None: the tokens themselves), and whether a document ends behind them."""
    for path in paths:
        if words is not None:
            column = columns[0] if columns else "text"
            for text, is_end in _texts(path, column):
                encoded = words.encode(text)
                tokens = np.frombuffer(encoded, np.uint8) if isinstance(encoded, bytes) else list(encoded)
                yield _checked(tokens, f"'{path}'", words.size), None, is_end
            continue
        for number, row in enumerate(_rows(path, columns), 1):
            place = f"row {number} of '{path}'"
            tokens = _checked(row[0], f"{place}, '{columns[0]}'", None)
            labels = None
            if len(columns) > 1:
                labels = np.asarray(row[1])
                if labels.shape != tokens.shape or (
                    labels.size
                    and (labels.dtype.kind not in "iu" or labels.min() < IGNORED or labels.max() >= 2**31)
                ):
                    raise BadInputError(
                        f"{place}: '{columns[1]}' has no label of 32 bits for each of {len(tokens)} tokens"
                    )
            yield tokens, labels, True


def _write_stream(documents: Documents, out: Path, end: Optional[int], size: Optional[int]) -> int:
    is_narrow = size is not None and size <= 2**16
    with _gathering(out) as place:
        spool = _Spool(place, "tokens", "<u2" if is_narrow else "<u4")
        for tokens, _, is_end in documents:
            spool.add(tokens)
            if is_end and end is not None:
                spool.add([end])
            if spool.count > _MOST_COUNTED:
                raise BadInputError(
                    f"more than {_MOST_COUNTED} tokens, which the header can't count: convert in parts"
                )
        if not spool.count:
            raise BadInputError("there is nothing to write: the data has no tokens")

        def write(file: BinaryIO) -> None:
            header = np.zeros(_HEADER_INTS, "<i4")
            header[:3] = (20240520, 1, spool.count) if is_narrow else (20240801, 7, spool.count)
            file.write(header.tobytes())
            spool.copy_to(file)

        _publish(place, out, write)
        return spool.count


def _pack(rows: _Rows, documents: Documents, end: Optional[int]) -> None:
    held, marks = np.empty(0, np.int64), np.empty(0, np.int64)
    for tokens, labels, is_end in documents:
        tail = [end] if is_end and end is not None else []
        held = np.concatenate([held, tokens, np.array(tail, np.int64)])
        marks = np.concatenate([marks, tokens if labels is None else labels, np.array(tail, np.int64)])
        full = len(held) // rows.length * rows.length
        rows.add(held[:full], marks[:full])
        held, marks = held[full:], marks[full:]
    if len(held):
        rows.add(held, marks)


def _pad(rows: _Rows, documents: Documents, end: Optional[int]) -> None:
    held: list[Array] = []
    for tokens, labels, is_end in documents:
        if is_end and not held:
            ending = np.array([end] if end is not None else [], np.int64)
            marks = np.concatenate([tokens if labels is None else labels, ending])
            whole = np.concatenate([tokens, ending])
            if len(whole):
                rows.add(whole[: rows.length], marks[: rows.length])
            continue
        if sum(map(len, held)) < rows.length:  # The rest of a long text isn't needed.
            held.append(tokens)
        if is_end:
            whole = np.concatenate([*held, np.array([end] if end is not None else [], np.int64)])
            rows.add(whole[: rows.length], whole[: rows.length])
            held = []


def _write_column(paths: Sequence[Path], column: str, out: Path) -> int:
    """A column of numbers as .npy: whole numbers as int64, others as float32."""
    with _gathering(out) as place:
        spool: Optional[_Spool] = None
        shape: tuple[int, ...] = ()
        count = 0
        for path in paths:
            for number, (value,) in enumerate(_rows(path, [column]), 1):
                try:
                    array = np.asarray(value)
                except ValueError:
                    array = np.asarray("")
                if array.dtype.kind not in "biuf" or (array.dtype.kind == "u" and array.max() >= 2**63):
                    raise BadInputError(
                        f"row {number} of '{path}': '{column}' holds no numbers, or lists of different lengths"
                    )
                kind = "<f4" if array.dtype.kind == "f" else "<i8"
                if spool is None:
                    spool, shape = _Spool(place, "column", kind), array.shape
                if array.shape != shape or (kind == "<f4" and spool.dtype.kind != "f"):
                    raise BadInputError(
                        f"row {number} of '{path}': '{column}' is {kind[1:]} {list(array.shape)}, and "
                        f"{spool.dtype.str[1:]} {list(shape)} in the first row"
                    )
                spool.add(array)
                count += 1
        if spool is None:
            raise BadInputError("there is nothing to write: the data has no rows")
        numbers = spool

        def write(file: BinaryIO) -> None:
            np.lib.format.write_array_header_1_0(
                file, {"descr": numbers.dtype.str, "fortran_order": False, "shape": (count, *shape)}
            )
            numbers.copy_to(file)

        _publish(place, out, write)
        return count


def convert(
    inputs: Sequence[Path],
    out: Path,
    *,
    words: Optional[Tokenizer] = None,
    pack: Optional[int] = None,
    pad: Optional[int] = None,
    columns: Sequence[str] = (),
) -> int:
    """Converts files to one of the kinds above; gives the number of tokens (.bin) or of rows.

    Raises UsageError for options that don't go together, BadInputError for data at fault, with its
    row. An older OUT stays until the new one is whole.
    """
    for path in inputs:
        if not path.is_file():
            raise BadInputError(f"there is no file '{path}'")
        if words is None and not _is_table(path):
            raise UsageError(f"'{path}' is text, and needs --tokenizer")
    if (pack is not None and pack < 2) or (pad is not None and pad < 2):
        raise UsageError("a row has at least 2 tokens")
    if out.suffix == ".npy":
        if len(columns) != 1 or words is not None or pack or pad:
            raise UsageError("a .npy takes one column of numbers: give --columns NAME alone")
        return _write_column(inputs, columns[0], out)
    most = 1 if words is not None or out.suffix == ".bin" else 2
    if len(columns) > most or (words is None and not columns):
        raise UsageError(
            "give --tokenizer and at most one column of texts, or --columns with input_ids, and labels for .safetensors"
        )
    end = words.end if words is not None else None
    documents = _documents(inputs, columns, words)
    if out.suffix == ".bin":
        if pack or pad:
            raise UsageError("--pack and --pad are for .safetensors: a .bin is one stream")
        return _write_stream(documents, out, end, words.size if words is not None else None)
    if out.suffix != ".safetensors":
        raise UsageError(f"'{out}' ends in none of .bin, .safetensors, .npy")
    length = pack or pad
    if length is None or (pack and pad):
        raise UsageError("a .safetensors needs the tokens of a row: --pack N or --pad N")
    metadata = {"format": "pt", "rows": "packed" if pack else "padded"}
    if words is not None:
        metadata["tokenizer"] = words.fingerprint
    with _gathering(out) as place:
        rows = _Rows(place, length, end if end is not None else 0)
        (_pack if pack else _pad)(rows, documents, end)
        rows.publish(place, out, metadata)
        return rows.count


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tmc.data", description="Converts data sets to files that the trainer reads."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser(
        "convert", help="text, JSON Lines, Parquet or Arrow to .bin, .safetensors or .npy"
    )
    command.add_argument("inputs", metavar="IN", type=Path, nargs="+")
    command.add_argument(
        "-o", dest="out", metavar="OUT", type=Path, required=True, help="a .bin, .safetensors or .npy"
    )
    command.add_argument(
        "--tokenizer",
        metavar="NAME",
        help="bytes, a tokenizer.json, a directory with one, or a name of the hub",
    )
    command.add_argument("--pack", metavar="N", type=int, help="join documents, and cut rows of N tokens")
    command.add_argument("--pad", metavar="N", type=int, help="a row of N tokens for each document")
    command.add_argument(
        "--columns", metavar="NAME", nargs="+", default=[], help="columns by name (default: text)"
    )
    given = parser.parse_args(arguments)
    try:
        words = tokenizer(given.tokenizer) if given.tokenizer else None
        count = convert(
            given.inputs, given.out, words=words, pack=given.pack, pad=given.pad, columns=given.columns
        )
    except Error as error:
        return _report(error)
    except OSError as error:
        return _report(
            MachineError(f"{error.strerror or error}" + (f": '{error.filename}'" if error.filename else ""))
        )
    except KeyboardInterrupt:
        return 130
    kind = "tokens" if given.out.suffix == ".bin" else "rows"
    print(f"tmc: note: wrote {count} {kind} to {given.out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
