"""Exceptions of tmc: one class for each exit code of the command.

The numbers of a failure are attributes. They come from `tmc --messages=json` and from the
codes of the C interface, and never from the words of a message.

    try:
        step = tmc.compile("model.onnx", budget="1MiB")
    except tmc.BudgetError as error:
        step = tmc.compile("model.onnx", budget=error.smallest_found)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Mapping, Optional, Sequence

__all__ = [
    "BadInputError",
    "BudgetError",
    "DefectError",
    "Error",
    "MachineError",
    "Node",
    "UnsupportedError",
    "UsageError",
]


@dataclass(frozen=True)
class Node:
    """A part of a model that tmc doesn't support, in the model's own names.

    A field is "" if it isn't known; an empty `reason` stands for the whole operator.
    """

    op: str
    name: str
    line: str
    reason: str


class Error(Exception):
    """A failure of tmc.

    code: the exit code of the command, or the code of the function of the C interface.
    message: one sentence, in lower case and without a full stop.
    notes: further sentences: the place, the way out.
    """

    code: ClassVar[int] = 70

    def __init__(self, message: str, notes: Sequence[str] = ()) -> None:
        super().__init__(message, tuple(notes))
        self.message = message
        self.notes = tuple(notes)

    def __str__(self) -> str:
        return "\n".join([self.message, *("note: " + note for note in self.notes)])


class BadInputError(Error, ValueError):
    """A model, a tensor, a checkpoint or data is at fault (1)."""

    code = 1


class UsageError(Error, TypeError):
    """A flag, a name or the order of calls is wrong (2)."""

    code = 2


class BudgetError(Error):
    """The step doesn't fit the budget (3).

    budget: the bytes that were asked for.
    smallest_found: the smallest budget for which a plan is known, in bytes.
    impossible_below: bytes; no plan can exist for fewer.
    Each is None if it isn't known.
    """

    code = 3

    def __init__(
        self,
        message: str,
        notes: Sequence[str] = (),
        budget: Optional[int] = None,
        smallest_found: Optional[int] = None,
        impossible_below: Optional[int] = None,
    ) -> None:
        super().__init__(message, notes)
        self.budget = budget
        self.smallest_found = smallest_found
        self.impossible_below = impossible_below


class UnsupportedError(Error):
    """The model asks for something that tmc doesn't have (4).

    nodes: all of it, as many as there are in the model. Empty if the failure isn't about nodes.
    """

    code = 4

    def __init__(self, message: str, notes: Sequence[str] = (), nodes: Sequence[Node] = ()) -> None:
        super().__init__(message, notes)
        self.nodes = tuple(nodes)


class DefectError(Error):
    """A bug in tmc (70). A note names a file that shows it again, if there is one."""

    code = 70


class MachineError(Error, OSError):
    """The machine is at fault: a full disk, no compiler, not enough memory (74)."""

    code = 74

    def __init__(self, message: str, notes: Sequence[str] = ()) -> None:
        Error.__init__(self, message, notes)

    def __str__(self) -> str:
        return Error.__str__(self)


_CLASSES: Mapping[int, type[Error]] = {
    each.code: each
    for each in (BadInputError, UsageError, BudgetError, UnsupportedError, DefectError, MachineError)
}


def error_of_code(code: int, message: str, notes: Sequence[str] = ()) -> Error:
    """The exception for a code of the C interface; an unknown code is a bug in tmc."""
    return _CLASSES.get(code, DefectError)(message, notes)


def error_of_message(code: int, message: Mapping[str, Any]) -> Error:
    """The exception for an error object of `--messages=json`, and the command's exit code."""
    text, notes = str(message.get("message", "")), [str(note) for note in message.get("notes", ())]
    numbers: Mapping[str, int] = message.get("numbers", {})
    if code == BudgetError.code:
        return BudgetError(
            text,
            notes,
            budget=numbers.get("budget_bytes"),
            smallest_found=numbers.get("smallest_found_bytes"),
            impossible_below=numbers.get("impossible_below_bytes"),
        )
    if code == UnsupportedError.code:
        nodes = [
            Node(*(str(node.get(field, "")) for field in ("op", "name", "line", "reason")))
            for node in message.get("nodes", ())
        ]
        return UnsupportedError(text, notes, nodes)
    return error_of_code(code, text, notes)
