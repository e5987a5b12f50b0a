"""The peers: what people use today for the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import Any

__all__ = ["aiometer_map", "gather", "has_aiometer"]

Call = Callable[[int], Awaitable[Any]]


async def gather(call: Call, elements: int, capacity: int, seconds: float) -> None:
    """asyncio by hand: `gather` over all elements, a semaphore and a timeout for each."""
    slots = asyncio.Semaphore(capacity)

    async def one(number: int) -> Any:
        async with slots, asyncio.timeout(seconds):
            return await call(number)

    await asyncio.gather(*(one(number) for number in range(elements)))


def has_aiometer() -> bool:
    """Whether aiometer is installed; it is no dependency."""
    return find_spec("aiometer") is not None


async def aiometer_map(call: Call, elements: int, capacity: int, seconds: float) -> None:
    """aiometer on Trio: no timeout and no order."""
    import aiometer  # noqa: PLC0415 - perhaps not there

    async with aiometer.amap(call, list(range(elements)), max_at_once=capacity) as results:
        async for _ in results:
            pass
