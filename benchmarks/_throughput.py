"""Throughput as a share of Little's law, when latency and not the CPU is the limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ._contenders import FLOOR, NOT_INSTALLED, PEERS, Contender, Gauge, ours
from ._latencies import mean_latency, seconds_of
from ._overhead import ORDERED, TIMEOUT, UNORDERED
from ._report import Line, Section

CAPACITY = 100
SECONDS = 12.0  # the latencies repeat after 6.15 seconds; twice that makes the share exact
WARM_SECONDS = 1.5  # longer than the longest call
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
            section.lines.append(Line(name, values, max(each.peak for each in found.values())))
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


@dataclass(frozen=True, slots=True)
class Rate:
    """Results per second, and the peak of calls in flight."""

    results: float
    peak: int


def rate(contender: Contender, capacity: int, seconds: float, *, is_virtual: bool = False) -> Rate:
    """The contender's rate with latencies, on a virtual or on the real clock."""
    window = _Window(seconds)
    backend = contender.backend
    backend.run(backend.limited, window.run, contender, capacity, is_virtual=is_virtual)
    return Rate(window.results / seconds, window.gauge.peak)


@dataclass(slots=True)
class _Window:
    seconds: float
    gauge: Gauge = field(default_factory=Gauge)
    results: int = 0
    began: float | None = None

    async def run(self, contender: Contender, capacity: int, stop_at: Callable[[float], object]) -> None:
        """Let the contender make calls until the time is over."""
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
            self.results += WARM_SECONDS <= backend.time() - self.began < WARM_SECONDS + self.seconds

        elements = int(1.1 * (WARM_SECONDS + self.seconds) * capacity / mean_latency())
        await contender.loop(call, elements, capacity, TIMEOUT, received)
