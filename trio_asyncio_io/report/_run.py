"""What a report is about: the numbers of one run, or of all tasks of a Spark query."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from functools import partial, reduce
from operator import add
from typing import Any

from .._core.histogram import Histogram
from .._core.statistics import Statistics
from .._core.sums import combined
from .._core.verdict import Verdict
from ._series import Series, merged

__all__ = ["Failures", "Run", "SlowRecord", "merge"]

MAX_EXAMPLES = 3
MAX_SLOW = 10
MAX_TYPES = 50

OTHER_TYPES = "other types"

HISTOGRAMS = ("latency", "slot_wait", "head_wait", "gate_wait")
PEAKS = ("peak_running", "peak_buffered")


@dataclass
class Failures:
    """The failures of one type.

    Args:
        attempts: The calls that failed in this way.
        records: The records that have no result for this reason.
        examples: Different messages, each with the first record that has it.
    """

    attempts: int = 0
    records: int = 0
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, record: str, create_message: Callable[[], str]) -> None:
        """Count a failed call, and keep its message if it is a new one."""
        self.attempts += 1
        self.keep(record, create_message)

    def keep(self, record: str, create_message: Callable[[], str]) -> None:
        """Keep a message if it is a new one."""
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.setdefault(create_message(), record)

    def merge(self, other: Failures) -> None:
        """Add other failures of this type."""
        self.attempts += other.attempts
        self.records += other.records
        examples = {**other.examples, **self.examples}
        self.examples = {each: examples[each] for each in [*self.examples, *other.examples][:MAX_EXAMPLES]}


@dataclass(order=True)
class SlowRecord:
    """A record whose invocation took long, in seconds. Compares by them."""

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
        seconds: How long it took.
        end: How its block ended: "completed", "cancelled", or "failed: " and the type; empty: not known.
        capacity: The capacity, if it is known and there is one operator.
        options: Names and values of the options of the operator.
        series: Starts, ends and outputs over time.
        failures: By type of exception. A timeout is one.
        slowest: The slowest records, in ascending order.
        statistics: The last statistics.
        verdicts: One for each operator, which are many in a Spark query.
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

    def failures_of(self, kind: str) -> Failures:
        """The failures of this type, to be counted."""
        is_new = kind not in self.failures
        return self.failures.setdefault(OTHER_TYPES if is_new and len(self.failures) >= MAX_TYPES else kind, Failures())

    def to_json(self) -> dict[str, Any]:
        """The run as an object for `json.dumps`."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Run:
        """The run of an object that `to_json` has made.

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
            }
        )


def merge(name: str, runs: Iterable[Run]) -> Run:
    """One run of many, such as those of the tasks of a query, placed in time by the clocks of their machines."""
    runs = sorted(runs, key=lambda run: run.began)
    if not runs:
        return Run(name)
    began = runs[0].began
    whole = Run(
        name,
        began,
        max(run.began + run.seconds for run in runs) - began,
        capacity=runs[0].capacity if len(runs) == 1 else None,
        options=runs[0].options,
        series=merged((run.began - began, run.series) for run in runs),
        slowest=sorted(each for run in runs for each in run.slowest)[-MAX_SLOW:],
        statistics=_sum([run.statistics for run in runs]),
        verdicts=[verdict for run in runs for verdict in run.verdicts],
    )
    for run in runs:
        for kind, found in run.failures.items():
            whole.failures_of(kind).merge(found)
    return whole


def _sum(parts: list[Statistics]) -> Statistics:
    """The sums of several statistics; peaks are those of the highest one."""
    values: dict[str, Any] = {}
    for each in fields(Statistics):
        found = [getattr(part, each.name) for part in parts]
        if each.name in PEAKS:
            values[each.name] = max(found)
        elif each.name == "seconds_by_gate":
            values[each.name] = reduce(partial(combined, add), found)
        else:
            values[each.name] = sum(found[1:], found[0])
    return Statistics(**values)
