"""Cost per element of the operator, compared with a bare worker loop and with peers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from ._contenders import FLOOR, NOTHING, Call, Contender, ours
from ._gauge import Gauge
from ._loops import task_per_element
from ._peers import PEERS
from ._report import Line, Section
from ._rounds import Rounds, in_words, measure

__all__ = ["CAPACITY", "ORDERED", "TIMEOUT", "UNORDERED", "Size", "compared", "counted", "cpu_seconds", "overhead"]

CAPACITY = 100
CAPACITIES = (1, 10, 100, 1_000, 10_000)
TIMEOUT = 5.0
ORDERED = ours("ordered", mode="ordered")
UNORDERED = ours("unordered", mode="unordered")
RATIO = "{:.2f}"


class Size(NamedTuple):
    """The size of a measurement, and a callback after each one."""

    elements: int
    rounds: int
    on_step: Callable[[], object]


async def no_checkpoint(_: int) -> None:
    """A call that does not suspend."""


def overhead(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """CPU time per element, in alternating rounds in one process, with ratios to the first line of the same round."""
    elements, rounds = (3_000, 5) if quick else (5_000, 81)

    size = Size(elements, rounds, on_step)
    return [
        compared("overhead", "Overhead: one checkpoint per call", [*_with_checkpoint()], None, size),
        compared(
            "overhead without a checkpoint",
            "Overhead: calls that do not suspend",
            [FLOOR, ORDERED, UNORDERED],
            no_checkpoint,
            size,
        ),
        _by_capacity(Size(12_000 if quick else 60_000, 3 if quick else 9, on_step)),
    ]


def _with_checkpoint() -> Iterable[Contender]:
    yield from (FLOOR, ORDERED, UNORDERED)
    yield ours("keyed, a key for each", mode="keyed", key=lambda number: number)
    yield ours("keyed, 100 keys", mode="keyed", key=lambda number: number % 100)
    yield Contender("task and scope for each", task_per_element, has_stream=False)
    yield from PEERS


def compared(name: str, title: str, contenders: list[Contender], call: Call | None, size: Size) -> Section:
    """A table of the costs of contenders, as ratios to the first one and to this operator.

    Args:
        name: The name of the section.
        title: Its heading.
        contenders: All of them, also those that are not installed.
        call: The function, or None for one checkpoint.
        size: The size of a measurement.
    """
    elements, rounds, on_step = size
    bases = [each.name for each in (ORDERED, UNORDERED) if each in contenders[1:]]
    there = [each for each in contenders if not each.missing]
    costs: dict[str, Callable[[], float]] = {
        each.name: partial(_cost, each, call or each.backend.checkpoint, elements) for each in there
    }
    measured = measure(costs, rounds, on_step)
    section = Section(
        title,
        f"capacity {CAPACITY}, a deadline each; CPU time, {in_words(rounds)} of {elements:,} elements. "
        f"Ratio to the first line in the same round, with its quartiles{'; then to this operator' if bases else ''}. "
        "Calls and their peak are counted in a separate run",
        {"μs/element": "{:.1f}", **dict.fromkeys(("ratio", "from", "to", *map("of {}".format, bases)), RATIO)}
        | {"calls": "{:,.0f}"},
        name=name,
    )
    for each in contenders:
        if each.missing:
            section.lines.append(Line(each.name, {}, note=each.missing))
        else:
            gauge = counted(each, call or each.backend.checkpoint, elements)
            section.lines.append(_line(each, measured, gauge, bases))
    return section


def _by_capacity(size: Size) -> Section:
    elements, rounds, on_step = size
    names = (ORDERED.name, UNORDERED.name)
    section = Section(
        "Overhead: capacities from 1 to 10,000",
        f"{elements:,} elements, one checkpoint per call, a deadline each; CPU time, {in_words(rounds)}. Ratios to the "
        "bare worker loop in the same round. The start and the end of the workers are included: with a capacity of "
        "10,000, each one makes few calls",
        {f"{FLOOR.name}, μs": "{:.1f}", **{f"{name}, ratio": RATIO for name in names}},
        name="overhead by capacity",
    )
    for capacity in CAPACITIES:
        costs = {
            each.name: partial(_cost, each, each.backend.checkpoint, elements, capacity)
            for each in (FLOOR, ORDERED, UNORDERED)
        }
        measured = measure(costs, rounds, on_step)
        values: dict[str, float | None] = {f"{FLOOR.name}, μs": measured.median(FLOOR.name)}
        values |= {f"{name}, ratio": measured.ratio(name) for name in names}
        section.lines.append(Line(f"{capacity:,}", values))
    return section


def cpu_seconds(contender: Contender, call: Call, elements: int, capacity: int = CAPACITY) -> float:
    """CPU time of all calls. Other processes on the machine hardly affect it."""
    began = time.process_time()
    contender.backend.run(contender.loop, call, elements, capacity, TIMEOUT, NOTHING)
    return time.process_time() - began


def _cost(contender: Contender, call: Call, elements: int, capacity: int = CAPACITY) -> float:
    return cpu_seconds(contender, call, elements, capacity) / elements * 1e6


def counted(contender: Contender, call: Call, elements: int) -> Gauge:
    """Calls and their peak in flight, from a separate run, so that the others pay nothing for counting."""
    gauge = Gauge()

    async def call_counted(number: int) -> None:
        with gauge:
            await call(number)

    cpu_seconds(contender, call_counted, elements)
    return gauge


def _line(contender: Contender, rounds: Rounds, gauge: Gauge, bases: list[str]) -> Line:
    low, high = rounds.spread(contender.name)
    values: dict[str, float | None] = {
        "μs/element": rounds.median(contender.name),
        "ratio": rounds.ratio(contender.name),
        "from": low,
        "to": high,
        "calls": gauge.calls,
    }
    values |= {f"of {base}": rounds.ratio(contender.name, base) for base in bases}
    return Line(contender.name, values, gauge.peak)
