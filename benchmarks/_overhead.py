"""The overhead: what the operator costs for each element, beside a bare worker loop and its peers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from trio_asyncio_io import FixedDelay, Observer

from ._contenders import FLOOR, NOTHING, Call, Contender, ours, with_operator
from ._gauge import Gauge
from ._loops import task_per_element
from ._report import Line, Section
from ._rounds import Rounds, in_words, measure
from .peers import PEERS

__all__ = ["CAPACITY", "ORDERED", "TIMEOUT", "UNORDERED", "counted", "cpu_seconds", "overhead", "with_operator"]

CAPACITY = 100
TIMEOUT = 5.0
ORDERED = ours("ordered", mode="ordered")
UNORDERED = ours("unordered", mode="unordered")
FORMATS = {
    "μs/element": "{:.1f}",
    "ratio": "{:.2f}",
    "from": "{:.2f}",
    "to": "{:.2f}",
    "of ordered": "{:.2f}",
    "of unordered": "{:.2f}",
    "calls": "{:,.0f}",
}


class Size(NamedTuple):
    """How much is measured, and what is told of each measurement."""

    elements: int
    rounds: int
    on_step: Callable[[], object]


async def no_turn(_: int) -> None:
    """A call that does not suspend."""


async def instead(_: int, error: Exception) -> None:
    """What an error policy gives in place of a result."""


async def too_late(_: int) -> None:
    """What is given in place of a result at the deadline."""


def overhead(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """CPU time per element, alternating in one process; ratios to the first line of the same round."""
    elements, rounds = (3_000, 5) if quick else (5_000, 81)

    size = Size(elements, rounds, on_step)
    return [
        _section("overhead", "one turn of the scheduler per call", [*_with_turn()], None, size),
        _section("overhead without a turn", "calls that do not suspend", [FLOOR, ORDERED, UNORDERED], no_turn, size),
        _section("overhead of options", "options that are not used, beside none of them", [*_options()], None, size),
    ]


def _with_turn() -> Iterable[Contender]:
    yield from (FLOOR, ORDERED, UNORDERED)
    yield ours("keyed, a key for each", mode="keyed", key=lambda number: number)
    yield ours("keyed, 100 keys", mode="keyed", key=lambda number: number % 100)

    async def loop(call: Call, elements: int, capacity: int, seconds: float, _: object) -> None:
        await task_per_element(call, elements, capacity, seconds)

    yield Contender("task and scope for each", loop, has_stream=False)
    yield from PEERS


def _options() -> Iterable[Contender]:
    yield ORDERED
    yield ours("retry", retry=FixedDelay(3, 0.1))
    yield ours("on_error", on_error=instead)
    yield ours("on_timeout", on_timeout=too_late)
    yield ours("all three", retry=FixedDelay(3, 0.1), on_error=instead, on_timeout=too_late)
    yield ours("an observer, told of each step", observer=Observer())


def _section(name: str, what: str, contenders: list[Contender], call: Call | None, size: Size) -> Section:
    elements, rounds, on_step = size
    there = [each for each in contenders if not each.missing]
    costs: dict[str, Callable[[], float]] = {
        each.name: partial(_cost, each, call or each.backend.turn, elements) for each in there
    }
    measured = measure(costs, rounds, on_step)
    section = Section(
        f"Overhead: {what}",
        f"capacity {CAPACITY}, a deadline each; CPU time, {in_words(rounds)} of {elements:,} elements. "
        " Ratio to the first line in the same round, and its quartiles; then to ours. Calls and their peak "
        "are counted in a run of its own",
        FORMATS,
        name=name,
    )
    for each in contenders:
        if each.missing:
            section.lines.append(Line(each.name, {}, note=each.missing))
        else:
            section.lines.append(_line(each, measured, counted(each, call or each.backend.turn, elements)))
    return section


def cpu_seconds(contender: Contender, call: Call, elements: int, capacity: int = CAPACITY) -> float:
    """CPU time of all calls. Other processes count little in it, and our one thread fully."""
    began = time.process_time()
    contender.backend.run(contender.loop, call, elements, capacity, TIMEOUT, NOTHING)
    return time.process_time() - began


def _cost(contender: Contender, call: Call, elements: int) -> float:
    return cpu_seconds(contender, call, elements) / elements * 1e6


def counted(contender: Contender, call: Call, elements: int) -> Gauge:
    """Calls and how many were in flight, in a run of its own, so that counting costs nothing in the others."""
    gauge = Gauge()

    async def call_counted(number: int) -> None:
        with gauge:
            await call(number)

    cpu_seconds(contender, call_counted, elements)
    return gauge


def _line(contender: Contender, rounds: Rounds, gauge: Gauge) -> Line:
    low, high = rounds.spread(contender.name)
    values: dict[str, float | None] = {
        "μs/element": rounds.median(contender.name),
        "ratio": rounds.ratio(contender.name),
        "from": low,
        "to": high,
        "calls": gauge.calls,
    }
    for base in (ORDERED, UNORDERED):
        if base.name in rounds.numbers:
            values[f"of {base.name}"] = rounds.ratio(contender.name, base.name)
    return Line(contender.name, values, gauge.peak)
