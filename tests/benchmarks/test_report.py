"""A report as a table and as JSON."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from benchmarks._report import Line, Report, Section, machine


def test_a_missing_number_is_an_empty_cell(report: Report) -> None:
    header, *rows = report.sections[0].cells()
    assert header == ["", "μs/element", "ratio", "peak in flight"]
    assert rows[0] == ["bare worker loop", "10.0", "1.00", "100"]
    assert rows[-1] == ["aiostream (no timeout): not installed: .ci/just bench installs it", "", "", ""]


def test_a_report_survives_writing_and_reading(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    report.write(path)
    assert Report.read(path) == report


def test_a_part_that_is_measured_again_replaces_its_tables_in_their_place(report: Report) -> None:
    one, two = report.sections
    report.sections.clear()
    report.put("operator", [one], {})
    report.put("scale", [two], {})
    report.put("operator", [replace(one, name="new"), one], {})
    assert [(section.part, section.name) for section in report.sections] == [
        ("operator", "new"),
        ("operator", "overhead"),
        ("scale", "cancellation"),
    ]


def test_each_part_keeps_the_machine_that_it_was_measured_on(report: Report) -> None:
    before = report.machines["scale"]
    report.put("operator", [report.sections[0]], {"commit": "9abc"})
    assert report.machines == {"operator": {"commit": "9abc"}, "scale": before}


def test_the_commit_of_the_measured_packages_is_recorded() -> None:
    command = ["git", "log", "-1", "--format=%h", "--", "trio_asyncio_io", "udfs"]
    found = subprocess.run(command, cwd=Path(__file__).parents[2], check=False, capture_output=True, text=True)
    assert machine()["commit"].rstrip("+") == found.stdout.strip()


def test_tables_and_lines_that_are_not_measured_any_more_are_kept() -> None:
    ours, gone, flink = Line("ordered", {}), Line("an old contender", {}), Line("Flink, in Java, ordered", {})
    engines = Section("Engines", "", {}, [Line("PyFlink", {})], "engines", "engines")
    points = [(0.0, 1.0)]
    old = Section("", "", {}, [ours, gone, flink], "far", "latency", {"ordered": points, "Daft": points})
    report = Report(False, [engines, old])
    for _ in range(2):
        report.put("latency", [Section("", "", {}, [ours], "far", series={"ordered": []})], {})
    assert report.sections[0] == engines
    assert report.sections[1].lines == [ours, flink]
    assert report.sections[1].series == {"ordered": [], "Daft": points}
    assert len(report.sections) == 2
