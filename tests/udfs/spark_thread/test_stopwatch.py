"""Stopwatch: the time from start to stop, summed up."""

from __future__ import annotations

import pytest

import udfs._spark_thread.bridge
from udfs._spark_thread.bridge import Stopwatch


def test_a_stopwatch_sums_up_the_times_from_start_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10.0
    monkeypatch.setattr(udfs._spark_thread.bridge, "perf_counter", lambda: now)
    watch = Stopwatch()
    watch.start()
    now = 12.0
    assert watch.seconds == 2.0
    watch.stop()
    now = 20.0
    assert watch.seconds == 2.0
    watch.start()
    now = 21.0
    assert watch.seconds == 3.0
