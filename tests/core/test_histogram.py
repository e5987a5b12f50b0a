"""Histogram and Durations."""

from __future__ import annotations

import json
import pickle
from math import ceil, inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_asyncio_io import Histogram
from trio_asyncio_io._account.histogram import Durations

seconds = st.floats(0.0, 1e9, allow_subnormal=False)
durations = st.lists(seconds, min_size=1, max_size=50)


@given(durations, st.floats(0.0, 1.0))
def test_a_quantile_differs_by_at_most_3_2_percent_from_a_recorded_duration(values: list[float], share: float) -> None:
    exact = sorted(values)[max(1, ceil(share * len(values))) - 1]
    assert Histogram.of(values).quantile(share) == pytest.approx(exact, rel=0.032, abs=0.0)


@given(durations, durations)
def test_the_sum_of_two_histograms_is_the_histogram_of_all_durations(first: list[float], second: list[float]) -> None:
    total = Histogram.of(first) + Histogram.of(second)
    assert total == Histogram.of([*first, *second])
    assert total - Histogram.of(first) == Histogram.of(second)


@given(durations)
def test_a_histogram_survives_pickle_and_json(values: list[float]) -> None:
    histogram = Histogram.of(values)
    assert pickle.loads(pickle.dumps(histogram)) == histogram
    assert Histogram(json.loads(json.dumps(histogram.counts))) == histogram
    assert hash(pickle.loads(pickle.dumps(histogram))) == hash(histogram)


def test_the_percentiles_of_a_hundred_durations() -> None:
    histogram = Histogram.of(value / 100 for value in range(1, 101))
    assert histogram.count == 100
    assert [histogram.p50, histogram.p95, histogram.p99] == pytest.approx([0.50, 0.95, 0.99], rel=0.032)


def test_a_sample_counts_several_times() -> None:
    durations = Durations(times=11)
    durations.add(2.0)
    assert durations.histogram() == Histogram.of([2.0] * 11)


def test_an_empty_histogram_has_percentiles_of_zero() -> None:
    assert (Histogram().count, Histogram().p50, Histogram().p99) == (0, 0.0, 0.0)


@pytest.mark.parametrize("seconds", [-1.0, inf, nan])
def test_what_is_no_duration_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match=f"a duration must be finite seconds and not negative, got {seconds}"):
        Histogram.of([1.0, seconds])


def test_zero_has_a_bucket_of_its_own() -> None:
    assert Histogram.of([0.0, 0.0, 1.0]).p50 == 0.0


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_outside_of_0_to_1_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"share must be from 0\.0 to 1\.0, got"):
        Histogram().quantile(share)


def test_a_histogram_does_not_change_when_more_durations_are_recorded() -> None:
    recorded = Durations()
    recorded.add(1.0)
    histogram = recorded.histogram()
    recorded.add(2.0)
    assert histogram == Histogram.of([1.0])
    assert recorded.histogram() == Histogram.of([1.0, 2.0])


def test_fold_clears_the_list_and_loses_nothing() -> None:
    recorded = Durations()
    for _ in range(3):
        recorded.add(0.25)
        recorded.fold()
    assert recorded.unfolded == []
    assert recorded.histogram() == Histogram.of([0.25] * 3)
