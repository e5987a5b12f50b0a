"""How long a task waits."""

from __future__ import annotations

import pytest

import udfs._spark_thread.bridge
from udfs._spark_thread.bridge import WaitLimit


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(udfs._spark_thread.bridge, "monotonic", lambda: now[0])
    return now


def test_the_default_limit_is_unlimited(clock: list[float]) -> None:
    limit = WaitLimit()
    clock[0] += 1e9
    assert (limit.remaining(), limit.max_unfinished) == (None, 0)


def test_after_its_time_a_limit_has_zero_seconds_left(clock: list[float]) -> None:
    limit = WaitLimit(5.0, max_unfinished=3)
    assert limit.remaining() == 5.0
    clock[0] += 4.0
    assert limit.remaining() == 1.0
    clock[0] += 4.0
    assert (limit.remaining(), limit.max_unfinished) == (0.0, 3)
