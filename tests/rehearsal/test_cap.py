"""The limits on the rate against closed forms: the levels of calls, and the limits that separate them."""

from __future__ import annotations

from math import inf
from random import Random

import pytest

from trio_asyncio_io.rehearsal import RecordedCall
from trio_asyncio_io.rehearsal._cap import Cap, Kind, _Bucket, _round, _Seen, _Sliding, _Windows, caps_of


class NoLuck(Random):
    """The first window begins at 0."""

    def uniform(self, a: float, b: float) -> float:
        return a


def calls_of(cap: Cap, starts: list[float]) -> list[RecordedCall]:
    """The calls that start then, admitted or refused by this limit."""
    admits = cap.open(NoLuck())
    return [RecordedCall(now, 0.1, "answered" if admits(now) else "refused", weight=1.0, load=1) for now in starts]


def seen(starts: list[float], admitted: str) -> _Seen:
    """What a sample saw: + for an admitted call, - for a refused one."""
    outcomes = ["answered" if each == "+" else "refused" for each in admitted]
    return _Seen.of(
        [
            RecordedCall(now, 0.1, outcome, weight=1.0, load=1)  # type: ignore[arg-type]
            for now, outcome in zip(starts, outcomes, strict=True)
        ]
    )


# Limits


def test_a_token_bucket_admits_its_burst_and_then_its_rate() -> None:
    admits = Cap(10.0, 3.0).open(Random())
    assert [admits(0.0) for _ in range(4)] == [True, True, True, False]
    assert [admits(0.1), admits(0.15), admits(0.2)] == [True, False, True]
    assert [admits(9.0) for _ in range(4)] == [True, True, True, False]


def test_a_sliding_window_admits_a_call_when_the_oldest_one_has_left() -> None:
    admits = Cap(2.0, 2.0, "sliding").open(Random())  # two in each second
    assert [admits(now) for now in (0.0, 0.5, 0.99, 1.0, 1.2, 1.5)] == [True, True, False, True, False, True]


def test_fixed_windows_follow_one_another() -> None:
    admits = Cap(2.0, 2.0, "fixed").open(NoLuck())
    assert [admits(now) for now in (0.8, 0.9, 0.95, 1.0, 1.1, 1.2, 2.5)] == [True, True, False, True, True, False, True]


def test_the_first_fixed_window_begins_at_a_random_instant() -> None:
    begins = set()
    for seed in range(20):
        admits = Cap(2.0, 2.0, "fixed").open(Random(seed))
        begins.add(next(now for now in range(1_000) if now > 2 and admits(now / 500) and now > 10))
    assert len(begins) > 5


def test_a_called_window_begins_with_a_call() -> None:
    admits = Cap(2.0, 2.0, "called").open(Random())
    assert [admits(now) for now in (0.8, 0.9, 1.7, 1.8, 1.9, 2.7)] == [True, True, False, True, True, False]


# Levels


def test_the_level_of_a_bucket_is_what_a_call_would_make_missing() -> None:
    assert seen([0.0, 0.0, 0.1, 0.1, 5.0], "++-+-").levels(_Bucket(5.0)) == pytest.approx([1.0, 2.0, 2.5, 2.5, 1.0])


def test_the_level_of_a_sliding_window_counts_the_calls_in_it() -> None:
    assert seen([0.0, 0.4, 0.9, 1.0, 1.4, 3.0], "++-+++").levels(_Sliding(1.0)) == [1.0, 2.0, 3.0, 2.0, 2.0, 1.0]


def test_the_level_of_a_window_counts_the_admitted_calls_since_its_begin() -> None:
    sample = seen([0.5, 0.6, 1.4, 1.5, 2.4, 9.0], "+-++++")
    assert sample.levels(_Windows(1.0)) == [1.0, 2.0, 2.0, 1.0, 2.0, 1.0]
    assert sample.levels(_Windows(1.0, 0.0)) == [1.0, 2.0, 1.0, 2.0, 1.0, 1.0]


