"""The retry budget: how many retries an operator may make, for all its elements together."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from .checks import check_number

__all__ = ["BudgetAccount", "RetryBudget"]


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """A limit on an operator's retries, so that a service which is down is not asked several times as often.

    Each element's first call puts `ratio` of a retry into an account, and each retry takes a whole one out. The account
    begins with `reserve`. It never holds more than that, or than it takes to spend `ratio` in whole retries: less than
    1 + `ratio`. So however the service behaves, and at every moment,

        retries <= reserve + ratio * first calls

    An element that gets no retry keeps its last exception or result. The account is the operator's own (in Spark: the
    task's), and counts calls, not time, so that it is the same in every run (Finagle's `RetryBudget` and gRPC's retry
    throttling, without a clock).

    Args:
        ratio: Retries for each first call, not negative; 0.2 lets a fifth be retried in the long run.
        reserve: Retries that are there from the start, at least 0; for an operator that has made few calls. 0: only
            what the calls have put in.

    Raises:
        ValueError: An argument is out of its range.

    Example:
        ExponentialBackoff(5, initial=0.1, maximum=10.0, budget=RetryBudget(ratio=0.2))
    """

    ratio: float = 0.2
    reserve: float = 100.0

    def __post_init__(self) -> None:
        check_number("ratio", self.ratio, "retries for each call, finite and not negative", _is_finite_and_not_negative)
        check_number(
            "reserve", self.reserve, "a number of retries, finite and not negative", _is_finite_and_not_negative
        )


def _is_finite_and_not_negative(number: float) -> bool:
    return 0 <= number < math.inf


@dataclass(slots=True)
class BudgetAccount:
    """What is left of one operator's budget; without a budget there is always enough."""

    budget: RetryBudget | None
    left: float = field(init=False)
    limit: float = field(init=False)

    def __post_init__(self) -> None:
        self.left = math.inf if self.budget is None else self.budget.reserve
        # What is left after a retry is below 1, and a call adds `ratio` to that: nothing of it may be lost.
        self.limit = math.inf if self.budget is None else max(self.left, math.nextafter(1 + self.budget.ratio, 0))

    def deposit(self) -> None:
        """A first call was made."""
        if self.budget is not None:
            self.left = min(self.limit, self.left + self.budget.ratio)

    def withdraw(self) -> bool:
        """Take a retry out of it; whether there was one."""
        if self.left < 1:
            return False
        self.left -= 1
        return True
