"""MeasuredRate: plain arithmetic, without a loop."""

from __future__ import annotations

import pytest

from trio_asyncio_io.gates._measured_rate import MeasuredRate


def measured(*instants: float) -> float:
    rate = MeasuredRate()
    for instant in instants:
        rate.add(instant, 1.0)
    return rate.rate


def test_it_is_smoothed_over_windows_of_half_a_second() -> None:
    assert measured(*(number / 16 for number in range(16, 49))) == pytest.approx(16.0)


def test_a_pause_is_not_a_slow_service() -> None:
    fast = [number / 16 for number in range(16, 49)]
    assert measured(*fast, 100.0) == measured(*fast)


def test_calls_a_second_apart_and_more_are_measured_too() -> None:
    assert measured(*(float(second) for second in range(1, 9))) == 1.0
