"""Throughput as a share of Little's law, when latency and not the CPU is the limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ._contenders import FLOOR, NOT_INSTALLED, Contender, ours
from ._latencies import mean_latency
from ._overhead import ORDERED, UNORDERED
from ._peers import PEERS
from ._report import Line, Section
from ._window import WARM_SECONDS, Rate, rate

CAPACITY = 100
SECONDS = 12.0  # the latencies repeat after 6.15 seconds; twice that makes the share exact
BASIC = (FLOOR, ORDERED, UNORDERED)
BUFFERS = tuple(
    ours(f"ordered, buffer x {times}{note}", mode="ordered", buffer=CAPACITY * times)
    for times, note in ((1, " (as Flink)"), (10, ""), (30, ""), (50, ""))
)


def throughput(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """Results per second, as a share of capacity / mean latency, on a virtual and on the real clock."""
    seconds = 2.0 if quick else SECONDS
    limit = CAPACITY / mean_latency()
    section = Section(
        f"Throughput: 1 % take a second, the others 20 ms on average, capacity {CAPACITY}",
        f"shares of Little's law, which allows {limit:,.0f} results a second: on a virtual clock, which shows the "
        f"schedule alone, and on the real one, one round; in {seconds:g} seconds, after {WARM_SECONDS:.1f} to warm up. "
        "The bare loop, asyncio by hand and PyFlink count the end of a call, the others a received result. On Trio a "
        "latency is an entry in a timer, as on asyncio; `trio.sleep` costs several times as much",
        {"share": "{:.1%}", "real share": "{:.1%}"},
        name=f"throughput {CAPACITY}",
    )
    virtual = _rates((*BASIC, *BUFFERS), seconds, on_step, is_virtual=True)
    real = _rates(BASIC if quick else (*BASIC, *PEERS), seconds, on_step)
    for name in virtual | real:
        rates = {"share": virtual.get(name), "real share": real.get(name)}
        found = {column: rate for column, rate in rates.items() if rate is not None}
        values = {column: each.results / limit for column, each in found.items()}
        if values:
            section.lines.append(Line(name, {**values}, max(each.peak for each in found.values())))
        else:
            section.lines.append(Line(name, {}, note=NOT_INSTALLED))
    return [section]


def _rates(
    contenders: Iterable[Contender], seconds: float, on_step: Callable[[], object], *, is_virtual: bool = False
) -> dict[str, Rate | None]:
    """The rates by name; None if a contender is not installed."""
    rates: dict[str, Rate | None] = {}
    for each in contenders:
        rates[each.name] = None if each.missing else rate(each, CAPACITY, seconds, is_virtual=is_virtual)
        on_step()
    return rates
