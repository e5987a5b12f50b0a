"""Leased rates: the arithmetic of the source and of the processes, without a loop."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.resilience._counting import between, most_in_a_second
from tests.udfs.limits.leasing import Clock, Outage, Simulation
from udfs._limits.lease import AWAY_SECONDS
from udfs._limits.rates import (
    HORIZON_SECONDS,
    LATENESS_SECONDS,
    MAX_UNCERTAINTY_SECONDS,
    STALE_SECONDS,
    ClockOffset,
    RateLease,
    TokenGrant,
    TokenRequest,
    TokenSource,
    pace_of,
)

DRIFT = 5e-4

CLOCKS = st.builds(Clock, st.floats(-1e3, 1e3), st.floats(-DRIFT, DRIFT))
OUTAGES = st.builds(
    Outage,
    start=st.floats(0.5, 4.0),
    seconds=st.sampled_from([0.0, 0.0, 0.05, 0.3, 2.0]),
    forgets=st.booleans(),
    hangs=st.booleans(),
    clock=st.none() | CLOCKS,
)
SIMULATIONS = st.builds(
    Simulation,
    rate=st.integers(1, 120) | st.floats(1.0, 50.0),
    processes=st.integers(1, 8),
    seed=st.integers(0, 1_000),
    latency=st.sampled_from([0.0001, 0.003, 0.009, 0.2]),
    late=st.sampled_from([0.0, 0.005, 0.05]),
    lost=st.sampled_from([0.0, 0.05]),
    drift=st.just(DRIFT),
    outages=st.lists(OUTAGES, max_size=3),
)


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(simulation=SIMULATIONS)
def test_no_second_has_more_calls_than_the_rate(simulation: Simulation) -> None:
    """Whatever happens to messages, clocks and tokens, and how often the source forgets what it granted."""
    assert most_in_a_second(simulation.run(7.0)) <= simulation.rate


@given(rate=st.integers(1, 300) | st.floats(1.0, 300.0), late=st.integers(1, 300), modulus=st.integers(1, 3))
def test_tokens_that_are_used_late_leave_the_rate_as_it_is(rate: float, late: int, modulus: int) -> None:
    """Even if some calls take 4 ms longer to reach the service than others."""
    longest = LATENESS_SECONDS + 0.004
    is_late = [number < late and number % modulus == 0 for number in range(600)]
    starts = [number / pace_of(rate) + longest * each for number, each in enumerate(is_late)]
    assert most_in_a_second(sorted(starts)) <= rate


def test_a_rate_below_one_call_per_second_is_kept_too() -> None:
    starts = Simulation(0.2, 3, outages=[Outage(30.0, 1.0, forgets=True)]).run(120.0)
    assert min(later - start for start, later in pairwise(starts)) >= 5.0
    assert len(starts) >= 20


@pytest.mark.parametrize("rate", [1, 5, 20, 500])
@pytest.mark.parametrize("processes", [1, 4, 16])
def test_processes_with_work_use_the_rate(processes: int, rate: int) -> None:
    starts = Simulation(rate, processes, drift=DRIFT).run(62.0)
    assert between(starts, 2.0, 62.0) >= 0.95 * rate * 60


@pytest.mark.parametrize(
    ("rate", "processes", "disturbance", "share"),
    [
        (500, 16, {"late": 0.01}, 0.95),
        (500, 4, {"latency": 0.01}, 0.9),
        (500, 16, {"lost": 0.01}, 0.85),
        *[(rate, 2, {"late": 0.1, "latency": 0.003}, 0.1) for rate in (40, 500)],
        *[(rate, 2, {"latency": 0.03}, 0.1) for rate in (40, 500)],
        *[(rate, 2, {"late": 0.1, "latency": 0.03}, 0.1) for rate in (40, 500)],
    ],
    ids=str,
)
def test_late_checks_slow_networks_and_lost_messages_cost_a_part_of_the_rate(
    rate: int, processes: int, disturbance: dict[str, float], share: float
) -> None:
    starts = Simulation(rate, processes, **disturbance).run(21.0)  # type: ignore[arg-type]
    assert between(starts, 1.0, 21.0) >= share * rate * 20


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("hangs", [False, True])
def test_calls_wait_while_the_source_is_away_and_continue_soon_after(hangs: bool, forgets: bool) -> None:
    starts = Simulation(500, 16, outages=[Outage(5.0, 20.0, forgets, hangs)]).run(40.0)
    assert between(starts, 5.0 + HORIZON_SECONDS + LATENESS_SECONDS, 25.0) == 0
    assert between(starts, 28.0, 38.0) >= 0.95 * 500 * 10
    assert most_in_a_second(starts) <= 500


def test_a_source_that_forgets_costs_no_more_than_its_horizon() -> None:
    starts = Simulation(100, 4, outages=[Outage(5.0, 0.0, forgets=True)]).run(15.0)
    assert between(starts, 1.0, 15.0) >= 0.95 * 100 * (14.0 - 2 * HORIZON_SECONDS)


def request(count: int, name: str = "name", rate: float = 100.0) -> TokenRequest:
    return TokenRequest(name, rate, count, lead=0.0)


def test_tokens_are_evenly_spaced_and_granted_only_a_little_ahead() -> None:
    source = TokenSource("a", began=0.0)
    granted = [source.grant(7.0, request(20)) for _ in range(4)]
    assert [each.count for each in granted] == [20, 10, 0, 0]
    assert granted[1].start == pytest.approx(7.0 + 20 / pace_of(100))
    last = granted[1].start + 9 / pace_of(100)
    assert last <= 7.0 + HORIZON_SECONDS


def test_a_new_source_grants_nothing_for_the_time_of_the_tokens_that_another_one_may_have_granted() -> None:
    source = TokenSource("a", began=7.0)
    assert source.grant(7.0, request(5)) == TokenGrant("a", 7.0, 7.0 + HORIZON_SECONDS + 1 / pace_of(100), 0)
    assert source.grant(7.1, request(5)).start == pytest.approx(7.0 + HORIZON_SECONDS + 1 / pace_of(100))


def test_a_source_remembers_only_rates_in_use() -> None:
    source = TokenSource("a", began=0.0)
    for number in range(1_000):
        assert source.grant(7.0 + number, request(20, str(number))).start == 7.0 + number
    assert len(source._next) == 1


def test_a_source_keeps_a_rate_in_use_when_others_begin() -> None:
    source = TokenSource("a", began=0.0)
    source.grant(7.0, request(20))
    source.grant(7.0, request(20, "other"))
    assert source.grant(7.0, request(1)).start == pytest.approx(7.0 + 20 / pace_of(100))


def test_a_token_is_used_only_when_its_instant_is_certainly_past_and_not_long_past() -> None:
    """The grant took 4 ms, so the source's clock is known to 4 ms."""
    lease = RateLease("name", 100)
    assert lease.request(50.0) is not None
    lease.granted(TokenGrant("a", now=7.0, start=7.1, count=1), sent=50.0, received=50.004)
    assert lease.delay(50.05) == pytest.approx(0.054)
    assert lease.delay(50.104) == 0.0
    assert lease.delay(50.0 + 0.1 + LATENESS_SECONDS + 0.001) > 0.0


