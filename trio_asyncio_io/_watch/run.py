"""The numbers of one run, or of all tasks of a Spark query: the content of a report."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from .._account.histogram import Histogram
from .._account.statistics import Statistics
from .._account.verdict import Verdict
from .job import TaskTimes

# When there are more, each two become one
MAX_BINS = 120

# The width of the first bins, in seconds: a power of two, so that the edges of bins are exact
FINEST = 2**-7


@dataclass
class Series:
    """The counts of each bin of time.

    Args:
        width: The width of a bin, in seconds: a power of two.
        change: For each bin, from the beginning of the run: the increase of the number of running calls.
        received, failed: For each bin: the outputs that were received, and the calls that failed.
    """

    width: float = FINEST
    change: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)

    @classmethod
    def merged(cls, parts: Iterable[tuple[float, Series]]) -> Series:
        """One series of many. Each comes with the time of its beginning, in seconds after the first one."""
        parts = list(parts)
        whole = cls(max((part.width for _, part in parts), default=FINEST))
        for shift, part in parts:
            for counts, into in zip(part.lists(), whole.lists(), strict=True):
                for number, count in enumerate(counts):
                    whole.add(into, shift + number * part.width, count)
        return whole

    def add(self, counts: list[int], seconds: float, number: int = 1) -> None:
        """Add a number of events, which happened this long after the beginning of the run."""
        while seconds >= MAX_BINS * self.width:
            self.coarsen()
        position = int(seconds / self.width)
        if position >= len(counts):
            counts.extend([0] * (position + 1 - len(counts)))
        counts[position] += number

    def coarsen(self) -> None:
        """Double the width of the bins."""
        self.width *= 2
        for counts in self.lists():
            counts[:] = [sum(counts[index : index + 2]) for index in range(0, len(counts), 2)]

    @property
    def bins(self) -> int:
        """The number of bins up to the last event."""
        return max(map(len, self.lists()))

    def rates(self, counts: list[int]) -> list[float]:
        """Events per second, by bin."""
        return [count / self.width for count in self._padded(counts)]

    def running(self) -> list[int]:
        """Calls that run at the end of each bin."""
        return list(accumulate(self._padded(self.change)))

    def lists(self) -> tuple[list[int], ...]:
        """All counts, in an order that is always the same."""
        return self.change, self.received, self.failed

    def _padded(self, counts: list[int]) -> list[int]:
        return counts + [0] * (self.bins - len(counts))


MAX_EXAMPLES = 3
MAX_SLOW = 10
MAX_TYPES = 50

OTHER_TYPES = "other types"

HISTOGRAMS = ("latency", "slot_wait", "head_wait", "gate_wait")


@dataclass
class Failures:
    """The failures of one type.

    Args:
        attempts: The number of failed calls.
        records: The number of records without a result.
        examples: Different messages, each with the first record that has it.
    """

    attempts: int = 0
    records: int = 0
    examples: dict[str, str] = field(default_factory=dict)

    def keep(self, record: str, create_message: Callable[[], str]) -> None:
        """Keep a message if it is a new one."""
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.setdefault(create_message(), record)

    def add(self, other: Failures) -> None:
        """Add other failures of this type."""
        self.attempts += other.attempts
        self.records += other.records
        examples = {**other.examples, **self.examples}
        self.examples = {each: examples[each] for each in [*self.examples, *other.examples][:MAX_EXAMPLES]}


@dataclass(order=True)
class SlowRecord:
    """A record with a long invocation. Slow records compare by their seconds."""

    seconds: float
    label: str = field(compare=False)
    attempts: int = field(compare=False)
    outcome: str = field(compare=False)


@dataclass
class Run:
    """The numbers of one run.

    Attributes:
        name: The operator.
        began: Its start, in seconds since 1970.
        seconds: Its length.
        end: How its block ended: "completed", "cancelled", or "failed: " and the type; empty: not known.
        capacity: The capacity, if it is known and there is one operator.
        options: Names and values of the options of the operator.
        series: Calls in flight, outputs and failed calls over time.
        failures: By type of exception. A timeout is one.
        slowest: The slowest records, in ascending order.
        statistics: The last statistics.
        verdicts: One for each operator. A Spark query has many.
        times: Where the time of the tasks of a Spark query went.
    """

    name: str
    began: float = 0.0
    seconds: float = 0.0
    end: str = ""
    capacity: int | None = None
    options: dict[str, str] = field(default_factory=dict)
    series: Series = field(default_factory=Series)
    failures: dict[str, Failures] = field(default_factory=dict)
    slowest: list[SlowRecord] = field(default_factory=list)
    statistics: Statistics = field(default_factory=Statistics)
    verdicts: list[Verdict] = field(default_factory=list)
    times: TaskTimes = field(default_factory=TaskTimes)

    def failures_of(self, kind: str) -> Failures:
        """The failures of this type, to be counted."""
        if kind not in self.failures and len(self.failures) >= MAX_TYPES:
            kind = OTHER_TYPES
        return self.failures.setdefault(kind, Failures())

    def keep_slow(self, seconds: float, create_label: Callable[[], str], attempts: int, outcome: str) -> None:
        """Keep a record if it is among the slowest."""
        if len(self.slowest) < MAX_SLOW or seconds > self.slowest[0].seconds:
            insort(self.slowest, SlowRecord(seconds, create_label(), attempts, outcome))
            del self.slowest[:-MAX_SLOW]

    @classmethod
    def merged(cls, name: str, runs: Iterable[Run]) -> Run:
        """One run of many, such as the runs of a query's tasks, placed in time by the clocks of their machines."""
        runs = sorted(runs, key=lambda run: run.began)
        if not runs:
            return cls(name)
        began = runs[0].began
        whole = cls(
            name,
            began,
            max(run.began + run.seconds for run in runs) - began,
            capacity=runs[0].capacity if len(runs) == 1 else None,
            options=runs[0].options,
            series=Series.merged((run.began - began, run.series) for run in runs),
            slowest=sorted(each for run in runs for each in run.slowest)[-MAX_SLOW:],
            statistics=sum((run.statistics for run in runs), Statistics()),
            verdicts=[verdict for run in runs for verdict in run.verdicts],
            times=sum((run.times for run in runs), TaskTimes()),
        )
        for run in runs:
            for kind, found in run.failures.items():
                whole.failures_of(kind).add(found)
        return whole

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Run:
        """The run from the JSON of `dataclasses.asdict(run)`.

        Raises:
            TypeError, KeyError, AttributeError: The object is something else.
        """
        statistics = dict(values["statistics"])
        for name in HISTOGRAMS:
            statistics[name] = Histogram(**statistics[name])
        return cls(
            **{
                **values,
                "series": Series(**values["series"]),
                "failures": {kind: Failures(**each) for kind, each in values["failures"].items()},
                "slowest": [SlowRecord(**each) for each in values["slowest"]],
                "statistics": Statistics(**statistics),
                "verdicts": [Verdict(**{**each, "sentences": tuple(each["sentences"])}) for each in values["verdicts"]],
                "times": TaskTimes(**values["times"]),
            }
        )
