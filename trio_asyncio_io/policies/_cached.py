"""The cache: results of earlier calls, kept for a while."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import trio

from ._policy import Policy

__all__ = ["cached"]


class cached(Policy):  # noqa: N801 - used like a function
    """A function that remembers its results: the `size` that were used last, each for `ttl` seconds.

    A result of None is a result, and is remembered. An exception never is. Concurrent first calls with one
    key are all made: put `single_flight` inside to share them.

    Args:
        function: An async callable or an `AsyncFunction`.
        size: Most results kept, at least 1; the one unused for longest goes first.
        ttl: Seconds for which a result is good, above 0, on Trio's clock; `math.inf`: as long as it is kept.
        key: The arguments -> hashable. None: the arguments themselves.

    Attributes:
        hits: Calls answered from the cache.
        misses: Calls made.

    Raises:
        ValueError: `size` or `ttl` is out of its range.

    Example:
        lookup = cached(single_flight(fetch), size=10_000, ttl=300.0)
    """

    def __init__(
        self, function: Any, *, size: int = 10_000, ttl: float = math.inf, key: Callable[..., Hashable] | None = None
    ) -> None:
        super().__init__(function, key=key)
        if size < 1:
            raise ValueError(f"size must be at least 1, got {size}")
        if not ttl > 0:
            raise ValueError(f"ttl must be seconds above 0, got {ttl}")
        self.hits = 0
        self.misses = 0
        self._size = size
        self._ttl = ttl
        self._kept: OrderedDict[Hashable, tuple[Any, float]] = OrderedDict()

    def __reduce__(self) -> Any:
        return _make, (self.function, self._size, self._ttl, self._key)

    async def invoke(self, *arguments: Any) -> Any:
        """The result kept for this key, or that of a new call."""
        key = self.key_of(arguments)
        kept = self._kept.get(key)
        if kept is not None and trio.current_time() < kept[1]:
            self.hits += 1
            self._kept.move_to_end(key)
            return kept[0]
        self.misses += 1
        result = await self._inner.invoke(*arguments)
        self._keep(key, result)
        return result

    def _keep(self, key: Hashable, result: Any) -> None:
        self._kept[key] = (result, trio.current_time() + self._ttl)
        self._kept.move_to_end(key)
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)


def _make(function: Any, size: int, ttl: float, key: Callable[..., Hashable] | None) -> cached:
    return cached(function, size=size, ttl=ttl, key=key)