def test_another_request_is_sent_when_half_of_the_tokens_are_used() -> None:
    lease = RateLease("name", 100)
    assert lease.request(0.0) is not None
    assert lease.request(0.0) is None
    lease.granted(TokenGrant("a", now=7.0, start=7.0, count=4), sent=0.0, received=0.0)
    is_due = []
    now = 0.0
    for _ in range(4):
        now += lease.delay(now)
        lease.started()
        is_due.append(lease.request(now) is not None)
    assert is_due == [False, True, False, False]


def test_tokens_of_an_earlier_epoch_are_not_used() -> None:
    """They are instants on another clock, even if it differs by milliseconds only."""
    lease = RateLease("name", 100)
    lease.granted(TokenGrant("a", now=7.0, start=7.05, count=4), sent=0.0, received=0.01)
    lease.granted(TokenGrant("b", now=7.025, start=7.3, count=1), sent=0.02, received=0.03)
    assert lease.delay(0.03) == pytest.approx(0.275)
    assert lease.delay(0.319) == 0.0
    assert lease.delay(7.3 - 7.005 + LATENESS_SECONDS + 0.001) > 0.0


def test_a_source_whose_answers_are_slow_is_away_and_the_reason_says_so() -> None:
    lease = RateLease("name", 100)
    now, slow = 0.0, MAX_UNCERTAINTY_SECONDS + 0.01
    while not lease.is_away(now):
        if lease.request(now) is not None:
            lease.granted(TokenGrant("a", now + 7.0, now + 7.0, 20), sent=now, received=now + slow)
        assert lease.delay(now) > 0
        now += 0.05
    assert now == pytest.approx(AWAY_SECONDS, abs=0.06)
    assert lease.outage is not None
    assert lease.outage.reason == "its answers take 30 ms, and at most 20 ms are allowed"


def test_a_source_is_not_away_because_nobody_has_sent_a_request_for_long() -> None:
    lease = RateLease("name", 100)
    lease.request(0.0)
    lease.failed(0.0, 0.1, "refused")
    assert lease.is_away(2.0)
    lease.request(0.2 + STALE_SECONDS)
    assert not lease.is_away(0.2 + STALE_SECONDS)
    lease.failed(0.2 + STALE_SECONDS, 0.3 + STALE_SECONDS, "refused")
    assert lease.outage is not None
    assert lease.outage.since == 0.2 + STALE_SECONDS


@given(
    offset=st.floats(-100, 100),
    drift=st.floats(-DRIFT, DRIFT),
    exchanges=st.lists(st.tuples(st.floats(0, 60), st.floats(0, 0.1), st.floats(0, 0.1)), min_size=1),
)
def test_the_bounds_of_a_clock_offset_hold(
    offset: float, drift: float, exchanges: list[tuple[float, float, float]]
) -> None:
    clock, bounds, now = Clock(offset, drift), ClockOffset(), 0.0
    for idle, there, back in exchanges:
        now += idle
        middle, received = now + there, now + there + back
        bounds.narrow(clock.read(now), middle, clock.read(received))
        now = received
        slack = DRIFT * 0.2 + 1e-9  # the difference changes between a request and its grant
        assert bounds.lowest - slack <= clock.read(now) - now <= bounds.highest + slack
        assert bounds.uncertainty <= (1 + DRIFT) * (there + back) + 1e-9
