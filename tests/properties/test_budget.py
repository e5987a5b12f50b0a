"""A budget holds, whatever the calls do and in whichever order they settle and end."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from math import inf
from typing import Any

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from trio.testing import MockClock

from trio_asyncio_io import FixedDelay, unordered_wait
from trio_asyncio_io.gates import Budget, BudgetError, CallEndedError, Outcome, settle
from trio_asyncio_io.integration import usage_of_all as usage
from trio_asyncio_io.policies import hedged

CENTS = st.integers(0, 500).map(lambda cents: cents / 100)
KINDS = st.sampled_from(["ok", "throttled", "overload", "error", "cancelled"])


class BudgetMachine(RuleBasedStateMachine):
    """Calls start, settle and end. A model in whole cents says which may start."""

    @initialize(amount=st.integers(0, 5_000))
    def begin(self, amount: int) -> None:
        self.amount = amount
        self.budget = Budget(amount / 100)
        self.spent = 0
        self.calls: list[list[float]] = []  # of those that run: their estimates, and their weights

    @property
    def reserved(self) -> int:
        return sum(round(100 * weight) for _, weight in self.calls)

    @rule(weight=CENTS)
    def start(self, weight: float) -> None:
        cents = round(100 * weight)
        try:
            delay = self.budget.delay(0.0, weight)
        except BudgetError:
            assert cents > self.amount - self.spent
            return
        fits = cents == 0 or cents <= self.amount - self.spent - self.reserved
        assert delay == (0.0 if fits else inf)
        assert fits or cents <= self.amount - self.spent
        if fits:
            self.budget.started(0.0, weight)
            self.calls.append([weight, weight])

    @precondition(lambda self: self.calls)
    @rule(position=st.integers(0, 1_000), actual=CENTS)
    def settle(self, position: int, actual: float) -> None:
        call = self.calls[position % len(self.calls)]
        self.budget.correct(call[1], actual)
        call[1] = actual

    @precondition(lambda self: self.calls)
    @rule(position=st.integers(0, 1_000), kind=KINDS)
    def end(self, position: int, kind: str) -> None:
        _, weight = self.calls.pop(position % len(self.calls))
        self.budget.ended(0.0, 1.0, Outcome(kind), weight)  # type: ignore[arg-type]
        self.spent += round(100 * weight)

    @invariant()
    def sums_are_exact(self) -> None:
        if not hasattr(self, "budget"):
            return
        left = max(0, self.amount - self.spent - self.reserved)
        sums = [self.budget.spent, self.budget.reserved, self.budget.left]
        assert sums == [float(Decimal(cents) / 100) for cents in (self.spent, self.reserved, left)]

    @invariant()
    def no_call_waits_while_none_runs(self) -> None:
        if hasattr(self, "budget") and not self.calls:
            for cents in (1, 100, 500):
                try:
                    assert self.budget.delay(0.0, cents / 100) == 0.0
                except BudgetError:
                    assert cents > self.amount - self.spent


TestBudget = BudgetMachine.TestCase
# 1,000 runs in the profile "thorough"
TestBudget.settings = settings(stateful_step_count=50, max_examples=5 * settings().max_examples)


# The operator's calls, with a budget in cents


@dataclass
class Call:
    """What a call does, and what it has cost in the end.

    Args:
        seconds: Its length.
        settles: Instants after its start, and cents. Those after its end are made by a task that it leaves behind.
        fails: Whether it raises.
    """

    seconds: float
    settles: list[tuple[float, int]]
    fails: bool
    cost: int = field(default=0, init=False)
    settled: list[int] = field(default_factory=list, init=False)


INSTANTS = st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 9.0])
CALLS = st.builds(Call, INSTANTS, st.lists(st.tuples(INSTANTS, st.integers(0, 300)), max_size=3), st.booleans())
ELEMENTS = st.lists(st.tuples(st.integers(0, 200), st.lists(CALLS, min_size=4, max_size=4)), max_size=12)


class Service:
    """Makes the calls of each element, which has an estimate in cents, and follows what they cost."""

    def __init__(self, elements: list[tuple[int, list[Call]]], background: trio.Nursery) -> None:
        self.elements = [(estimate, iter(calls)) for estimate, calls in elements]
        self.background = background
        self.made: list[tuple[int, Call]] = []
        self.has_ended = False

    def weight(self, element: int) -> float:
        return self.elements[element][0] / 100

    async def __call__(self, element: int) -> None:
        estimate, calls = self.elements[element]
        call = next(calls)
        call.cost = estimate
        self.made.append((estimate, call))
        assert usage()[0] == estimate / 100  # type: ignore[index]
        now = 0.0
        for at, cents in sorted(call.settles):
            if at > call.seconds:
                self.background.start_soon(self.settle_late, call, at - now, cents)
                continue
            await trio.sleep(at - now)
            now = at
            self.settle(call, cents)
        await trio.sleep(call.seconds - now)
        if call.fails:
            raise ConnectionError

    async def settle_late(self, call: Call, seconds: float, cents: int) -> None:
        await trio.sleep(seconds)
        try:
            self.settle(call, cents)
        except CallEndedError:
            return
        assert not self.has_ended

    @staticmethod
    def settle(call: Call, cents: int) -> None:
        least = min(call.settled, default=cents)
        try:
            settle(cents / 100)
        except ValueError:
            assert cents > least
            return
        assert cents <= least
        call.settled.append(cents)
        call.cost = cents


@given(
    elements=ELEMENTS,
    cents=st.integers(0, 800),
    capacity=st.integers(1, 4),
    is_hedged=st.booleans(),
    retries=st.integers(0, 1),
)
def test_what_is_spent_is_what_calls_cost_and_exceeds_the_budget_only_by_their_excess(
    elements: list[tuple[int, list[Call]]], cents: int, capacity: int, retries: int, *, is_hedged: bool
) -> None:
    async def main() -> None:
        async with trio.open_nursery() as background:
            service = Service(elements, background)
            budget = Budget(cents / 100, weight=service.weight)
            function: Any = hedged(service, after=1.0, budget=1.0) if is_hedged else service
            retry = FixedDelay(retries, 0.5)
            options: Any = {"timeout": 4.0, "capacity": capacity, "gate": budget, "retry": retry, "on_error": "skip"}
            async with unordered_wait(range(len(elements)), function, **options) as results:
                async for _ in results:
                    in_flight = sum(max(call.settled, default=0) for _, call in service.made)
                    assert budget.spent + budget.reserved <= budget.amount + in_flight / 100 + 1e-9  # of floats
            service.has_ended = True
            cost = sum(call.cost for _, call in service.made)
            assert (Decimal(repr(budget.spent)), budget.reserved) == (Decimal(cost) / 100, 0.0)
            assert cost <= cents + sum(
                max(0, max(call.settled, default=0) - estimate) for estimate, call in service.made
            )

    trio.run(main, clock=MockClock(autojump_threshold=0))
