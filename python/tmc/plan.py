"""A plan: the keys of plan.json as attributes (docs/reports.md lists them)."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Union

from .errors import BadInputError

__all__ = ["Plan"]


class Record(Mapping[str, Any]):
    """An object of JSON: `record.key` and `record["key"]`; unknown figures are None."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = {name: Record(v) if isinstance(v, dict) else v for name, v in fields.items()}

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            try:
                return self._fields[name]
            except KeyError:
                pass
        raise AttributeError(
            f"a plan has no '{name}'; it has {', '.join(sorted(self.__dict__.get('_fields', ())))}"
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._fields]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._fields.items())})"


def _size(count: Optional[float]) -> str:
    if count is None:
        return "unknown"
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if abs(count) < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.2f} {unit}"


class Plan(Record):
    """A plan of `tmc plan` or of a compiled directory.

    Bytes are in keys that end in `_bytes`, seconds in keys that end in `_s`: `arena_bytes`,
    `step_time_s`, `overhead_pct`, `smallest_found_bytes`, ... In a notebook it shows its report.
    warnings: the compiler's, in its order.
    """

    def __init__(
        self, fields: Mapping[str, Any], report: Optional[str] = None, warnings: tuple[str, ...] = ()
    ) -> None:
        super().__init__(fields)
        self._report = report
        self.warnings = warnings

    @classmethod
    def of_directory(cls, directory: Union[str, "os.PathLike[str]"]) -> "Plan":
        """The plan of a compiled directory. Raises BadInputError if there is none."""
        path = Path(directory) / "plan.json"
        report = Path(directory) / "report.html"
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise BadInputError(f"'{directory}' has no plan.json: tmc compile didn't write it") from None
        except (OSError, ValueError) as error:
            raise BadInputError(f"can't read '{path}': {error}") from None
        if not isinstance(fields, dict):
            raise BadInputError(f"'{path}' holds no object")
        return cls(fields, report.read_text(encoding="utf-8") if report.is_file() else None)

    @classmethod
    def of_json(
        cls, text: Union[str, bytes], report: Optional[str] = None, warnings: tuple[str, ...] = ()
    ) -> "Plan":
        """The plan of the text of a plan.json."""
        return cls(json.loads(text), report, warnings)

    @property
    def report_html(self) -> Optional[str]:
        """The page report.html as text; None if there is none."""
        return self._report

    def __str__(self) -> str:
        time, base = self.get("step_time_s"), self.get("overhead_pct")
        budget = self.get("budget_bytes")
        return (
            f"{self.get('model')} on {self.get('target')}: arena {_size(self.get('arena_bytes'))}"
            + (f" of a budget of {_size(budget)}" if budget is not None else "")
            + (f", {1e3 * time:.1f} ms a step" if time is not None else "")
            + (f", {base:.1f} % over the unconstrained step" if base is not None else "")
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The report in a frame, or a table where there is no report."""
        if self._report is not None:
            return (
                f'<iframe srcdoc="{html.escape(self._report)}" title="plan" sandbox="allow-scripts" '
                'style="width:100%;height:40em;border:0"></iframe>'
            )
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
            for name, value in self.items()
            if not isinstance(value, (Record, list))
        )
        return f"<table>{rows}</table>"
