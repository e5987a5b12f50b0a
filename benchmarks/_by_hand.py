"""Calls from Spark by hand, with asyncio or with threads: with a barrier per batch, or with a sliding window."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import BoundedSemaphore, Thread

import pandas as pd

__all__ = [
    "CAPACITY",
    "TIMEOUT",
    "Latency",
    "blocking_call",
    "gathered",
    "pooled",
    "sliding_loop",
    "sliding_threads",
]

CAPACITY = 100
TIMEOUT = 5.0

Latency = Callable[[int], float]
Frames = Iterator[pd.DataFrame]


def blocking_call(seconds_of: Latency, number: int) -> int:
    """A call that blocks its thread, without a timeout."""
    time.sleep(seconds_of(number))
    return number


async def _call(seconds_of: Latency, number: int) -> int:
    async with asyncio.timeout(TIMEOUT):
        await asyncio.sleep(seconds_of(number))
        return number


def gathered(seconds_of: Latency, frames: Frames) -> Frames:
    """The usual code by hand: one `asyncio.gather` for each Arrow batch."""
    for frame in frames:
        yield frame.assign(answer=asyncio.run(_gather(seconds_of, frame["id"])))


async def _gather(seconds_of: Latency, numbers: Iterable[int]) -> list[int]:
    slots = asyncio.Semaphore(CAPACITY)

    async def one(number: int) -> int:
        async with slots:
            return await _call(seconds_of, number)

    return await asyncio.gather(*map(one, numbers))


def pooled(seconds_of: Latency, frames: Frames) -> Frames:
    """The other usual code by hand: a thread pool, one frame at a time."""
    with ThreadPoolExecutor(CAPACITY) as pool:
        for frame in frames:
            yield frame.assign(answer=list(pool.map(partial(blocking_call, seconds_of), frame["id"])))


def sliding_loop(seconds_of: Latency, frames: Frames) -> Frames:
    """Careful code by hand: an event loop in a thread, and a window of calls that slides over the frames."""
    loop, slots = asyncio.new_event_loop(), asyncio.Semaphore(CAPACITY)

    async def one(number: int) -> int:
        try:
            return await _call(seconds_of, number)
        finally:
            slots.release()

    async def start(numbers: Iterable[int]) -> list[asyncio.Task[int]]:
        tasks = []
        for number in numbers:
            await slots.acquire()
            tasks.append(asyncio.create_task(one(number)))
        return tasks

    async def results_of(tasks: list[asyncio.Task[int]]) -> list[int]:
        return await asyncio.gather(*tasks)

    def begin(numbers: Iterable[int]) -> Future[list[int]]:
        tasks = asyncio.run_coroutine_threadsafe(start(numbers), loop).result()
        return asyncio.run_coroutine_threadsafe(results_of(tasks), loop)

    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield from _in_order(frames, begin)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def sliding_threads(seconds_of: Latency, frames: Frames) -> Frames:
    """The same with a thread pool."""
    slots = BoundedSemaphore(CAPACITY)

    def one(number: int) -> int:
        try:
            return blocking_call(seconds_of, number)
        finally:
            slots.release()

    def begin(numbers: Iterable[int]) -> Future[list[int]]:
        calls = []
        for number in numbers:
            slots.acquire()
            calls.append(pool.submit(one, number))
        return waiter.submit(lambda: [call.result() for call in calls])

    with ThreadPoolExecutor(CAPACITY) as pool, ThreadPoolExecutor(1) as waiter:
        yield from _in_order(frames, begin)


def _in_order(frames: Frames, begin: Callable[[Iterable[int]], Future[list[int]]]) -> Frames:
    """The frames in their order, each when its calls have ended; the calls of later frames run meanwhile."""
    begun: deque[tuple[pd.DataFrame, Future[list[int]]]] = deque()
    for frame in frames:
        begun.append((frame, begin(frame["id"].tolist())))
        while begun and begun[0][1].done():
            yield _finished(*begun.popleft())
    while begun:
        yield _finished(*begun.popleft())


def _finished(frame: pd.DataFrame, results: Future[list[int]]) -> pd.DataFrame:
    return frame.assign(answer=results.result())
