"""The report: tables on the terminal, and the same numbers as JSON."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["Line", "Report", "Section"]

PEAK = "peak in flight"
PACKAGES = ("trio", "aiometer", "pyspark", "pandas", "pyarrow")


@dataclass(frozen=True, slots=True)
class Line:
    """One contender.

    Attributes:
        name: What was measured.
        values: By column, as numbers; None where there is none.
        peak: Most calls that were in flight at once, or None.
    """

    name: str
    values: dict[str, float | None]
    peak: int | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """One table.

    Attributes:
        title: What it is about.
        notes: What a reader must know to read it.
        formats: By column: how its numbers are written.
        lines: Its lines.
    """

    title: str
    notes: str
    formats: dict[str, str]
    lines: list[Line] = field(default_factory=list)

    def show(self, console: Console) -> None:
        """Print the table."""
        table = Table(title=self.title, title_justify="left", caption=self.notes, caption_justify="left")
        table.add_column("")
        formats = dict(self.formats)
        if any(line.peak is not None for line in self.lines):
            formats[PEAK] = "{:.0f}"
        for column in formats:
            table.add_column(column, justify="right")
        for line in self.lines:
            values = {**line.values, PEAK: line.peak}
            table.add_row(line.name, *(self._cell(values.get(column), form) for column, form in formats.items()))
        console.print(table)
        console.print()

    @staticmethod
    def _cell(value: float | None, form: str) -> str:
        return "" if value is None else form.format(value)


@dataclass(frozen=True, slots=True)
class Report:
    """All that was measured in one run."""

    is_quick: bool
    sections: list[Section] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write it as JSON, with what it was measured on."""
        document = {
            "machine": _machine(),
            "is_quick": self.is_quick,
            "sections": [asdict(each) for each in self.sections],
        }
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
