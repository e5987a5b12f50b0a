"""Applications that share a rate through one source: the bound holds for all of them together."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.resilience._counting import most_in_a_second
from tests.udfs.rate.leasing import Application, Outage, Simulation
from udfs._rate.lease import Answer, Lease
from udfs._rate.tokens import Grant


def between(starts: list[float], start: float, end: float) -> int:
    return sum(start <= each < end for each in starts)


@st.composite
def applications(draw: st.DrawFn) -> Application:
    """One that has asked the source before an outage can begin. Some have no calls for a while."""
    idle = draw(st.floats(1.0, 6.0))
    return Application(slots=draw(st.integers(1, 4)), idle=(idle, idle + draw(st.sampled_from([0.0, 0.3, 2.0]))))


@settings(max_examples=60, deadline=None)
@given(
    rate=st.integers(1, 80),
    applications=st.lists(applications(), min_size=2, max_size=3),
    seed=st.integers(0, 1_000),
    late=st.sampled_from([0.0, 0.005]),
    outages=st.lists(
        st.builds(
            Outage, start=st.floats(2.5, 5.0), seconds=st.floats(0.01, 5.0), forgets=st.booleans(), hangs=st.booleans()
        ),
        max_size=1,
    ),
)
def test_no_second_has_more_calls_than_the_rate(
    rate: int, applications: list[Application], seed: int, late: float, outages: list[Outage]
) -> None:
    simulation = Simulation(rate, applications=applications, seed=seed, late=late, outages=outages)
    assert most_in_a_second(simulation.run(12.0)) <= rate


@pytest.mark.parametrize("forgets", [False, True])
def test_applications_divide_the_rate_while_the_source_is_away(forgets: bool) -> None:
    applications = [Application(slots=2), Application(slots=6)]
    starts = Simulation(40, applications=applications, outages=[Outage(5.0, 20.0, forgets)]).run(40.0)
    assert most_in_a_second(starts) <= 40
    assert between(starts, 7.0, 25.0) >= 0.95 * 40 * 18
    assert between(starts, 28.0, 40.0) >= 0.97 * 40 * 12


def test_an_application_that_never_reached_the_source_uses_a_share_of_its_own_slots() -> None:
    """It cannot know of the others."""
    starts = Simulation(40, applications=[Application(2)], outages=[Outage(0.0, 20.0)]).run(20.0)
    assert most_in_a_second(starts) <= 40
    assert between(starts, 2.0, 20.0) >= 0.95 * 40 * 18


def test_applications_that_are_new_to_the_source_have_no_shares_at_first() -> None:
    """Each of them would have one of its own slots."""
    new = [Application(2), Application(2)]
    starts = Simulation(40, applications=new, outages=[Outage(0.0, 0.05, forgets=True)]).run(10.0)
    assert most_in_a_second(starts) <= 40
    assert starts[0] > 2.0
    assert between(starts, 3.0, 10.0) >= 0.97 * 40 * 7


def test_applications_that_outnumber_the_rate_wait_for_the_source() -> None:
    starts = Simulation(3, applications=[Application(2), Application(2)], outages=[Outage(3.0, 6.0)]).run(20.0)
    assert most_in_a_second(starts) <= 3
    assert between(starts, 4.0, 9.0) == 0
    assert between(starts, 12.0, 20.0) >= 0.9 * 3 * 8


def test_a_share_is_of_the_latest_grant() -> None:
    lease = Lease(40, 4)
    assert lease.has_share
    for slots, has_share in ((41, False), (40, True), (0, True)):
        lease.granted(Answer(Grant(7.0, 7.0, 0, 0.0, slots), sent=50.0, received=50.0))
        assert lease.has_share == has_share


def test_a_source_that_is_back_may_have_forgotten_applications() -> None:
    lease = Lease(40, 4)
    lease.granted(Answer(Grant(7.0, 7.0, 0, 0.0, 41), sent=50.0, received=50.0))
    lease.granted(Answer(Grant(8.0, 9.0, 0, 9.0, 4), sent=51.0, received=51.0))
    assert not lease.has_share
