"""The time budget."""

from __future__ import annotations

import pytest

import udfs._spark_thread.bridge
from udfs._spark_thread.bridge import Budget


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(udfs._spark_thread.bridge, "monotonic", lambda: now[0])
    return now


def test_the_default_budget_is_unlimited(clock: list[float]) -> None:
    budget = Budget()
    clock[0] += 1e9
    assert (budget.remaining(), budget.max_unfinished) == (None, 0)


def test_a_spent_budget_has_zero_seconds_left(clock: list[float]) -> None:
    budget = Budget(5.0, max_unfinished=3)
    assert budget.remaining() == 5.0
    clock[0] += 4.0
    assert budget.remaining() == 1.0
    clock[0] += 4.0
    assert (budget.remaining(), budget.max_unfinished) == (0.0, 3)
