"""Budget: plain arithmetic, and operators whose calls cost money."""

from __future__ import annotations

import pickle
from collections.abc import AsyncIterator, Awaitable, Callable
from copy import deepcopy
from decimal import Decimal
from math import inf, nan
from typing import Any

import pytest
import trio

from trio_asyncio_io import FixedDelay, ordered_wait, unordered_wait
from trio_asyncio_io.gates import Budget, BudgetError, CallEndedError, Outcome, PerKey, RateLimit, settle
from trio_asyncio_io.integration import usage_of_all as usage
from trio_asyncio_io.policies import hedged, single_flight
from trio_asyncio_io.progress import summary

OK = Outcome("ok")


def spend(budget: Budget, weight: float) -> None:
    """A call from its start to its end."""
    assert budget.delay(0.0, weight) == 0.0
    budget.started(0.0, weight)
    budget.ended(0.0, 0.0, OK, weight)


# The gate alone


def test_a_call_waits_only_while_reservations_of_others_prevent_it() -> None:
    budget = Budget(10.0)
    budget.started(0.0, 8.0)
    assert budget.delay(0.0, 10.0) == inf
    budget.correct(8.0, 7.0)
    assert budget.delay(0.0, 3.0) == 0.0
    budget.ended(0.0, 1.0, OK, 7.0)
    with pytest.raises(BudgetError, match=r"^budget used up after 1 call: 7\.00 of 10\.00$"):
        budget.delay(0.0, 3.5)


def test_an_error_says_what_is_reserved() -> None:
    budget = Budget(1234.5)
    budget.started(0.0, 1000.0)
    with pytest.raises(BudgetError, match=r"0\.00 and 1,000\.00 reserved of 1,234\.50"):
        budget.delay(0.0, 2000.0)


def test_small_budgets_are_not_rounded_away() -> None:
    budget = Budget(0.005)
    spend(budget, 0.004)
    with pytest.raises(BudgetError, match=r"0\.004 of 0\.005"):
        budget.delay(0.0, 0.002)


@pytest.mark.parametrize("copied", [deepcopy, lambda budget: pickle.loads(pickle.dumps(budget))])
def test_a_copy_has_spent_nothing(copied: Callable[[Budget], Budget]) -> None:
    budget = Budget(10.0, weight=abs, name="dollars")
    spend(budget, 4.0)
    twin = copied(budget)
    assert (twin.amount, twin.weight, twin.name, twin.spent) == (10.0, abs, "dollars", 0.0)


def test_the_display_has_the_state() -> None:
    budget = Budget(10.0, name="dollars")
    spend(budget, 4.0)
    assert repr(budget) == "Budget(10.0, name='dollars', spent=4.0, reserved=0.0)"


@pytest.mark.parametrize("amount", [nan, inf, -1.0])
def test_an_amount_is_finite_and_not_negative(amount: float) -> None:
    with pytest.raises(ValueError, match=f"amount must be finite and not negative, got {amount}"):
        Budget(amount)


@pytest.mark.parametrize("arguments", [{"amount": "50"}, {"amount": True}, {"amount": 1, "weight": 2}])
def test_an_argument_of_another_type_is_an_error(arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"(amount|weight) must be"):
        Budget(**arguments)


# Operators


async def run(
    function: Callable[[Any], Awaitable[Any]], gate: Any, elements: Any = range(100), **options: Any
) -> tuple[list[Any], list[Exception], Any]:
    """The results, the errors in their order, and the operator."""
    errors: list[Exception] = []

    async def keep(element: Any, error: Exception) -> Any:
        errors.append(error)
        return None

    arguments = {"timeout": 5.0, "capacity": 10, "on_error": keep} | options
    async with ordered_wait(elements, function, gate=gate, **arguments) as results:
        found = [result async for result in results if result is not None]
    return found, errors, results


class Service:
    """Counts what its calls cost.

    Args:
        price: Of each call.
    """

    def __init__(self, price: float) -> None:
        self.price = price
        self.calls = 0

    async def __call__(self, element: Any) -> Any:
        self.calls += 1
        await trio.sleep(1.0)
        settle(self.price)
        return element


