"""The commands `tmc plan` and `tmc compile` for Python: a model object or a file in, a plan or a
running step out."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Union

from . import _command, exporting
from ._command import Progress
from .errors import UsageError
from .plan import Plan
from .step import Step

__all__ = ["compile", "plan"]

PathLike = Union[str, "os.PathLike[str]"]
Budget = Union[int, str, None]

_OWN = {
    "o": "it is the argument 'directory'",
    "to": "it prints IR: use the command",
    "json": "the result has all of plan.json",
    "sweep": "it prints a table: use the command",
    "report": "the result has it as report_html",
    "messages": "this package reads the messages",
    "MD": "give MF, the depfile",
}
_KINDS = ("lib", "exe")


@contextlib.contextmanager
def _model_file(model: object, example_inputs: Any, dynamic_dims: Any) -> Iterator[Path]:
    """The file of a model; that of an object is temporary."""
    if isinstance(model, (str, os.PathLike)):
        if example_inputs is not None or dynamic_dims is not None:
            raise UsageError("example_inputs and dynamic_dims are for a module, and the model is a file")
        yield _command.existing(os.fspath(model))
        return
    if example_inputs is None:
        raise UsageError(
            "a module needs example_inputs: a batch as its forward takes it, by name or in order"
        )
    with tempfile.TemporaryDirectory(prefix="tmc-") as place:
        name = type(model).__name__ + ".pt2"
        yield exporting.export(model, example_inputs, dynamic_dims=dynamic_dims, path=Path(place) / name)


def _source_of(model: object) -> object:
    """The object or the directory that may have a configuration and a tokenizer."""
    return Path(model).resolve().parent if isinstance(model, (str, os.PathLike)) else model


def _words(command: str, path: Path, budget: Budget, flags: Mapping[str, object]) -> list[str]:
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, (int, str))):
        raise UsageError(f"a budget is a number of bytes or a text such as '12GiB', not {budget!r}")
    given = dict(flags, budget=budget)
    dims = given.get("dim")
    if isinstance(dims, Mapping):
        given["dim"] = exporting.named_dims(path, dims)
    return [_command.path_word(path), *_command.words_of(command, given, _OWN)]


def plan(
    model: object,
    example_inputs: object = None,
    *,
    budget: Budget = None,
    dynamic_dims: Any = None,
    progress: Optional[Progress] = None,
    **flags: object,
) -> Plan:
    """Says whether and how a training step fits a budget, without compiling it.

    model: the path of a .pt2 or .onnx file, or a torch module with `example_inputs`.
    budget: bytes as an integer, or a text such as "12GiB"; None: the target's memory.
    flags: those of `tmc plan`, with underscores for hyphens: `batch=8, micro_batches="auto"`.
    progress: called with a short text whenever another piece of work begins.

    Raises BudgetError with the smallest budget known to work, UnsupportedError with all nodes,
    BadInputError for a model at fault, UsageError for a wrong flag, with the nearest one.
    """
    with (
        _model_file(model, example_inputs, dynamic_dims) as path,
        tempfile.TemporaryDirectory(prefix="tmc-") as place,
    ):
        report = Path(place) / "report.html"
        words = _words("plan", path, budget, flags)
        outcome = _command.run("plan", [*words, "--json", f"--report={report}"], progress)
        return Plan.of_json(outcome.output, report.read_text(encoding="utf-8"), tuple(outcome.warnings))


def compile(
    model: object,
    example_inputs: object = None,
    *,
    budget: Budget = None,
    directory: Optional[PathLike] = None,
    dynamic_dims: Any = None,
    progress: Optional[Progress] = None,
    threads: int = 0,
    seed: int = 0,
    check_finite: bool = False,
    poison: bool = False,
    **flags: object,
) -> Step:
    """Compiles a model into a training step that fits a budget, and opens it.

    model: the path of a .pt2 or .onnx file, or a torch module with `example_inputs`. A module is
        exported by `tmc.export`, and the step begins with its values. A file's values are loaded
        if it has them all; else call `init_random` or `load`.
    example_inputs: a batch of the module's forward: a mapping by name, or a sequence in order.
    budget: bytes as an integer, or a text such as "12GiB"; None: the target's memory.
    directory: kept, with the library, the plan and the report; None: a temporary one, which goes
        when the step is closed.
    dynamic_dims: as of `tmc.export`; set them by `dim={"name": size}` or `batch=size`.
    progress: called with a short text whenever another piece of work begins.
    threads, seed, check_finite, poison: of the running step, see `tmc.Step`.
    flags: those of `tmc compile`, with underscores for hyphens: `precision="bf16"`. Flags that
        may occur several times take a list, and NAME=VALUE flags a mapping.

    Raises as `tmc.plan` does, and MachineError if there is no compiler. When it is interrupted
    (Ctrl-C), the compiler is ended and nothing is left behind.
    """
    kind = flags.setdefault("emit", "lib")
    if kind not in _KINDS:
        raise UsageError(f"emit={kind!r} makes no library to open", ["emit is 'lib' or 'exe'"])
    temporary = None if directory is not None else tempfile.mkdtemp(prefix="tmc-")
    # tmc makes the directory by itself, and leaves none after a failure.
    output = Path(directory) if temporary is None else Path(temporary) / "step"  # type: ignore[arg-type]
    try:
        with _model_file(model, example_inputs, dynamic_dims) as path:
            words = _words("compile", path, budget, flags)
            _command.run("compile", [*words, f"-o={output}"], progress)
        return Step(
            output,
            threads=threads,
            seed=seed,
            check_finite=check_finite,
            poison=poison,
            _temporary=temporary,
            _source=_source_of(model),
        )
    except BaseException:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
        raise
