"""The experiments with gates: their page and pictures."""

from __future__ import annotations

from html import escape
from pathlib import Path

import pytest

from benchmarks.__main__ import resilience
from benchmarks._report import Line, Report, Section
from benchmarks.resilience._experiment import Criterion, Experiment
from benchmarks.resilience._page import EXPERIMENTS, text_of
from benchmarks.resilience._run import simulate
from benchmarks.resilience._services import RateCappedService
from trio_asyncio_io.gates import Auto

PAGES = Path(__file__).parents[2] / "docs" / "design"
RECORDED = Report.read(PAGES / "resilience.json")


def test_an_experiment_that_does_not_exist_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        resilience(["nothing"])
    assert "no such part: nothing (parts: auto, auto-drawn," in capsys.readouterr().err


def test_the_page_has_every_experiment_and_only_numbers_of_the_file() -> None:
    assert [section.name for section in RECORDED.sections if section.name in EXPERIMENTS] == list(EXPERIMENTS)
    assert text_of(RECORDED, "resilience") == (PAGES / "resilience.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [each.name for each in RECORDED.sections if each.series and each.name in EXPERIMENTS])
def test_each_picture_names_all_contenders_and_has_colours_for_dark_pages(name: str) -> None:
    picture = (PAGES / f"resilience-{name}.svg").read_text(encoding="utf-8")
    assert all(f">{escape(contender, quote=False)}</text>" in picture for contender in EXPERIMENTS[name].contenders)
    assert "prefers-color-scheme: dark" in picture


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_this_project_meets_each_criterion(name: str) -> None:
    section = RECORDED.section(name)
    assert section is not None
    assert missed(EXPERIMENTS[name], section) == []


@pytest.mark.thorough
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_full_run_meets_each_criterion(name: str) -> None:
    experiment = EXPERIMENTS[name]
    ours = {criterion.of or next(iter(experiment.contenders)) for criterion in experiment.criteria}
    assert missed(experiment, experiment.run(quick=False, only=ours)) == []


def missed(experiment: Experiment, section: Section) -> list[tuple[str, float | None, Criterion]]:
    found = [(criterion.line(section.lines), criterion) for criterion in experiment.criteria]
    return [(line.name, line.values[each.column], each) for line, each in found if not each.is_met(section.lines)]


@pytest.mark.slow
def test_two_runs_with_retries_have_equal_numbers() -> None:
    def run() -> tuple[list[float], list[float]]:
        service = RateCappedService(50)
        simulate(2.0, service, [Auto(most=20), None], capacity=20)
        return service.admitted, service.refused

    assert run() == run()


def test_a_report_has_one_line_for_each_line_of_a_table_and_for_each_series(tmp_path: Path) -> None:
    lines = [Line("ours", {"share": 0.9}), Line("theirs", {"share": None})]
    report = Report(
        False, [Section("title", "notes", {"share": "{}"}, lines, series={"ours": [(0.0, 1.0), (1.0, 2.0)]})]
    )
    report.write(tmp_path / "report.json")
    text = (tmp_path / "report.json").read_text(encoding="utf-8")
    assert '"ours": [[0.0, 1.0], [1.0, 2.0]]\n' in text
    assert sum('"values"' in line for line in text.splitlines()) == 2
    assert Report.read(tmp_path / "report.json") == report
