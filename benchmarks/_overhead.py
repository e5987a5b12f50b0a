"""Cost per element of the operator, compared with a bare worker loop and with peers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from ._contenders import FLOOR, NOTHING, PEERS, Call, Contender, Gauge, ours, task_per_element
from ._report import Line, Section
from ._rounds import in_words, measure

CAPACITY = 100
ELEMENTS = {1: 5_000, 10: 5_000, 100: 5_000, 1_000: 10_000, 10_000: 50_000}  # of a run, by capacity
TIMEOUT = 5.0
ORDERED = ours("ordered", mode="ordered")
UNORDERED = ours("unordered", mode="unordered")
RATIO = "{:.2f}"


class Size(NamedTuple):
    """The size of a measurement, and a callback after each one."""

    elements: int
    rounds: int
    on_step: Callable[[], object]


def overhead(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """CPU time per element, in alternating rounds in one process, with ratios to the first line of the same round."""
    size = Size(3_000, 5, on_step) if quick else Size(5_000, 41, on_step)
    return [compared("overhead", "Overhead: one checkpoint per call", [*_contenders()], size, with_peers=True)]


def by_capacity(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """CPU time per element of the bare worker loop and of the operator with as many calls at once."""
    rounds = 3 if quick else 15
    section = Section(
        "Overhead by capacity: one checkpoint per call",
        f"CPU time, {in_words(rounds)} of this number of elements, with the start and the end of the workers and the "
        "garbage collector. Ratio to the bare worker loop in the same round, with its quartiles",
        {"elements": "{:,.0f}", "bare μs": "{:.1f}", "ordered μs": "{:.1f}"}
        | dict.fromkeys(("ratio", "from", "to"), RATIO),
        name="capacity",
    )
    for capacity, elements in ELEMENTS.items():
        costs = {each.name: partial(_cost, each, elements, capacity) for each in (FLOOR, ORDERED)}
        measured = measure(costs, rounds, on_step)
        low, high = measured.spread(ORDERED.name)
        values = {"elements": elements, "bare μs": measured.median(FLOOR.name)}
        values |= {"ordered μs": measured.median(ORDERED.name), "ratio": measured.ratio(ORDERED.name)}
        section.lines.append(Line(f"{capacity:,}", {**values, "from": low, "to": high}))
    return [section]


def _contenders() -> Iterable[Contender]:
    yield from (FLOOR, ORDERED, UNORDERED)
    yield ours("keyed, a key for each", mode="keyed", key=lambda number: number)
    yield ours("keyed, 100 keys", mode="keyed", key=lambda number: number % 100)
    yield Contender("task and scope for each", task_per_element, has_stream=False)
    yield from PEERS


def compared(name: str, title: str, contenders: list[Contender], size: Size, *, with_peers: bool = False) -> Section:
    """A table of the costs of contenders, as ratios to the first one.

    Args:
        name: The name of the section.
        title: Its heading.
        contenders: All of them, including those that are not installed.
        size: The size of a measurement.
        with_peers: Whether to add quartiles, the ratio to the ordered operator, the calls, and their peak.
    """
    elements, rounds, on_step = size
    there = [each for each in contenders if not each.missing]
    measured = measure({each.name: partial(_cost, each, elements) for each in there}, rounds, on_step)
    section = Section(
        title,
        f"capacity {CAPACITY}, a deadline each; CPU time, {in_words(rounds)} of {elements:,} elements. "
        f"Ratio to the first line in the same round{', with its quartiles' if with_peers else ''}",
        {"μs/element": "{:.1f}", "ratio": RATIO}
        | (dict.fromkeys(("from", "to", f"of {ORDERED.name}"), RATIO) | {"calls": "{:,.0f}"} if with_peers else {}),
        name=name,
    )
    for each in contenders:
        if each.missing:
            section.lines.append(Line(each.name, {}, note=each.missing))
            continue
        values = {"μs/element": measured.median(each.name), "ratio": measured.ratio(each.name)}
        gauge = counted(each, elements) if with_peers else None
        if gauge is not None:
            low, high = measured.spread(each.name)
            beside = measured.ratio(each.name, ORDERED.name)
            values |= {"from": low, "to": high, f"of {ORDERED.name}": beside, "calls": gauge.calls}
        section.lines.append(Line(each.name, values, None if gauge is None else gauge.peak))
    return section


def _cost(contender: Contender, elements: int, capacity: int = CAPACITY) -> float:
    """CPU time of an element in μs. Other processes on the machine hardly affect it."""
    began = time.process_time()
    _run(contender, contender.backend.checkpoint, elements, capacity)
    return (time.process_time() - began) / elements * 1e6


def counted(contender: Contender, elements: int) -> Gauge:
    """Calls and their peak in flight, from a separate run, so that the others pay nothing for counting."""
    gauge = Gauge()

    async def call_counted(number: int) -> None:
        with gauge:
            await contender.backend.checkpoint(number)

    _run(contender, call_counted, elements)
    return gauge


def _run(contender: Contender, call: Call, elements: int, capacity: int = CAPACITY) -> None:
    contender.backend.run(contender.loop, call, elements, capacity, TIMEOUT, NOTHING)
