"""Loops on bare Trio: many calls with a deadline each, without order, buffer, snapshot or error handling."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio

Call = Callable[[int], Awaitable[Any]]


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
