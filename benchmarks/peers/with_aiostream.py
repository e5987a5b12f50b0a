"""aiostream on asyncio: no timeout."""

from __future__ import annotations

from .._contenders import Call, Loop, Received

__all__ = ["mapped"]


def mapped(*, ordered: bool) -> Loop:
    """Its `map` with a task limit."""

    async def loop(call: Call, elements: int, capacity: int, _: float, received: Received) -> None:
        from aiostream import stream  # noqa: PLC0415 - optional

        results = stream.map(stream.iterate(range(elements)), call, ordered=ordered, task_limit=capacity)
        async with results.stream() as streamer:
            async for _ in streamer:
                received()

    return loop
