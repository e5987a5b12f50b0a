"""Client-side throttling: a client refuses its own calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from random import random
from typing import Any

import trio

from .._services import StatusError

__all__ = ["ClientThrottling"]

SECONDS = 120.0
K = 2.0


class ClientThrottling:
    """Site Reliability Engineering (Beyer et al., 2016), chapter 21, around a function.

    Of the last two minutes, requests has all calls and accepts those that the service admitted. A call is refused
    locally, with status 429, with the probability max(0, (requests - K * accepts) / (requests + 1)), where K = 2.
    """

    def __init__(self, function: Callable[[Any], Awaitable[Any]]) -> None:
        self._function = function
        self._calls: deque[list[float]] = deque()  # the instant, and 1.0 if it was accepted
        self._accepts = 0.0

    async def __call__(self, value: object) -> object:
        """Call the function, or refuse the call."""
        now = trio.current_time()
        while self._calls and self._calls[0][0] < now - SECONDS:
            self._accepts -= self._calls.popleft()[1]
        requests = len(self._calls)
        call = [now, 0.0]
        self._calls.append(call)
        if random() < (requests - K * self._accepts) / (requests + 1):
            raise StatusError(429)
        result = await self._function(value)
        call[1] = 1.0
        self._accepts += 1.0
        return result
