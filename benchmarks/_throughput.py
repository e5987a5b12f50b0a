"""The throughput: what share of Little's law comes out when the latency, and not the CPU, is the limit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from statistics import median

from ._backends import Backend
from ._child import Child, ChildError
from ._contenders import FLOOR, Contender, ours
from ._engines import FLINK, PYFLINK
from ._gauge import Gauge
from ._latencies import mean_latency, seconds_of
from ._overhead import ORDERED, TIMEOUT, UNORDERED
from ._report import Line, Section
from ._rounds import alternate
from .peers import PEERS

__all__ = ["throughput"]

CAPACITIES = (100, 1_000)
WARM_SECONDS = 1.5  # longer than the longest call
FORMATS = {"virtual/s": "{:,.0f}", "share": "{:.1%}", "real/s": "{:,.0f}", "real share": "{:.1%}", "calls": "{:,.0f}"}


@dataclass(slots=True)
class Window:
    """Counts the results that come within so many seconds, a while after the first call."""

    seconds: float
    gauge: Gauge = field(default_factory=Gauge)
    results: int = 0
    began: float | None = None

    async def run(self, contender: Contender, capacity: int, stop_at: Callable[[float], object]) -> None:
        """Have the contender make more calls than it can, until the time is over."""
        backend = contender.backend

        async def call(number: int) -> None:
            if self.began is None:
                self.began = backend.time()
                stop_at(self.began + WARM_SECONDS + self.seconds)
            with self.gauge:
                await backend.sleep(seconds_of(number))
            if not contender.has_stream:
                received()

        def received() -> None:
            assert self.began is not None
            self.results += self.began + WARM_SECONDS <= backend.time() < self.began + WARM_SECONDS + self.seconds

        elements = int(1.1 * (WARM_SECONDS + self.seconds) * capacity / mean_latency())
        await contender.loop(call, elements, capacity, TIMEOUT, received)


@dataclass(frozen=True, slots=True)
class Rate:
    """Results a second, the calls that were made, and the most that were in flight."""

    results: float
    calls: int
    peak: int


def throughput(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """Results a second, as a share of capacity / mean latency, on a virtual clock and on the real one."""
    return [_section(capacity, quick=quick, on_step=on_step) for capacity in CAPACITIES]


def _contenders(capacity: int, *, quick: bool) -> list[Contender]:
    """All of them at the smaller capacity; at the larger one fewer, for some peers take a millisecond for each call."""
    if capacity != CAPACITIES[0]:
        return [FLOOR, ORDERED, UNORDERED, *(() if quick else PEERS)]
    buffers = [
        ours(f"ordered, buffer x {times}{note}", mode="ordered", buffer=times * capacity)
        for times, note in ((1, " (as Flink)"), (10, ""), (30, ""), (50, ""))
    ]
    return [FLOOR, ORDERED, UNORDERED, *buffers, *PEERS]


def _section(capacity: int, *, quick: bool, on_step: Callable[[], object]) -> Section:
    is_short = quick and capacity != CAPACITIES[0]  # many calls: what takes long here is the CPU
    virtual = (1.0 if is_short else 3.0) if quick else (5.0 if capacity != CAPACITIES[0] else 30.0)
    real, rounds = (2.0, 1) if quick else (5.0, 3)
    limit = capacity / mean_latency()
    section = Section(
        f"Throughput: 20 ms mean, 1 % at one second, capacity {capacity:,}: Little's law allows {limit:,.0f}/s",
        f"results in {virtual:.0f} virtual and {real:.0f} real seconds, after {WARM_SECONDS:.1f} to warm up; median "
        f"of {rounds} alternating rounds on the real clock. The virtual clock shows the schedule alone, the real one "
        "the CPU too: the bare worker loop says what this machine can. The bare loop, asyncio by hand and PyFlink are "
        "counted at the end of a call, the others where a result is received. Calls are those of a whole real round",
        FORMATS,
        name=f"throughput {capacity}",
    )
    contenders = _contenders(capacity, quick=quick)
    there = [each for each in contenders if not each.missing]
    schedules: dict[str, Rate] = {}
    for each in there if capacity == CAPACITIES[0] else there[:3]:
        schedules[each.name] = _rate(each, capacity, virtual, is_virtual=True)
        on_step()
    with ExitStack() as stack:
        notes = {each.name: each.missing for each in contenders}
        here: dict[str, Callable[[], Rate | None]] = {
            each.name: partial(_rate, each, capacity, real) for each in there if "buffer" not in each.name
        }
        if not is_short:
            here |= _engines(stack, notes, capacity, real)
        rates = alternate(here, rounds, on_step, warm_up=False)
    for name, note in notes.items():
        section.lines.append(_line(name, note, limit, schedules.get(name), rates.get(name)))
    return section


def _engines(
    stack: ExitStack, notes: dict[str, str], capacity: int, seconds: float
) -> dict[str, Callable[[], Rate | None]]:
    """Flink's and PyFlink's lines, where they are installed; they are ready before the first round."""
    found: dict[str, Callable[[], Rate | None]] = {}
    for engine in (FLINK, PYFLINK):
        modes = ("ordered", "unordered") if engine is FLINK else ("ordered",)
        missing = engine.missing()
        try:
            child = None if missing else stack.enter_context(engine.opened())
        except ChildError as error:
            child, missing = None, f"failed: {error}"
        for mode in modes:
            name = f"{engine.name}, {mode}"
            notes[name] = missing
            if child is not None:
                found[name] = partial(_asked, child, name, notes, (mode, capacity, seconds))
    return found


def _asked(child: Child, name: str, notes: dict[str, str], job: tuple[str, int, float]) -> Rate | None:
    if notes[name]:
        return None
    mode, capacity, seconds = job
    try:
        said = child.ask("latency", mode, capacity, WARM_SECONDS, seconds).said
    except ChildError as error:
        notes[name] = f"failed: {error}"
        return None
    return Rate(said["results"] / seconds, said["calls"], said["peak"])


def _rate(contender: Contender, capacity: int, seconds: float, *, is_virtual: bool = False) -> Rate:
    window = Window(seconds)
    backend: Backend = contender.backend
    backend.run(backend.limited, window.run, contender, capacity, is_virtual=is_virtual)
    return Rate(window.results / seconds, window.gauge.calls, window.gauge.peak)


def _line(name: str, note: str, limit: float, schedule: Rate | None, rates: list[Rate | None] | None) -> Line:
    values: dict[str, float | None] = {}
    peak = None
    if note:
        return Line(name, {}, note=note)
    if schedule is not None:
        values |= {"virtual/s": schedule.results, "share": schedule.results / limit, "calls": schedule.calls}
        peak = schedule.peak
    if found := [rate for rate in rates or [] if rate is not None]:
        results = median(rate.results for rate in found)
        values |= {"real/s": results, "real share": results / limit, "calls": found[-1].calls}
        peak = max(rate.peak for rate in found)
    return Line(name, values, peak)
