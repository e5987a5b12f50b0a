"""Cost per element in engines that run in their own processes, compared with this operator."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from statistics import median

from ._child import Child, ChildError
from ._contenders import FLOOR, Contender
from ._engines import ENGINES, Engine
from ._overhead import CAPACITY, ORDERED, UNORDERED, counted, cpu_seconds
from ._report import Line, Section
from ._rounds import Rounds, alternate, in_words

__all__ = ["engines"]

FORMATS = {
    "wall μs": "{:,.1f}",
    "ratio": "{:,.1f}",
    "from": "{:,.1f}",
    "to": "{:,.1f}",
    "CPU μs": "{:,.1f}",
    "CPU ratio": "{:,.1f}",
    "of ordered": "{:,.2f}",
    "start, s": "{:.1f}",
    "elements": "{:,.0f}",
    "calls": "{:,.0f}",
}


@dataclass(frozen=True, slots=True)
class Cost:
    """The results of one round.

    Attributes:
        wall, cpu: Microseconds per element; `cpu` of all processes, or None if it is unknown.
        start: Seconds of a job that do not depend on its elements.
        elements, calls: Those of the long job.
        peak: The largest number of calls in flight.
    """

    wall: float
    cpu: float | None
    start: float
    elements: int
    calls: int
    peak: int


def engines(*, quick: bool, on_step: Callable[[], object]) -> Section:
    """Wall and CPU time per element, from the difference between a long and a short job."""
    rounds = 1 if quick else 5
    section = Section(
        "Overhead: engines in their own processes, one checkpoint per call",
        f"capacity {CAPACITY}, ordered; {in_words(rounds)}, after a warm-up job. Times are the difference between a "
        "long and a short job, divided by the difference of their elements; the rest of the short job is its start. "
        "Ratios are to the first line in the same round, with the quartiles of wall time. CPU time includes all child "
        "processes; `of ordered` uses wall or CPU time, whichever is smaller",
        FORMATS,
        name="engines",
    )
    with ExitStack() as stack:
        notes: dict[str, str] = {}
        contenders: dict[str, Callable[[], Cost | None]] = {}
        for each in (FLOOR, ORDERED, UNORDERED):
            contenders[each.name] = partial(_here, each)
        for engine in ENGINES:
            notes[engine.name] = engine.missing()
            if not notes[engine.name]:
                try:
                    child = stack.enter_context(engine.opened())
                    child.request("checkpoint", "ordered", CAPACITY, engine.warm_up)
                except ChildError as error:
                    notes[engine.name] = f"failed: {error}"
                    continue
                contenders[engine.name] = partial(_there, engine, child, notes)
        found = alternate(contenders, rounds, on_step, warm_up=False)
    for name in (*contenders, *(name for name in notes if name not in contenders)):
        section.lines.append(Line(name, {}, note=notes[name]) if notes.get(name) else _line(name, found))
    return section


def _here(contender: Contender) -> Cost:
    elements = 10_000
    gauge = counted(contender, contender.backend.checkpoint, elements)
    began = time.perf_counter()
    cpu = cpu_seconds(contender, contender.backend.checkpoint, elements)
    wall = time.perf_counter() - began
    return Cost(wall / elements * 1e6, cpu / elements * 1e6, 0.0, elements, gauge.calls, gauge.peak)


def _there(engine: Engine, child: Child, notes: dict[str, str]) -> Cost | None:
    if notes[engine.name]:
        return None  # failed in an earlier round
    many, few = engine.elements
    try:
        short = child.request("checkpoint", "ordered", CAPACITY, few)
        long = child.request("checkpoint", "ordered", CAPACITY, many)
    except ChildError as error:
        notes[engine.name] = f"failed: {error}"
        return None
    more = many - few
    wall = (long.wall - short.wall) / more
    cpu = None if long.cpu is None or short.cpu is None else (long.cpu - short.cpu) / more * 1e6
    calls, peak = long.content["calls"], long.content["peak"]
    return Cost(wall * 1e6, cpu, max(0.0, short.wall - wall * few), many, calls, peak)


def _line(name: str, found: dict[str, list[Cost]]) -> Line:
    costs = found[name]
    wall = Rounds({each: [cost.wall for cost in found[each]] for each in (FLOOR.name, ORDERED.name, name)})
    low, high = wall.spread(name)
    values: dict[str, float | None] = {
        "wall μs": wall.median(name),
        "ratio": wall.ratio(name),
        "from": low,
        "to": high,
        "of ordered": wall.ratio(name, ORDERED.name),
        "start, s": median(cost.start for cost in costs),
        "elements": costs[-1].elements,
        "calls": costs[-1].calls,
    }
    if all(cost.cpu is not None for cost in costs):
        cpu = Rounds({each: [cost.cpu or 0.0 for cost in found[each]] for each in (FLOOR.name, ORDERED.name, name)})
        values |= {"CPU μs": cpu.median(name), "CPU ratio": cpu.ratio(name)}
        values["of ordered"] = min(wall.ratio(name, ORDERED.name), cpu.ratio(name, ORDERED.name))
    return Line(name, values, max(cost.peak for cost in costs))
