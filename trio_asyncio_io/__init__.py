"""An asynchronous-I/O operator on Trio: many calls at once, with a capacity, a timeout and an output order."""

# The layout. Imports point down only.
#
#     _notebook            what a notebook shows of statistics, histograms, verdicts and snapshots
#     adapters  blocking  checkpoints  opentelemetry  policies  progress (_display  _summary)  report
#     testing  trace
#                          built on the operator, which imports none of them
#     _stream              ordered_wait, unordered_wait, keyed_wait
#     _operator            owns the nursery; read it first
#     _parts               the parts of an operator, connected
#     _feeder  _worker_pool  _gated_worker  _worker  _emitter  _results
#                          the tasks, and the channel that the consumer reads
#     _lifetime  _invoker  _attempts  _deadlines  _dead_letters
#     _wakeup  _pace  _context  _boundary         waiting, checkpoints, context variables, Ctrl-C
#     _clocks              the time, and the CPU time of the loop's thread
#     _gatekeeper  _line  _admissions  _gate_group  _gate_in_use
#                          where calls wait for gates, and the calls that they admit
#     _keyed_gates  _gates_of_key  _gate_family    gates of which each key has its own
#     _slots               slots that are given back during long waits
#     _gates_of_call  _ledgers    the gates of the present call, and its operator's ledger, for policies
#     _sharing             resources that several operators share by name
#     _function  _errors  _exception_copy  _exception_groups  _transient  _outcomes
#     gates                which calls may start: rates, plain data without await
#     _core                plain data without await: queues, ledger, options, retry arithmetic, snapshot
#     _sqlite  _codec      an SQLite file of ours, and the values in it: persistent cache, durable checkpoints
#     keywords             lists keyword arguments in signatures and docstrings
#     _addresses           sets `__module__` of public names to their public module

from ._addresses import publish
from ._core.dead_letter import DeadLetter, LostError
from ._core.describe import describe
from ._core.elements import StreamRecord, Watermark
from ._core.histogram import Histogram
from ._core.keyed import KeyedStreamElementQueue
from ._core.observer import Observer
from ._core.options import Options
from ._core.ordered import OrderedStreamElementQueue
from ._core.retry import DelayList, ExponentialBackoff, FixedDelay, RetryStrategy
from ._core.retry_after import retry_after
from ._core.retry_budget import RetryBudget
from ._core.snapshot import Snapshot, SnapshotElement, SnapshotError
from ._core.statistics import Statistics
from ._core.totals import Totals
from ._core.unordered import UnorderedStreamElementQueue
from ._core.verdict import Verdict
from ._core.watermarks import assign_watermarks
from ._dead_letters import DeadLetters
from ._errors import AttemptTimeoutError, ElementTimeoutError, NotAsyncError
from ._function import AsyncFunction
from ._notebook import add_displays
from ._operator import AsyncWaitOperator
from ._results import Results
from ._sharing.resource import lingering
from ._sharing.shared import shared
from ._stream import keyed_wait, ordered_wait, unordered_wait
from ._transient import transient

__all__ = [
    "AsyncFunction",
    "AsyncWaitOperator",
    "AttemptTimeoutError",
    "DeadLetter",
    "DeadLetters",
    "DelayList",
    "ElementTimeoutError",
    "ExponentialBackoff",
    "FixedDelay",
    "Histogram",
    "KeyedStreamElementQueue",
    "LostError",
    "NotAsyncError",
    "Observer",
    "Options",
    "OrderedStreamElementQueue",
    "Results",
    "RetryBudget",
    "RetryStrategy",
    "Snapshot",
    "SnapshotElement",
    "SnapshotError",
    "Statistics",
    "StreamRecord",
    "Totals",
    "UnorderedStreamElementQueue",
    "Verdict",
    "Watermark",
    "assign_watermarks",
    "describe",
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
