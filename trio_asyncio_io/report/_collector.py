"""The observer of a report, which writes the page at the end of its block."""

from __future__ import annotations

import json
import logging
import time
from bisect import insort
from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import trio

from .._core.describe import describe
from .._core.elements import value_of
from .._core.observer import Observer
from .._core.options import Options
from .._core.probe import leaves_of
from .._core.statistics import Statistics
from .._core.verdict import Verdict
from ._display import frame_of
from ._files import Files, replace
from ._page import page
from ._run import MAX_SLOW, Run, SlowRecord, merge
from ._texts import message_of, options_of, printable

__all__ = ["Report", "report"]

_log = logging.getLogger("trio_asyncio_io")


def report(path: str | PathLike[str], *, title: str = "operator", values: bool = False) -> Report:
    """Write a page about a run: what limited it, what went wrong, and how it went over time.

    The page is one file, which needs no network and no program but a browser. It shows the options, the verdict of
    `explain()`, throughput, calls in flight and failed calls over time, the distribution of the latency, failures by
    type with examples, retries, and the slowest records.

    Put the block of the operator, or the action of the Spark query, inside the block of the report, and give the
    observer to the operator. The page is written at the end of the block, also if the run fails or is cancelled.
    Operators that run one after the other become one page. In Spark, each task writes its part into the directory
    `<path>.parts`, which all executors must reach; the end of the block makes the page of them and removes the
    directory.

    Memory and the size of the page are bounded: times are counted in at most 120 intervals, and there are at most 50
    types of failures with three examples each, and ten slow records.

    Args:
        path: The page to write, in a directory that exists. An existing file is replaced as a whole.
        title: The heading.
        values: Whether the page shows values of elements, shortened. They may be secret, so the default is False:
            records are named by their position in the input, and messages of exceptions are shown without the texts
            and numbers of the record, and without the paths and queries of URLs.

    Returns:
        A context manager that is also the observer. Entering it raises an `OSError` if the page cannot be written.

    Example:
        with report("run.html") as observer:
            async with ordered_wait(words, look_up, timeout=5.0, observer=observer) as results:
                ...
    """
    return Report(path, title=title, values=values)


