"""The lease of a budget: plain arithmetic, without a loop."""

from __future__ import annotations

import pytest

from udfs._limits.budgets import HEARTBEAT_SECONDS, BudgetGrant, BudgetLease, BudgetRequest, BudgetSource
from udfs._limits.lease import POLL_SECONDS, RETRY_SECONDS


def request(holder: str, number: int, *, want: float, floor: float = 0.0, spent: float = 0.0) -> BudgetRequest:
    return BudgetRequest("books", 10.0, holder, number, spent, floor, max(floor, want), want)


def test_a_source_leases_no_more_than_the_budget() -> None:
    source = BudgetSource()
    assert source.grant(0.0, request("a", 1, want=7.0)) == BudgetGrant(7.0, 3.0, 0.0)
    assert source.grant(0.0, request("b", 1, want=4.0)) == BudgetGrant(0.0, 3.0, 7.0)
    assert source.grant(0.0, request("a", 2, want=6.0, spent=1.0)) == BudgetGrant(6.0, 4.0, 0.0)
    assert source.grant(0.0, request("b", 2, want=4.0)) == BudgetGrant(4.0, 0.0, 5.0)


def test_a_source_ignores_a_request_that_arrives_late() -> None:
    source = BudgetSource()
    source.grant(0.0, request("a", 2, want=7.0))
    assert source.grant(0.0, request("a", 1, want=0.0)) == BudgetGrant(7.0, 3.0, 0.0)


def test_calls_that_cost_more_than_their_estimates_are_leased_afterwards() -> None:
    source = BudgetSource()
    assert source.grant(0.0, request("a", 1, want=12.0, floor=12.0, spent=12.0)) == BudgetGrant(12.0, -2.0, 0.0)


def leased(weight: float) -> tuple[BudgetSource, BudgetLease]:
    """A process that may make a call of this weight."""
    source, lease = BudgetSource(), BudgetLease("books", 10.0, "a")
    send(source, lease, lease.request(0.0, weight))
    assert lease.delay(0.0, weight) == 0.0
    return source, lease


def send(source: BudgetSource, lease: BudgetLease, sent: BudgetRequest | None, now: float = 0.0) -> None:
    assert sent is not None
    lease.granted(source.grant(now, sent), now, now)


def test_a_process_spends_nothing_before_it_has_a_lease() -> None:
    lease = BudgetLease("books", 10.0, "a")
    assert lease.delay(0.0, 1.0) == POLL_SECONDS
    assert lease.delay(0.0, 0.0) == 0.0


def test_a_call_is_not_refused_while_its_process_returns_what_it_needs() -> None:
    source, lease = leased(10.0)
    returned = lease.request(2 * HEARTBEAT_SECONDS)
    assert lease.delay(2 * HEARTBEAT_SECONDS, 10.0) == POLL_SECONDS
    send(source, lease, returned, 2 * HEARTBEAT_SECONDS)
    assert lease.delay(2 * HEARTBEAT_SECONDS, 10.0) is not None


def test_a_call_is_not_refused_after_an_answer_was_lost() -> None:
    _, lease = leased(10.0)
    assert lease.request(2 * HEARTBEAT_SECONDS) is not None
    lease.failed(2 * HEARTBEAT_SECONDS, 2 * HEARTBEAT_SECONDS + 1.0, "lost")
    assert lease.delay(2 * HEARTBEAT_SECONDS + 1.0, 10.0) is not None


def test_a_call_beyond_the_budget_is_refused_without_a_request() -> None:
    _, lease = leased(8.0)
    lease.started(8.0)
    lease.ended(8.0)
    assert lease.delay(RETRY_SECONDS, 2.5) is None
    assert lease.request(RETRY_SECONDS, 2.5) is None


def test_a_process_waits_for_its_own_calls() -> None:
    source, lease = leased(8.0)
    lease.started(8.0)
    send(source, lease, lease.request(RETRY_SECONDS, 5.0), RETRY_SECONDS)
    assert lease.delay(RETRY_SECONDS, 5.0) == RETRY_SECONDS
    lease.corrected(8.0, 1.0)
    assert lease.delay(RETRY_SECONDS, 5.0) == 0.0 or lease.request(2 * RETRY_SECONDS, 5.0) is not None


@pytest.mark.parametrize("actual", [0.0, 3.0])
def test_a_process_that_has_spent_and_reported_all_of_its_lease_says_nothing_more(actual: float) -> None:
    source, lease = leased(5.0)
    lease.started(5.0)
    lease.corrected(5.0, actual)
    lease.ended(actual)
    for now in (1.0, 3.0):
        if (sent := lease.request(now)) is not None:
            send(source, lease, sent, now)
    assert source.leased == pytest.approx(actual)
    assert lease.request(10.0) is None
