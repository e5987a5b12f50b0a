"""A target is met, not met, or not measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks._report import Report
from benchmarks._targets import TARGETS, Target

VERDICTS = {
    "ordered, of the bare worker loop": ("1.40 x", "met"),
    "unordered, of the bare worker loop": ("1.60 x", "**not met**"),
    "aiostream, of ours": ("", "not measured"),
    "cancelling 10,000 running calls": ("0.30 s", "met"),
    "records held beyond the buffer": ("", "not measured"),
}


@pytest.mark.parametrize("says", VERDICTS)
def test_the_verdict_on_a_target_comes_from_the_report(report: Report, says: str) -> None:
    target = next(each for each in TARGETS if each.says == says)
    assert tuple(target.cells(report)[2:]) == VERDICTS[says]


def test_an_empty_report_meets_no_target() -> None:
    empty = Report(is_quick=True)
    assert {target.verdict(empty) for target in TARGETS} == {"not measured"}


def test_a_bound_is_an_upper_or_a_lower_limit() -> None:
    report = Report(is_quick=True)
    assert Target("", lambda _: 2.0, 2.0).verdict(report) == "met"
    assert Target("", lambda _: 1.9, 2.0).verdict(report) == "**not met**"
    assert Target("", lambda _: 2.1, 2.0, is_most=True).verdict(report) == "**not met**"


def test_every_target_is_measured_in_the_report_of_the_documentation() -> None:
    """A target finds its numbers by the names of sections, lines and columns."""
    report = Report.read(Path(__file__).parents[2] / "docs" / "benchmarks.json")
    assert [target.says for target in TARGETS if target.verdict(report) == "not measured"] == []
