"""The command line: `python -m benchmarks --help`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pkgutil import resolve_name
from typing import Any

import benchmarks

from ._command import Part, run
from ._options import options
from ._overhead import by_capacity, overhead
from ._page import write_page
from ._report import Section, machine
from ._throughput import throughput
from ._year import year
from .resilience import _page as of_resilience


def main() -> int:
    """Measure the parts, print the tables and write the files."""
    if sys.argv[1:2] == ["resilience"]:
        return resilience(sys.argv[2:])
    parser = ArgumentParser(
        prog="python -m benchmarks",
        description=(benchmarks.__doc__ or "").splitlines()[0],
        epilog="`python -m benchmarks resilience --help`: limits in front of simulated services",
    )
    return run(parser, sys.argv[1:], PARTS, write_page, machine())


def resilience(arguments: Sequence[str]) -> int:
    """Run the experiments, print the tables and write the files."""
    parser = ArgumentParser(
        prog="python -m benchmarks resilience",
        description="Runs limits in front of simulated services, on a virtual clock.",
    )
    parts = {name: experiment.sections for name, experiment in of_resilience.EXPERIMENTS.items()}
    return run(parser, arguments, parts, of_resilience.write_page, {})  # the numbers are the same on every machine


def _in_spark(*names: str) -> Part:
    """Functions "module:name" that measure with a session of Spark, which the other parts do not need."""

    def part(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
        with _found("_spark:session")() as spark:
            return [each for name in names for each in _found(name)(spark, quick=quick, on_step=on_step)]

    return part


def _http(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    from ._http import http  # noqa: PLC0415 - the other parts need no HTTP client

    return http(quick=quick, on_step=on_step)


def _found(name: str) -> Any:
    return resolve_name(f"benchmarks.{name}")


PARTS: dict[str, Part] = {
    "operator": overhead,
    "capacity": by_capacity,
    "options": options,
    "latency": throughput,
    "http": _http,
    "spark": _in_spark("_spark:cost", "_spark:two_operators"),
    "year": year,
    "gain": _in_spark("_gain:gain"),
    "requests": _in_spark("_requests:requests"),
    "first": _in_spark("_first_result:first_result"),
    "streaming": _in_spark("_micro_batches:micro_batches"),
}


if __name__ == "__main__":
    sys.exit(main())
