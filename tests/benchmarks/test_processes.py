"""Engines in other processes are in one table with ours."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks import _processes
from benchmarks._child import Child, Reply, start
from benchmarks._engines import Engine, engine_versions

NOT_INSTALLED = "not installed: just bench-setup"


class StandIn:
    """A child whose jobs take 50 ms, and 100 μs more for each element."""

    def request(self, _what: str, _mode: str, capacity: int, elements: float) -> Reply:
        said = {"calls": 2 * int(elements), "peak": 7 * capacity}
        return Reply(0.05 + elements * 100e-6, 0.02 + elements * 30e-6, said)


@contextmanager
def stand_in() -> Iterator[Any]:
    yield StandIn()


@contextmanager
def broken() -> Iterator[Child]:
    with start([sys.executable, "-c", "raise SystemExit('no license')"]) as child:
        yield child


@pytest.mark.processes
def test_each_engine_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    engines = (
        Engine("stand-in", stand_in, lambda: "", (1_000, 100), 1),
        Engine("absent", stand_in, lambda: NOT_INSTALLED, (1_000, 100), 1),
        Engine("broken", broken, lambda: "", (1_000, 100), 1),
    )
    monkeypatch.setattr(_processes, "ENGINES", engines)
    section = _processes.engines(quick=True, on_step=lambda: None)
    names = [line.name for line in section.lines]
    assert names == ["bare worker loop", "ordered", "unordered", "stand-in", "absent", "broken"]
    line = section.line("stand-in")
    assert line is not None
    assert (line.values["elements"], line.values["calls"], line.peak) == (1_000, 2_000, 700)
    assert line.values["wall μs"] == pytest.approx(100)
    assert line.values["CPU μs"] == pytest.approx(30)
    assert line.values["start, s"] == pytest.approx(0.05)
    assert section.lines[4].note == NOT_INSTALLED
    assert section.lines[5].note == "failed: the process has ended: no license"


def test_no_engine_is_installed_in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks._engines.ENVIRONMENTS", tmp_path)
    assert {engine.missing() for engine in _processes.ENGINES} == {NOT_INSTALLED}


def test_the_versions_of_engines_are_read_from_their_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "flink/lib/python3.11/site-packages"
    for name in ("apache_flink-2.3.0.dist-info", "apache_flink_libraries-2.3.0.dist-info", "pyarrow-16.1.0.dist-info"):
        (packages / name).mkdir(parents=True)
    monkeypatch.setattr("benchmarks._engines.ENVIRONMENTS", tmp_path)
    assert engine_versions() == {"apache-flink": "2.3.0", "apache-flink-libraries": "2.3.0"}
