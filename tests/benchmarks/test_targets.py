"""A target is met, not met, or not measured."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from benchmarks._report import Report
from benchmarks._targets import TARGETS, Target

ROOT = Path(__file__).parents[2]
VERDICTS = {
    "ordered: cost relative to the bare worker loop": ("1.40 x", "met"),
    "unordered: cost relative to the bare worker loop": ("1.60 x", "**not met**"),
    "aiostream: cost relative to this operator": ("", "not measured"),
    "cancelling 10,000 running calls": ("0.30 s", "met"),
    "records held beyond the buffer": ("", "not measured"),
}


@pytest.mark.parametrize("says", VERDICTS)
def test_the_verdict_on_a_target_comes_from_the_report(report: Report, says: str) -> None:
    target = next(each for each in TARGETS if each.label == says)
    assert tuple(target.cells(report)[2:]) == VERDICTS[says]


def test_an_empty_report_meets_no_target() -> None:
    empty = Report(is_quick=True)
    assert {target.verdict(empty) for target in TARGETS} == {"not measured"}


def test_a_bound_is_an_upper_or_a_lower_limit() -> None:
    report = Report(is_quick=True)
    assert Target("", lambda _: 2.0, 2.0).verdict(report) == "met"
    assert Target("", lambda _: 1.9, 2.0).verdict(report) == "**not met**"
    assert Target("", lambda _: 2.1, 2.0, is_maximum=True).verdict(report) == "**not met**"


def test_every_target_is_measured_in_the_report_of_the_documentation() -> None:
    """A target finds its numbers by the names of sections, lines and columns."""
    report = Report.read(ROOT / "docs" / "design" / "benchmarks.json")
    assert [target.label for target in TARGETS if target.verdict(report) == "not measured"] == []


class Reader:
    """A report that has every section, line and column, and records the names by which a target looks for them."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.lines = [self]
        self.values = self
        self.name = "1"

    def section(self, name: str) -> Reader:
        self.names.add(name)
        return self

    line = section

    def get(self, column: str) -> float:
        self.names.add(column)
        return 1.0

    __getitem__ = get


def labels() -> list[re.Pattern[str]]:
    """The strings in the benchmark's code, with `.+` for each value in an f-string."""
    found = []
    for path in (ROOT / "benchmarks").rglob("*.py"):
        if path.name != "_targets.py":
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                parts = node.values if isinstance(node, ast.JoinedStr) else [node]
                texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
                if re.search("[a-z]", "".join(texts)):  # a label has words
                    found.append([re.escape(part.value) if isinstance(part, ast.Constant) else ".+" for part in parts])
    return [re.compile("".join(parts)) for parts in found]


def is_written(name: str, written: list[re.Pattern[str]]) -> bool:
    """Whether the benchmark contains this name, or parts of it that a comma joins, as in `Flink, in Java, ordered`."""
    places = [match.start() for match in re.finditer(", ", name)]
    return any(label.fullmatch(name) for label in written) or any(
        is_written(name[:place], written) and is_written(name[place + 2 :], written) for place in places
    )


def test_the_benchmark_writes_every_name_that_a_target_reads() -> None:
    """The report of the documentation is older than the code: there, a renamed line would not be missed."""
    reader = Reader()
    for target in TARGETS:
        target.figure(reader)  # type: ignore[arg-type]
    written = labels()
    assert [name for name in sorted(reader.names) if not is_written(name, written)] == []
