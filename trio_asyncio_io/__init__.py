"""An asynchronous-I/O operator on Trio: many requests in flight, with a capacity, a deadline and an order."""

# The layout. Imports point down only.
#
#     adapters  checkpoints  opentelemetry  policies  progress (_display)  testing
#                          built on the operator, which knows none of them
#     _stream              ordered_wait, unordered_wait, keyed_wait
#     _operator            owns the nursery
#     _feeder  _worker  _emitter  _results        the tasks, and the channel that the consumer reads
#     _invocation  _attempts  _deadlines  _dead_letters
#     _boundary  _context  _pace  _function  _errors  _transient
#     _core                plain data without await: queues, ledger, options, retry arithmetic, snapshot
#     _sqlite              an SQLite file of ours, for the persistent cache and durable checkpoints
#     _addresses           gives public names the address of their public module

import sys

from ._addresses import publish
from ._core.dead_letter import DeadLetter, LostError
from ._core.describe import describe
from ._core.elements import StreamRecord, Watermark
from ._core.keyed import KeyedStreamElementQueue
from ._core.observer import Observer
from ._core.options import Options
from ._core.ordered import OrderedStreamElementQueue
from ._core.retry import DelayList, ExponentialBackoff, FixedDelay, RetryStrategy
from ._core.retry_after import retry_after
from ._core.retry_budget import RetryBudget
from ._core.snapshot import Snapshot, SnapshotElement, SnapshotError
from ._core.statistics import Statistics
from ._core.unordered import UnorderedStreamElementQueue
from ._core.watermarks import assign_watermarks
from ._dead_letters import DeadLetters
from ._errors import AttemptTimeoutError, ElementTimeoutError, NotAsyncError
from ._function import AsyncFunction
from ._operator import AsyncWaitOperator
from ._results import Results
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
    "UnorderedStreamElementQueue",
    "Watermark",
    "assign_watermarks",
    "describe",
    "keyed_wait",
    "ordered_wait",
    "retry_after",
    "transient",
    "unordered_wait",
]

publish(globals())

# Pickles that version 0.1.0 wrote, in durable checkpoints too, name these modules as they were called then
for _name in ("dead_letter", "elements", "portable", "snapshot"):
    sys.modules[f"{__name__}._{_name}"] = sys.modules[f"{__name__}._core.{_name}"]
