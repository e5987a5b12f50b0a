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

from trio_asyncio_io import AsyncWaitOperator
from trio_asyncio_io.rehearsal import ForecastRow, Sample, record, rehearse

from ._services import SERVICES, Planted, function_of

ELEMENTS = 4_000
SAMPLES, QUICK_SAMPLES = 20, 4
TIMEOUT = 60.0
SETTINGS: dict[str, dict[str, Any]] = {
    "20, ordered": {"capacity": 20, "mode": "ordered"},
    "100, ordered, buffer 200": {"capacity": 100, "mode": "ordered", "buffer": 200},
    "150, unordered": {"capacity": 150, "mode": "unordered"},
}
HEAD = ("service", "setting", "measured", "forecast (median)", "error (median)", "worst error", "in the interval")
MARKED = re.compile(r"(<!-- forecasts -->\n).*?(<!-- end of forecasts -->)", re.DOTALL)


@dataclass(frozen=True)
class Cell:
    """A run, and its forecasts from several samples."""

    service: Planted
    setting: str
    seconds: float
    rows: list[ForecastRow]

    def line(self) -> str:
        """A line of the table."""
        errors = [row.seconds / self.seconds - 1 for row in self.rows]
        inside = fmean(row.low <= self.seconds <= row.high for row in self.rows)
        forecast = median(row.seconds for row in self.rows)
        cells = (
            f"{self.service.name}{'' if self.service.is_expected else ' *'}",
            self.setting,
            f"{self.seconds:.1f} s",
            f"{forecast:.1f} s",
            f"{median(map(abs, errors)):.0%}",
            f"{max(errors, key=abs):+.0%}",
            f"{inside:.0%}",
        )
        return f"| {' | '.join(cells)} |"


def main() -> None:
    """Compare forecasts with runs, print the table and write it into a page."""
    parser = ArgumentParser("python -m benchmarks.forecast", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"take {QUICK_SAMPLES} samples instead of {SAMPLES}")
    parser.add_argument("--page", type=Path, help="a page whose marked table is replaced")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # of samples that have not reached their load
    lines = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
    for service in SERVICES:
        samples = [sample_of(service, seed) for seed in range(QUICK_SAMPLES if options.quick else SAMPLES)]
        for name, setting in SETTINGS.items():
            rows = [row for sample in samples for row in rehearse(sample, ELEMENTS, **setting).rows]
            lines.append(Cell(service, name, seconds_of(service, setting), rows).line())
            print(lines[-1], flush=True)
    if options.page is not None:
        table = "\n".join(lines)
        text = options.page.read_text(encoding="utf-8")
        options.page.write_text(MARKED.sub(rf"\g<1>\n{table}\n\n\2", text), encoding="utf-8")


def in_virtual_time(main: Callable[[], Awaitable[Any]]) -> Any:
    """Run on a virtual clock."""
    return trio.run(main, clock=MockClock(autojump_threshold=0))


def sample_of(service: Planted, seed: int) -> Sample:
    """A sample of 200 elements."""
    function = function_of(service, Random(1000 + seed))
    sample: Sample = in_virtual_time(lambda: record(range(10**6), function, timeout=TIMEOUT, retry=service.retry))
    return sample


def seconds_of(service: Planted, setting: dict[str, Any]) -> float:
    """The length of the operator's run."""

    async def run() -> float:
        async with AsyncWaitOperator(
            function_of(service, Random(1)),
            source=range(ELEMENTS),
            timeout=TIMEOUT,
            retry=service.retry,
            on_error="skip",
            **setting,
        ) as operator:
            began = trio.current_time()
            async for _ in operator.output:
                pass
            return trio.current_time() - began

    return float(in_virtual_time(run))


if __name__ == "__main__":
    main()
