"""aiometer, on Trio: neither a timeout nor an order."""

from __future__ import annotations

from .._contenders import Call, Received

__all__ = ["amap"]


async def amap(call: Call, elements: int, capacity: int, _: float, received: Received) -> None:
    """All calls, each result as it is there."""
    import aiometer  # noqa: PLC0415 - perhaps not there

    async with aiometer.amap(call, range(elements), max_at_once=capacity) as results:
        async for _ in results:
            received()
