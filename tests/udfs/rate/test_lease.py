"""Leased rates: the arithmetic of the source and of the processes, without a loop."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.resilience._counting import most_in_a_second
from tests.udfs.rate.leasing import Outage, Simulation
from udfs._rate.lease import Answer, Lease
from udfs._rate.tokens import HORIZON, LATENESS, Grant, TokenSource, pace_of


def between(starts: list[float], start: float, end: float) -> int:
    return sum(start <= each < end for each in starts)


OUTAGES = st.builds(
    Outage, start=st.floats(0.5, 3.0), seconds=st.floats(0.01, 4.0), forgets=st.booleans(), hangs=st.booleans()
)


@st.composite
def simulations(draw: st.DrawFn) -> Simulation:
    slots = draw(st.integers(1, 8))
    return Simulation(
        rate=draw(st.integers(2, 120)),
        slots=slots,
        processes=draw(st.integers(1, slots)),
        seed=draw(st.integers(0, 1_000)),
        latency=draw(st.sampled_from([0.0001, 0.003])),
        late=draw(st.sampled_from([0.0, 0.005, 0.05])),
        outages=draw(st.lists(OUTAGES, max_size=1)),
    )


@settings(max_examples=60, deadline=None)
@given(simulation=simulations())
def test_no_second_has_more_calls_than_the_rate(simulation: Simulation) -> None:
    """Whatever happens to messages, tokens and processes, before, during and after an outage of the source."""
    assert most_in_a_second(simulation.run(9.0)) <= simulation.rate


@pytest.mark.parametrize("processes", [1, 4, 16])
def test_processes_with_work_use_the_whole_rate(processes: int) -> None:
    starts = Simulation(500, 16, processes).run(11.0)
    assert between(starts, 1.0, 11.0) >= 0.97 * 5_000


def test_a_process_that_looks_a_little_late_loses_no_token() -> None:
    starts = Simulation(500, 16, 16, late=0.01).run(11.0)
    assert between(starts, 1.0, 11.0) >= 0.97 * 5_000


@pytest.mark.parametrize("rate", [40, 500])
@pytest.mark.parametrize(("late", "latency"), [(0.1, 0.003), (0.0, 0.03), (0.1, 0.03)])
def test_a_busy_machine_or_a_slow_network_does_not_stop_the_calls(rate: int, late: float, latency: float) -> None:
    starts = Simulation(rate, 2, 2, late=late, latency=latency).run(21.0)
    assert between(starts, 1.0, 21.0) >= 0.1 * rate * 20


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("hangs", [False, True])
def test_shares_begin_within_a_second_of_an_outage_and_end_after_it(hangs: bool, forgets: bool) -> None:
    starts = Simulation(500, 16, 16, outages=[Outage(5.0, 20.0, forgets, hangs)]).run(40.0)
    in_shares = 16 * (500 // 16)
    assert between(starts, 6.0, 7.0) >= 0.9 * in_shares
    assert between(starts, 7.0, 25.0) >= 0.95 * in_shares * 18
    assert between(starts, 27.0, 40.0) >= 0.97 * 500 * 13
    assert most_in_a_second(starts) <= 500


def test_one_slow_answer_is_no_outage() -> None:
    slow = Simulation(500, 16, 16, slow=0.005).run(11.0)
    assert between(slow, 1.0, 11.0) >= 0.9 * 5_000


def test_without_a_share_calls_wait_for_the_source() -> None:
    """Two calls per second for four tasks: no task may make a whole call by itself."""
    starts = Simulation(2, 4, 4, outages=[Outage(5.0, 10.0)]).run(30.0)
    assert between(starts, 5.5, 15.0) == 0
    assert between(starts, 16.0, 30.0) >= 26


def test_few_tokens_are_granted_far_ahead() -> None:
    source = TokenSource(100, settling=1.0)
    granted = [source.grant(7.0, 20) for _ in range(4)]
    assert [each.count for each in granted] == [20, 10, 0, 0]
    last = granted[1].start + 9 / pace_of(100)
    assert last <= 7.0 + HORIZON


def test_a_source_that_is_back_grants_nothing_until_all_have_noticed() -> None:
    source = TokenSource(100, settling=1.0)
    assert source.grant(7.0, 1, is_back=True).opens == 8.0
    assert source.grant(7.5, 1, is_back=True) == Grant(7.5, 8.0, 0, 8.0)
    assert source.grant(7.8, 1) == Grant(7.8, 8.0, 1, 8.0)


def test_a_token_is_used_only_when_its_instant_is_sure_and_not_past() -> None:
    """The answer took 4 ms, so the source's clock is known to 4 ms."""
    lease = Lease(100, 1)
    assert lease.request(50.0) is not None
    lease.granted(Answer(Grant(now=7.0, start=7.1, count=1, opens=0.0), sent=50.0, received=50.004))
    assert lease.delay(50.05) == pytest.approx(0.054)
    assert lease.delay(50.104) == 0.0
    assert lease.delay(50.0 + 0.1 + LATENESS + 0.001) > 0.0


def test_a_second_question_is_sent_when_half_of_the_tokens_are_used() -> None:
    lease = Lease(100, 1)
    assert lease.request(0.0) is not None
    assert lease.request(0.0) is None
    lease.granted(Answer(Grant(now=7.0, start=7.0, count=4, opens=0.0), sent=0.0, received=0.0))
    asked = []
    for _ in range(4):
        now = asked[-1][0] if asked else 0.0
        now += lease.delay(now)
        lease.started(now)
        asked.append((now, lease.request(now) is not None))
    assert [each for _, each in asked] == [False, True, False, False]


def test_a_source_whose_answers_are_slow_counts_as_away() -> None:
    lease = Lease(100, 1)
    now = 0.0
    while lease.delay(now) or now < 0.1:
        if lease.request(now) is not None:
            lease.granted(Answer(Grant(now + 7.0, now + 7.0, 20, 0.0), sent=now, received=now + 0.05))
        now += 0.05
    assert now < 1.0
