"""Pictures of what the operator does in Spark, from runs without Spark on a virtual clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from math import inf
from typing import Any

import trio

from pictures.drawing import Panel, Row, panels_of
from pictures.lanes import Lanes, row
from pictures.runs import run, script
from pictures.timelines import moved
from trio_asyncio_io import unordered_wait
from trio_asyncio_io.testing import Recorder
from trio_asyncio_io.trace import TraceRecorder

SLOTS = 4  # as many as a batch has rows
SECONDS = [0.3, 0.2, 1.2, 0.3, 0.4, 0.2, 0.3, 0.3, 0.2, 0.4, 0.3, 0.2]


async def call(number: int) -> int:
    await trio.sleep(SECONDS[number])
    return number


async def batches() -> AsyncIterator[range]:
    """Three Arrow batches of four rows. Spark needs some time for each."""
    for first in (0, 4, 8):
        await trio.sleep(0.1)
        yield range(first, first + 4)


async def gather_per_batch(function: Any) -> None:
    async for batch in batches():
        async with trio.open_nursery() as nursery:
            for number in batch:
                nursery.start_soon(function, number)


async def across_batches(function: Any) -> None:
    rows = (number async for batch in batches() for number in batch)
    async with unordered_wait(rows, function, capacity=SLOTS, timeout=5.0) as results:
        async for _ in results:
            pass


def spark_bridge() -> str:
    """D13: calls across Arrow batches."""
    times, recorded = {}, {}
    for name, way in {
        "gather: each batch waits for its slowest call": gather_per_batch,
        "calls cross the batches": across_batches,
    }.items():
        recorder = Recorder(call)
        run(way, recorder)
        recorded[name] = recorder.calls
        times[name] = max(each.ended or 0.0 for each in recorder.calls)
    lanes = Lanes("Twelve calls in three Arrow batches, four at once", max(times.values()))
    for name, calls in recorded.items():
        lanes.draw_panel(Panel(f"{name}: {times[name]:.1f} s", _slots(calls), []))
    lanes.draw_axis()
    lanes.draw_keys({"run": "the call of a row"})
    return lanes.svg(
        "With gather for each batch, the second batch starts when the slowest call of the first has ended. When calls"
        " cross the batches, each slot takes the next row as soon as it is free.",
        "spark-bridge",
    )


def _slots(calls: list[Any]) -> list[Row]:
    """A row of bars for each slot. A call is in the first slot that is free when it starts."""
    slots: list[list[tuple[str, float, float]]] = [[] for _ in range(SLOTS)]
    for each in sorted(calls, key=lambda each: (each.started, each.value)):
        slot = next(bars for bars in slots if not bars or bars[-1][2] <= each.started)
        slot.append(("run", each.started, each.ended))
    return [row(f"slot {number}", bars) for number, bars in enumerate(slots, start=1)]


def micro_batches() -> str:
    """D14: micro-batches that wait, and micro-batches with a budget."""
    lanes = Lanes("Three micro-batches with two stragglers, b and g", 4.3)
    lanes.draw_panel(_micro_batches("each micro-batch waits for its slowest call", inf))
    lanes.draw_panel(_micro_batches("budget of 1 s: unfinished rows are carried over", 1.0))
    lanes.draw_axis()
    lanes.draw_keys(
        {"run": "call", "cancelled": "cancelled at the budget", "repeated": "called again", "dot": "output"}
    )
    return lanes.svg(
        "When each micro-batch waits for its slowest call, the three take 2.5, 1.5 and 0.3 seconds. With a budget"
        " of one second the first two end after one second: the calls of b and g are cancelled, and made again in"
        " the next micro-batch.",
        "micro-batches",
    )


def _micro_batches(name: str, budget: float) -> Panel:
    """The runs of three micro-batches, one after another, with a row for each record."""
    module = script("learn_micro_batches")
    rows: dict[str, Row] = {each: row(each, []) for each in "abcdefghi"}
    start, state, walls = 0.0, None, []
    for number, batch in enumerate(("abcd", "efg", "hi"), start=1):
        recorder = TraceRecorder(values=True)
        _, state = run(module.micro_batch, batch, state, budget, observer=recorder)
        [panel] = panels_of(recorder.trace())
        for each in panel.rows:
            look = "run" if each.label in batch else "repeated"
            rows[each.label].bars += [moved(bar, start, look) for bar in each.bars]
            if each.emitted is not None:
                rows[each.label].emitted = each.emitted + round(start * 1e6)
        start += max(bar.end for each in panel.rows for bar in each.bars) / 1e6
        walls.append((round(start * 1e6), f"end of {number}"))
    return Panel(name, list(rows.values()), walls)
