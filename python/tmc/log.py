"""Converts logs of the trainer (`DIR/train --log FILE.jsonl`).

    python -m tmc.log FILE --csv                   a table on standard output
    python -m tmc.log FILE --tensorboard DIR       an event file, which TensorBoard reads
    python -m tmc.log FILE --wandb PROJECT         a run of Weights & Biases (needs the package wandb)

A log has one JSON object a line. Lines of steps and of evaluations ("kind") are converted; those of
runs and of checkpoints are not. A last line without its end is being written, or was cut by a
kill: it is left out, and a warning says so. Any other line that is no object is an error.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import struct
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, Iterator, Mapping, Optional, Sequence, TextIO

from .errors import BadInputError, Error, MachineError

__all__ = ["entries", "write_csv", "write_tensorboard"]


def entries(path: Path) -> Iterator[Mapping[str, Any]]:
    """The objects of a log, in order. Raises BadInputError, with the line's number."""
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    entry = json.loads(line)
                except (ValueError, RecursionError):
                    if not line.endswith(b"\n"):
                        print(
                            f"tmc: warning: line {number} of '{path}' has no end and is left out",
                            file=sys.stderr,
                        )
                        return
                    entry = None
                if not isinstance(entry, dict):
                    raise BadInputError(
                        f"line {number} of '{path}' is no object of JSON: it is no log of the trainer"
                    )
                yield entry
    except OSError as error:
        raise BadInputError(f"can't read '{path}': {error.strerror}") from None


def _figures(path: Path) -> Iterator[Mapping[str, Any]]:
    """The objects of steps and evaluations. An older log has no kinds on its steps."""
    return (entry for entry in entries(path) if entry.get("kind", "step") in ("step", "eval"))


def _scalars(entry: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in entry.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool) and name not in ("step", "time"):
            yield name, float(value)


def _step_of(entry: Mapping[str, Any], number: int) -> int:
    step = entry.get("step")
    return step if isinstance(step, int) and not isinstance(step, bool) else number


def write_csv(path: Path, out: TextIO) -> None:
    """Writes a table with a column for each key, in the order in which the keys occur. Unknown
    figures are empty."""
    columns: dict[str, None] = {}
    for entry in _figures(path):
        columns.update(dict.fromkeys(entry))
    writer = csv.DictWriter(out, list(columns), lineterminator="\n")
    writer.writeheader()
    for entry in _figures(path):
        writer.writerow(
            {
                name: json.dumps(value) if isinstance(value, (dict, list)) else value
                for name, value in entry.items()
            }
        )


# Event files. Source: the record format of TensorFlow (lib/io/record_writer.h) and its messages
# Event and Summary (event.proto, summary.proto).


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # CRC-32C, reflected.
        table.append(byte)
    return table


_CRC = _crc_table()


def _masked_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _event(seconds: float, step: int, scalars: Sequence[tuple[str, float]] = (), version: str = "") -> bytes:
    text = b"\x09" + struct.pack("<d", seconds)
    if version:
        return text + _field(3, version.encode())
    values = b"".join(
        _field(1, _field(1, tag.encode()) + b"\x15" + struct.pack("<f", _narrow(value)))
        for tag, value in scalars
    )
    return text + b"\x10" + _varint(step) + _field(5, values)


def _narrow(value: float) -> float:
    """A number that a 32-bit float can hold, or an infinity."""
    return math.copysign(math.inf, value) if abs(value) > 3.4028235e38 else value


def _record(out: IO[bytes], data: bytes) -> None:
    length = struct.pack("<Q", len(data))
    out.write(length + struct.pack("<I", _masked_crc(length)) + data + struct.pack("<I", _masked_crc(data)))


def write_tensorboard(path: Path, directory: Path) -> Path:
    """Writes an event file into `directory` and gives its path. The tags are the keys of the log,
    the times those of its lines. In an older log, which has none, they begin so that the last step
    ends when the log was last written."""
    total = sum(float(e["seconds"]) for e in _figures(path) if isinstance(e.get("seconds"), (int, float)))
    now = os.stat(path).st_mtime - total
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / f"events.out.tfevents.{int(now):010d}.{path.stem}"
    with tempfile.NamedTemporaryFile(dir=directory, prefix=".tmc-", delete=False) as file:
        try:
            _record(file, _event(now, 0, version="brain.Event:2"))
            for number, entry in enumerate(_figures(path), 1):
                seconds, time = entry.get("seconds"), entry.get("time")
                now += seconds if isinstance(seconds, (int, float)) else 0.0
                now = time if isinstance(time, (int, float)) else now
                _record(file, _event(now, _step_of(entry, number), list(_scalars(entry))))
            file.flush()
            os.chmod(file.name, 0o644)
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise
    return target


def write_wandb(path: Path, project: str) -> None:
    """Logs a run to Weights & Biases. Raises MachineError without the package wandb."""
    try:
        import wandb
    except ImportError:
        raise MachineError("--wandb needs the package wandb: pip install wandb") from None
    first = next(_figures(path), None)
    if first is None:
        raise BadInputError(f"'{path}' has no steps")
    about = next((dict(entry) for entry in entries(path) if entry.get("kind") == "run"), {})
    with wandb.init(project=project, name=path.stem, config=about) as run:
        for number, entry in enumerate(_figures(path), 1):
            run.log(dict(_scalars(entry)), step=_step_of(entry, number))


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tmc.log", description="Converts logs of the trainer.")
    parser.add_argument("file", metavar="FILE", type=Path, help="the trainer's --log")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--csv", action="store_true", help="a table on standard output")
    how.add_argument("--tensorboard", metavar="DIR", type=Path, help="an event file in DIR")
    how.add_argument("--wandb", metavar="PROJECT", help="a run of Weights & Biases")
    given = parser.parse_args(arguments)
    try:
        if given.csv:
            write_csv(given.file, sys.stdout)
        elif given.tensorboard is not None:
            print(f"tmc: note: wrote {write_tensorboard(given.file, given.tensorboard)}", file=sys.stderr)
        else:
            write_wandb(given.file, given.wandb)
    except Error as error:
        return _report(error)
    except BrokenPipeError:
        sys.stderr.close()  # Nobody reads the rest.
    except OSError as error:
        return _report(MachineError(f"can't write: {error}"))
    return 0


def _report(error: Error) -> int:
    print(f"tmc: error: {error.message}", file=sys.stderr)
    for note in error.notes:
        print(f"tmc: note: {note}", file=sys.stderr)
    return error.code


if __name__ == "__main__":
    sys.exit(main())
