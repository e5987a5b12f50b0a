"""The parts of the gate `Auto`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from math import inf

import pytest

from trio_asyncio_io._core.automatic._evidence import Call, Calls, Evidence, Outage, Pause
from trio_asyncio_io._core.automatic._limits import Growth, Latency, Number, Pace


def started(*starts: float) -> Calls:
    """Calls that started at these instants."""
    calls = Calls()
    for start in starts:
        calls.start(start)
    return calls


def settled(calls: Calls, until: float = 9.0) -> list[tuple[float, int, bool]]:
    return [(call.start, call.rank, call.was_refused) for call in calls.settle(until)]


# Calls


def test_a_refused_call_lowers_the_ranks_of_later_ones_only() -> None:
    calls = started(1.0, 2.0, 3.0, 4.0)
    assert calls.refuse(4.1, 2.0) == 1
    assert settled(calls) == [(1.0, 0, False), (2.0, 1, True), (3.0, 1, False), (4.0, 2, False)]


def test_the_rank_of_a_refused_call_falls_when_an_earlier_one_was_refused_too() -> None:
    calls = started(1.0, 2.0, 3.0)
    calls.refuse(4.0, 3.0)
    calls.refuse(4.0, 2.0)
    assert settled(calls) == [(1.0, 0, False), (2.0, 1, True), (3.0, 1, True)]


def test_of_calls_that_started_together_the_last_is_refused_and_all_refused_have_one_rank() -> None:
    calls = started(1.0, 1.0, 1.0)
    assert [calls.refuse(1.1, 1.0), calls.refuse(1.1, 1.0)] == [2, 1]
    assert settled(calls) == [(1.0, 0, False), (1.0, 1, True), (1.0, 1, True)]


def test_an_answer_is_no_evidence_before_the_refusals_of_earlier_calls_are_known() -> None:
    calls = started(1.0, 1.1)
    calls.end(1.1)  # short, and answered first
    assert settled(calls, until=0.9) == []
    calls.refuse(1.2, 1.0)
    assert settled(calls) == [(1.0, 0, True), (1.1, 0, False)]


def test_a_refused_call_is_pending_until_it_is_settled() -> None:
    calls = started(1.0, 1.1)
    calls.refuse(1.2, 1.1)
    assert calls.pending == 1
    settled(calls)
    assert calls.pending == 0


def test_a_refusal_that_comes_after_its_call_was_settled_is_not_pending() -> None:
    calls = started(1.0)
    settled(calls)
    calls.refuse(9.5, 1.0)
    assert (calls.pending, calls.starts) == (0, [])


def seconds_to_settle(refusals: Iterable[float]) -> float:
    calls = Calls()
    for seconds in refusals:
        calls.start(0.0)
        calls.refuse(seconds, 0.0)
    return calls.settling


def test_calls_settle_later_if_the_times_of_refusals_vary() -> None:
    assert seconds_to_settle([]) == 1.0
    assert seconds_to_settle([0.1]) == pytest.approx(0.2)
    assert seconds_to_settle(repeat(0.1, 40)) == pytest.approx(0.1, rel=0.01)
    assert seconds_to_settle([0.05, 0.15] * 20) > 0.2


def test_a_rate_is_measured_over_a_second_at_least() -> None:
    calls = started(*repeat(0.0, 20))  # the burst of a bucket
    assert calls.rate(0.1) == 20.0


def test_a_refused_call_does_not_count_towards_the_rate() -> None:
    calls = started(*repeat(0.0, 20))
    for _ in range(15):
        calls.refuse(0.1, 0.0)
    assert calls.rate(1.0) == 5.0


# Evidence


def evidence_of(*calls: tuple[int, bool], evidence: Evidence | None = None) -> Evidence:
    """Calls of these ranks, refused or not, that started one after the other."""
    evidence = evidence or Evidence()
    for start, (rank, was_refused) in enumerate(calls):
        evidence.add(Call(float(start), rank, was_refused))
    return evidence


def test_three_refusals_have_a_cause_unless_there_are_twenty_five_calls_for_each() -> None:
    assert evidence_of((70, True), (70, True), (70, True), (70, True)).unpaid == ([70, 70, 70, 70], 0)
    assert evidence_of(*((rank % 25, rank % 25 == 0) for rank in range(500))).unpaid == ([], 0)


def test_the_calls_of_the_refused_ranks_that_passed_speak_against_a_number() -> None:
    at_number = evidence_of((9, False), (10, True), (9, False), (10, True), (10, True), (10, True))
    assert at_number.unpaid == ([10, 10, 10, 10], 0)
    bucket = evidence_of((9, False), (4, True), (9, False), (4, True), (2, True), (8, False), (2, True))
    assert bucket.unpaid == ([2, 2, 4, 4], 2)


def test_refusals_are_chance_if_refused_calls_have_no_higher_ranks_than_admitted_ones() -> None:
    ramp = [number // 4 for number in range(80)]
    assert evidence_of(*((rank, number % 10 == 5) for number, rank in enumerate(ramp))).is_chance
    assert not evidence_of(*((rank, rank >= 18) for rank in ramp)).is_chance


def test_four_calls_that_fail_early_show_chance_although_few_calls_ran_before() -> None:
    refused = {8, 11, 13, 14}  # none while fewer than half as many ran
    assert evidence_of(*((min(number, 15), number in refused) for number in range(24))).is_chance


def test_chance_that_was_accepted_costs_nothing_and_ends_when_twice_as_many_are_refused() -> None:
    evidence = evidence_of(*((rank % 20, rank % 10 == 0) for rank in range(100)))
    evidence.accepted = evidence.share
    evidence.clear()
    assert evidence.accepted == pytest.approx(0.1)
    evidence_of(*((20, number % 10 == 0) for number in range(400)), evidence=evidence)
    assert evidence.unpaid == ([], 0)
    evidence_of(*((20, number % 4 == 0) for number in range(400)), evidence=evidence)
    assert evidence.unpaid != ([], 0)
    assert not evidence.is_chance


def test_more_than_a_fifth_of_the_calls_does_not_fail_by_chance() -> None:
    assert evidence_of(*((rank % 20, rank % 6 == 0) for rank in range(120))).is_chance
    assert not evidence_of(*((rank % 20, rank % 4 == 0) for rank in range(120))).is_chance


def test_probes_of_a_service_that_stays_down_become_rarer() -> None:
    outage, waits, now = Outage(), [], 0.0
    outage.refused(now, now)
    outage.begin(now)
    for _ in range(60):
        waits.append(outage.until - now)
        now = outage.until
        outage.probe(now)
    assert waits[:4] == pytest.approx([0.2] * 4)
    assert waits[11] == pytest.approx(sum(waits[:11]) / 4)
    assert max(waits) == pytest.approx(5.0)
    outage.end()
    assert (outage.is_on, outage.since) == (False, inf)


# Limits


def test_tests_of_a_number_become_rarer_up_to_one_in_512_answers() -> None:
    number, waits = Number(60, 800, 4), []
    for _ in range(8):
        number.refused(60)
        waits.append(number.probe_after)
    assert waits == [16, 32, 64, 128, 256, 512, 512, 512]


def test_after_a_probe_that_was_admitted_the_next_one_comes_soon() -> None:
    number = Number(10, 800, 4)
    number.refused(10)
    assert number.probe_after == 16
    number.admitted()
    assert (number.known, number.probe_after) == (11, 8)
    number.refused(11)
    assert (number.known, number.probe_after) == (11, 16)


def test_a_call_that_was_given_back_and_admitted_again_makes_no_probe_come_sooner() -> None:
    number = Number(10, 800, 4)
    number.answered(1.0, 0.0)
    assert (number.known, number.calls) == (9, 10)
    assert number.cause.startswith("10 calls at once: ")
    number.admitted()
    assert (number.known, number.calls, number.probe_after) == (10, 10, 7)


def pace_of(w: float, *, pause: Pause | None = None) -> Pace:
    return Pace(800, pause or Pause(), now=0.0, w=w)


def test_the_pace_doubles_until_the_first_refusal_and_then_returns_to_it() -> None:
    pace = pace_of(10.0)
    assert [pace.rate(now) for now in (0.0, 1.0, 2.0)] == pytest.approx([10.0, 20.0, 40.0])
    pace.refused(2.0, 30.0)
    assert pace.w == 30.0
    assert pace.rate(2.0) == pytest.approx(0.7 * 30.0)
    assert pace.rate(4.9 + pace.wait(2.0, 0)) == pytest.approx(30.0, rel=0.02)


def test_after_a_refusal_the_next_call_waits_for_four_gaps() -> None:
    pace = pace_of(40.0)
    pace.refused(1.0, 40.0)
    assert pace.wait(1.0, 0) == pytest.approx(4 / (0.7 * 40.0))


def test_the_pace_does_not_grow_while_no_call_may_start() -> None:
    pace = pace_of(40.0)
    pace.refused(1.0, 40.0)
    assert pace.rate(1.0 + pace.wait(1.0, 0)) == pytest.approx(0.7 * 40.0)


def test_refusals_within_a_second_cut_the_pace_once() -> None:
    pace = pace_of(40.0)
    for now in (1.0, 1.5):
        pace.refused(now, 40.0)
    assert pace.w == 40.0
    pace.refused(2.0, 40.0)
    assert pace.w < 40.0


def test_after_a_pause_the_pace_returns_to_the_rate_in_no_less_than_the_longest_pause() -> None:
    pause = Pause()
    pause.add(-40.0, 30.0)
    pace = pace_of(10.0, pause=pause)
    assert pace.rate(0.0) == pytest.approx(0.7 * 10.0)
    assert pace.rate(15.0) < 10.0
    assert pace.rate(30.0) == pytest.approx(10.0)


def test_a_search_begins_again_if_the_rate_is_not_where_it_was() -> None:
    pace = pace_of(40.0)
    pace.refused(1.0, 40.0)
    begin, back = 1.0 + pace.wait(1.0, 0), (0.3 * 40.0 / 0.4) ** (1 / 3)
    assert pace.rate(begin + 1.6 * back) < 1.1 * 40.0
    assert pace.rate(begin + 1.6 * back + 4.0) == pytest.approx(16 * 40.0)


def test_a_task_with_a_small_part_of_a_rate_returns_to_it_in_twenty_seconds() -> None:
    pace = pace_of(0.1)
    pace.refused(1.0, 0.1)
    assert pace.rate(1.0 + pace.wait(1.0, 0) + 20.0) == pytest.approx(0.1)


def test_the_first_latency_is_known_when_all_of_the_first_calls_have_ended() -> None:
    latency, running = Latency(), [0.0] * 16
    latency.close(0.0)
    for seconds in (*repeat(0.1, 15), 1.7):
        assert latency.first == inf
        running.pop()
        latency.add(seconds, 0.0, running)
    assert latency.first == pytest.approx(0.2)


def test_a_few_stragglers_are_no_queue() -> None:
    latency = Latency()
    latency.first = 0.1
    for seconds in (*repeat(0.1, 20), 30.0, 30.0):
        latency.add(seconds, 0.0, [])
    assert not latency.is_high
    for _ in range(12):
        latency.add(0.3, 0.0, [])
    assert latency.is_high


def answer(growth: Growth, rounds: int, now: float = 0.0, *, servers: int) -> float:
    """As many calls as allowed run, and are answered in rounds of 0.1 s, or more if they wait for a server."""
    for _ in range(rounds):
        calls = growth.calls
        seconds = 0.1 * max(1.0, calls / servers)
        now += seconds
        for _ in range(calls):
            growth.latency.add(now, now - seconds, [now])
            growth.answered(now, calls - 1)
    return now


def at_plateau() -> tuple[Growth, float]:
    """Growth that has stopped at 100 servers, with 1.25 times as many calls."""
    growth = Growth(100, 100, 800)
    growth.grow(0.0, 100)
    growth.latency.compare_with(0.1)
    now = answer(growth, 5, servers=100)
    assert growth.calls == 124
    assert growth.cause == "124 calls at once: more only wait, 1,000 a second are answered"
    return growth, now


def test_growth_goes_on_after_some_rounds_if_the_service_has_more_servers() -> None:
    growth, now = at_plateau()
    answer(growth, 30, now, servers=800)
    assert growth.calls == 800
    assert growth.cause == "800 calls at once: the service has refused none"


def test_the_calls_of_a_plateau_stay_if_more_only_wait_again() -> None:
    growth, now = at_plateau()
    found = set()
    for _ in range(300):
        now = answer(growth, 1, now, servers=100)
        found.add(growth.calls)
    assert max(found) > 200
    assert growth.calls == 124


def test_a_latency_that_was_measured_too_low_is_corrected() -> None:
    growth = Growth(100, 100, 800)
    growth.grow(0.0, 100)
    growth.latency.compare_with(0.01)  # of answers from a cache, for example
    now = answer(growth, 2, servers=800)
    assert growth.calls == 15
    answer(growth, 30, now, servers=800)
    assert growth.calls == 800


def test_the_maximum_stays_if_the_service_becomes_slower() -> None:
    growth = Growth(800, 800, 800)
    growth.grow(0.0, 800)
    growth.latency.compare_with(0.1)
    answer(growth, 30, servers=200)
    assert growth.calls == 800


@pytest.mark.parametrize(("top", "most", "running"), [(5, 1, 1), (128, 800, 200)])
def test_growth_by_time_ends_at_its_top_and_at_the_maximum(top: int, most: int, running: int) -> None:
    """Other calls may have begun before: at a higher limit, or in another operator."""
    growth = Growth(1, top, most)
    growth.grow(0.0, 1, top)
    assert growth.wait(60.0, running) == inf
    assert growth.calls == 1
