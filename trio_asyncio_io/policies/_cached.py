"""The cache: results of earlier calls, kept for a while."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import trio

from .._core.checks import check_exception_types, check_int
from ._fresh import fresh
from ._lifetime import Lifetime, is_none
from ._policy import Policy, Wrapped
from ._provenance import from_cache
from ._run import RunChange

__all__ = ["cached"]

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Kept(Generic[R]):
    """An answer, good until an instant: a result, or an exception."""

    result: R | None
    error: Exception | None
    until: float

    def answer(self) -> R:
        """Return the result, or raise the exception."""
        if self.error is not None:
            raise fresh(self.error).with_traceback(None)
        return self.result  # type: ignore[return-value] # without an exception there is a result, which may be None


class cached(Policy[R]):  # noqa: N801 - used like a function
    """A function that remembers its results: the `size` that were used last, each for `ttl` seconds.

    A result of None is a result, and is remembered. An exception is not, unless its type is among `errors`.
    Concurrent first calls with one key are all made: put `single_flight` inside to share them.

    Args:
        function: An async callable or an `AsyncFunction`.
        size: Most answers kept, at least 1; the one unused for longest goes first.
        ttl: Seconds for which a result is good, above 0, on Trio's clock; `math.inf`: as long as it is kept. Answers
            that expire do not outlive their Trio run, because the next one has another clock.
        key: The arguments -> hashable. None: the arguments themselves. Keys of different type differ, as 1, 1.0 and
            True do.
        negative_ttl: Seconds for which a negative answer is good, at least 0; 0: negative answers are not
            kept. None: as long as any other.
        is_negative: result -> whether it is negative. Unless given: whether it is None.
        errors: An exception type, or a tuple of them, that is an answer: it is remembered as a negative one,
            and raised again, without its traceback and its cause.

    Attributes:
        hits: Calls answered from the cache.
        misses: Calls made.

    Raises:
        TypeError, ValueError: An argument is out of its range; the message names it and its value.

    Cancellation: nothing is kept of a call that is cancelled.

    Example:
        lookup = cached(single_flight(fetch), size=10_000, ttl=300.0, negative_ttl=10.0, errors=LookupError)
    """

    def __init__(
        self,
        function: Wrapped[R],
        *,
        size: int = 10_000,
        ttl: float = math.inf,
        key: Callable[..., Hashable] | None = None,
        negative_ttl: float | None = None,
        is_negative: Callable[[R], bool] = is_none,
        errors: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> None:
        options = {"size": size, "ttl": ttl, "negative_ttl": negative_ttl, "is_negative": is_negative, "errors": errors}
        super().__init__(function, key=key, **options)
        self._size = check_int("size", size, at_least=1)
        self._lifetime = Lifetime(ttl, negative_ttl, is_negative)
        self._errors = check_exception_types("errors", errors)
        self.hits = 0
        self.misses = 0
        self._kept: OrderedDict[Hashable, _Kept[R]] = OrderedDict()
        self._run_change = RunChange()

    async def invoke(self, *arguments: Any) -> R:
        """The answer kept for this key, or that of a new call."""
        key = self.key_of(arguments)
        self._drop_instants_of_another_run()
        kept = self._kept.get(key)
        if kept is not None and trio.current_time() < kept.until:
            self.hits += 1
            from_cache.set(True)
            self._kept.move_to_end(key)
            return kept.answer()
        self.misses += 1
        try:
            result: R = await self._call(*arguments)
        except self._errors as error:
            self._keep(key, None, _bare(error), self._lifetime.of_negative)
            raise
        self._keep(key, result, None, self._lifetime.of(result))
        return result

    def _keep(self, key: Hashable, result: R | None, error: Exception | None, seconds: float) -> None:
        if not seconds:
            return
        self._drop_instants_of_another_run()
        self._kept[key] = _Kept(result, error, trio.current_time() + seconds)
        self._kept.move_to_end(key)
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)

    def _drop_instants_of_another_run(self) -> None:
        if self._run_change.has_happened():
            for key in [key for key, kept in self._kept.items() if kept.until != math.inf]:
                del self._kept[key]


def _bare(error: Exception) -> Exception:
    """The exception without what would keep the frames of its call, and all that lives in them, in memory."""
    kept = fresh(error)
    if kept is not error:
        kept.__traceback__ = kept.__cause__ = kept.__context__ = None
    return kept