async def test_what_is_beyond_the_budget_fails_and_the_rest_has_results(autojump_clock: None) -> None:
    service = Service(price=1.0)
    found, errors, operator = await run(service, Budget(7.0))
    assert found == list(range(7))
    assert {type(error) for error in errors} == {BudgetError}
    assert (service.calls, operator.statistics().refused) == (7, 93)


async def test_by_default_the_budget_ends_the_operator(autojump_clock: None) -> None:
    with pytest.raises(BudgetError):
        await run(Service(1.0), Budget(7.0), on_error="raise")


async def test_estimates_ten_times_too_high_use_99_percent_of_the_budget(autojump_clock: None) -> None:
    budget = Budget(50.0, weight=lambda _: 0.5)
    service = Service(price=0.05)
    await run(service, budget, range(2000), capacity=100)
    assert 0.99 * 50.0 <= 0.05 * service.calls <= 50.0
    assert budget.spent == pytest.approx(0.05 * service.calls)


async def test_a_settled_call_makes_room_before_it_ends(autojump_clock: None) -> None:
    starts = []

    async def ask(element: int) -> int:
        starts.append(trio.current_time())
        await trio.sleep(1.0)
        settle(1.0)
        await trio.sleep(10.0)
        return element

    await run(ask, Budget(10.0, weight=lambda _: 6.0), range(3), timeout=50.0)
    assert starts == [0.0, 1.0, 2.0]


async def test_each_attempt_pays(autojump_clock: None) -> None:
    budget = Budget(5.0)

    async def fail(_: int) -> None:
        raise ConnectionError

    found, errors, operator = await run(fail, budget, range(3), capacity=1, retry=FixedDelay(1, 0.1))
    assert (found, budget.spent, operator.statistics().retried) == ([], 5.0, 2)
    assert [type(error) for error in errors] == [ConnectionError, ConnectionError, BudgetError]


async def test_calls_that_are_cancelled_stay_paid(autojump_clock: None) -> None:
    budget = Budget(10.0)
    with trio.move_on_after(1.0):
        await run(trio.sleep, budget, [3.0] * 4)
    assert (budget.spent, budget.reserved) == (4.0, 0.0)


@pytest.mark.parametrize("group", [None, 2])
async def test_calls_that_a_failure_prevents_cost_nothing(group: int | None, autojump_clock: None) -> None:
    """They have passed the gates with the call that fails, and wait for their tasks to run."""

    async def fail(value: Any) -> Any:
        raise OSError("down")

    budget = Budget(100.0, weight=lambda _: 1.0)
    with pytest.raises(OSError, match="down"):
        async with unordered_wait(range(30), fail, timeout=5.0, capacity=10, gate=budget, group=group):
            await trio.sleep_forever()
    assert (budget.spent, budget.reserved) == (float(group or 1), 0.0)
    assert budget.left == 100.0 - budget.spent


async def test_a_budget_goes_on_with_the_next_operator(autojump_clock: None) -> None:
    budget = Budget(7.0)
    first, *_ = await run(Service(1.0), budget, range(5))
    second, *_ = await run(Service(1.0), budget, range(5))
    assert (len(first), len(second)) == (5, 2)


