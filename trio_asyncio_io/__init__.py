"""An asynchronous-I/O operator on Trio: many calls at once, with a capacity, a timeout and an output order."""

# The layout. Imports point down only.
#
#     adapters  blocking  checkpoints  opentelemetry  policies  progress  rehearsal  report  testing
#     trace
#                          built on the operator, which imports none of them
#     queues  integration  public modules of what is below: the queues, and helpers for packages like udfs
#     gates                rates, budgets, circuit breakers, `Auto`: plain data without await
#     _watch               the recorder of a run, and the views that draw what it has recorded
#     _operator            the tasks around the core, and the functions that start them: begin with `operator`
#     _files               SQLite files of ours, and the values in them: persistent cache, durable checkpoints
#     _core                plain data without await: queues, ledger, scheduler, retries, options, snapshot
#     _account             the counts and durations of an operator, where its time went, and the verdict
#     _values              checks and texts of values, exceptions, and how public names appear

from ._account.histogram import Histogram
from ._account.statistics import Statistics
from ._account.verdict import Totals, Verdict
from ._core.dead_letter import DeadLetter, LostError
from ._core.elements import StreamRecord, Watermark, assign_watermarks
from ._core.observer import Observer
from ._core.options import Options
from ._core.reading import retry_after, transient
from ._core.retry import ExponentialBackoff, FixedDelay, RetryBudget, RetryStrategy
from ._core.snapshot import Snapshot, SnapshotElement, SnapshotError
from ._operator.errors import AttemptTimeoutError, ElementTimeoutError, NotAsyncError
from ._operator.function import AsyncFunction
from ._operator.operator import AsyncWaitOperator
from ._operator.results import Results
from ._operator.sharing import lingering, shared
from ._operator.stream import keyed_wait, ordered_wait, unordered_wait
from ._values.public import publish
from ._watch import add_displays

__version__ = "0.2.0"

__all__ = [
    "AsyncFunction",
    "AsyncWaitOperator",
    "AttemptTimeoutError",
    "DeadLetter",
    "ElementTimeoutError",
    "ExponentialBackoff",
    "FixedDelay",
    "Histogram",
    "LostError",
    "NotAsyncError",
    "Observer",
    "Options",
    "Results",
    "RetryBudget",
    "RetryStrategy",
    "Snapshot",
    "SnapshotElement",
    "SnapshotError",
    "Statistics",
    "StreamRecord",
    "Totals",
    "Verdict",
    "Watermark",
    "assign_watermarks",
    "keyed_wait",
    "lingering",
    "ordered_wait",
    "retry_after",
    "shared",
    "transient",
    "unordered_wait",
]

publish(globals())
add_displays()
