"""Runs of the operator and of the simulation against equal draws of a service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import trio
from trio.testing import MockClock

from benchmarks.forecast._services import Planted, function_of
from trio_asyncio_io import AsyncWaitOperator, Statistics
from trio_asyncio_io._core.options import Options
from trio_asyncio_io.rehearsal import Sample, record
from trio_asyncio_io.rehearsal._service import Begin
from trio_asyncio_io.rehearsal._simulation import SimulatedRun, simulate


@dataclass(frozen=True)
class Seeded:
    """A service that draws the same calls in each run."""

    service: Planted
    seed: int

    def open(self, random: Random) -> Begin:
        return self.service.open(Random(self.seed))


def in_virtual_time(main: Callable[[], Awaitable[Any]]) -> Any:
    return trio.run(main, clock=MockClock(autojump_threshold=0))


def simulated(service: Planted, elements: int, seed: int, **options: Any) -> SimulatedRun:
    return simulate(Seeded(service, seed), elements, Options(**options), Random(seed))


def operated(service: Planted, elements: int, seed: int, **options: Any) -> tuple[float, Statistics]:
    """The seconds of the operator, and its statistics."""

    async def main() -> tuple[float, Statistics]:
        function = function_of(service, Random(seed))
        async with AsyncWaitOperator(function, source=range(elements), on_error="skip", **options) as operator:
            began = trio.current_time()
            async for _ in operator.output:
                pass
            return trio.current_time() - began, operator.statistics()

    result: tuple[float, Statistics] = in_virtual_time(main)
    return result


def sampled(service: Planted, seed: int, elements: int = 200, **options: Any) -> Sample:
    options = {"timeout": 60.0, "retry": service.retry, **options}
    function = function_of(service, Random(seed))
    sample: Sample = in_virtual_time(lambda: record(range(10**9), function, elements, **options))
    return sample
