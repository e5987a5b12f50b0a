"""Throughput as a share of Little's law, when latency and not the CPU is the limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

from ._contenders import FLOOR, Contender, ours
from ._latencies import mean_latency
from ._overhead import ORDERED, UNORDERED
from ._peers import PEERS
from ._report import Line, Section
from ._rounds import alternate, in_words
from ._window import WARM_SECONDS, Rate, rate

__all__ = ["throughput"]

FORMATS = {"virtual/s": "{:,.0f}", "share": "{:.1%}", "real/s": "{:,.0f}", "real share": "{:.1%}", "calls": "{:,.0f}"}


@dataclass(frozen=True, slots=True)
class Plan:
    """The contenders of a section, and the seconds on each clock."""

    capacity: int
    virtual: float
    real: float
    rounds: int
    schedules: tuple[Contender, ...]  # on the virtual clock
    contenders: tuple[Contender, ...]  # on the real one


BASIC = (FLOOR, ORDERED, UNORDERED)
BUFFERS = tuple(
    ours(f"ordered, buffer x {times}{note}", mode="ordered", buffer=100 * times)
    for times, note in ((1, " (as Flink)"), (10, ""), (30, ""), (50, ""))
)
# At a capacity of 100 the latencies repeat after 6.15 seconds; twice that makes the share exact
PLANS = (
    Plan(100, 12.0, 12.0, 2, (*BASIC, *BUFFERS), (*BASIC, *PEERS)),
    Plan(1_000, 5.0, 5.0, 3, BASIC, (*BASIC, *PEERS)),
)
QUICK_PLANS = (Plan(100, 2.0, 1.5, 1, (*BASIC, *BUFFERS), BASIC), Plan(1_000, 1.0, 1.5, 1, (), BASIC))


def throughput(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """Results per second, as a share of capacity / mean latency, on a virtual and on the real clock."""
    return [_section(plan, on_step) for plan in (QUICK_PLANS if quick else PLANS)]


def _section(plan: Plan, on_step: Callable[[], object]) -> Section:
    limit = plan.capacity / mean_latency()
    section = Section(
        f"Throughput: 1 % take a second, the others 20 ms on average, capacity {plan.capacity:,}",
        f"Little's law allows {limit:,.0f}/s. Results in {plan.virtual:g} virtual and {plan.real:g} real seconds, "
        f"after {WARM_SECONDS:.1f} to warm up; "
        f"on the real clock {in_words(plan.rounds)}. The virtual clock shows the schedule alone, the real one "
        "includes the CPU: the bare worker loop shows the limit of this machine. The bare loop, asyncio by hand and "
        "PyFlink count the end of a call, the others a received result. Calls are those of a whole round. On Trio a "
        "latency is an entry in a timer, as on asyncio; `trio.sleep` costs several times as much",
        FORMATS,
        name=f"throughput {plan.capacity}",
    )
    notes = {each.name: each.missing for each in (*plan.schedules, *plan.contenders)}
    schedules: dict[str, Rate] = {}
    for each in plan.schedules:
        if not each.missing:
            schedules[each.name] = rate(each, plan.capacity, plan.virtual, is_virtual=True)
            on_step()
    rates = _real_rates(plan, on_step)
    for name, note in notes.items():
        section.lines.append(_line(name, note, limit, schedules.get(name), rates.get(name, [])))
    return section


def _real_rates(plan: Plan, on_step: Callable[[], object]) -> dict[str, list[Rate]]:
    measurements: dict[str, Callable[[], Rate]] = {
        each.name: partial(rate, each, plan.capacity, plan.real) for each in plan.contenders if not each.missing
    }
    return alternate(measurements, plan.rounds, on_step, warm_up=False)


def _line(name: str, note: str, limit: float, schedule: Rate | None, rates: list[Rate]) -> Line:
    if note:
        return Line(name, {}, note=note)
    values: dict[str, float | None] = {}
    if schedule is not None:
        values |= {"virtual/s": schedule.results, "share": schedule.results / limit, "calls": schedule.calls}
    if rates:
        results = median(each.results for each in rates)
        values |= {"real/s": results, "real share": results / limit, "calls": rates[-1].calls}
    return Line(name, values, max(each.peak for each in [*rates, *([schedule] if schedule else [])]))
