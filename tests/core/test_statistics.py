"""Statistics and Counters."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import pytest

from trio_asyncio_io import Statistics
from trio_asyncio_io._core.statistics import Counters


def test_statistics_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Statistics().running = 1  # type: ignore[misc]


def test_unpickled_statistics_equal_the_original() -> None:
    statistics = Statistics(emitted=3, head_wait_seconds=0.5)
    assert pickle.loads(pickle.dumps(statistics)) == statistics


def test_frozen_counters_do_not_change_later() -> None:
    counters = Counters()
    counters.running += 1
    frozen = counters.freeze({})
    counters.running += 1
    assert frozen == Statistics(running=1)
    assert counters.freeze({}) == Statistics(running=2)
