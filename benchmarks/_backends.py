"""Trio and asyncio as event loops of the contenders."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from trio.testing import MockClock

from . import _timer

Async = Callable[..., Awaitable[Any]]


class OnTrio:
    """Trio."""

    sleep = staticmethod(_timer.sleep)

    def run(self, function: Async, *arguments: Any, is_virtual: bool = False) -> None:
        """Run to the end; with `is_virtual`, on a clock that jumps whenever every task is waiting."""
        trio.run(function, *arguments, clock=MockClock(autojump_threshold=0) if is_virtual else None)

    async def checkpoint(self, _: int) -> None:
        """Execute one checkpoint, and nothing else."""
        await trio.lowlevel.checkpoint()

    def time(self) -> float:
        """The current time of the clock, in seconds."""
        return trio.current_time()

    async def limited(self, function: Async, *arguments: Any) -> None:
        """Run until the function ends or its time is over. Its last argument is a callable that sets that time."""
        with trio.CancelScope() as scope:

            def stop_at(when: float) -> None:
                scope.deadline = when

            await function(*arguments, stop_at)


class OnAsyncio:
    """asyncio, with the methods of `OnTrio`."""

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


Backend = OnTrio | OnAsyncio
TRIO, ASYNCIO = OnTrio(), OnAsyncio()
