"""Alternatives that run in this process."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from ._backends import ASYNCIO
from ._contenders import Call, Contender, Received


async def _gather(call: Call, elements: int, capacity: int, seconds: float, _: Received) -> None:
    """A semaphore, and a timeout for each; the results arrive together at the end."""
    slots = asyncio.Semaphore(capacity)

    async def one(number: int) -> Any:
        async with slots, asyncio.timeout(seconds):
            return await call(number)

    await asyncio.gather(*(one(number) for number in range(elements)))


async def _aiometer(call: Call, elements: int, capacity: int, _: float, received: Received) -> None:
    import aiometer  # noqa: PLC0415 - optional

    async with aiometer.amap(call, range(elements), max_at_once=capacity) as results:
        async for _ in results:
            received()


async def _aiostream(
    call: Call, elements: int, capacity: int, _: float, received: Received, *, ordered: bool = True
) -> None:
    from aiostream import stream  # noqa: PLC0415 - optional

    results = stream.map(stream.iterate(range(elements)), call, ordered=ordered, task_limit=capacity)
    async with results.stream() as streamer:
        async for _ in streamer:
            received()


async def _streamable(
    call: Call, elements: int, capacity: int, _: float, received: Received, *, as_completed: bool = False
) -> None:
    import streamable  # noqa: PLC0415 - optional

    results = streamable.stream(range(elements)).map(call, concurrency=capacity, as_completed=as_completed)
    async for _ in results:
        received()


_unordered = partial(_aiostream, ordered=False)
_as_completed = partial(_streamable, as_completed=True)

PEERS = (
    Contender("asyncio by hand", _gather, backend=ASYNCIO, has_stream=False),
    Contender("aiometer (no timeout, no order)", _aiometer, package="aiometer"),
    Contender("aiostream (no timeout)", _aiostream, backend=ASYNCIO, package="aiostream"),
    Contender("aiostream, unordered (no timeout)", _unordered, backend=ASYNCIO, package="aiostream"),
    Contender("streamable (no timeout)", _streamable, backend=ASYNCIO, package="streamable"),
    Contender("streamable, as completed (no timeout)", _as_completed, backend=ASYNCIO, package="streamable"),
)
