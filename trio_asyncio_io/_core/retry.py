"""Retry strategies: when to call again, and after which delay.

A strategy is frozen, stateless and picklable, so all elements of all operators can share one object. Attempts count
from 1. `max_retries` counts the calls after the first: with `max_retries=3` there are at most four calls. (In FLIP-232,
`maxAttempts` does not count the first call either.)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias

from .._keywords import share_descriptions
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
        if self.retry_on_result is not None and not callable(self.retry_on_result):
            raise TypeError(f"retry_on_result must be a predicate or None, got {self.retry_on_result!r}")
        check_seconds("attempt_timeout", self.attempt_timeout, positive=True)
        if self.retry_after is not None and not callable(self.retry_after):
            raise TypeError(f"retry_after must be a callable or None, got {self.retry_after!r}")
        if self.budget is not None and not isinstance(self.budget, RetryBudget):
            raise TypeError(f"budget must be a RetryBudget or None, got {self.budget!r}")

    @abstractmethod
    def backoff(self, attempt: int, random: float) -> float:
        """Seconds to wait after attempt number `attempt`. A pure function of its arguments.

        Args:
            attempt: The attempt that has just ended, counted from 1.
            random: A uniform random number from [0, 1).
        """

    def wait(self, attempt: int, random: float, exception: Exception | None = None) -> float:
        """Seconds to wait after an attempt: the backoff, or the delay that the service requests if that is longer."""
        backoff = self.backoff(attempt, random)
        if exception is None or self.retry_after is None:
            return backoff
        return max(backoff, self.retry_after(exception) or 0.0)

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
@dataclass(frozen=True)
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
@dataclass(frozen=True)
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
        check_number(
            "jitter",
            float(self.jitter) if isinstance(self.jitter, bool) else self.jitter,
            "a share from 0.0 to 1.0",
            lambda share: 0 <= share <= 1,
        )
        if self.maximum < self.initial:
            raise ValueError(f"maximum must be at least initial ({self.initial}), got {self.maximum}")

    def backoff(self, attempt: int, random: float) -> float:
        """The delay after attempt number `attempt`, in seconds."""
        try:
            ceiling = min(self.maximum, self.initial * self.multiplier ** (attempt - 1))
        except OverflowError:
            ceiling = self.maximum if self.initial else 0.0
        return ceiling * (1 - self.jitter * random)


@share_descriptions(RetryStrategy)
@dataclass(frozen=True)
class DelayList(RetryStrategy):
    """A list of delays, one for each retry; `max_retries` is its length.

    Args:
        The same as for `RetryStrategy`, except `max_retries`, and:
        delays: Seconds before the first retry, the second one and so on; each finite and not negative.

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

    def backoff(self, attempt: int, random: float) -> float:  # noqa: ARG002 - the delays are fixed
        """The delay after attempt number `attempt`, in seconds."""
        return self.delays[attempt - 1]
