"""Calls from Spark by hand: with asyncio and a barrier per batch, or with a sliding window."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from threading import Thread
from typing import Any, TypeVar

import pandas as pd

CAPACITY = 100
TIMEOUT = 5.0
AHEAD = 10_000  # rows in the window, beside those of the frame that was read last

T = TypeVar("T")
Latency = Callable[[int], float]
Frames = Iterator[pd.DataFrame]
Call = Callable[[int], Awaitable[int]]
Client = Callable[[], AbstractAsyncContextManager[Call]]


def blocking_call(seconds_of: Latency, number: int) -> int:
    """A call that blocks its thread, without a timeout."""
    time.sleep(seconds_of(number))
    return number


def sleeping(seconds_of: Latency) -> AbstractAsyncContextManager[Call]:
    """Calls that only have a latency."""

    async def call(number: int) -> int:
        async with asyncio.timeout(TIMEOUT):
            await asyncio.sleep(seconds_of(number))
            return number

    return nullcontext(call)


@asynccontextmanager
async def requesting(url: str) -> AsyncIterator[Call]:
    """Requests through one session of aiohttp."""
    import aiohttp  # noqa: PLC0415 - optional

    async def get(number: int) -> int:
        async with session.get(f"{url}/{number}") as response:
            response.raise_for_status()
            return int((await response.json())["answer"])

    connector = aiohttp.TCPConnector(limit=CAPACITY)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=TIMEOUT)) as session:
        yield get


def gathered(client: Client, frames: Frames) -> Frames:
    """The usual code by hand: one `asyncio.gather` for each Arrow batch, with a loop and a client of its own."""
    for frame in frames:
        yield frame.assign(answer=asyncio.run(_gather(client, frame["id"])))


async def _gather(client: Client, numbers: Iterable[int]) -> list[int]:
    async with client() as call:
        return await asyncio.gather(*_limited(call, asyncio.Semaphore(CAPACITY), numbers))


def _limited(call: Call, slots: asyncio.Semaphore, numbers: Iterable[int]) -> Iterator[Coroutine[Any, Any, int]]:
    async def one(number: int) -> int:
        async with slots:
            return await call(number)

    return map(one, numbers)


def sliding_loop(client: Client, frames: Frames) -> Frames:
    """Careful code by hand: a loop in a thread, one client, and a window of calls that slides over the frames."""
    loop, slots, opened = asyncio.new_event_loop(), asyncio.Semaphore(CAPACITY), AsyncExitStack()
    begun: deque[tuple[pd.DataFrame, Future[list[int]]]] = deque()

    def on_loop(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(coroutine, loop)

    async def answers(numbers: Iterable[int]) -> list[int]:
        return await asyncio.gather(*_limited(call, slots, numbers))

    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        call = on_loop(opened.enter_async_context(client())).result()
        for frame in frames:
            begun.append((frame, on_loop(answers(frame["id"].tolist()))))
            while begun and (begun[0][1].done() or sum(len(each) for each, _ in begun) > AHEAD):
                yield _finished(*begun.popleft())
        while begun:
            yield _finished(*begun.popleft())
    finally:
        on_loop(opened.aclose()).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _finished(frame: pd.DataFrame, answers: Future[list[int]]) -> pd.DataFrame:
    return frame.assign(answer=answers.result())
