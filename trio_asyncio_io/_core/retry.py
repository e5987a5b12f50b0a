"""Retry strategies: whether to call again, and how long to wait before.

A strategy is frozen, picklable and has no state: one object serves every element of every operator. Attempts
count from 1, and `max_retries` counts the calls after the first (FLIP-232's `maxAttempts` makes one call more
than it says; `max_retries=3` makes at most four calls).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias

from .checks import check_int, check_number, check_seconds
from .probe import leaves_of
from .retry_after import retry_after
from .retry_budget import RetryBudget

__all__ = ["DelayList", "ExponentialBackoff", "FixedDelay", "RetryStrategy"]

RetryOn: TypeAlias = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool]


def _check_retry_on(retry_on: object) -> None:
    types = retry_on if isinstance(retry_on, tuple) else (retry_on,)
    for each in types:
        if isinstance(each, type):
            if not issubclass(each, Exception):
                raise TypeError(
                    f"retry_on takes exceptions below Exception, got {each.__name__}: cancellation is final"
                )
        elif isinstance(retry_on, tuple) or not callable(each):
            raise TypeError(f"retry_on must be an exception type, a tuple of them or a predicate, got {retry_on!r}")


@dataclass(frozen=True)
class RetryStrategy(ABC):
    """What every strategy has; subclass it and write `backoff` to make one of your own.

    Args:
        max_retries: Most calls after the first, at least 0.
        retry_on: An exception type, a tuple of them, or a predicate: exception -> bool. `transient` is the predicate
            for services: with `Exception`, the default, a status 401 or 404 and a bug in the function are retried, too.
            Types match an exception group, as a nursery in the function raises it, if they match each exception in it.
            A predicate gets the group itself. What a predicate raises is the element's failure.
        retry_on_result: A predicate, result -> bool: True calls again. None looks at no result. When the
            retries are used up, the last result stands.
        attempt_timeout: Seconds for each attempt, above 0. One that takes longer is cancelled, and when it has unwound
            counts as having raised an `AttemptTimeoutError`, which is worth another call whatever `retry_on` says. (One
            that the function raises, from an operator inside it, is retried only if `retry_on` matches it.)
            `math.inf`, the default: only the element's own deadline ends an attempt.
        retry_after: exception -> the seconds that its sender asks the caller to wait, or None. The next attempt begins
            not before that, nor before the backoff; the element's deadline goes on. None asks no exception.
        budget: A limit on the retries of an operator's elements together, or None.

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
        if self.retry_on_result is not None and not callable(self.retry_on_result):
            raise TypeError(f"retry_on_result must be a predicate or None, got {self.retry_on_result!r}")
        check_seconds("attempt_timeout", self.attempt_timeout, positive=True)
        if self.retry_after is not None and not callable(self.retry_after):
            raise TypeError(f"retry_after must be a callable or None, got {self.retry_after!r}")
        if self.budget is not None and not isinstance(self.budget, RetryBudget):
            raise TypeError(f"budget must be a RetryBudget or None, got {self.budget!r}")

    @abstractmethod
    def backoff(self, attempt: int, random: float) -> float:
        """Seconds to wait after attempt number `attempt`.

        Args:
            attempt: The attempt that has just ended, counted from 1.
            random: A number drawn evenly from [0, 1).
        """

    def wait(self, attempt: int, random: float, exception: Exception | None = None) -> float:
        """Seconds to wait after an attempt: the backoff or, if it is longer, what the exception's sender asks for."""
        backoff = self.backoff(attempt, random)
        if exception is None or self.retry_after is None:
            return backoff
        return max(backoff, self.retry_after(exception) or 0.0)

    def retries_exception(self, exception: Exception) -> bool:
        """Whether this exception is worth another call."""
        types = self.retry_on
        if not isinstance(types, type | tuple):
            return bool(types(exception))
        return isinstance(exception, types) or all(isinstance(leaf, types) for leaf in leaves_of(exception))

    def retries_result(self, result: Any) -> bool:
        """Whether this result is worth another call."""
        return self.retry_on_result is not None and bool(self.retry_on_result(result))


@dataclass(frozen=True)
class FixedDelay(RetryStrategy):
    """The same wait before every retry (FLIP-232's `FixedDelayRetryStrategy`).

    Args:
        max_retries: Most calls after the first, at least 0.
        delay: Seconds before each retry, at least 0.
        retry_on, retry_on_result, attempt_timeout, retry_after, budget: As in `RetryStrategy`.

    Example:
        >>> FixedDelay(3, 0.5, retry_on=ConnectionError).backoff(2, random=0.9)
        0.5
    """

    delay: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seconds("delay", self.delay, finite=True)

    def backoff(self, attempt: int, random: float) -> float:  # noqa: ARG002 - this strategy is constant
        """`delay`, whatever the attempt."""
        return self.delay


@dataclass(frozen=True)
class ExponentialBackoff(RetryStrategy):
    """Waits that grow by a factor up to a maximum, spread at random below that.

    The wait after attempt n is `min(maximum, initial * multiplier ** (n - 1)) * (1 - jitter * random)`, with a
    random number evenly drawn from [0, 1): `jitter=1.0` is the "full jitter" of the AWS architecture blog,
    which keeps retries of many elements from arriving together; `jitter=0.0` is the bare exponential.

    Args:
        max_retries: Most calls after the first, at least 0.
        initial: Seconds before the first retry, at least 0.
        maximum: Most seconds before any retry, at least `initial`.
        multiplier: Growth from one wait to the next, at least 1.
        jitter: The share of the wait that is random, from 0.0 to 1.0.
        retry_on, retry_on_result, attempt_timeout, retry_after, budget: As in `RetryStrategy`.

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
        check_number(
            "jitter",
            float(self.jitter) if isinstance(self.jitter, bool) else self.jitter,
            "a share from 0.0 to 1.0",
            lambda share: 0 <= share <= 1,
        )
        if self.maximum < self.initial:
            raise ValueError(f"maximum must be at least initial ({self.initial}), got {self.maximum}")

    def backoff(self, attempt: int, random: float) -> float:
        """The wait after attempt number `attempt`, in seconds."""
        try:
            ceiling = min(self.maximum, self.initial * self.multiplier ** (attempt - 1))
        except OverflowError:
            ceiling = self.maximum if self.initial else 0.0
        return ceiling * (1 - self.jitter * random)


@dataclass(frozen=True)
class DelayList(RetryStrategy):
    """Waits that stand in a list; there are as many retries as waits.

    Args:
        delays: Seconds before the first retry, the second one and so on; each finite and not negative.
        retry_on, retry_on_result, attempt_timeout, retry_after, budget: As in `RetryStrategy`.

    Example:
        >>> strategy = DelayList([0.1, 1.0, 10.0])
        >>> strategy.max_retries, strategy.backoff(2, random=0.5)
        (3, 1.0)
    """

    max_retries: int = field(init=False)
    delays: Sequence[float]

    def __post_init__(self) -> None:
        if isinstance(self.delays, str | bytes) or not isinstance(self.delays, Sequence):
            raise TypeError(f"delays must be a list of seconds, got {self.delays!r}")
        for position, delay in enumerate(self.delays):
            check_seconds(f"delays[{position}]", delay, finite=True)
        object.__setattr__(self, "delays", tuple(self.delays))
        object.__setattr__(self, "max_retries", len(self.delays))
        super().__post_init__()

    def backoff(self, attempt: int, random: float) -> float:  # noqa: ARG002 - the list says it all
        """The wait that stands at this place."""
        return self.delays[attempt - 1]
