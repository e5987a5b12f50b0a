"""asyncio by hand: `gather` over all elements, a semaphore and a timeout for each."""

from __future__ import annotations

import asyncio
from typing import Any

from .._contenders import Call, Received

__all__ = ["gather"]


async def gather(call: Call, elements: int, capacity: int, seconds: float, _: Received) -> None:
    """All calls; the results arrive together at the end."""
    slots = asyncio.Semaphore(capacity)

    async def one(number: int) -> Any:
        async with slots, asyncio.timeout(seconds):
            return await call(number)

    await asyncio.gather(*(one(number) for number in range(elements)))
