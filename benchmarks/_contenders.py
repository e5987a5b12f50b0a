"""Contenders: this operator, loops on bare Trio, and alternatives that make many calls at once in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import trio

from trio_asyncio_io import AsyncWaitOperator

from ._backends import ASYNCIO, TRIO, Backend

NOT_INSTALLED = "not installed: .ci/just bench installs it"
Call = Callable[[int], Awaitable[Any]]
Received = Callable[[], object]
# The call, the number of elements, the capacity, the timeout in seconds, and a callback for each received result
Loop = Callable[[Call, int, int, float, Received], Awaitable[None]]

# The callback that does nothing. A Python function would add a fortieth to the cost of an element.
NOTHING: Received = bool


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to make the calls.

    Attributes:
        name: Its name in tables.
        loop: Makes all calls, and reports each received result.
        backend: Its event loop.
        package: The package that it needs, or None.
        has_stream: Whether it returns results while it runs. Otherwise a finished call counts as received.
    """

    name: str
    loop: Loop
    backend: Backend = field(default=TRIO, kw_only=True)
    package: str | None = field(default=None, kw_only=True)
    has_stream: bool = field(default=True, kw_only=True)

    @property
    def missing(self) -> str:
        """How to install the package if it is missing, else an empty string."""
        if self.package is None or find_spec(self.package) is not None:
            return ""
        return NOT_INSTALLED


class Gauge:
    """Counts the calls of a contender. For one thread.

    Attributes:
        calls: Calls started.
        running: Calls in flight now.
        peak: The largest number of calls in flight at once.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.running = 0
        self.peak = 0

    def __enter__(self) -> None:
        self.calls += 1
        self.running += 1
        self.peak = max(self.peak, self.running)

    def __exit__(self, *_: object) -> None:
        self.running -= 1


# This operator


async def with_operator(
    call: Call, elements: int, capacity: int, seconds: float, received: Received = NOTHING, **options: Any
) -> None:
    """The complete operator, with a consumer that drops the results, and then the dead letters."""
    source = range(elements)
    async with AsyncWaitOperator(call, source=source, capacity=capacity, timeout=seconds, **options) as operator:
        async for _ in operator.output:
            received()
        async for _ in operator.output.dead_letters:
            received()


def ours(name: str, **options: Any) -> Contender:
    """The operator with these options."""
    return Contender(name, partial(with_operator, **options))


# Loops on bare Trio: a deadline for each call, without order, buffer, snapshot or error handling


async def worker_loop(call: Call, elements: int, capacity: int, seconds: float, _: object = None) -> None:
    """Long-lived workers that each reuse one cancel scope: the lower bound of the cost."""
    numbers = iter(range(elements))

    async def work() -> None:
        with trio.CancelScope() as scope:
            for number in numbers:
                scope.deadline = trio.current_time() + seconds
                await call(number)

    async with trio.open_nursery() as nursery:
        for _ in range(capacity):
            nursery.start_soon(work)


async def task_per_element(call: Call, elements: int, capacity: int, seconds: float, _: object = None) -> None:
    """A task for each element, with a cancel scope of its own."""
    slots = trio.Semaphore(capacity)

    async def one(number: int) -> None:
        try:
            with trio.fail_after(seconds):
                await call(number)
        finally:
            slots.release()

    async with trio.open_nursery() as nursery:
        for number in range(elements):
            try:
                slots.acquire_nowait()
            except trio.WouldBlock:
                await slots.acquire()
            nursery.start_soon(one, number)


FLOOR = Contender("bare worker loop", worker_loop, has_stream=False)


# Peers


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