class Report(Observer):
    """An observer that collects what a page about the run shows; see `report`.

    Attributes:
        path: The path of the page.
    """

    def __init__(self, path: str | PathLike[str], *, title: str, values: bool, task: str = "") -> None:
        self.path = Path(path)
        self._files = Files(self.path.absolute())
        self._values = values
        self._task = task
        self._create_copy = partial(type(self), title=title, values=values)
        self._title = printable(title)
        self._ended = Run(self._title)  # all operators that have ended, as one
        self._run = Run(self._title)
        self._is_running = False
        self._was_pickled = False
        self._zero = 0.0
        self._waiting: set[int] = set()  # records that wait for a retry
        self._late: set[int] = set()  # records that have timed out and still have their slot

    def __repr__(self) -> str:
        return f"<report {str(self.path)!r}>"

    def _repr_html_(self) -> str:
        return frame_of(self._files.page)

    def __enter__(self) -> Self:
        self._files.create()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            parts = self._files.read_parts()
            run = merge(self._title, parts or [self._whole()])
            run.end = _end_of(error)
            replace(self._files.page, page(run, tasks=len(parts), note=self._why_no_tasks()))
        except OSError as problem:
            if error is None:
                raise
            _log.warning("the report was not written: %s", problem)
        finally:
            self._files.remove_parts()

    def __reduce__(self) -> tuple[Callable[..., Report], tuple[Path]]:
        self._was_pickled = True
        return self._create_copy, (self._files.page,)

    def of_task(self, name: str) -> Report:
        """A new observer like this one, for one of many tasks. Its `write_part` writes its part of the page.

        Args:
            name: The name of the task.
        """
        return self._create_copy(self._files.path_of_part(name), task=f" of {name}")

    def write_part(self) -> None:
        """Write the part of this task.

        Raises:
            OSError: The file cannot be written, such as when the block of the report has ended.
        """
        replace(self.path, json.dumps(self._whole().to_json()))

    # The hooks

    def run_started(self, options: Options) -> None:
        if self._is_running:
            raise RuntimeError("an operator with this report is running: use one report for each")
        self._ended = self._whole()
        self._run = Run(self._title, time.time(), capacity=options.slots, options=options_of(options))
        self._is_running = True
        self._zero = trio.current_time()

    def run_ended(self, statistics: Statistics, verdict: Verdict) -> None:
        self._is_running = False
        self._run.seconds = trio.current_time() - self._zero
        self._run.statistics = statistics
        self._run.verdicts = [verdict]

    def started(self, sequence: int, element: Any) -> None:
        self._count(self._run.series.started)

    def backing_off(self, sequence: int, element: Any, attempt: int, seconds: float) -> None:
        self._count(self._run.series.ended)
        self._waiting.add(sequence)

    def retried(self, sequence: int, element: Any, attempt: int) -> None:
        self._count(self._run.series.started)
        self._waiting.discard(sequence)

    def slot_freed(self, sequence: int, element: Any) -> None:
        if sequence in self._waiting:  # for a retry that was cancelled, or refused by a gate
            self._waiting.remove(sequence)
        else:
            self._count(self._run.series.ended)
        self._late.discard(sequence)

    def emitted(self, sequence: int, element: Any) -> None:
        self._count(self._run.series.received)

    def attempt_failed(self, sequence: int, element: Any, attempt: int, error: Exception) -> None:
        self._count(self._run.series.failed)
        failures = self._run.failures_of(_type_of(error))
        failures.add(
            self._label(sequence, element),
            lambda: message_of(error, value_of(element), values=self._values),
        )

    def completed(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._end("completed", sequence, element, attempts, seconds)

    def timed_out(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._end("timed out", sequence, element, attempts, seconds)
        self._late.add(sequence)
        self._count(self._run.series.failed)
        timeout = self._run.options["timeout"]
        timeouts = self._run.failures_of("timeout")
        timeouts.add(self._label(sequence, element), lambda: f"no result within {timeout}")
        timeouts.records += 1

    def failed(self, sequence: int, element: Any, attempts: int, seconds: float, error: Exception) -> None:
        if sequence in self._late:
            return  # it counts as timed out
        self._end("failed", sequence, element, attempts, seconds)
        failures = self._run.failures_of(_type_of(error))
        failures.records += 1
        if not attempts:  # refused by a gate, so no attempt has failed
            failures.keep(
                self._label(sequence, element), lambda: message_of(error, value_of(element), values=self._values)
            )

    def _whole(self) -> Run:
        """All operators so far, as one run."""
        return merge(self._title, [run for run in (self._ended, self._run) if run.began])

    def _count(self, counts: list[int]) -> None:
        self._run.series.add(counts, trio.current_time() - self._zero)

    def _end(self, outcome: str, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        slowest = self._run.slowest
        if len(slowest) < MAX_SLOW or seconds > slowest[0].seconds:
            insort(slowest, SlowRecord(seconds, self._label(sequence, element), attempts, outcome))
            del slowest[:-MAX_SLOW]

    def _label(self, sequence: int, element: Any) -> str:
        return printable(describe(value_of(element))) if self._values else f"record {sequence:,}{self._task}"

    def _why_no_tasks(self) -> str:
        if not self._was_pickled:
            return ""
        return (
            "No Spark task has written its part. Run the action inside the block of the report, and use a path in a "
            "directory that all executors reach."
        )


def _type_of(error: BaseException) -> str:
    return printable(type(error).__name__)


def _end_of(error: BaseException | None) -> str:
    """How the block has ended. Messages are not shown: they may contain values."""
    if error is None:
        return "completed"
    names = sorted({_type_of(each) for each in leaves_of(error)})
    return "cancelled" if names == ["Cancelled"] else f"failed: {', '.join(names[:3])}"
