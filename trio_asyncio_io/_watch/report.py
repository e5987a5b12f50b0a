"""The report: a recorder that writes a page at the end of its block."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import trio

from .._core.elements import value_of
from .._core.options import Options
from .._core.probe import leaves_of
from .._core.statistics import Statistics
from .._core.verdict import Verdict
from .display import frame_of
from .files import Parts, replace
from .page import page
from .recorder import Recorder
from .run import Run, merge
from .texts import message_of, options_of, type_of

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


class Report(Recorder):
    """An observer that collects what a page about the run shows; see `report`.

    Attributes:
        path: The path of the page.
    """

    path: Path

    def __init__(self, path: str | PathLike[str], *, title: str, values: bool, task: str = "") -> None:
        super().__init__(path, title, values=values, create_copy=partial(type(self), title=title, values=values))
        self._parts = Parts(self.path.absolute())
        self._task = task
        self._ended = Run(self._name)  # all operators that have ended, as one
        self._run = Run(self._name)
        self._is_running = self._was_pickled = False

    def __repr__(self) -> str:
        return f"<report {str(self.path)!r}>"

    def _repr_html_(self) -> str:
        return frame_of(self._parts.page)

    def __enter__(self) -> Self:
        self._parts.create()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            parts = self._parts.read()
            run = merge(self._name, parts or [self._whole()])
            run.end = _end_of(error)
            replace(self._parts.page, page(run, tasks=len(parts), note=self._why_no_tasks()))
        except OSError as problem:
            if error is None:
                raise
            _log.warning("the report was not written: %s", problem)
        finally:
            self._parts.remove()

    def __reduce__(self) -> Any:
        self._was_pickled = True
        return super().__reduce__()

    def of_task(self, name: str) -> Report:
        """A new observer like this one, for one of many tasks. Its `write_part` writes its part of the page.

        Args:
            name: The name of the task.
        """
        return self._create_copy(self._parts.path_of(name), task=f" of {name}")

    def write_part(self) -> None:
        """Write the part of this task.

        Raises:
            OSError: The file cannot be written, such as when the block of the report has ended.
        """
        replace(self.path, json.dumps(self._whole().to_json()))

    # The run, and its records

    def run_started(self, options: Options) -> None:
        if self._is_running:
            raise RuntimeError("an operator with this report is running: use one report for each")
        super().run_started(options)
        self._is_running = True
        self._ended = self._whole()
        self._run = Run(self._name, time.time(), capacity=options.capacity, options=options_of(options))

    def run_ended(self, statistics: Statistics, verdict: Verdict) -> None:
        self._is_running = False
        self._run.seconds = self._seconds()
        self._run.statistics = statistics
        self._run.verdicts = [verdict]

    def take_slot(self) -> None:
        self._count(self._run.series.started)

    def free_slot(self) -> None:
        self._count(self._run.series.ended)

    def emitted(self, sequence: int, element: Any) -> None:
        self._count(self._run.series.received)

    def attempt_failed(self, sequence: int, element: Any, attempt: int, error: Exception) -> None:
        self._count(self._run.series.failed)
        found = self._run.failures_of(type_of(error))
        found.attempts += 1
        found.keep(self._label(sequence, element), self._message(element, error))

    def timed_out(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        super().timed_out(sequence, element, attempts, seconds)
        self._count(self._run.series.failed)
        found = self._run.failures_of("timeout")
        found.attempts += 1
        found.records += 1
        found.keep(self._label(sequence, element), lambda: f"no result within {self._run.options['timeout']}")

    def failed(self, sequence: int, element: Any, attempts: int, seconds: float, error: Exception) -> None:
        if sequence not in self._late:
            found = self._run.failures_of(type_of(error))
            found.records += 1
            found.keep(self._label(sequence, element), self._message(element, error))
        super().failed(sequence, element, attempts, seconds, error)

    def end(self, sequence: int, element: Any, outcome: str, attempts: int, seconds: float, *, error: str = "") -> None:
        if outcome != "cancelled":
            self._run.keep_slow(seconds, lambda: self._label(sequence, element), attempts, outcome)

    def _whole(self) -> Run:
        """All operators so far, as one run."""
        return merge(self._name, [run for run in (self._ended, self._run) if run.began])

    def _seconds(self) -> float:
        return trio.current_time() - self.zero

    def _count(self, counts: list[int]) -> None:
        self._run.series.add(counts, self._seconds())

    def _label(self, sequence: int, element: Any) -> str:
        return self.describe(element) or f"record {sequence:,}{self._task}"

    def _message(self, element: Any, error: Exception) -> Callable[[], str]:
        return lambda: message_of(error, value_of(element), values=self._values)

    def _why_no_tasks(self) -> str:
        if not self._was_pickled:
            return ""
        return (
            "No Spark task has written its part. Run the action inside the block of the report, and use a path in a "
            "directory that all executors reach."
        )


def _end_of(error: BaseException | None) -> str:
    """How the block has ended. Messages are not shown: they may contain values."""
    if error is None:
        return "completed"
    names = sorted({type_of(each) for each in leaves_of(error)})
    return "cancelled" if names == ["Cancelled"] else f"failed: {', '.join(names[:3])}"
