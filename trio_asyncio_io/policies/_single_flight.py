"""Single flight: concurrent calls with one key share one request."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import trio

from ._policy import Policy

__all__ = ["single_flight"]


class _Flight:
    """A call under way. When it has landed it has a result or an error, or neither: its caller was cancelled."""

    __slots__ = ("error", "landed", "result")

    def __init__(self) -> None:
        self.landed = trio.Event()
        self.result: tuple[Any] | None = None
        self.error: Exception | None = None


class single_flight(Policy):  # noqa: N801 - used like a function
    """A function whose concurrent calls with one key share one call, its result or its exception.

    The first caller makes the call; those that come while it runs wait for its outcome. Nothing is kept
    afterwards: put `cached` around it for that (Go's `singleflight`).

    Args:
        function: An async callable or an `AsyncFunction`.
        key: The arguments -> hashable. None: the arguments themselves.

    Attributes:
        calls: Calls made.
        shared: Calls saved, because another one was under way.

    Cancellation: a waiting caller just leaves. If the caller that makes the call is cancelled, so is the
    call, and the first of those that wait makes it anew.

    Example:
        async with unordered_wait(codes, single_flight(fetch), timeout=5.0) as results:
            ...
    """

    def __init__(self, function: Any, *, key: Callable[..., Hashable] | None = None) -> None:
        super().__init__(function, key=key)
        self.calls = 0
        self.shared = 0
        self._flights: dict[Hashable, _Flight] = {}

    def __reduce__(self) -> Any:
        return _make, (self.function, self._key)

    async def invoke(self, *arguments: Any) -> Any:
        """The outcome of the call that is under way for this key, or of a new one."""
        key = self.key_of(arguments)
        while (flight := self._flights.get(key)) is not None:
            await flight.landed.wait()
            if flight.error is not None:
                self.shared += 1
                raise flight.error
            if flight.result is not None:
                self.shared += 1
                return flight.result[0]
        return await self._fly(key, arguments)

    async def _fly(self, key: Hashable, arguments: tuple[Any, ...]) -> Any:
        flight = self._flights[key] = _Flight()
        self.calls += 1
        try:
            result = await self._inner.invoke(*arguments)
            flight.result = (result,)
        except Exception as error:
            flight.error = error
            raise
        finally:
            del self._flights[key]
            flight.landed.set()
        return result


def _make(function: Any, key: Callable[..., Hashable] | None) -> single_flight:
    return single_flight(function, key=key)
