"""A report: tables for the terminal, and the same numbers as JSON."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

PEAK = "peak in flight"
# Contenders that are no longer measured: their lines are kept
RECORDED: tuple[str, ...] = ("Daft", "Pathway", "PyFlink", "Flink, in Java")
MEASURED = ("trio_asyncio_io", "udfs")
PACKAGES = ("trio", "aiometer", "aiostream", "streamable", "pyspark", "pandas", "pyarrow", "httpx", "httpx2", "aiohttp")


@dataclass(frozen=True, slots=True)
class Line:
    """The numbers of one contender.

    Attributes:
        name: The contender.
        values: The numbers by column, or None.
        peak: The largest number of calls in flight, or None.
        note: The reason for missing numbers, or a remark on this line.
    """

    name: str
    values: Mapping[str, float | None]
    peak: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """One table.

    Attributes:
        title: Its heading.
        notes: The text below the table.
        formats: The format of the numbers, by column.
        lines: Its lines.
        name: The name that targets and figures use, or empty.
        part: The part of the benchmark that it belongs to.
        series: (start, duration) of single events in seconds, by contender, for the figure.
    """

    title: str
    notes: str
    formats: dict[str, str]
    lines: list[Line] = field(default_factory=list)
    name: str = ""
    part: str = ""
    series: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def show(self, console: Console) -> None:
        """Print the table."""
        table = Table(title=self.title, title_justify="left", caption=self.notes, caption_justify="left")
        header, *rows = self.cells()
        for number, column in enumerate(header):
            table.add_column(column, justify="right" if number else "left")
        for row in rows:
            table.add_row(*row)
        console.print(table)
        console.print()

    def cells(self) -> list[list[str]]:
        """The table as text: the header, then a row for each line."""
        formats = dict(self.formats)
        if any(line.peak is not None for line in self.lines):
            formats[PEAK] = "{:,.0f}"
        rows = [["", *formats]]
        for line in self.lines:
            values = {**line.values, PEAK: line.peak}
            name = f"{line.name}: {line.note}" if line.note else line.name
            rows.append([name, *(self._cell(values.get(column), form) for column, form in formats.items())])
        return rows

    def line(self, name: str) -> Line | None:
        """The line of this name, if there is one."""
        return next((line for line in self.lines if line.name == name), None)

    @staticmethod
    def _cell(value: float | None, form: str) -> str:
        return "" if value is None else form.format(value)


def machine() -> dict[str, Any]:
    """The machine, the versions, and the last commit that changed the measured packages."""
    return {
        "commit": _commit(),
        "python": platform.python_version(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def _commit() -> str:
    """With a "+" if the packages have other changes. Empty outside of a clone."""

    def output(*words: str) -> str:
        command = ["git", *words, "--", *MEASURED]
        root = Path(__file__).parents[1]
        return subprocess.run(command, cwd=root, check=False, capture_output=True, text=True).stdout.strip()

    return output("log", "-1", "--format=%h") + ("+" if output("status", "--porcelain") else "")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@dataclass(frozen=True, slots=True)
class Report:
    """The measurements, each part from one run.

    Attributes:
        is_quick: Whether the runs were quick ones.
        sections: The tables.
        machines: The machine, the versions and the commit, by part.
    """

    is_quick: bool
    sections: list[Section] = field(default_factory=list)
    machines: dict[str, dict[str, Any]] = field(default_factory=dict)

    def section(self, name: str) -> Section | None:
        """The section of this name, if it was measured."""
        return next((section for section in self.sections if section.name == name), None)

    def put(self, part: str, sections: list[Section], machine: dict[str, Any]) -> None:
        """Put the tables of a part in place of its earlier ones, with the lines that are no longer measured."""
        if machine:
            self.machines[part] = machine
        names = {section.name for section in sections}
        for section in sections:
            before = self.section(section.name)
            if before is not None:
                section.lines.extend(line for line in before.lines if line.name.startswith(RECORDED))
                section.series.update(
                    {name: points for name, points in before.series.items() if name.startswith(RECORDED)}
                )
        earlier = [section for section in self.sections if section.part == part or section.name in names]
        place = self.sections.index(earlier[0]) if earlier else len(self.sections)
        others = [section for section in self.sections if section not in earlier]
        self.sections[:] = [*others[:place], *(replace(each, part=part) for each in sections), *others[place:]]

    def write(self, path: Path) -> None:
        """Write it as JSON, with one line for each line of a table and for each series."""
        path.write_text(_indented(asdict(self)) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Report:
        """The report in a file that `write` has written."""
        document = json.loads(path.read_text(encoding="utf-8"))
        for section in document["sections"]:
            section["lines"] = [Line(**line) for line in section["lines"]]
            section["series"] = {
                name: [(start, seconds) for start, seconds in events] for name, events in section["series"].items()
            }
        document["sections"] = [Section(**section) for section in document["sections"]]
        return cls(**document)


def _indented(value: Any, indent: str = "") -> str:
    """JSON, in which only the dictionaries and lists that contain dictionaries have several lines."""
    inner = indent + "  "
    children = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    is_table = bool(children) and all(isinstance(child, list) for child in children)
    if not is_table and not any(isinstance(child, dict | list) for child in children):
        return json.dumps(value)
    if isinstance(value, dict):
        if "values" in value:  # a line of a table
            return json.dumps(value)
        items = [f"{json.dumps(key)}: {_indented(child, inner)}" for key, child in value.items()]
        return "{\n" + ",\n".join(inner + item for item in items) + f"\n{indent}}}"
    if is_table:  # a series
        return json.dumps(value)
    return "[\n" + ",\n".join(inner + _indented(child, inner) for child in value) + f"\n{indent}]"
