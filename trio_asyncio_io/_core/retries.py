"""The retries of one operator: whether an attempt is followed by another one, and after which delay."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from .queue import Entry
from .retry import RetryStrategy
from .retry_budget import BudgetAccount

__all__ = ["Retries"]


class Retries:
    """Decides after each attempt.

    Args:
        strategy: The operator's.
        slots: The first calls that may run at once.
        guard: Makes the user's functions open to interrupts.
        on_denied: Called with the exception of an attempt, if there is one, whose retry the budget does not allow.
        is_final: Whether an exception is never retried.

    Attributes:
        draw: Returns a random number from 0.0 to 1.0.
        checks_results: Whether `after_result` must be called. Otherwise each result counts.
        timeouts: By id, the timeouts of this operator's attempts. The function may raise those of an operator inside.
    """

    def __init__(
        self,
        strategy: RetryStrategy,
        slots: int,
        *,
        guard: Callable[[Callable[..., Any]], Callable[..., Any]],
        on_denied: Callable[[Exception | None], None],
        is_final: Callable[[Exception], bool],
    ) -> None:
        self._max_retries = strategy.max_retries
        self._retries_result = guard(strategy.retries_result)
        self._retries_exception = guard(strategy.retries_exception)
        self._wait = guard(strategy.wait)
        self._account = BudgetAccount(strategy.budget, slots)
        self.draw = Random().random
        self._on_denied = on_denied
        self._is_final = is_final
        is_default = type(strategy).retries_result is RetryStrategy.retries_result and strategy.retry_on_result is None
        self.checks_results = not is_default or strategy.budget is not None
        self.timeouts: dict[int, Exception] = {}

    def after_error(self, entry: Entry, error: Exception, draw: float | None = None) -> float | None:
        """The seconds until the next attempt. None: the exception counts.

        Args:
            draw: The random number for the jitter, from 0.0 to 1.0. None: a new one.
        """
        is_own_timeout = self.timeouts.pop(id(error), None) is not None
        self._deposit(entry)
        if entry.attempts > self._max_retries or self._is_final(error):
            return None
        if not (is_own_timeout or self._retries_exception(error)):
            return None
        draw = self.draw() if draw is None else draw
        return self._wait(entry.attempts, draw, error) if self._may_retry(error) else None

    def after_result(self, entry: Entry, result: Any) -> float | None:
        """The seconds until the next attempt. None: the result counts."""
        self._deposit(entry)
        if entry.attempts > self._max_retries or not self._retries_result(result):
            return None
        return self._wait(entry.attempts, self.draw()) if self._may_retry(None) else None

    def withdraw(self) -> None:
        """Count a retry that will be made."""
        self._account.withdraw()

    def _deposit(self, entry: Entry) -> None:
        if entry.attempts == 1:
            self._account.deposit()

    def _may_retry(self, error: Exception | None) -> bool:
        if self._account.balance >= 1:
            return True
        self._on_denied(error)
        return False
