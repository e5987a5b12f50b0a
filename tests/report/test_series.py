"""Counts over time: the bins become wider, and nothing is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trio_asyncio_io._watch.run import MAX_BINS, Series

INSTANTS = st.lists(st.floats(0, 10_000), max_size=50)


@given(INSTANTS)
def test_each_event_is_in_the_bin_of_its_instant(instants: list[float]) -> None:
    series = Series()
    for instant in instants:
        series.add(series.received, instant)
    assert sum(series.received) == len(instants)
    assert series.bins <= MAX_BINS
    for number, count in enumerate(series.received):
        assert count == sum(int(instant / series.width) == number for instant in instants)


def test_the_calls_that_run_are_the_sum_of_the_changes() -> None:
    series = Series(1.0, change=[2, 1, -3], received=[1, 0, 3, 0])
    assert series.running() == [2, 3, 0, 0]


@given(st.lists(st.tuples(st.floats(0, 1_000), INSTANTS), max_size=4))
def test_merging_loses_nothing_and_keeps_the_bound(parts: list[tuple[float, list[float]]]) -> None:
    several = []
    for shift, instants in parts:
        series = Series()
        for instant in instants:
            series.add(series.change, instant)
        several.append((shift, series))
    whole = Series.merged(several)
    assert sum(whole.change) == sum(len(instants) for _, instants in parts)
    assert whole.bins <= MAX_BINS + 1
    assert all(whole.width >= series.width for _, series in several)


@given(INSTANTS)
def test_a_series_alone_stays_as_it_is(instants: list[float]) -> None:
    series = Series()
    for instant in instants:
        series.add(series.failed, instant)
    assert Series.merged([(0.0, series)]) == series
