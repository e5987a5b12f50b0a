"""The command line: `python -m benchmarks.forecast --help`."""

from __future__ import annotations

import re
import textwrap
import warnings
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any, TypeAlias

import trio
from trio.testing import MockClock

from trio_asyncio_io import Options
from trio_asyncio_io.rehearsal import Forecast, ForecastRow, Sample, record, rehearse
from trio_asyncio_io.rehearsal._simulation import simulate

from ._services import HELD_OUT, Planted, function_of

ELEMENTS = 4_000
SIZES = (200, 800)
SAMPLES = 20
CAPACITIES = (15, 50, 150)
TIMEOUT = 60.0
COLUMNS = ("error", "worst", "inside", "best")
NUMBERS = ("seconds", "weight", "p99")
CANNOT_TELL = "cannot tell"  # the forecast says so of the rate
NEAR = 1.05  # a setting is right if it is within 5 % of the best one
# A setting counts only if it loses about as few records as any other: at most 1.1 times as many, and a few more
FEW, SOME = 1.1, 0.001 * ELEMENTS
Runs: TypeAlias = dict[int, list[dict[str, float]]]  # by capacity
MARKED = re.compile(r"(<!-- forecasts -->\n).*?(<!-- end of forecasts -->)", re.DOTALL)


@dataclass(frozen=True)
class Cell:
    """Forecasts of a service from several samples of one size, and as many runs with each capacity."""

    service: Planted
    size: int
    forecasts: list[Forecast]
    runs: Runs

    @property
    def known(self) -> list[Forecast]:
        """The forecasts that know the rate."""
        return [each for each in self.forecasts if each.is_known]

    def errors(self) -> list[float]:
        """The relative errors of the forecast times, for each capacity, without forecasts that do not know the rate."""
        known = [(each, position) for position, each in enumerate(self.forecasts) if each.is_known]
        return [row.seconds / self._run(row, at)["seconds"] - 1 for each, at in known for row in each.rows]

    def covered(self) -> list[dict[str, bool]]:
        """For each forecast and capacity, whether the numbers of a run are inside their intervals."""
        return [
            {name: _covers(row, name, self._run(row, position)[name]) for name in NUMBERS}
            for position, forecast in enumerate(self.forecasts)
            for row in forecast.rows
        ]

    def right(self) -> int:
        """How many of the recommended capacities are among the best.

        As for a forecast, these lose about as few records as any, and are about as fast as the fastest of them.
        """
        means = {
            capacity: {name: fmean(run[name] for run in runs) for name in ("seconds", "lost")}
            for capacity, runs in self.runs.items()
        }
        fewest = min(mean["lost"] for mean in means.values())
        good = {capacity: mean["seconds"] for capacity, mean in means.items() if mean["lost"] <= FEW * fewest + SOME}
        best = {capacity for capacity, seconds in good.items() if seconds <= NEAR * min(good.values())}
        return sum(each.best_row.capacity in best for each in self.known)

    def numbers(self) -> tuple[str, ...]:
        """Its part of a line of the table."""
        errors = self.errors()
        return (
            f"{median(map(abs, errors)):.0%}" if errors else CANNOT_TELL,
            f"{max(errors, key=abs):+.0%}" if errors else "",
            f"{fmean(each['seconds'] for each in self.covered()):.0%}",
            f"{self.right()}" if errors else "",
        )

    def _run(self, row: ForecastRow, position: int) -> dict[str, float]:
        return self.runs[row.capacity][position]


def head(sizes: Sequence[int]) -> str:
    """The head of the table."""
    names = [f"{size}: {name}" if name == COLUMNS[0] else name for size in sizes for name in COLUMNS]
    return f"| {' | '.join(['service', *names])} |\n|{'---|' * (1 + len(names))}"


def line(cells: Sequence[Cell]) -> str:
    """The line of a service, from its cells by size."""
    service = cells[0].service
    name = f"{service.name}{'' if service.is_expected else ' *'}"
    return f"| {' | '.join([name, *(number for cell in cells for number in cell.numbers())])} |"


def summary(cells: Sequence[Cell]) -> str:
    """The results of all services without a star, in three sentences."""
    expected = [cell for cell in cells if cell.service.is_expected]
    errors = [abs(error) for cell in expected for error in cell.errors()]
    right, known = sum(cell.right() for cell in expected), sum(len(cell.known) for cell in expected)
    capped = _shares([cell for cell in expected if cell.service.rate is not None])
    return (
        f"Without the services with a star, the median error of the time is {_percent(median(errors))}. The run was "
        f"inside the interval in {_shares(expected)} of the cases for time, cost and p99; in front of a limit on the "
        f"rate, in {capped}. The recommended capacity was among the best in {right} of {known} cases."
    )


def _shares(cells: Sequence[Cell]) -> str:
    covered = [each for cell in cells for each in cell.covered()]
    first, second, third = (_percent(fmean(each[name] for each in covered)) for name in NUMBERS)
    return f"{first}, {second} and {third}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _covers(row: ForecastRow, name: str, value: float) -> bool:
    low, high = row.intervals[name]
    return low * (1 - 1e-9) <= value <= high * (1 + 1e-9)


def main() -> None:
    """Compare forecasts with runs, print the table and write it into a page."""
    parser = ArgumentParser("python -m benchmarks.forecast", description=__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES, help=f"of each size and service (default: {SAMPLES})")
    parser.add_argument("--size", type=int, choices=SIZES, help="only samples of this size")
    parser.add_argument("--page", type=Path, help="a page whose marked table is replaced")
    options = parser.parse_args()
    if options.samples < 1:
        parser.error(f"--samples must be at least 1, got {options.samples}")
    sizes = SIZES if options.size is None else (options.size,)
    lines, cells = [head(sizes)], list[Cell]()
    print(lines[0])
    evaluate = partial(evaluated, sizes=sizes, number=options.samples)
    with ProcessPoolExecutor(initializer=_ignore_warnings) as processes:
        for service, (runs, forecasts) in zip(HELD_OUT, processes.map(evaluate, range(len(HELD_OUT))), strict=True):
            cells.extend(Cell(service, size, forecasts[size], runs) for size in sizes)
            lines.append(line(cells[-len(sizes) :]))
            print(lines[-1], flush=True)
    print(f"\n{summary(cells)}")
    if options.page is not None:
        text = options.page.read_text(encoding="utf-8")
        table = "\n".join(lines)
        shown = rf"\g<1>\n{table}\n\n{textwrap.fill(summary(cells), 120)}\n\n\2"
        options.page.write_text(MARKED.sub(shown, text), encoding="utf-8")


def _ignore_warnings() -> None:
    """Ignore warnings of samples that have not reached their load."""
    warnings.simplefilter("ignore", UserWarning)


def evaluated(position: int, *, sizes: Sequence[int], number: int) -> tuple[Runs, dict[int, list[Forecast]]]:
    """The runs of the service at this position, and the forecasts from its samples, by size."""
    service = HELD_OUT[position]
    runs = {capacity: [numbers_of(service, capacity, seed) for seed in range(number)] for capacity in CAPACITIES}
    forecasts = {
        size: [rehearse(sample_of(service, seed, size), ELEMENTS, capacity=CAPACITIES) for seed in range(number)]
        for size in sizes
    }
    return runs, forecasts


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
    lost = run.failed + run.timed_out
    return {"seconds": run.seconds, "weight": run.weight, "p99": run.delay(0.99), "lost": lost}


if __name__ == "__main__":
    main()