def test_a_fixed_window_begins_between_a_refused_and_an_admitted_call() -> None:
    sample = seen([0.10, 0.20, 0.36, 0.50, 1.25, 1.34, 2.28, 2.40], "+-++-+-+")
    # Windows of a second: the changes are in 0.20 to 0.36, 0.25 to 0.34 and 0.28 to 0.40
    assert sample.begin(1.0) == pytest.approx(0.31)
    assert sample.levels(_Windows(1.0, sample.begin(1.0))) == [1.0, 2.0, 1.0, 2.0, 3.0, 1.0, 2.0, 1.0]


def test_the_begin_of_a_window_may_lie_around_its_end() -> None:
    sample = seen([0.5, 0.97, 1.05, 1.98, 2.01], "+-+-+")
    assert sample.begin(1.0) in (pytest.approx(0.005), pytest.approx(0.99))


# Thresholds


def test_a_threshold_separates_admitted_from_refused_calls() -> None:
    sample = seen([0.0, 10.0, 20.0, 30.0], "++--")
    order = sample.ordered([1.0, 2.0, 4.0, 5.0])
    assert sample.threshold(order) == (0, 2.0, 4.0)
    assert [sample.errors(order, each) for each in (0.5, 1.0, 2.0, 3.9, 4.0, 5.0)] == [2, 1, 0, 0, 1, 2]


def test_calls_on_the_wrong_side_of_a_threshold_count() -> None:
    sample = seen([0.0, 10.0, 20.0, 30.0, 40.0], "+++--")
    order = sample.ordered([1.0, 2.0, 9.0, 4.0, 5.0])
    assert sample.threshold(order) == (1, 2.0, 4.0)


# The search


def test_round_windows_are_tenths_of_a_second_and_then_seconds() -> None:
    tenths = [number / 10 for number in range(1, 31)]
    assert list(_round(0.05)) == []
    assert list(_round(0.35)) == [0.1, 0.2, 0.3]
    assert list(_round(6.5)) == [*tenths, 4.0, 5.0, 6.0]


@pytest.mark.parametrize(
    ("cap", "most"),
    [
        (Cap(20.0, 5.0), 0.01),
        (Cap(50.0, 10.0, "sliding"), 0.01),
        (Cap(50.0, 10.0, "fixed"), 0.01),
        (Cap(50.0, 10.0, "called"), 0.01),
        (Cap(20.0, 2.0, "fixed"), 0.01),  # a window of the shortest round length
    ],
    ids=["bucket", "sliding", "fixed", "called", "tenth of a second"],
)
def test_the_limit_that_refused_the_calls_is_among_those_found(cap: Cap, most: float) -> None:
    random, now, starts = Random(2), 0.0, list[float]()
    for _ in range(800):
        now += random.expovariate(2 * cap.rate)
        starts.append(now)
    caps = caps_of(calls_of(cap, starts), cap.rate / 10, 10 * cap.rate)
    like = [each for each in caps if each.kind == cap.kind and each.burst == cap.burst]
    assert min(abs(each.rate / cap.rate - 1) for each in like) < most
    assert caps == sorted(caps)
    assert caps[-1].rate < 1.1 * cap.rate
    assert caps[0].rate > cap.rate / 1.1


def test_refusals_by_chance_have_no_limit() -> None:
    random = Random(3)
    calls = [
        RecordedCall(0.01 * number, 0.1, "refused" if random.random() < 0.1 else "answered", weight=1.0, load=1)
        for number in range(800)
    ]
    assert caps_of(calls, 1.0, 1_000.0) == []


@pytest.mark.parametrize("kind", ["sliding", "fixed", "called"])
def test_a_window_without_a_limit_on_calls_at_once_is_a_bucket(kind: Kind) -> None:
    admits = Cap(10.0, inf, kind).open(Random())
    assert all(admits(0.0) for _ in range(1_000))
