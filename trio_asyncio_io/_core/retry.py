"""Retries: strategies, which decide when to call again and after which delay, and the retries of one operator.

A strategy is frozen, stateless and picklable, so all elements of all operators can share one object. Attempts count
from 1. `max_retries` counts the calls after the first: with `max_retries=3` there are at most four calls. (In FLIP-232,
`maxAttempts` does not count the first call either.)

A `RetryBudget` limits the retries of all elements of an operator together.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields
from random import Random
from typing import Any, TypeAlias

from .._values.checks import check_callback, check_exception_types, check_int, check_number, check_seconds
from .._values.describe import describe
from .._values.exceptions import attribute_of, leaves_of, set_on
from .._values.public import share_descriptions
from .queue import Entry
from .reading import Reading, retry_after, transient

RetryOn: TypeAlias = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool]


def _check_retry_on(retry_on: object) -> None:
    if isinstance(retry_on, type | tuple):
        check_exception_types("retry_on", retry_on)
    elif callable(retry_on):
        check_callback("retry_on", retry_on)
    else:
        rule = "retry_on must be an exception type, a tuple of them or a predicate"
        raise TypeError(f"{rule}, got {describe(retry_on)}")


@dataclass(frozen=True, repr=False)
class RetryStrategy(ABC):
    """The base class of retry strategies; override `backoff` to write your own.

    Retries and backoffs count towards the element's `timeout`. Two attempts of one element never run at once.

    Args:
        max_retries: The maximum number of calls after the first, at least 0.
        retry_on: An exception type, a tuple of them, or a predicate, exception -> bool. The default, `Exception`, also
            retries a status 401 or 404 and a bug in the function; for calls to services use `transient`. A type matches
            an exception group if it matches each exception in it. A predicate receives the group itself. If a predicate
            raises, the element fails with that exception.
        retry_on_result: A predicate, result -> bool; True means call again. After the last retry, the last result
            counts. None: results are not retried.
        attempt_timeout: Seconds for each attempt, above 0. An attempt that takes longer is cancelled. After it has
            unwound, it counts as an `AttemptTimeoutError`, which is always retried. (One that the function itself
            raises is retried only if `retry_on` matches it.) `math.inf`, the default: attempts have no timeout of their
            own.
        retry_after: exception -> the seconds that the service requests to wait, or None. The next attempt starts after
            this delay and after the backoff, whichever is later. The default reads the `Retry-After` header. None:
            exceptions are not read.
        budget: A limit on the retries of all elements of an operator together, or None.

    Raises:
        TypeError, ValueError: An argument is out of its range; the message names it.
    """

    max_retries: int
    _: KW_ONLY
    retry_on: RetryOn = Exception
    retry_on_result: Callable[[Any], bool] | None = None
    attempt_timeout: float = math.inf
    retry_after: Callable[[Exception], float | None] | None = retry_after
    budget: RetryBudget | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_retries", check_int("max_retries", self.max_retries, at_least=0))
        _check_retry_on(self.retry_on)
        if self.retry_on_result is not None:
            check_callback("retry_on_result", self.retry_on_result)
        check_seconds("attempt_timeout", self.attempt_timeout, positive=True)
        if self.retry_after is not None:
            check_callback("retry_after", self.retry_after)
        if self.budget is not None and not isinstance(self.budget, RetryBudget):
            raise TypeError(f"budget must be a RetryBudget or None, got {self.budget!r}")

    def __repr__(self) -> str:
        shown = (f"{each.name}={describe(getattr(self, each.name))}" for each in fields(self))
        return f"{type(self).__name__}({', '.join(shown)})"

    @abstractmethod
    def backoff(self, attempt: int, random: float) -> float:
        """Seconds to wait after attempt number `attempt`, not negative. A pure function of its arguments.

        `math.inf` means no other attempt: the exception or the result counts, whatever the timeout. An element fails
        with the error for any other value, which names the strategy.

        Args:
            attempt: The attempt that has just ended, counted from 1.
            random: A uniform random number from [0, 1).
        """

    def wait(self, attempt: int, random: float, exception: Exception | None = None) -> float:
        """Seconds to wait after an attempt: the backoff, or the delay that the service requests if that is longer.

        Raises:
            TypeError, ValueError: `backoff` or `retry_after` returned something other than such seconds.
        """
        backoff = check_seconds("the backoff", self.backoff(attempt, random), of=self)
        requested = None if exception is None or self.retry_after is None else self.retry_after(exception)
        if requested is None:
            return backoff
        return max(backoff, check_seconds("the retry_after", requested, of=self))

    def retries_exception(self, exception: Exception) -> bool:
        """Whether to call again after this exception."""
        types = self.retry_on
        if not isinstance(types, type | tuple):
            return bool(types(exception))
        return isinstance(exception, types) or all(isinstance(leaf, types) for leaf in leaves_of(exception))

    def retries_result(self, result: Any) -> bool:
        """Whether to call again after this result."""
        return self.retry_on_result is not None and bool(self.retry_on_result(result))


@share_descriptions(RetryStrategy)
@dataclass(frozen=True, repr=False)
class FixedDelay(RetryStrategy):
    """The same delay before every retry (FLIP-232's `FixedDelayRetryStrategy`).

    Args:
        The same as for `RetryStrategy`, and:
        delay: Seconds before each retry, finite and not negative.

    Example:
        >>> FixedDelay(3, 0.5, retry_on=ConnectionError).backoff(2, random=0.9)
        0.5
    """

    delay: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seconds("delay", self.delay, finite=True)

    def backoff(self, attempt: int, random: float) -> float:  # noqa: ARG002 - the delay is constant
        """The delay, in seconds."""
        return self.delay


@share_descriptions(RetryStrategy)
@dataclass(frozen=True, repr=False)
class ExponentialBackoff(RetryStrategy):
    """Exponentially growing delays with random jitter.

    The delay after attempt n, with a uniform random number from [0, 1):

        min(maximum, initial * multiplier ** (n - 1)) * (1 - jitter * random)

    `jitter=1.0` is the "full jitter" of the AWS Architecture Blog; it prevents the retries of many elements from
    arriving at the same time. `jitter=0.0` has no randomness.

    Args:
        The same as for `RetryStrategy`, and:
        initial: Seconds before the first retry, finite and not negative.
        maximum: The upper limit of the delay in seconds, finite and at least `initial`.
        multiplier: The growth factor, at least 1.
        jitter: The random share of the delay, from 0.0 to 1.0.

    Example:
        >>> strategy = ExponentialBackoff(5, initial=0.1, maximum=1.0)
        >>> [strategy.backoff(attempt, random=0.0) for attempt in (1, 2, 3, 4, 5)]
        [0.1, 0.2, 0.4, 0.8, 1.0]
    """

    initial: float
    maximum: float
    multiplier: float = 2.0
    _: KW_ONLY
    jitter: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seconds("initial", self.initial, finite=True)
        check_seconds("maximum", self.maximum, finite=True)
        check_number("multiplier", self.multiplier, "finite and at least 1", lambda factor: 1 <= factor < math.inf)
        check_number("jitter", self.jitter, "a share from 0.0 to 1.0", lambda share: 0 <= share <= 1)
        if self.maximum < self.initial:
            raise ValueError(f"maximum must be at least initial ({self.initial}), got {self.maximum}")

    def backoff(self, attempt: int, random: float) -> float:
        """The delay after attempt number `attempt`, in seconds."""
        try:
            ceiling = min(self.maximum, self.initial * self.multiplier ** (attempt - 1))
        except OverflowError:
            ceiling = self.maximum if self.initial else 0.0
        return ceiling * (1 - self.jitter * random)


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """Limits an operator's retries, so that an overloaded service does not receive several times the load.

    At every moment, whatever the service does:

        retries <= reserve + ratio * first calls

    The budget is an account. It starts with `reserve`. The first call for an element adds `ratio`; a retry takes 1. The
    balance is at most `reserve`, or what the first calls of a full capacity add, if that is more: they all start before
    the first of them can fail. While it is below 1, no element is retried: the last exception or result of each one
    counts.

    Each operator has its own account (in Spark: each task). This is Finagle's `RetryBudget` and gRPC's retry
    throttling, without a clock.

    Args:
        ratio: Retries per first call, finite and not negative. 0.2: in the long run, at most one call in five is
            retried.
        reserve: Retries available at the start, finite and not negative. 0: only what first calls have added. The
            default, 10, is gRPC's, too.

    Raises:
        ValueError: An argument is out of its range.

    Example:
        ExponentialBackoff(5, initial=0.1, maximum=10.0, budget=RetryBudget(ratio=0.2))
    """

    ratio: float = 0.2
    reserve: float = 10.0

    def __post_init__(self) -> None:
        for name, unit in (("ratio", "retries for each call"), ("reserve", "a number of retries")):
            legal = f"{unit}, finite and not negative"
            check_number(name, getattr(self, name), legal, lambda number: 0 <= number < math.inf)


class BudgetAccount:
    """The balance of one operator's budget; unlimited without a budget.

    Args:
        budget: Its budget, or None.
        capacity: The first calls that may run at once.
    """

    def __init__(self, budget: RetryBudget | None, capacity: int = 1) -> None:
        self.balance = math.inf if budget is None else budget.reserve
        self._ratio = 0.0 if budget is None else budget.ratio
        # After a retry, the balance may be just below 1. The next calls' `ratio` must still fit
        self._limit = max(self.balance, math.nextafter(1 + self._ratio * capacity, 0))

    def deposit(self) -> None:
        """Add the share of one first call."""
        self.balance = min(self._limit, self.balance + self._ratio)

    def withdraw(self) -> bool:
        """Take one retry; False if the balance is below 1."""
        if self.balance < 1:
            return False
        self.balance -= 1
        return True


class Retries:
    """Decides after each attempt.

    Args:
        strategy: The operator's. None: there are no retries.
        slots: The first calls that may run at once.
        guard: Makes the user's functions open to interrupts.
        on_denied: Called with the exception of an attempt, if there is one, whose retry the budget does not allow.
        is_final: Whether an exception is never retried.

    Attributes:
        account: The balance of the budget.
        are_made: Whether the strategy allows any.
        draw: Returns a random number from 0.0 to 1.0.
        checks_results: Whether `after_result` must be called. Otherwise each result counts.
    """

    def __init__(
        self,
        strategy: RetryStrategy | None,
        slots: int,
        *,
        guard: Callable[[Callable[..., Any]], Callable[..., Any]],
        on_denied: Callable[[Exception | None], None],
        is_final: Callable[[Exception], bool],
    ) -> None:
        strategy = FixedDelay(0, 0.0) if strategy is None else strategy
        kind = type(strategy)
        # What a reading knows already is not read again
        self._retries_transient = strategy.retry_on is transient and (
            kind.retries_exception is RetryStrategy.retries_exception
        )
        self._waits_as_read = strategy.retry_after is retry_after and kind.wait is RetryStrategy.wait
        self._backoff = guard(strategy.backoff)
        self._strategy = strategy
        self._max_retries = strategy.max_retries
        self.are_made = strategy.max_retries > 0
        self._retries_result = guard(strategy.retries_result)
        self._retries_exception = guard(strategy.retries_exception)
        self._wait = guard(strategy.wait)
        self.account = BudgetAccount(strategy.budget, slots)
        self.draw = Random().random
        self._on_denied = on_denied
        self._is_final = is_final
        is_default = kind.retries_result is RetryStrategy.retries_result and strategy.retry_on_result is None
        self.checks_results = not is_default or strategy.budget is not None
        self._mark = object()
        self._was_denied = False

    def mark_timeout(self, error: Exception) -> None:
        """This error is a timeout of the operator's own. The function may raise those of an operator inside."""
        set_on(error, _timed_out_by=self._mark)

    def is_timeout(self, error: BaseException) -> bool:
        """Whether `mark_timeout` has marked this error, or the one that it is a copy of."""
        return attribute_of(error, "_timed_out_by") is self._mark

    def after_error(
        self, entry: Entry, error: Exception, reading: Reading, draw: float, *, splits: int = 0
    ) -> float | None:
        """The seconds until the next attempt. None: the exception counts.

        Args:
            entry: The record.
            error: The exception of its attempt.
            reading: The reading of this exception, or of the one that it is a copy of.
            draw: The random number for the jitter, from 0.0 to 1.0.
            splits: The attempts that are no retries, because a call was split.

        Raises:
            Exception: The predicate, the backoff or `retry_after` of the strategy raised, or returned no seconds.
        """
        self._was_denied = False
        self._deposit(entry)
        attempt = entry.attempts - splits
        if attempt > self._max_retries or self._is_final(error):
            return None
        is_retried = self.is_timeout(error) or (
            reading.is_transient if self._retries_transient else self._retries_exception(error)
        )
        if not is_retried or not self._may_retry(error):
            return None
        if not self._waits_as_read:
            return self._seconds(attempt, draw, error)
        backoff = check_seconds("the backoff", self._backoff(attempt, draw), of=self._strategy)
        wait = max(backoff, reading.seconds or 0.0)
        return wait if wait < math.inf else None

    def after_result(self, entry: Entry, result: Any, *, splits: int = 0) -> float | None:
        """The seconds until the next attempt. None: the result counts. See `after_error`."""
        self._deposit(entry)
        attempt = entry.attempts - splits
        if attempt > self._max_retries or not self._retries_result(result):
            return None
        return self._seconds(attempt, self.draw()) if self._may_retry(None) else None

    def may_split(self, error: Exception) -> bool:
        """Whether the budget allows another call, in a part of its group, for the record of the last `after_error`."""
        return not self._was_denied and self._may_retry(error)

    def _seconds(self, *arguments: Any) -> float | None:
        """The wait before the next attempt. None: it is infinite, so there is no next attempt."""
        wait = check_seconds("the wait", self._wait(*arguments), of=self._strategy)
        return wait if wait < math.inf else None

    def _deposit(self, entry: Entry) -> None:
        if entry.attempts == 1:
            self.account.deposit()

    def _may_retry(self, error: Exception | None) -> bool:
        if self.account.balance >= 1:
            return True
        self._was_denied = True
        self._on_denied(error)
        return False
