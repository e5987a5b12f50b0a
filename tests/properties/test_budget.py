"""A budget holds, whatever the calls do and in whichever order they end."""

from __future__ import annotations

from decimal import Decimal
from math import inf

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from trio_asyncio_io.gates import Budget, BudgetError, Outcome

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
