"""The command line: `python -m benchmarks resilience --help`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence

from .._command import run
from ._experiments import EXPERIMENTS
from ._page import write_page


def main(arguments: Sequence[str]) -> int:
    """Run the experiments, print the tables and write the files."""
    parser = ArgumentParser(
        prog="python -m benchmarks resilience",
        description="Runs limits in front of simulated services, on a virtual clock.",
    )
    parts = {name: experiment.sections for name, experiment in EXPERIMENTS.items()}
    return run(parser, arguments, parts, write_page, {})  # the numbers are the same on every machine
