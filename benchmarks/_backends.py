"""Trio and asyncio as backends, and for Trio a clock that jumps to the next deadline."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import trio

from . import _timer

__all__ = ["ASYNCIO", "TRIO", "Backend"]

Async = Callable[..., Awaitable[Any]]


class Backend(Protocol):
    """The event loop of a contender."""

    def run(self, function: Async, *arguments: Any, is_virtual: bool = False) -> None:
        """Run to the end; with `is_virtual`, on Trio, on a clock that jumps whenever every task is waiting."""

    async def checkpoint(self, _: int) -> None:
        """A call of exactly one checkpoint."""

    @property
    def sleep(self) -> Async:
        """Sleep for some seconds, as the latency of a service."""

    def time(self) -> float:
        """The current time of the clock, in seconds."""

    async def limited(self, function: Async, *arguments: Any) -> None:
        """Run until the function ends or its time is over. Its last argument is a callable that sets that time."""


class JumpingClock(trio.abc.Clock):
    """Jumps to the next deadline as soon as no task can run; faster than `trio.testing.MockClock`."""

    def __init__(self) -> None:
        self.now = 0.0

    def start_clock(self) -> None:
        """Do nothing."""

    def current_time(self) -> float:
        return self.now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        if deadline == math.inf:
            return math.inf  # wait for an event from outside
        self.now = max(self.now, deadline)
        return 0.0


class _OnTrio:
    sleep = staticmethod(_timer.sleep)

    def run(self, function: Async, *arguments: Any, is_virtual: bool = False) -> None:
        trio.run(function, *arguments, clock=JumpingClock() if is_virtual else None)

    async def checkpoint(self, _: int) -> None:
        await trio.lowlevel.checkpoint()

    def time(self) -> float:
        return trio.current_time()

    async def limited(self, function: Async, *arguments: Any) -> None:
        with trio.CancelScope() as scope:

            def stop_at(when: float) -> None:
                scope.deadline = when

            await function(*arguments, stop_at)


class _OnAsyncio:
    def run(self, function: Async, *arguments: Any, is_virtual: bool = False) -> None:
        assert not is_virtual
        asyncio.run(_awaited(function, *arguments))

    async def checkpoint(self, _: int) -> None:
        await asyncio.sleep(0)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def time(self) -> float:
        return asyncio.get_running_loop().time()

    async def limited(self, function: Async, *arguments: Any) -> None:
        try:
            async with asyncio.timeout(None) as scope:
                await function(*arguments, scope.reschedule)
        except TimeoutError:
            pass


async def _awaited(function: Async, *arguments: Any) -> None:
    asyncio.get_running_loop().set_exception_handler(_ignore)
    await function(*arguments)


def _ignore(_: asyncio.AbstractEventLoop, __: dict[str, Any]) -> None:
    """Ignore errors of tasks that a stopped peer has left behind."""


TRIO: Backend = _OnTrio()
ASYNCIO: Backend = _OnAsyncio()
