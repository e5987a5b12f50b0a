"""aiometer on Trio: no timeout, no order."""

from __future__ import annotations

from .._contenders import Call, Received

__all__ = ["amap"]


async def amap(call: Call, elements: int, capacity: int, _: float, received: Received) -> None:
    """All calls, with results in completion order."""
    import aiometer  # noqa: PLC0415 - optional

    async with aiometer.amap(call, range(elements), max_at_once=capacity) as results:
        async for _ in results:
            received()
