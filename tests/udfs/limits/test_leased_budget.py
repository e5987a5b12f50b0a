"""The gate of a cluster's budget with the real operator, on a virtual clock."""

from __future__ import annotations

from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from benchmarks.resilience._leases import SimulatedSource
from trio_asyncio_io import unordered_wait
from trio_asyncio_io.gates import BudgetError, settle
from udfs import ClusterBudget, ClusterLimitError
from udfs._limits.budgets import DEAD_SECONDS, BudgetRequest, BudgetSource
from udfs._limits.cluster_gates import LeaseGate
from udfs._limits.cluster_limits import LeasedLimit, ServerAddress
from udfs._limits.sources import GrantRefusedError


class SimulatedBudgets(SimulatedSource):
    """Leases a budget, 2 ms after a request. `source` has its sums."""

    def __init__(self) -> None:
        super().__init__()
        self.source = BudgetSource()

    def grant(self, request: Any) -> Any:
        return self.source.grant(trio.current_time(), request)


def process(
    source: SimulatedBudgets,
    amount: float,
    weight: float | None = None,
    give_up: float = 300.0,
    name: str | None = "books",
) -> LeaseGate:
    """The gate of a process."""
    budget = ClusterBudget(amount, weight=None if weight is None else lambda _: weight, name=name, give_up=give_up)
    return LeaseGate(LeasedLimit(budget, ServerAddress("driver", 7077, "secret")), cast("Any", source.connection()))


class Run:
    """Runs calls, and counts them and their errors."""

    def __init__(self) -> None:
        self.calls = 0
        self.errors: list[Exception] = []

    async def of(self, gate: Any, calls: int, seconds: float = 0.1, price: float = 1.0, capacity: int = 10) -> None:
        async def ask(_: int) -> None:
            self.calls += 1
            await trio.sleep(seconds)
            settle(price)

        async def keep(_: int, error: Exception) -> None:
            self.errors.append(error)

        options = {"timeout": 1e3, "capacity": capacity, "on_error": keep}
        async with unordered_wait(range(calls), ask, gate=gate, **options) as results:
            async for _ in results:
                pass


@pytest.mark.parametrize(
    ("calls", "weight", "price", "least"),
    [(100, None, 1.0, 100), (1000, 1.0, 0.1, 990)],
    ids=["exact", "ten times too high"],
)
async def test_processes_use_all_of_a_budget_together_whatever_their_estimates_are(
    autojump_clock: MockClock, calls: int, weight: float | None, price: float, least: int
) -> None:
    source, run = SimulatedBudgets(), Run()
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(run.of, process(source, 100.0, weight), calls, 0.1, price)
    assert least <= run.calls <= calls
    assert {type(error) for error in run.errors} == {BudgetError}
    assert source.source.leased == pytest.approx(100.0, rel=0.01)


async def test_calls_beyond_the_budget_are_refused_without_a_request(autojump_clock: MockClock) -> None:
    source, run = SimulatedBudgets(), Run()
    await run.of(process(source, 10), 2_000)
    assert run.calls == 10
    assert len(source.requests) < 50


@pytest.mark.parametrize(
    ("amount", "weight", "name", "message"),
    [
        (1.0, None, "books", "budget 'books' used up by all tasks: 1.00 of 1.00, and the call needs 1.00"),
        (0.005, 0.005, "books", "budget 'books' used up by all tasks: 0.005 of 0.005, and the call needs 0.005"),
        (0.5, 0.6, None, "budget used up by all tasks: 0 of 0.5, and the call needs 0.6"),
    ],
    ids=["calls", "with its digits", "without a name"],
)
async def test_a_refused_call_says_what_was_used(
    autojump_clock: MockClock, amount: float, weight: float | None, name: str | None, message: str
) -> None:
    run = Run()
    await run.of(process(SimulatedBudgets(), amount, weight, name=name), 2, price=weight or 1.0)
    assert str(run.errors[-1]) == message


