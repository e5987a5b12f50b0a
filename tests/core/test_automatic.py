"""The parts of the gate `Auto`."""

from __future__ import annotations

from itertools import repeat

import pytest

from trio_asyncio_io._core.automatic._calls import Admitted, Latency, Running
from trio_asyncio_io._core.automatic._evidence import Failures
from trio_asyncio_io._core.automatic._limits import Number, Pace, Plateau


def test_a_refused_call_lowers_the_ranks_of_later_ones_only() -> None:
    running = Running()
    for start in (1.0, 2.0, 3.0, 4.0):
        running.add(start)
    assert running.refuse(2.0) == 1
    assert running.ranks == [0, 1, 2]
    assert list(running.known(9.0)) == [(1.0, 0), (2.0, -1), (3.0, 1), (4.0, 2)]


def test_an_answer_is_no_evidence_before_the_refusals_of_earlier_calls_are_known() -> None:
    running = Running()
    running.add(1.0)
    running.add(1.1)
    running.remove(1.1)  # short, and answered first
    assert list(running.known(1.0)) == [(1.0, 0)]
    running.refuse(1.0)
    assert list(running.known(1.1)) == [(1.1, 0)]


def test_of_calls_that_started_together_the_last_is_refused() -> None:
    running = Running()
    for _ in range(3):
        running.add(1.0)
    assert [running.refuse(1.0), running.refuse(1.0)] == [2, 1]
    assert list(running.known(1.0)) == [(1.0, 0), (1.0, -1), (1.0, -1)]


def test_the_first_latency_counts_calls_that_still_run() -> None:
    running, latency = Running(), Latency()
    for _ in range(16):
        running.add(0.0)
    latency.close(0.0)
    for seconds in (*repeat(0.1, 11), 1.0):
        running.remove(0.0)
        latency.add(seconds, 0.0, running)
    assert latency.first == pytest.approx((11 * 0.1 + 1.0 + 4 * 1.0) / 12)


def test_a_rate_is_measured_over_a_second_at_least() -> None:
    admitted = Admitted()
    for _ in range(20):  # the burst of a bucket
        admitted.start(0.0)
    assert admitted.rate(0.1) == 20.0


def test_a_refused_call_does_not_count_towards_the_rate() -> None:
    admitted = Admitted()
    for _ in range(20):
        admitted.start(0.0)
    admitted.refused += 15
    assert admitted.rate(1.0) == 5.0


def test_the_pace_doubles_until_the_first_refusal_and_then_returns_to_it() -> None:
    pace = Pace()
    pace.begin(0.0, 10.0)
    assert pace.rate(0.0) == 10.0
    assert pace.rate(1.0) == pytest.approx(40.0)
    pace.cut(1.0, 1.0, 30.0, hinted=False)
    assert pace.w == 30.0
    assert pace.rate(1.0) == pytest.approx(0.7 * 30.0)
    assert pace.rate(3.9) == pytest.approx(30.0, rel=0.02)


def test_a_second_cut_at_most_halves_the_rate() -> None:
    pace = Pace()
    pace.begin(0.0, 100.0)
    pace.cut(0.5, 0.5, 100.0, hinted=False)
    pace.cut(1.0, 1.0, 1.0, hinted=False)
    assert pace.w == 50.0


def test_tests_of_a_number_become_rarer_up_to_one_in_512_answers() -> None:
    number = Number()
    number.begin(60, "overload", 100.0, 0)
    waits = []
    for _ in range(8):
        number.probe_less()
        number.wait_again(0)
        waits.append(number.probe_at)
    assert waits == [16, 32, 64, 128, 256, 512, 512, 512]


def test_three_refusals_have_a_cause_unless_there_are_twenty_five_calls_for_each() -> None:
    failures = Failures()
    for rank in (70, 65, 68):
        failures.refused()
        failures.suspect(1.0, rank)
    assert failures.has_cause
    assert failures.rank() == 68
    rare = Failures()
    for _ in range(20):
        rare.refused()
        rare.suspect(1.0, 70)
        for _ in range(25):
            rare.known(0.0, 5)
    assert not rare.has_cause


def test_after_a_cut_nothing_grows_until_the_refusals_are_paid() -> None:
    failures = Failures()
    for _ in range(3):
        failures.refused()
        failures.suspect(1.0, 70)
    failures.conclude(70)
    for _ in range(50):
        assert not failures.are_paid
        failures.known(2.0, 5)
    failures.known(2.0, 5)
    assert failures.are_paid


def test_the_rank_of_a_refused_call_falls_when_an_earlier_one_was_refused_too() -> None:
    failures = Failures()
    for start, rank in ((3.0, 62), (2.0, 61), (1.0, 60)):
        failures.refused()
        failures.suspect(start, rank)
    assert failures.rank() == 60


def test_refusals_one_after_the_other_are_not_independent() -> None:
    single, row = Failures(), Failures()
    for number in range(400):
        single.known(0.0, -1 if number % 10 == 0 else 5)
        row.known(0.0, -1 if number % 40 < 4 else 5)
    assert single.are_independent
    assert not row.are_independent


def test_a_throughput_is_that_of_whole_generations() -> None:
    plateau = Plateau(100.0, 800)
    plateau.hold(0.0)
    for _ in range(199):
        plateau.answered(1.0, 100)
    assert plateau._total == (0, 0.0)
    plateau.answered(2.0, 100)
    assert plateau._total == (200, 2.0)
