"""Writes a page about a run of an operator or of a Spark query."""

from __future__ import annotations

import errno
import json
import logging
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, asdict, fields, is_dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import chain, islice
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any, Self
from uuid import UUID

import trio

from ._account.statistics import Counters, Statistics
from ._account.verdict import Verdict
from ._core.observer import Meter
from ._core.options import Options
from ._core.snapshot import Snapshot
from ._operator.errors import AttemptTimeoutError
from ._values.describe import describe, duration, plural, printable
from ._values.exceptions import leaves_of, text_of
from ._watch.job import TaskTimes
from ._watch.page import frame_of, page
from ._watch.recorder import Recorder, path_of_part, replace_file
from ._watch.run import MAX_SLOW, Run, Series

__all__ = ["Report", "report"]

_log = logging.getLogger("trio_asyncio_io")

ROUNDING = 1e-9  # seconds: a difference of two instants may be that much less than a timeout


def report(path: str | PathLike[str], *, title: str = "operator", values: bool = False) -> Report:
    """Write a page about a run: what limited it, what went wrong, and how it went over time.

    The page is one file, which needs no network and no program but a browser. It shows the options, the verdict of
    `explain()`, throughput, calls in flight and failed calls over time, the distribution of the latency, failures by
    type with examples, retries, and the slowest records.

    Put the block of the operator, or the action of the Spark query, inside the block of the report, and give the
    observer to the operator. The page is written at the end of the block, even if the run fails or is cancelled.
    Operators that run one after the other become one page. In Spark, each task writes its part into the directory
    `<path>.parts`, which all executors must reach; the end of the block makes the page of them and removes the
    directory.

    Memory and the size of the page are bounded: times are counted in at most 120 intervals, and there are at most 50
    types of failures with three examples each, and ten slow records.

    Args:
        path: The page to write, in a directory that exists. An existing file is replaced as a whole. A `~` at its
            beginning is the home directory.
        title: The heading.
        values: Whether the page shows values of elements, shortened. They may be secret, so the default is False:
            records are named by their position in the input, and messages of exceptions are shown without the texts
            and numbers of the record, as far as these are in its first 1,000 parts, and without the paths and queries
            of URLs.

    Returns:
        A context manager that is also the observer. Entering it raises an `OSError` if the page cannot be written.

    Raises:
        TypeError, ValueError: An argument is invalid. The message names it and its value.

    Example:
        with report("run.html") as observer:
            async with ordered_wait(words, look_up, timeout=5.0, observer=observer) as results:
                ...
    """
    return Report(path, title=title, values=values)


