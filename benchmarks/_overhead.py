"""The overhead: what the operator costs for each element, beside a bare worker loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import trio

from trio_asyncio_io import AsyncWaitOperator

from ._gauge import Gauge
from ._loops import task_per_element, worker_loop
from ._peers import aiometer_map, gather, has_aiometer
from ._report import Line, Section
from ._rounds import Rounds, measure

__all__ = ["overhead"]

CAPACITY = 100
TIMEOUT = 5.0

Call = Callable[[int], Awaitable[Any]]
Loop = Callable[[Call, int, int, float], Awaitable[None]]
Run = Callable[..., object]
Contenders = dict[str, tuple[Run, Loop, Call]]


async def with_operator(call: Call, elements: int, capacity: int, seconds: float, **options: Any) -> None:
    """All of the operator's promises, for a consumer that drops what it receives."""
    source = range(elements)
    async with AsyncWaitOperator(call, source=source, capacity=capacity, timeout=seconds, **options) as operator:
        async for _ in operator.output:
            pass


async def turn(_: int) -> None:
    """A call of one checkpoint: one turn of the scheduler."""
    await trio.lowlevel.checkpoint()


async def asyncio_turn(_: int) -> None:
    """The same on asyncio."""
    await asyncio.sleep(0)


async def no_turn(_: int) -> None:
    """A call that does not suspend."""


def overhead(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """CPU time per element, alternating in one process; ratios to the bare loop of the same round."""
    elements, rounds = (4_000, 5) if quick else (20_000, 21)
    with_turn = _section("one turn of the scheduler per call", _with_turn(), elements, rounds, on_step)
    without = _section("calls that do not suspend", _without_turn(), elements, rounds, on_step)
    return [with_turn, without]


def _with_turn() -> Contenders:
    contenders: Contenders = {
        "bare worker loop": (trio.run, worker_loop, turn),
        "ordered": (trio.run, partial(with_operator, mode="ordered"), turn),
        "unordered": (trio.run, partial(with_operator, mode="unordered"), turn),
        "keyed, a key for each": (trio.run, _keyed(lambda number: number), turn),
        "keyed, 100 keys": (trio.run, _keyed(lambda number: number % 100), turn),
        "task and scope for each": (trio.run, task_per_element, turn),
        "asyncio by hand": (_asyncio_run, gather, asyncio_turn),
    }
    if has_aiometer():
        contenders["aiometer (no timeout)"] = (trio.run, aiometer_map, turn)
    return contenders


def _without_turn() -> Contenders:
    return {
        "bare worker loop": (trio.run, worker_loop, no_turn),
        "ordered": (trio.run, partial(with_operator, mode="ordered"), no_turn),
        "unordered": (trio.run, partial(with_operator, mode="unordered"), no_turn),
    }


def _keyed(key: Callable[[int], int]) -> Loop:
    return partial(with_operator, mode="keyed", key=key)


def _section(what: str, contenders: Contenders, elements: int, rounds: int, on_step: Callable[[], object]) -> Section:
    costs = {name: partial(_cost, *each, elements) for name, each in contenders.items()}
    measured = measure(costs, rounds, on_step)
    section = Section(
        f"Overhead: {what}",
        f"capacity {CAPACITY}, a deadline each; CPU time, median of {rounds} alternating rounds of {elements:,} "
        "elements. Ratio to the first line in the same round, and its quartiles",
        {"μs/element": "{:.1f}", "ratio": "{:.2f}", "from": "{:.2f}", "to": "{:.2f}"},
    )
    section.lines.extend(_line(name, measured, _peak(*each)) for name, each in contenders.items())
    return section


def _asyncio_run(loop: Callable[..., Any], *arguments: Any) -> None:
    asyncio.run(loop(*arguments))


def _cost(run: Run, loop: Loop, call: Call, elements: int) -> float:
    """Microseconds of CPU time per element. Other processes count little in it, and our one thread fully."""
    began = time.process_time()
    run(loop, call, elements, CAPACITY, TIMEOUT)
    return (time.process_time() - began) / elements * 1e6


def _peak(run: Run, loop: Loop, call: Call) -> int:
    """Most calls in flight, counted in a run of its own, so that counting costs nothing in the others."""
    gauge = Gauge()

    async def counted(number: int) -> None:
        with gauge:
            await call(number)

    run(loop, counted, 10 * CAPACITY, CAPACITY, TIMEOUT)
    return gauge.peak


def _line(name: str, rounds: Rounds, peak: int) -> Line:
    low, high = rounds.spread(name)
    return Line(name, {"μs/element": rounds.median(name), "ratio": rounds.ratio(name), "from": low, "to": high}, peak)
