"""An asynchronous-I/O operator on Trio: many calls at once, with a capacity, a timeout and an output order."""

# The layout. Imports point down only.
#
#     _notebook            what a notebook shows of statistics, histograms, verdicts and snapshots
#     adapters  blocking  checkpoints  opentelemetry  policies  progress (_summary  _display)  rehearsal
#     report  testing  trace
#                          built on the operator, which imports none of them
#     queues  embedding    public modules of what is below: the queues, and helpers for packages like udfs
#     _stream              ordered_wait, unordered_wait, keyed_wait
#     _operator            owns the nursery; read it first
#     _parts               the parts of an operator, connected
#     _feeder  _worker  _emitter  _results
#                          the tasks, and the channel that the consumer reads
#     _attempts  _dead_letters  _lifetime
#                          one call, and what replaces its result; opening and closing
#     _gates               gates in use: their clocks, their users, and the calls that they have admitted
#     _calls               how a policy finds the deadline, the gates and the ledger of its call
#     _boundary  _tasks  _timer
#                          Ctrl-C and context variables; wake-ups, checkpoints, clocks; one task for all instants
#     _sharing             resources that several operators share by name
#     _function  _classification  _errors  _exceptions
#     gates                rates, capacities, circuit breakers: plain data without await
#     _core                plain data without await: queues, ledger, scheduler, retries, options, snapshot
#     _sqlite  _codec      an SQLite file of ours, and the values in it: persistent cache, durable checkpoints
#     _keywords            lists keyword arguments in signatures and docstrings
#     _addresses           sets `__module__` of public names to their public module

from ._addresses import publish
from ._classification import transient
from ._core.dead_letter import DeadLetter, LostError
from ._core.elements import StreamRecord, Watermark
from ._core.histogram import Histogram
from ._core.observer import Observer
from ._core.options import Options
from ._core.retry import DelayList, ExponentialBackoff, FixedDelay, RetryStrategy
from ._core.retry_after import retry_after
from ._core.retry_budget import RetryBudget
from ._core.snapshot import Snapshot, SnapshotElement, SnapshotError
from ._core.statistics import Statistics
from ._core.totals import Totals
from ._core.verdict import Verdict
from ._core.watermarks import assign_watermarks
from ._errors import AttemptTimeoutError, ElementTimeoutError, NotAsyncError
from ._function import AsyncFunction
from ._notebook import add_displays
from ._operator import AsyncWaitOperator
from ._results import Results
from ._sharing.resource import lingering
from ._sharing.shared import shared
from ._stream import keyed_wait, ordered_wait, unordered_wait

# Their module is `queues`; they can be imported from here as well
from .queues import KeyedStreamElementQueue as KeyedStreamElementQueue
from .queues import OrderedStreamElementQueue as OrderedStreamElementQueue
from .queues import UnorderedStreamElementQueue as UnorderedStreamElementQueue

__all__ = [
    "AsyncFunction",
    "AsyncWaitOperator",
    "AttemptTimeoutError",
    "DeadLetter",
    "DelayList",
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