async def test_each_tenant_has_a_budget_that_is_never_forgotten(
    autojump_clock: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trio_asyncio_io._operator.gates.MAX_UNUSED", 10)
    gate = PerKey(Budget(1.0), key=lambda element: element % 500)
    found, errors, _ = await run(Service(1.0), gate, range(1500))
    assert (found, len(errors)) == (list(range(500)), 1000)


# The end of a call is final


@pytest.mark.parametrize("actual", [0.0, 3.0])
async def test_a_settle_after_the_end_of_its_call_changes_nothing_and_raises(
    actual: float, autojump_clock: None
) -> None:
    budget, late = Budget(10.0, weight=lambda _: 1.0), []

    async def audit() -> None:
        await trio.sleep(0.01)
        with pytest.raises(
            CallEndedError, match=rf"^settle\({actual:g}\) changes nothing: its call has ended, or has lost"
        ):
            settle(actual)
        late.append(usage())

    async with trio.open_nursery() as background:

        async def call(element: int) -> int:
            background.start_soon(audit)
            await trio.sleep(0.005)
            return element

        found, errors, _ = await run(call, budget, capacity=2)
    assert (len(found), len(errors)) == (10, 90)
    assert (budget.spent, budget.reserved) == (10.0, 0.0)
    assert late == [(1.0, 1.0)] * 10


async def test_a_call_that_lost_to_its_hedge_can_no_longer_settle(autojump_clock: None) -> None:
    budget = Budget(1000.0, weight=lambda _: 10.0)
    calls: list[int] = []

    async def fetch(element: int) -> int:
        calls.append(element)
        await trio.sleep(5.0 if calls.count(element) == 1 else 0.1)
        return element

    hedge = hedged(fetch, after=0.5, budget=1.0)

    async def ask(element: int) -> int:
        answer = await hedge(element)
        settle(2.0)
        return answer

    _, errors, _ = await run(ask, budget, range(20), capacity=1)
    assert [type(error) for error in errors] == [CallEndedError] * 20
    assert (len(calls), budget.spent, budget.reserved) == (40, 400.0, 0.0)


async def test_a_call_that_elements_share_settles_the_one_that_started_it_while_that_runs(autojump_clock: None) -> None:
    budget = Budget(10.0, weight=lambda _: 2.0)

    async def call(key: str) -> str:
        await trio.sleep(3.0)
        settle(0.5)
        return key

    async def arriving() -> AsyncIterator[str]:
        yield "a"
        await trio.sleep(2.0)
        yield "a"

    found, _, operator = await run(single_flight(call), budget, arriving(), timeout=2.5)
    assert (found, operator.statistics().timed_out) == (["a"], 1)  # the second one has its result
    assert (budget.spent, budget.reserved) == (4.0, 0.0)


async def test_a_settled_weight_only_falls(autojump_clock: None) -> None:
    budget, refused = Budget(10.0, weight=lambda _: 5.0), []

    async def call(_: int) -> None:
        settle(7.0)  # more than the estimate
        settle(0.0)
        with pytest.raises(
            ValueError, match=r"^settle: actual must be at most 0, which the call has settled before, got 5"
        ):
            settle(5.0)
        refused.append(usage())

    await run(call, budget, range(3))
    assert refused == [(5.0, 0.0)] * 3
    assert budget.spent == 0.0


async def test_a_further_call_reserves_its_own_estimate_not_what_the_first_has_settled(autojump_clock: None) -> None:
    budget, calls, estimates = Budget(10.0, weight=lambda _: 1.0), set[int](), set[float]()

    async def rows() -> AsyncIterator[int]:
        for number in range(200):
            yield number
            await trio.sleep(0.05)

    async def ask(element: int) -> int:
        if element not in calls:
            calls.add(element)
            await trio.sleep(0.1)
            settle(0.0)
            raise ConnectionError
        estimates.add(usage()[0])  # type: ignore[index]
        await trio.sleep(20.0)
        return element

    found, *_ = await run(hedged(ask, after=2.0, budget=1.0), budget, rows(), timeout=60.0, capacity=500)
    assert (len(found), estimates) == (10, {1.0})
    assert (budget.spent, budget.reserved) == (10.0, 0.0)


async def test_a_second_call_of_hedged_pays_and_is_not_made_beyond_the_budget(autojump_clock: None) -> None:
    budget = Budget(3.0)
    service = Service(1.0)
    found, *_ = await run(hedged(service, after=0.1, budget=1.0), budget, range(3), capacity=1)
    assert (found, service.calls, budget.spent) == ([0, 1], 3, 3.0)


@pytest.mark.parametrize(("amount", "records"), [(0.3, 3), (1.0, 10)])
async def test_a_group_reserves_the_sum_of_its_weights_as_written(
    amount: float, records: int, autojump_clock: None
) -> None:
    """Sums of floats are 0.30000000000000004 and 0.9999999999999999."""
    budget = Budget(amount, weight=lambda _: 0.1)

    async def ask(elements: list[int]) -> list[int]:
        return elements

    found, errors, _ = await run(ask, budget, range(records), group=records)
    assert (len(found), errors, budget.spent) == (records, [], amount)


async def test_budget_and_rate_have_units_of_their_own(autojump_clock: None) -> None:
    dollars = Budget(1.0, weight=lambda _: 0.5, name="dollars")
    tokens = RateLimit(1000.0, burst=1000.0, weight=lambda _: 100, name="tokens")

    async def ask(_: int) -> list[tuple[float, float] | None]:
        settle(80, "tokens")
        settle(0.01, "dollars")
        return [usage(), usage("dollars"), usage("euros")]

    found, *_ = await run(ask, [tokens, dollars], range(2))
    assert found == [[(100.0, 80.0), (0.5, 0.01), None]] * 2
    assert dollars.spent == 0.02


async def test_usage_is_the_estimate_before_settle_and_none_without_a_weight(autojump_clock: None) -> None:
    async def ask(_: int) -> list[tuple[float, float] | None]:
        return [usage()]

    weighted, *_ = await run(ask, Budget(10.0, weight=lambda _: 2.0), range(1))
    unweighted, *_ = await run(ask, Budget(10.0), range(1))
    assert (weighted, unweighted, usage()) == ([[(2.0, 2.0)]], [[None]], None)


NONSENSE = [nan, -1.0, inf, "1", None, True, Decimal(1)]


@pytest.mark.parametrize("weight", NONSENSE)
async def test_a_weight_that_is_none_stops_the_operator(weight: Any, autojump_clock: None) -> None:
    budget = Budget(10.0, weight=lambda _: weight)
    with pytest.raises((ValueError, TypeError), match=r"^weight of Budget\(10\.0, .*\) must be"):
        await run(Service(1.0), budget)
    assert (budget.spent, budget.reserved) == (0.0, 0.0)


@pytest.mark.parametrize("actual", NONSENSE)
async def test_a_call_that_settles_nonsense_fails_and_stays_paid(actual: Any, autojump_clock: None) -> None:
    budget = Budget(10.0, weight=lambda _: 2.0)

    async def ask(_: int) -> None:
        settle(actual)

    _, errors, _ = await run(ask, budget, range(3))
    assert [str(error).partition(" must")[0] for error in errors] == ["settle: actual"] * 3
    assert budget.spent == 6.0


async def test_explain_and_summary_say_that_the_budget_ended_the_run(autojump_clock: None) -> None:
    _, _, operator = await run(Service(1.0), Budget(50.0), range(1000))
    why = "budget used up after 50 calls: 50.00 of 50.00"
    assert f"950 refused ({why})" in summary(operator.statistics(), 5.0)
    assert f"Gates refused 950 other records, for which no call was made: {why}." in operator.explain().sentences


async def test_explain_says_that_a_retry_was_refused(autojump_clock: None) -> None:
    async def fail(_: int) -> None:
        raise ConnectionError

    _, _, operator = await run(fail, Budget(1.0), range(1), retry=FixedDelay(1, 0.1))
    assert "Gates refused retries: budget used up after 1 call: 1.00 of 1.00." in operator.explain().sentences


async def test_the_refusal_of_a_retry_keeps_the_error_of_the_attempt_that_was_paid(autojump_clock: None) -> None:
    reason = ConnectionError("the real reason")

    async def fail(_: int) -> None:
        raise reason

    _, (error,), _ = await run(fail, Budget(1.0), range(1), retry=FixedDelay(3, 0.1))
    assert isinstance(error, BudgetError)
    assert error.__cause__ is reason


async def test_calls_wait_for_what_larger_ones_leave(autojump_clock: None) -> None:
    budget = Budget(10.0, weight=lambda price: price)
    prices = [6.0, 5.0, 3.0, 2.0, 1.0]
    async with unordered_wait(prices, Service(1.0), timeout=5.0, gate=budget) as results:
        found = {result async for result in results}
    assert found == {*prices}  # each settles 1.0
