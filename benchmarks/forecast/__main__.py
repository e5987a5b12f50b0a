"""The command line: `python -m benchmarks.forecast --help`."""

from __future__ import annotations

import re
import warnings
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

import trio
from trio.testing import MockClock

from trio_asyncio_io import Options
from trio_asyncio_io.rehearsal import Forecast, ForecastRow, Sample, record, rehearse
from trio_asyncio_io.rehearsal._simulation import simulate

from ._services import HELD_OUT, Planted, function_of

ELEMENTS = 4_000
SIZES = (200, 800)
SAMPLES, QUICK_SAMPLES = 2, 1
CAPACITIES = (15, 50, 150)
TIMEOUT = 60.0
HEAD = ("service", "calls in the sample", "error of the time", "worst", "width", "time", "cost", "p99", "best setting")
NUMBERS = ("seconds", "weight", "p99")
CANNOT_TELL = "cannot tell"  # the forecast says so of the rate
NEAR = 1.05  # a setting is right if it is within 5 % of the best one
MARKED = re.compile(r"(<!-- forecasts -->\n).*?(<!-- end of forecasts -->)", re.DOTALL)


@dataclass(frozen=True)
class Cell:
    """Forecasts of a service from several samples of one size, each with other runs, by capacity."""

    service: Planted
    size: int
    tried: list[tuple[Forecast, dict[int, dict[str, float]]]]

    def line(self) -> str:
        """A line of the table."""
        known = [(forecast, runs) for forecast, runs in self.tried if forecast.is_known]
        errors = [row.seconds / runs[row.capacity]["seconds"] - 1 for each, runs in known for row in each.rows]
        pairs = [(row, runs[row.capacity]) for forecast, runs in self.tried for row in forecast.rows]
        inside = [fmean(_covers(row, name, run[name]) for row, run in pairs) for name in NUMBERS]
        widths = [(row.high - row.low) / row.seconds for row, _ in pairs]
        fastest = [min(run["seconds"] for run in runs.values()) for _, runs in known]
        right = sum(
            runs[forecast.best_row.capacity]["seconds"] <= NEAR * best
            for (forecast, runs), best in zip(known, fastest, strict=True)
        )
        cells = (
            f"{self.service.name}{'' if self.service.is_expected else ' *'}",
            f"{self.size}",
            f"{median(map(abs, errors)):.0%}" if known else CANNOT_TELL,
            f"{max(errors, key=abs):+.0%}" if known else "",
            f"{median(widths):.0%}",
            *(f"{share:.0%}" for share in inside),
            f"{right} of {len(known)}" if known else "none",
        )
        return f"| {' | '.join(cells)} |"


def _covers(row: ForecastRow, name: str, value: float) -> bool:
    low, high = row.intervals[name]
    return low * (1 - 1e-9) <= value <= high * (1 + 1e-9)


def main() -> None:
    """Compare forecasts with runs, print the table and write it into a page."""
    parser = ArgumentParser("python -m benchmarks.forecast", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"take {QUICK_SAMPLES} samples instead of {SAMPLES}")
    parser.add_argument("--size", type=int, choices=SIZES, help="only samples of this size")
    parser.add_argument("--page", type=Path, help="a page whose marked table is replaced")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # of samples that have not reached their load
    lines = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
    print(*lines, sep="\n")
    for service in HELD_OUT:
        for size in SIZES if options.size is None else (options.size,):
            tried = [try_of(service, seed, size) for seed in range(QUICK_SAMPLES if options.quick else SAMPLES)]
            lines.append(Cell(service, size, tried).line())
            print(lines[-1], flush=True)
    if options.page is not None:
        table = "\n".join(lines)
        text = options.page.read_text(encoding="utf-8")
        options.page.write_text(MARKED.sub(rf"\g<1>\n{table}\n\n\2", text), encoding="utf-8")


def try_of(service: Planted, seed: int, size: int) -> tuple[Forecast, dict[int, dict[str, float]]]:
    """A forecast, and a run with each capacity."""
    forecast = rehearse(sample_of(service, seed, size), ELEMENTS, capacity=CAPACITIES)
    return forecast, {capacity: numbers_of(service, capacity, seed) for capacity in CAPACITIES}


def in_virtual_time(main: Callable[[], Awaitable[Any]]) -> Any:
    """Run on a virtual clock."""
    return trio.run(main, clock=MockClock(autojump_threshold=0))


def sample_of(service: Planted, seed: int, size: int = 200) -> Sample:
    """A sample of `size` elements. Each call settles its price."""
    function = function_of(service, Random(1000 + seed), settles=True)
    options: dict[str, Any] = {"timeout": TIMEOUT, "retry": service.retry, "weight": lambda _: 1.5}
    sample: Sample = in_virtual_time(lambda: record(range(10**6), function, size, **options))
    return sample


def numbers_of(service: Planted, capacity: int, seed: int) -> dict[str, float]:
    """A run against the service itself: a property holds the simulation to the operator on a virtual clock."""
    run = simulate(service, ELEMENTS, Options(TIMEOUT, capacity=capacity, retry=service.retry), Random(seed))
    return {"seconds": run.seconds, "weight": run.weight, "p99": run.delay(0.99)}


if __name__ == "__main__":
    main()
