"""The throughput: what share of Little's law comes out when the latency, and not the CPU, is the limit."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import trio
import trio.testing

from trio_asyncio_io import AsyncWaitOperator

from ._gauge import Gauge
from ._latencies import mean_latency, seconds_of
from ._report import Line, Section

__all__ = ["throughput"]

CAPACITY = 100
WARM_SECONDS = 3.0

# Name -> the operator's options; the buffer in multiples of the capacity. With 1 the operator behaves as Flink's
# does: what is done and waits for its turn holds a slot.
CONTENDERS: dict[str, dict[str, Any]] = {
    "unordered": {"mode": "unordered"},
    "ordered": {"mode": "ordered"},
    "ordered, buffer x 1 (Flink)": {"mode": "ordered", "buffer": CAPACITY},
    "ordered, buffer x 10": {"mode": "ordered", "buffer": 10 * CAPACITY},
    "ordered, buffer x 30": {"mode": "ordered", "buffer": 30 * CAPACITY},
    "ordered, buffer x 50": {"mode": "ordered", "buffer": 50 * CAPACITY},
}


def throughput(*, quick: bool, on_step: Callable[[], object]) -> Section:
    """Results a second, as a share of capacity / mean latency, on a virtual clock and on the real one."""
    virtual, real = (10.0, 3.0) if quick else (60.0, 15.0)
    limit = CAPACITY / mean_latency()
    section = Section(
        f"Throughput: 20 ms mean, 1 % at one second, capacity {CAPACITY}: Little's law allows {limit:,.0f}/s",
        f"results received in {virtual:.0f} virtual and {real:.0f} real seconds, after {WARM_SECONDS:.0f} to warm up. "
        "The virtual clock shows the schedule alone, the real one the CPU too",
        {"virtual/s": "{:,.0f}", "share": "{:.0%}", "real/s": "{:,.0f}", "real share": "{:.0%}"},
    )
    for name, options in CONTENDERS.items():
        gauge = Gauge()
        ideal = _rate(virtual, gauge, options, trio.testing.MockClock(autojump_threshold=0))
        on_step()
        here = _rate(real, gauge, options, None)
        on_step()
        values = {"virtual/s": ideal, "share": ideal / limit, "real/s": here, "real share": here / limit}
        section.lines.append(Line(name, {**values}, gauge.peak))
    return section


def _rate(seconds: float, gauge: Gauge, options: dict[str, Any], clock: trio.abc.Clock | None) -> float:
    """Results a second from an endless source."""

    async def call(number: int) -> None:
        with gauge:
            await trio.sleep(seconds_of(number))

    async def received() -> int:
        warm = trio.current_time() + WARM_SECONDS
        end = warm + seconds
        results = 0
        async with AsyncWaitOperator(call, source=count(), capacity=CAPACITY, timeout=5.0, **options) as operator:
            async for _ in operator.output:
                now = trio.current_time()
                if now >= end:
                    break
                results += now >= warm
        return results

    return trio.run(received, clock=clock) / seconds
