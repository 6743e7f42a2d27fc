"""Runs the `tmc` command: flags from keywords, messages as exceptions, progress by callback."""

from __future__ import annotations

import difflib
import functools
import json
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence

from . import _install
from .errors import BadInputError, DefectError, UsageError, error_of_message

Progress = Callable[[str], None]

# A killed command removes what it was writing within two seconds.
_SECONDS_TO_CLEAN_UP = 10.0


@dataclass(frozen=True)
class Flag:
    """A flag of a command: its name without dashes, as written, and whether it takes a value."""

    name: str
    spelling: str
    takes_value: bool


@functools.lru_cache(maxsize=None)  # One entry for each program and command.
def _flags(path: str, command: str, _changed: float) -> Mapping[str, Flag]:
    text = subprocess.run([path, command, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    found = re.findall(r"^  (--?)([\w-]+)(?: (\S.*?))?(?:  |$)", text, re.M)
    return {name: Flag(name, dashes + name, bool(value)) for dashes, name, value in found if name != "help"}


def flags_of(command: str) -> Mapping[str, Flag]:
    """The flags of a command by name, from its own help."""
    path = _install.program()
    return _flags(str(path), command, os.stat(path).st_mtime)


def _text_of(flag: Flag, value: object) -> str:
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value) if not isinstance(value, str) else value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    raise UsageError(f"{flag.spelling} takes a text or a number, not {value!r}")


def _nearest(name: str, flags: Iterable[str]) -> Optional[str]:
    spelled = [each.replace("-", "_") for each in flags]
    return next(iter(difflib.get_close_matches(name, spelled, n=1)), None)


def words_of(command: str, given: Mapping[str, object], own: Mapping[str, str] = {}) -> list[str]:
    """Keyword arguments as words of the command line.

    A name has underscores for hyphens. None leaves a flag out, True and False are for flags
    without a value, a list repeats the flag, and a mapping repeats it with NAME=VALUE.

    own: flags that the caller sets itself, with the advice that refuses them.
    Raises UsageError for unknown flags (it names the nearest one) and for values of wrong types.
    """
    flags = flags_of(command)
    words: list[str] = []
    for name, value in given.items():
        flag = flags.get(name.replace("_", "-"))
        if name in own:
            raise UsageError(f"'{name}' isn't for this function", [own[name]])
        if flag is None:
            meant = _nearest(name, [each for each in flags if each.replace("-", "_") not in own])
            raise UsageError(
                f"tmc {command} has no flag '{name}'",
                [f"did you mean '{meant}'?" if meant else "the flags are " + ", ".join(sorted(flags))],
            )
        if value is None:
            continue
        if not flag.takes_value:
            if not isinstance(value, bool):
                raise UsageError(f"{flag.spelling} takes True or False, not {value!r}")
            words += [flag.spelling] if value else []
            continue
        if isinstance(value, Mapping):
            values = [f"{key}={_text_of(flag, each)}" for key, each in value.items()]
        elif isinstance(value, (list, tuple)):
            values = [_text_of(flag, each) for each in value]
        else:
            values = [_text_of(flag, value)]
        # The short flags of compilers (-MF) take their value as a word of its own, too.
        words += [f"{flag.spelling}={each}" for each in values]
    return words


@dataclass
class Outcome:
    """A command that ended with 0.

    output: its standard output. warnings, notes: its messages, in their order. summary: its last text.
    """

    output: bytes = b""
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    summary: str = ""


class _Listener:
    """Sorts the lines of standard error."""

    def __init__(self, progress: Optional[Progress]) -> None:
        self.outcome = Outcome()
        self.error: Optional[Mapping[str, Any]] = None
        self.stray: list[str] = []
        self._progress = progress

    def hear(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip("\n")
        try:
            message = json.loads(text)
            kind, words = message["kind"], message["message"]
        except (ValueError, TypeError, KeyError):
            self.stray.append(text)
            return
        if kind == "error":
            self.error = message
        elif kind == "warning":
            self.outcome.warnings.append(words)
        elif kind == "note":
            self.outcome.notes.append(words)
        elif kind == "summary":
            self.outcome.summary = words
        elif self._progress:
            self._progress(words)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the command. It ends its host compilers and removes its unfinished files by itself."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_SECONDS_TO_CLEAN_UP)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def run(command: str, words: Sequence[str], progress: Optional[Progress] = None) -> Outcome:
    """Runs `tmc COMMAND WORDS`.

    progress: called with a short text whenever the command begins another piece of work.
    Raises the exception for the exit code. If the caller is interrupted, or if `progress`
    raises, the command is ended first.
    """
    if any("\0" in word for word in words):
        raise BadInputError("a path or a flag has a null character")
    listener = _Listener(progress)
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [str(_install.program()), command, "--messages=json", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        try:
            with process.stderr:
                for line in process.stderr:
                    listener.hear(line)
            code = process.wait()
        finally:
            _end(process)
        if code == 0:
            output.seek(0)
            listener.outcome.output = output.read()
            return listener.outcome
    if listener.error is None or code < 0:
        raise DefectError(
            f"tmc {command} was ended by signal {-code}"
            if code < 0
            else f"tmc {command} ended with code {code}",
            listener.stray,
        )
    raise error_of_message(code, listener.error)


def path_word(path: "str | os.PathLike[str]") -> str:
    """A path as a word that no flag begins like."""
    text = os.fspath(path)
    return os.path.join(".", text) if text.startswith("-") else text


def existing(path: "str | os.PathLike[str]") -> Path:
    """`path`, if there is such a file or directory; else BadInputError."""
    found = Path(path)
    if not found.exists():
        raise BadInputError(f"there is no file '{found}'")
    return found
