"""The policy `cached`: results of earlier calls, in memory, and for how long a result is valid."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from .._operator.calls import FromCache
from .._values.checks import check_callback, check_int, check_seconds
from ._policy import Policy, RunChange, Wrapped, by_position

from_cache = FromCache()
"""Whether a cache has answered the present call: `from_cache.get()` after it."""


def is_none(result: Any) -> bool:
    """Whether the result is None, by which most lookups report a missing value."""
    return result is None


@dataclass(frozen=True, slots=True)
class Validity:
    """For how many seconds results are valid.

    Args:
        ttl, negative_ttl, is_negative: As for `cached`.

    Raises:
        TypeError, ValueError: An argument is out of its range.
    """

    ttl: float
    negative_ttl: float | None
    is_negative: Callable[[Any], bool]

    def __post_init__(self) -> None:
        check_seconds("ttl", self.ttl, positive=True)
        if self.negative_ttl is not None:
            check_seconds("negative_ttl", self.negative_ttl)
        check_callback("is_negative", self.is_negative)

    @disable_ki_protection
    def seconds_for(self, result: Any) -> float:
        """Seconds for which this result is valid. 0.0: it is not cached."""
        if self.negative_ttl is None or not self.is_negative(result):
            return self.ttl
        return self.negative_ttl


P = ParamSpec("P")
R = TypeVar("R")


class cached(Policy[P, R]):  # noqa: N801 - used like a function
    """A function that caches its last `size` results, each for `ttl` seconds.

    None is a result like any other. Exceptions are not cached. Concurrent first calls with one key are all made: put
    `single_flight` inside to share them.

    Args:
        function: An async callable or an `AsyncFunction`.
        size: Upper limit of cached results, at least 1. The least recently used one is evicted first.
        ttl: Seconds for which a result is valid, above 0, on Trio's clock; `math.inf`: until it is evicted. Results
            that expire are dropped at the end of their Trio run, because the next run has another clock.
        key: The arguments -> hashable. None: the arguments themselves. Keys of different types differ, such as 1, 1.0
            and True.
        negative_ttl: Seconds for which a negative result is valid, at least 0; 0: it is not cached. None: the same as
            `ttl`.
        is_negative: result -> whether it is negative. By default, None is the only negative result.

    Attributes:
        hits: Calls answered from the cache.
        misses: Calls made.

    Raises:
        TypeError, ValueError: An argument is out of its range. The message names it and its value.

    Cancellation: the result of a cancelled call is not cached.

    Example:
        lookup = cached(single_flight(fetch), ttl=300.0, negative_ttl=10.0)
    """

    def __init__(
        self,
        function: Wrapped[P, R],
        *,
        size: int = 10_000,
        ttl: float = math.inf,
        key: Callable[..., Hashable] | None = None,
        negative_ttl: float | None = None,
        is_negative: Callable[[R], bool] = is_none,
    ) -> None:
        options = {"size": size, "ttl": ttl, "negative_ttl": negative_ttl, "is_negative": is_negative}
        super().__init__(function, key=key, **options)
        self._size = check_int("size", size, at_least=1)
        self._validity = Validity(ttl, negative_ttl, is_negative)
        self.hits = 0
        self.misses = 0
        self._entries: OrderedDict[Hashable, tuple[R, float]] = OrderedDict()  # the result, and when it expires
        self._run_change = RunChange()
        self._may_expire = min(ttl, math.inf if negative_ttl is None else negative_ttl) < math.inf

    @enable_ki_protection
    async def invoke(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """The cached result of this key, or the result of a new call."""
        values = by_position(self, arguments, keywords) if keywords else arguments
        key = self.key_of(values)
        if self._may_expire and self._run_change.has_happened():
            self._drop_results_that_expire()
        entry = self._entries.get(key)
        if entry is not None and (entry[1] == math.inf or trio.current_time() < entry[1]):
            self.hits += 1
            from_cache.set(True)
            self._entries.move_to_end(key)
            return entry[0]
        self.misses += 1
        result: R = await self._call(*values)
        if seconds := self._validity.seconds_for(result):
            self._entries[key] = result, trio.current_time() + seconds
            self._entries.move_to_end(key)
            if len(self._entries) > self._size:
                self._entries.popitem(last=False)
        return result

    def _drop_results_that_expire(self) -> None:
        """Their instants are on the clock of another Trio run."""
        for key in [key for key, (_, expires) in self._entries.items() if expires < math.inf]:
            del self._entries[key]
