"""streamable on asyncio: no timeout."""

from __future__ import annotations

from .._contenders import Call, Loop, Received

__all__ = ["streamed"]


def streamed(*, as_completed: bool) -> Loop:
    """Its `map` with a concurrency."""

    async def loop(call: Call, elements: int, capacity: int, _: float, received: Received) -> None:
        import streamable  # noqa: PLC0415 - optional

        results = streamable.stream(range(elements)).map(call, concurrency=capacity, as_completed=as_completed)
        async for _ in results:
            received()

    return loop
