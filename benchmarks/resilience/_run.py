"""Runs tasks with endless records against a simulated service, on a virtual clock."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import trio
from trio.testing import MockClock

from trio_asyncio_io import ExponentialBackoff, unordered_wait
from trio_asyncio_io.gates import Gate

from ._services import StatusError

__all__ = ["simulate"]

# Retries never end, so that each record is answered and only the pace of the calls differs
RETRY = ExponentialBackoff(100_000, 0.1, 10.0, retry_on=StatusError)


def simulate(
    seconds: float,
    service: Callable[[Any], Awaitable[Any]],
    gates: list[Gate | None],
    *,
    capacity: int = 100,
    control: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Run one task per gate, for this many virtual seconds.

    Args:
        seconds: The length of the run.
        service: Answers all calls.
        gates: One for each task; None: no gate.
        capacity: That of each task.
        control: Runs beside the tasks, for example to change the service.
    """
    random.seed(1)
    trio.run(_run, seconds, service, gates, capacity, control, clock=MockClock(autojump_threshold=0))


async def _run(seconds: float, service: Any, gates: list[Gate | None], capacity: int, control: Any) -> None:
    with trio.move_on_after(seconds):
        async with trio.open_nursery() as nursery:
            if control is not None:
                nursery.start_soon(control)
            for gate in gates:
                nursery.start_soon(_run_task, service, gate, capacity)


async def _run_task(service: Any, gate: Gate | None, capacity: int) -> None:
    async with unordered_wait(count(), service, capacity=capacity, timeout=1e6, retry=RETRY, gate=gate) as results:
        async for _ in results:
            pass
