"""The command line: `python -m benchmarks --help`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable

import benchmarks

from ._command import Part, run
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
        epilog="`python -m benchmarks resilience --help`: gates in front of simulated services",
    )
    return run(parser, sys.argv[1:], PARTS, write_page, machine())


def _http(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    from ._http import http  # noqa: PLC0415 - the operator's parts do not need httpx

    return http(quick=quick, on_step=on_step)


def _spark(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    from ._enriching import cost, session, start_up  # noqa: PLC0415 - nor Spark
    from ._two_operators import two_operators  # noqa: PLC0415

    with session() as spark:
        return [each(spark, quick=quick, on_step=on_step) for each in (cost, start_up, two_operators)]


def _gain(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    from ._enriching import session  # noqa: PLC0415 - as above
    from ._gain import gain  # noqa: PLC0415

    with session() as spark:
        return gain(spark, quick=quick, on_step=on_step)


def _streaming(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    from ._enriching import session  # noqa: PLC0415 - as above
    from ._micro_batches import micro_batches  # noqa: PLC0415

    with session() as spark:
        return [micro_batches(spark, quick=quick, on_step=on_step)]


PARTS: dict[str, Part] = {
    "operator": overhead,
    "latency": throughput,
    "http": _http,
    "spark": _spark,
    "year": year,
    "gain": _gain,
    "streaming": _streaming,
}


if __name__ == "__main__":
    sys.exit(main())