class Report(Recorder, Meter):
    """An observer that collects what a page about the run shows; see `report`.

    Attributes:
        path: The path of the page.
    """

    path: Path

    def __init__(self, path: str | PathLike[str], *, title: str, values: bool, task: str = "") -> None:
        super().__init__(path, title, values=values, create_copy=partial(type(self), title=title, values=values))
        self._page = self.path.absolute()
        self._folder = self._page.with_name(f"{self._page.name}.parts")
        self._task = task
        self._ended = Run(self._name)  # all operators that have ended, as one
        self._run = Run(self._name)
        self._bins: _Bins | None = None  # while an operator runs
        self._late: set[int] = set()  # records that have timed out, and may fail in their handler

    def __repr__(self) -> str:
        return f"<report {str(self.path)!r}>"

    def _repr_html_(self) -> str:
        return frame_of(self._page)

    def __enter__(self) -> Self:
        _create_folder(self._folder, self._page)
        return self

    def _finish(self, error: BaseException | None) -> None:
        parts = _take_parts(self._folder)
        run = Run.merged(self._name, parts or [self._whole()])
        run.end = _end_of(error)
        replace_file(self._page, page(run, tasks=len(parts)))

    def of_task(self, name: str, value_of: Callable[[Any], Any] | None = None) -> Report:
        """A new observer like this one, for one of many tasks. Its `write_part` writes its part of the page.

        Args:
            name: The name of the task.
            value_of: Returns what the user's function gets of an element. None: the element's value.
        """
        copy = self._create_copy(path_of_part(self._folder, name), task=f" of {name}")
        if value_of is not None:
            copy.value_of = value_of
        return copy

    def write_part(self, times: TaskTimes) -> None:
        """Write the part of this task, with its times.

        Raises:
            OSError: The file cannot be written, such as when the block of the report has ended.
        """
        run = self._whole()
        run.times = times
        replace_file(self.path, json.dumps(asdict(run)))

    # The run, and its records

    def run_counted(self, counters: Counters) -> None:
        self._counters = counters

    def run_started(self, options: Options) -> None:
        if self._bins is not None:
            raise RuntimeError("an operator with this report is running: use one report for each")
        super().run_started(options)
        self._ended = self._whole()
        self._run = Run(self._name, time.time(), capacity=options.capacity, options=_options_of(options))
        self._timeout = options.timeout
        self.slow_from = -inf
        self._bins = _Bins(self._run.series, self._counters, self.zero)
        trio.lowlevel.add_instrument(self._bins)

    def run_ended(self, statistics: Statistics, verdict: Verdict) -> None:
        assert self._bins is not None
        trio.lowlevel.remove_instrument(self._bins)
        self._bins.read()
        self._bins = None
        self._run.seconds = self._seconds()
        self._run.statistics = statistics
        self._run.verdicts = [verdict]

    def completed(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._keep_slow(sequence, element, attempts, seconds, "completed")

    def attempt_failed(self, sequence: int, element: Any, attempt: int, error: Exception) -> None:
        self._count_failed()
        found = self._run.failures_of(_type_of(error))
        found.attempts += 1
        found.keep(self._label(sequence, element), self._message(element, error))

    def timed_out(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._late.add(sequence)
        self._keep_slow(sequence, element, attempts, seconds, "timed out")
        found = self._run.failures_of("timeout")
        found.records += 1
        what = "no other attempt could begin"  # its last one has ended, and the next one would be too late
        if seconds >= self._timeout - ROUNDING:
            what = "no result"
            found.attempts += 1
            self._count_failed()
        found.keep(self._label(sequence, element), lambda: f"{what} within {duration(self._timeout)}")

    def slot_freed(self, sequence: int, element: Any) -> None:
        self._late.discard(sequence)

    def failed(self, sequence: int, element: Any, attempts: int, seconds: float, error: Exception) -> None:
        if sequence not in self._late:
            self._keep_slow(sequence, element, attempts, seconds, "failed")
            found = self._run.failures_of(_type_of(error))
            found.records += 1
            found.keep(self._label(sequence, element), self._message(element, error))

    def _keep_slow(self, sequence: int, element: Any, attempts: int, seconds: float, outcome: str) -> None:
        self._run.keep_slow(seconds, lambda: self._label(sequence, element), attempts, outcome)
        if len(self._run.slowest) == MAX_SLOW:
            self.slow_from = self._run.slowest[0].seconds

    def _whole(self) -> Run:
        """All operators so far, as one run."""
        return Run.merged(self._name, [run for run in (self._ended, self._run) if run.began])

    def _seconds(self) -> float:
        return trio.current_time() - self.zero

    def _count_failed(self) -> None:
        self._run.series.add(self._run.series.failed, self._seconds())

    def _label(self, sequence: int, element: Any) -> str:
        return self.describe(element) or f"record {sequence:,}{self._task}"

    def _message(self, element: Any, error: Exception) -> Callable[[], str]:
        return lambda: _message_of(error, self.value_of(element), values=self._values)


class _Bins(trio.abc.Instrument):
    """Reads an operator's counters once per bin of time.

    When a bin has ended, what has changed since the previous reading happened in the passes of Trio's scheduler up to
    the latest one, so it counts at the time of that pass.

    Args:
        series: What to add to.
        counters: The operator's.
        zero: The instant at which its run started.
    """

    def __init__(self, series: Series, counters: Counters, zero: float) -> None:
        self._series = series
        self._counters = counters
        self._zero = self._latest = self._bin_end = zero
        self._running = self._emitted = 0

    def after_io_wait(self, timeout: float) -> None:
        """A pass begins."""
        now = trio.current_time()
        if now >= self._bin_end:
            self.read()
            width = self._series.width
            self._bin_end = self._zero + (int((now - self._zero) / width) + 1) * width
        self._latest = now

    def read(self) -> None:
        """Add what has changed since the previous reading."""
        series, seconds = self._series, self._latest - self._zero
        running, emitted = self._counters.running, self._counters.emitted
        series.add(series.change, seconds, running - self._running)
        series.add(series.received, seconds, emitted - self._emitted)
        self._running, self._emitted = running, emitted


# Files


def _create_folder(folder: Path, page: Path) -> None:
    """Create an empty directory for the parts of a page, in place of one that an earlier run has left behind.

    Raises:
        OSError: The page cannot be written.
    """
    try:
        if page.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a directory")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    except OSError as error:
        text = f"the report cannot be written ({error.strerror}): pass a path in a directory that exists"
        raise OSError(error.errno, text, str(page)) from None


def _take_parts(folder: Path) -> list[Run]:
    """The parts that tasks have written. Removes the directory."""
    found = [_read_part(part) for part in sorted(folder.glob("*.json"))]
    shutil.rmtree(folder, ignore_errors=True)
    return [part for part in found if part is not None]


def _read_part(part: Path) -> Run | None:
    try:
        return Run.from_json(json.loads(part.read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:  # of another version, for example
        _log.warning("a part of a report cannot be read: %s: %r", part, error)
        return None


# What the page shows


def _end_of(error: BaseException | None) -> str:
    """How the block has ended. Messages are not shown: they may contain values."""
    if error is None:
        return "completed"
    names = sorted({_type_of(each) for each in leaves_of(error)})
    return "cancelled" if names == ["Cancelled"] else f"failed: {', '.join(names[:3])}"


MAX_MESSAGE = 200

# Characters of a message that are searched for values: a message may be as long as a response
MAX_SEARCHED = 2_000

# Shorter texts occur in messages by chance
MIN_HIDDEN = 3

# Parts of a value that are searched for texts: a value may be as large as the memory
MAX_PARTS = 1_000

# The path and the query of a URL, and the user before its host, may be secret. The pattern starts only at the start of
# a word, so it takes linear time
URL = re.compile(r"(?<![\w+.-])([a-zA-Z][\w+.-]*://)(?:[^\s/?#'\"<>]*@)?([^\s/?#'\"<>]*)([^\s'\"<>]*)")


def _options_of(options: Options) -> dict[str, str]:
    """Names and values of the options of an operator, without those that have no effect."""
    unused = {"observer"} | (set() if options.gates else {"gate"}) | (set() if options.group else {"group_wait"})
    found = {each.name: getattr(options, each.name) for each in fields(options) if each.name not in unused}
    return {
        name: duration(value) if name in ("timeout", "group_wait") else _shown(value)
        for name, value in found.items()
        if value is not None and value is not False
    }


def _message_of(error: Exception, value: object, *, values: bool) -> str:
    """The message of an exception, on one line.

    Args:
        error: The exception.
        value: The value of the record.
        values: Whether to show what may be secret: paths and queries of URLs, and texts and numbers of the value.
    """
    if isinstance(error, AttemptTimeoutError):  # its message quotes the element
        return f"no result within its attempt_timeout of {error.timeout:g} s"
    text = text_of(error)[:MAX_SEARCHED]
    if not values:
        text = _without_texts(URL.sub(_origin_of, text), value)
    text = printable(" ".join(text.split()))
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 1]}…"


def _type_of(error: BaseException) -> str:
    """The name of the exception's class."""
    return printable(type(error).__name__)


def _shown(value: Any) -> str:
    """An option. A snapshot's elements are not shown, because they may be secret."""
    if isinstance(value, Snapshot):
        return f"a snapshot of {plural(len(value), 'element')}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if is_dataclass(value) and not isinstance(value, type):
        given = [
            f"{each.name}={_shown(getattr(value, each.name))}"
            for each in fields(value)
            if each.repr and (each.default is MISSING or getattr(value, each.name) != each.default)
        ]
        return f"{type(value).__name__}({', '.join(given)})"
    return printable(getattr(value, "__qualname__", "") or describe(value).strip("'"))


def _origin_of(url: re.Match[str]) -> str:
    scheme, host, rest = url.groups()
    return f"{scheme}{host}{'/…' if rest.strip('/') else rest}"


def _without_texts(text: str, value: object) -> str:
    """The text, in which everything that the value contains is replaced by an ellipsis."""
    try:
        found = {each for each in _texts(value) if len(each) >= MIN_HIDDEN}
    except Exception:  # noqa: BLE001 - a mapping may raise anything. Nobody knows what it contains
        return "…"
    for each in sorted(found, key=len, reverse=True):
        text = text.replace(each, "…")
    return text


def _texts(value: object) -> Iterator[str]:
    """The texts and numbers in a value, as a message may quote them."""
    parts, seen = [value], {id(value)}
    for part in parts:
        if isinstance(part, str | bytes):
            yield part if isinstance(part, str) else part.decode("latin-1")
            yield repr(part)[1:-1].removeprefix("'")
        elif isinstance(part, int | float) and not isinstance(part, bool):
            yield describe(part)
        elif isinstance(part, date | Decimal | UUID):
            yield str(part)
        else:
            new = [each for each in islice(_items(part), MAX_PARTS - len(parts)) if id(each) not in seen]
            seen.update(map(id, new))
            parts += new


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return chain(value, value.values())
    if isinstance(value, list | tuple | AbstractSet):
        return value
    try:
        state: Any = object.__getstate__(value)  # the attributes, whatever the class defines
    except TypeError:  # of an object in C
        return ()
    parts = state if isinstance(state, tuple) else (state,)  # a tuple if there are slots
    return [item for part in parts if part for item in part.values()]
