"""Scale: cost per element by length and by capacity, memory by buffer, and the time of a cancellation."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

import trio
import trio.testing

from trio_asyncio_io import AsyncWaitOperator

from ._contenders import FLOOR, Contender
from ._overhead import CAPACITY, KEYED, ORDERED, UNORDERED, cpu_seconds
from ._report import Line, Section
from ._rounds import Rounds, in_words, measure

__all__ = ["scale"]

CONTENDERS = (FLOOR, ORDERED, UNORDERED)
MODES = (*CONTENDERS, KEYED)
RUNNING = 10_000
LONG = 1_000_000  # elements; longer streams are measured once


def scale(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """Four tables. In the first three, each line is a size."""
    return [
        _lengths(quick=quick, on_step=on_step),
        _capacities(quick=quick, on_step=on_step),
        _memory(quick=quick, on_step=on_step),
        _cancellation(quick=quick, on_step=on_step),
    ]


def _formats(contenders: Sequence[Contender] = CONTENDERS) -> dict[str, str]:
    formats = {f"{each.name}, μs": "{:.1f}" for each in contenders}
    return formats | {f"{each.name}, ratio": "{:.2f}" for each in contenders[1:]}


def _lengths(*, quick: bool, on_step: Callable[[], object]) -> Section:
    longest, least = (100_000, 1) if quick else (10_000_000, 3)
    section = Section(
        f"Scale: cost per element, 1,000 to {longest:,} elements",
        f"capacity {CAPACITY}, one checkpoint per call; CPU time, median of alternating rounds (20,000 elements in "
        f"all, but at least {least} and at most 20 rounds; one round above a million elements). Ratio to the bare "
        "loop in the same round",
        _formats(),
        name="scale of elements",
    )
    for elements in _decades(1_000, longest):
        rounds = max(least, min(20, 20_000 // elements))
        section.lines.append(_line(elements, elements, CAPACITY, rounds, on_step))
    return section


def _capacities(*, quick: bool, on_step: Callable[[], object]) -> Section:
    elements, rounds = (20_000, 1) if quick else (200_000, 3)
    section = Section(
        "Scale: cost per element, capacity 1 to 10,000",
        f"{elements:,} elements, one checkpoint per call, keyed with a key for each; CPU time, {in_words(rounds)}. "
        "With a capacity of 1 each element needs a scheduler pass of its own, in the bare loop too. In this operator "
        "the consumer is also woken for most elements; with more capacity, one wake-up serves all elements that a "
        "pass has finished. At 10,000 the bare loop shows the cost of that many tasks for the scheduler and the "
        "processor's caches",
        _formats(MODES),
        name="scale of capacity",
    )
    for capacity in _decades(1, 10_000):
        section.lines.append(_line(capacity, elements, capacity, rounds, on_step, contenders=MODES))
    return section


def _decades(first: int, last: int) -> Iterable[int]:
    while first <= last:
        yield first
        first *= 10


def _line(
    size: int,
    elements: int,
    capacity: int,
    rounds: int,
    on_step: Callable[[], object],
    *,
    contenders: Sequence[Contender] = CONTENDERS,
) -> Line:
    costs: dict[str, Callable[[], float]] = {
        each.name: partial(cpu_seconds, each, each.backend.checkpoint, elements, capacity) for each in contenders
    }
    once = {name: [cost()] for name, cost in costs.items()} if elements > LONG else None
    measured = measure(costs, rounds, on_step) if once is None else Rounds(once)
    values: dict[str, float | None] = {}
    for each in contenders:
        values[f"{each.name}, μs"] = measured.median(each.name) / elements * 1e6
    for each in contenders[1:]:
        values[f"{each.name}, ratio"] = measured.ratio(each.name)
    return Line(f"{size:,}", values)


def _memory(*, quick: bool, on_step: Callable[[], object]) -> Section:
    section = Section(
        "Scale: memory held while the consumer does not read",
        f"capacity {CAPACITY}, an endless source, each result an object of 100 bytes; growth of Python's allocated "
        "memory until the source is no longer read. Each line is a buffer",
        {"held": "{:,.0f}", "MB": "{:.2f}", "bytes/record": "{:,.0f}"},
        name="scale of memory",
    )
    for buffer in _decades(100, 10_000 if quick else 100_000):
        held, size = trio.run(_held, buffer)
        section.lines.append(Line(f"{buffer:,}", {"held": held, "MB": size / 1e6, "bytes/record": size / held}))
        on_step()
    return section


async def _held(buffer: int) -> tuple[int, int]:
    """Records taken from the source, and bytes, once every task is blocked."""
    taken = 0

    def numbers() -> Iterator[int]:
        nonlocal taken
        for taken in count(1):  # noqa: UP028 - the variable is read from outside
            yield taken

    async def call(_: int) -> bytes:
        await trio.lowlevel.checkpoint()
        return bytes(67)  # plus Python's overhead of 33

    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    async with AsyncWaitOperator(call, source=numbers(), capacity=CAPACITY, timeout=60.0, buffer=buffer):
        await trio.testing.wait_all_tasks_blocked(0.05)
        size = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return taken, size


def _cancellation(*, quick: bool, on_step: Callable[[], object]) -> Section:
    rounds = 3 if quick else 11
    section = Section(
        f"Scale: cancelling {RUNNING:,} running calls",
        f"from the cancellation to the end of the operator's block, all calls unwound; {in_words(rounds)}. "
        "Ratio to a nursery with the same number of sleeping tasks",
        {"seconds": "{:.3f}", "ratio": "{:.2f}"},
        name="cancellation",
    )
    measured = measure(
        {
            "a nursery of tasks": partial(trio.run, _nursery),
            **{mode: partial(trio.run, _cancelled, mode) for mode in ("ordered", "unordered")},
        },
        rounds,
        on_step,
    )
    for name in measured.numbers:
        section.lines.append(Line(name, {"seconds": measured.median(name), "ratio": measured.ratio(name)}, RUNNING))
    return section


async def _cancelled(mode: Any) -> float:
    async with AsyncWaitOperator(
        _forever, mode=mode, source=range(RUNNING), capacity=RUNNING, timeout=3_600.0
    ) as operator:
        await trio.testing.wait_all_tasks_blocked()
        assert operator.statistics().running == RUNNING
        began = time.perf_counter()
    return time.perf_counter() - began


async def _nursery() -> float:
    async with trio.open_nursery() as nursery:
        for number in range(RUNNING):
            nursery.start_soon(_forever, number)
        await trio.testing.wait_all_tasks_blocked()
        began = time.perf_counter()
        nursery.cancel_scope.cancel()
    return time.perf_counter() - began


async def _forever(_: int) -> None:
    await trio.sleep_forever()
