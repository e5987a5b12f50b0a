"""The command line: `python -m benchmarks --help`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable
from importlib import import_module
from typing import Any

import benchmarks

from ._command import Part, run
from ._options import options
from ._overhead import overhead
from ._page import write_page
from ._report import Section, machine
from ._throughput import throughput
from ._year import year
from .resilience._command import main as resilience


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


def _in_spark(*names: str) -> Part:
    """Functions "module.name" that measure with a session of Spark, which the other parts do not need."""

    def part(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
        with _found("_enriching.session")() as spark:
            return [each for name in names for each in _found(name)(spark, quick=quick, on_step=on_step)]

    return part


def _http(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    sections: list[Section] = _found("_http.http")(quick=quick, on_step=on_step)
    return sections


def _found(name: str) -> Any:
    module, function = name.split(".")
    return getattr(import_module(f"benchmarks.{module}"), function)


PARTS: dict[str, Part] = {
    "operator": overhead,
    "options": options,
    "latency": throughput,
    "http": _http,
    "spark": _in_spark("_enriching.cost", "_two_operators.two_operators"),
    "year": year,
    "gain": _in_spark("_gain.gain"),
    "requests": _in_spark("_requests.requests"),
    "first": _in_spark("_first_result.first_result"),
    "streaming": _in_spark("_micro_batches.micro_batches"),
}


if __name__ == "__main__":
    sys.exit(main())
