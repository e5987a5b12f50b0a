"""The policy `single_flight`: concurrent calls with one key share one request."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar

import trio

from ._policy import Policy, Wrapped
from ._shared_call import SharedCall

__all__ = ["single_flight"]

R = TypeVar("R")


class single_flight(Policy[R]):  # noqa: N801 - used like a function
    """A function whose concurrent calls with one key share one call, and its result or exception.

    The first caller starts the call, and callers that arrive while it runs share its outcome. Nothing is cached: put
    `cached` around it for that (Go's `singleflight`).

    Args:
        function: An async callable or an `AsyncFunction`.
        key: The arguments -> hashable. None: the arguments themselves. Keys of different types differ, such as 1, 1.0
            and True.

    Attributes:
        calls: Calls made.
        shared: Calls saved, because another one was in flight.

    Raises:
        Exception: The exception of the call. If several callers share it, each gets a copy, unless it cannot be copied.

    Cancellation: a caller leaves at once if others share the call, even the one that started it. The last one cancels
    the call and leaves once it has unwound.

    Example:
        async with unordered_wait(codes, single_flight(fetch), timeout=5.0) as results:
            ...
    """

    def __init__(self, function: Wrapped[R], *, key: Callable[..., Hashable] | None = None) -> None:
        super().__init__(function, key=key)
        self.calls = 0
        self.shared = 0
        self._in_flight: dict[Hashable, SharedCall[R]] = {}

    async def invoke(self, *arguments: Any) -> R:
        """The outcome of the call in flight for this key, or of a new one."""
        key = self.key_of(arguments)
        call = self._in_flight.get(key)
        if call is not None and not call.is_abandoned:
            self.shared += 1
        else:
            await trio.lowlevel.checkpoint_if_cancelled()  # a call must not begin in a scope that is cancelled already
            call = self._start_call(key, arguments)
        try:
            return await call.wait()
        finally:
            # Not as soon as the call has ended: until a waiter has its outcome, a new caller must not repeat the call
            if call.has_ended and self._in_flight.get(key) is call:
                del self._in_flight[key]

    def _start_call(self, key: Hashable, arguments: tuple[Any, ...]) -> SharedCall[R]:
        call = SharedCall[R](partial(self._call, *arguments))
        call.start("trio_asyncio_io single flight")
        self._in_flight[key] = call
        self.calls += 1
        return call
