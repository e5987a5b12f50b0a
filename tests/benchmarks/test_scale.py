"""Records in memory, and cancellation."""

from __future__ import annotations

import pytest
import trio

from benchmarks import _scale


def test_at_most_one_record_more_than_the_buffer_is_held() -> None:
    held, size = trio.run(_scale._held, 150)
    assert held == 151
    assert size > 0


def test_cancelled_calls_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_scale, "RUNNING", 50)
    assert trio.run(_scale._cancelled, "unordered") > 0
    assert trio.run(_scale._nursery) > 0


def test_sizes_are_decades() -> None:
    assert list(_scale._decades(1, 1_000)) == [1, 10, 100, 1_000]


def test_a_long_measurement_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_scale, "LONG", 100)
    steps: list[None] = []
    line = _scale._line(200, 200, 10, 3, lambda: steps.append(None))
    assert line.name == "200"
    assert all(value and value > 0 for value in line.values.values())
    assert len(steps) == 0
