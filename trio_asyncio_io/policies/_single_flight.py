"""Single flight: concurrent calls with one key share one request."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar

import trio

from ._policy import Policy, Wrapped, soon
from ._shared import SharedCall

__all__ = ["single_flight"]

R = TypeVar("R")


class single_flight(Policy[R]):  # noqa: N801 - used like a function
    """A function whose concurrent calls with one key share one call, its result or its exception.

    The first caller makes the call, and those that come while it runs wait for its outcome with it. Nothing is
    kept afterwards: put `cached` around it for that (Go's `singleflight`).

    Args:
        function: An async callable or an `AsyncFunction`.
        key: The arguments -> hashable. None: the arguments themselves. Keys of different type differ, as 1, 1.0 and
            True do.

    Attributes:
        calls: Calls made.
        shared: Calls saved, because another one was under way.

    Raises:
        Exception: What the call raised. Where several share it, each gets a copy, if it can be copied.

    Cancellation: a caller just leaves, whether it made the call or not. The last one to leave cancels the call,
    and waits until it has unwound.

    Example:
        async with unordered_wait(codes, single_flight(fetch), timeout=5.0) as results:
            ...
    """

    def __init__(self, function: Wrapped[R], *, key: Callable[..., Hashable] | None = None) -> None:
        super().__init__(function, key=key)
        self.calls = 0
        self.shared = 0
        self._flights: dict[Hashable, SharedCall[R]] = {}

    async def invoke(self, *arguments: Any) -> R:
        """The outcome of the call that is under way for this key, or of a new one."""
        key = self.key_of(arguments)
        flight = self._flights.get(key)
        if flight is not None and not flight.is_abandoned:
            self.shared += 1
        else:
            await trio.lowlevel.checkpoint_if_cancelled()  # or the call would begin before it is cancelled
            flight = self._take_off(key, arguments)
        try:
            return await flight.wait()
        finally:
            # Not as soon as it has landed: whoever comes before those that wait were told, must not make it anew.
            if flight.has_ended and self._flights.get(key) is flight:
                del self._flights[key]

    def _take_off(self, key: Hashable, arguments: tuple[Any, ...]) -> SharedCall[R]:
        flight = SharedCall[R](partial(self._call, *arguments))
        flight.start("trio_asyncio_io single flight")
        self._flights[key] = flight
        self.calls += 1
        return flight

    def _pass_flush_on(self) -> None:
        # A flight that has just taken off comes to the inner function a turn later
        soon(super()._pass_flush_on)
