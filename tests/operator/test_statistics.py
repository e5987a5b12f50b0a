"""Statistics, as plain data; what the operator counts is in the tests of those who count."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields

import pytest

from trio_asyncio_io import Statistics
from trio_asyncio_io._core.statistics import Counters


def test_the_fields_are_those_of_the_contract() -> None:
    assert [field.name for field in fields(Statistics)] == [
        "running",
        "buffered",
        "peak_running",
        "peak_buffered",
        "emitted",
        "completed",
        "retried",
        "timed_out",
        "failed",
        "skipped",
        "cancelled",
        "slot_wait_seconds",
        "head_wait_seconds",
        "retries_denied",
        "dead_lettered",
    ]


def test_statistics_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Statistics().running = 1  # type: ignore[misc]


def test_statistics_pickle() -> None:
    statistics = Statistics(emitted=3, head_wait_seconds=0.5)
    assert pickle.loads(pickle.dumps(statistics)) == statistics


def test_what_was_frozen_does_not_change_when_counting_goes_on() -> None:
    counters = Counters()
    counters.running += 1
    frozen = counters.freeze()
    counters.running += 1
    assert frozen == Statistics(running=1)
    assert counters.freeze() == Statistics(running=2)
