"""Counts the results within a window of time after the first call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ._contenders import Contender
from ._gauge import Gauge
from ._latencies import mean_latency, seconds_of
from ._overhead import TIMEOUT

WARM_SECONDS = 1.5  # longer than the longest call


@dataclass(frozen=True, slots=True)
class Rate:
    """Results per second, the number of calls, and the peak in flight."""

    results: float
    calls: int
    peak: int


def rate(contender: Contender, capacity: int, seconds: float, *, is_virtual: bool = False) -> Rate:
    """The contender's rate with latencies, on a virtual or on the real clock."""
    window = _Window(seconds)
    backend = contender.backend
    backend.run(backend.limited, window.run, contender, capacity, is_virtual=is_virtual)
    return Rate(window.results / seconds, window.gauge.calls, window.gauge.peak)


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