async def test_a_call_waits_for_what_another_process_returns(autojump_clock: MockClock) -> None:
    source, run = SimulatedBudgets(), Run()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run.of, process(source, 10.0, weight=10.0), 1, 50.0, 1.0)
        await trio.sleep(1.0)
        await run.of(process(source, 10.0, weight=5.0), 1, 0.1, 5.0)
    assert (run.calls, run.errors) == (2, [])


async def test_what_a_process_that_was_killed_had_leased_is_spent(autojump_clock: MockClock) -> None:
    source, run = SimulatedBudgets(), Run()
    source.source.grant(trio.current_time(), BudgetRequest("books", 10.0, "killed", 1, 0.0, 0.0, 6.0, 6.0))
    began = trio.current_time()
    await run.of(process(source, 10.0, weight=5.0), 1)
    assert [type(error) for error in run.errors] == [BudgetError]
    assert trio.current_time() - began >= DEAD_SECONDS


async def test_calls_that_a_failure_prevents_cost_nothing(autojump_clock: MockClock) -> None:
    async def fail(_: int) -> None:
        raise OSError("down")

    source = SimulatedBudgets()
    gate = process(source, 10_000.0, weight=1.0)
    await Run().of(gate, 20)  # so that enough is leased
    with pytest.raises(OSError, match="down"):
        async with unordered_wait(range(30), fail, timeout=5.0, capacity=10, gate=gate):
            await trio.sleep_forever()
    await gate.return_unused()
    assert source.source.leased == pytest.approx(21.0)


async def test_a_task_returns_what_it_has_not_used(autojump_clock: MockClock) -> None:
    source, run = SimulatedBudgets(), Run()
    gate = process(source, 10_000.0, weight=1.0)
    await run.of(gate, 5)
    await gate.return_unused()
    assert source.source.leased == pytest.approx(5.0)


async def test_a_task_leaves_what_it_has_not_used_to_the_other_tasks_of_its_process(autojump_clock: MockClock) -> None:
    source, run = SimulatedBudgets(), Run()
    gate = process(source, 10_000.0, weight=1.0)
    async with gate.in_use():
        async with gate.in_use():
            await run.of(gate, 5)
        ahead = source.source.leased - 5.0
        assert ahead > 0.0
        sent = len(source.requests)
        await run.of(gate, int(ahead / 2), capacity=1)
        assert len(source.requests) <= sent + 1
    assert source.source.leased == pytest.approx(5.0 + int(ahead / 2))


async def test_a_process_without_calls_returns_what_it_has_not_used(autojump_clock: MockClock) -> None:
    source, run = SimulatedBudgets(), Run()
    await run.of(process(source, 10_000.0, weight=1.0), 5)
    await trio.sleep(5.0)
    assert source.source.leased == pytest.approx(5.0)
    sent = len(source.requests)
    await trio.sleep(100.0)
    assert len(source.requests) == sent


async def test_a_source_that_refuses_says_what_to_check(autojump_clock: MockClock) -> None:
    source, run = SimulatedBudgets(), Run()

    async def refuse() -> None:
        raise GrantRefusedError("the disk is full", "Make room")

    source.respond = refuse
    with pytest.raises(ClusterLimitError, match=r"attempt failed with the disk is full\. Make room$"):
        await run.of(process(source, 10, give_up=20.0), 1)


async def test_answers_that_are_lost_cost_nothing(autojump_clock: MockClock) -> None:
    source, run = SimulatedBudgets(), Run()
    number = 0

    async def lose_some() -> None:
        nonlocal number
        number += 1
        if number % 3 == 0:
            await trio.sleep_forever()

    source.respond = lose_some
    await run.of(process(source, 50), 100)
    assert run.calls == 50


async def test_the_end_of_a_task_does_not_wait_for_a_source_that_is_away(autojump_clock: MockClock) -> None:
    source, run = SimulatedBudgets(), Run()
    gate = process(source, 10_000.0, weight=1.0)
    await run.of(gate, 5)
    source.respond = trio.sleep_forever
    began = trio.current_time()
    await gate.return_unused()
    assert trio.current_time() - began <= 1.5
