"""A limit on the retries of all elements of an operator together."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from .checks import check_number

__all__ = ["BudgetAccount", "RetryBudget"]


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """Limits an operator's retries, so that an overloaded service does not receive several times the load.

    At every moment, whatever the service does:

        retries <= reserve + ratio * first calls

    The budget is an account. It starts with `reserve`. The first call for an element adds `ratio`; a retry takes 1. The
    balance is at most `reserve`, or what the first calls of a full capacity add, if that is more: they all start before
    the first of them can fail. While it is below 1, no element is retried: the last exception or result of each one
    counts.

    Each operator has its own account (in Spark: each task). It counts calls, not time, so every run is the same. This
    is Finagle's `RetryBudget` and gRPC's retry throttling, without a clock.

    Args:
        ratio: Retries per first call, finite and not negative. 0.2: in the long run, at most one call in five is
            retried.
        reserve: Retries available at the start, finite and not negative. 0: only what first calls have added. The
            default, 10, is that of gRPC: it is per operator, and 64 tasks with 100 free retries each would be a storm.

    Raises:
        ValueError: An argument is out of its range.

    Example:
        ExponentialBackoff(5, initial=0.1, maximum=10.0, budget=RetryBudget(ratio=0.2))
    """

    ratio: float = 0.2
    reserve: float = 10.0

    def __post_init__(self) -> None:
        check_number("ratio", self.ratio, "retries for each call, finite and not negative", _is_finite_and_not_negative)
        check_number(
            "reserve", self.reserve, "a number of retries, finite and not negative", _is_finite_and_not_negative
        )


def _is_finite_and_not_negative(number: float) -> bool:
    return 0 <= number < math.inf


@dataclass(slots=True)
class BudgetAccount:
    """The balance of one operator's budget; unlimited without a budget.

    Args:
        budget: Its budget, or None.
        capacity: The first calls that may run at once.
    """

    budget: RetryBudget | None
    capacity: int = 1
    balance: float = field(init=False)
    limit: float = field(init=False)

    def __post_init__(self) -> None:
        self.balance = math.inf if self.budget is None else self.budget.reserve
        # After a retry, the balance may be just below 1. The next calls' `ratio` must still fit.
        self.limit = (
            math.inf
            if self.budget is None
            else max(self.balance, math.nextafter(1 + self.budget.ratio * self.capacity, 0))
        )

    def deposit(self) -> None:
        """Add the share of one first call."""
        if self.budget is not None:
            self.balance = min(self.limit, self.balance + self.budget.ratio)

    def withdraw(self) -> bool:
        """Take one retry; False if the balance is below 1."""
        if self.balance < 1:
            return False
        self.balance -= 1
        return True
