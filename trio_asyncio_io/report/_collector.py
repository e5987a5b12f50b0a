"""The observer of a report, which writes the page at the end of its block."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from bisect import insort
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import trio

from .._core.describe import describe
from .._core.elements import value_of
from .._core.observer import Observer
from .._core.options import Options
from .._core.probe import text_of
from .._core.statistics import Statistics
from .._core.verdict import Verdict
from .._errors import AttemptTimeoutError
from ._page import page
from ._run import MAX_SLOW, Run, SlowRecord, merge

__all__ = ["Report", "report"]

MAX_MESSAGE = 200

# Options that are not worth a line when they have this value
DEFAULTS = {"retry": None, "on_timeout": None, "flatten": False, "restore": None, "key": None}


def report(path: str | PathLike[str], *, title: str = "operator", values: bool = False) -> Report:
    """Write a page about a run: what limited it, what went wrong, and how it went over time.

    The page is one file, which needs no network and no program but a browser. It shows the options, the verdict of
    `explain()`, throughput and calls in flight over time, the distribution of the latency, failures by type with
    examples, retries, and the slowest records.

    Put the block of the operator, or the action of the Spark query, inside the block of the report, and give the
    observer to the operator. The page is written at the end of the block, also if the run fails. In Spark, each task
    writes its part into the directory `<path>.parts`, which all executors must reach; the end of the block makes the
    page of them and removes the directory.

    Memory is bounded: times are counted in at most 240 bins, and there are at most three examples for each type of
    failure and ten slow records.

    Args:
        path: The page to write. An existing file is replaced.
        title: The heading.
        values: Whether the page shows values of elements, shortened. They may be secret, so the default is False, and
            records are named by their position in the input. Messages of exceptions are shown in any case.

    Returns:
        A context manager that is also the observer.

    Example:
        with report("run.html") as observer:
            async with ordered_wait(words, look_up, timeout=5.0, observer=observer) as results:
                ...
    """
    return Report(path, title=title, values=values)


class Report(Observer):
    """An observer that collects what a page about the run shows; see `report`."""

    def __init__(self, path: str | PathLike[str], *, title: str, values: bool) -> None:
        self.path = Path(path)
        self._values = values
        self._create_copy = partial(type(self), title=title, values=values)
        self._run = Run(title)
        self._zero = 0.0
        self._late: set[int] = set()  # records that have timed out and still have their slot

    def __enter__(self) -> Self:
        shutil.rmtree(self._parts, ignore_errors=True)  # of an earlier run
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        parts = [Run.from_json(json.loads(part.read_text("utf-8"))) for part in sorted(self._parts.glob("*.json"))]
        run = merge(self._run.name, parts) if parts else self._run
        _replace(self.path, page(run, tasks=len(parts)))
        shutil.rmtree(self._parts, ignore_errors=True)

    def __reduce__(self) -> tuple[Callable[..., Report], tuple[Path]]:
        return self._create_copy, (self.path.absolute(),)

    @property
    def _parts(self) -> Path:
        return self.path.with_name(f"{self.path.name}.parts")

    def of_task(self, name: str) -> Report:
        """A new observer like this one, for one of many tasks. Its `write_part` writes its part of the page.

        Args:
            name: The name of the task.
        """
        slug = re.sub(r"[^\w-]+", "-", name).strip("-")
        return self._create_copy(self._parts / f"{slug}-{uuid4().hex[:8]}.json")

    def write_part(self) -> None:
        """Write the part of this task.

        Raises:
            OSError: The file cannot be written.
        """
        _replace(self.path, json.dumps(self._run.to_json()))

    # The hooks

    def run_started(self, options: Options) -> None:
        self._zero = trio.current_time()
        self._run.began = time.time()
        self._run.options = {
            each.name: _shown(value)
            for each in fields(options)
            if each.name != "observer" and (value := getattr(options, each.name)) != DEFAULTS.get(each.name, fields)
        }

    def run_ended(self, statistics: Statistics, verdict: Verdict) -> None:
        self._run.seconds = trio.current_time() - self._zero
        self._run.statistics = statistics
        self._run.verdicts = [verdict]

    def started(self, sequence: int, element: Any) -> None:
        self._count(self._run.series.started)

    def slot_freed(self, sequence: int, element: Any) -> None:
        self._count(self._run.series.ended)
        self._late.discard(sequence)

    def emitted(self, sequence: int, element: Any) -> None:
        self._count(self._run.series.received)

    def attempt_failed(self, sequence: int, element: Any, attempt: int, error: Exception) -> None:
        failures = self._run.failures_of(type(error).__name__)
        failures.add(f"{self._label(sequence, element)}: {_message_of(error)}")

    def completed(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._end("completed", sequence, element, attempts, seconds)

    def timed_out(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._end("timed out", sequence, element, attempts, seconds)
        self._late.add(sequence)
        timeouts = self._run.failures_of("timeout")
        timeouts.add(f"{self._label(sequence, element)} after {seconds:.3g} s")
        timeouts.records += 1

    def failed(self, sequence: int, element: Any, attempts: int, seconds: float, error: Exception) -> None:
        if sequence in self._late:
            return  # it counts as timed out
        self._end("failed", sequence, element, attempts, seconds)
        self._run.failures_of(type(error).__name__).records += 1

    def _count(self, counts: list[int]) -> None:
        self._run.series.add(counts, trio.current_time() - self._zero)

    def _end(self, outcome: str, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        slowest = self._run.slowest
        if len(slowest) < MAX_SLOW or seconds > slowest[0].seconds:
            insort(slowest, SlowRecord(seconds, self._label(sequence, element), attempts, outcome))
            del slowest[:-MAX_SLOW]

    def _label(self, sequence: int, element: Any) -> str:
        return describe(value_of(element)) if self._values else f"record {sequence:,}"


def _message_of(error: Exception) -> str:
    """The message of an exception, on one line."""
    if isinstance(error, AttemptTimeoutError):  # its message quotes the element
        return f"no result within its attempt_timeout of {error.timeout:g} s"
    text = " ".join(text_of(error).split())
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 1]}…"


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else describe(value).strip("'")


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_file = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        partial_file.write_text(text, encoding="utf-8")
        os.replace(partial_file, path)  # noqa: PTH105 - as in its documentation: atomic
    finally:
        partial_file.unlink(missing_ok=True)
