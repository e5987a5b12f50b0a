"""An asynchronous-I/O operator on Trio: many requests in flight, with a capacity, a deadline and an order."""

# The layout. Imports point down only; what stands right of the bar is pure, without await.
#
#     _stream          ordered_wait, unordered_wait, keyed_wait: the doors
#     _operator        owns the nursery
#     _feeder  _worker  _emitter  _results          |  _observed
#              _deadlines  _invocation  _letters    |  _ledger
#              _context  _pace                      |
#              _attempts  _boundary  _function      |  _ordered  _unordered  _keyed  (_queue)
#                                                   |  _options  _retry  _retry_after  _retry_budget  _transient
#                                                   |  _snapshot  _statistics  _dead_letter  _portable  _observer
#                                                   |  _errors  _elements  _watermarks  _notes  _probe  _describe  _addresses
#
#     adapters  checkpoints  opentelemetry  policies  progress (_display)  testing
#         beside the operator, which knows none of them

from ._addresses import publish
from ._dead_letter import DeadLetter, LostError
from ._elements import StreamRecord, Watermark
from ._errors import AttemptTimeoutError, ElementTimeoutError, NotAsyncError, SnapshotError
from ._function import AsyncFunction
from ._keyed import KeyedStreamElementQueue
from ._letters import DeadLetters
from ._observer import Observer
from ._operator import AsyncWaitOperator
from ._options import Options
from ._ordered import OrderedStreamElementQueue
from ._results import Results
from ._retry import DelayList, ExponentialBackoff, FixedDelay, RetryStrategy
from ._retry_after import retry_after
from ._retry_budget import RetryBudget
from ._snapshot import Snapshot, SnapshotElement
from ._statistics import Statistics
from ._stream import keyed_wait, ordered_wait, unordered_wait
from ._transient import transient
from ._unordered import UnorderedStreamElementQueue
from ._watermarks import assign_watermarks

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
    "keyed_wait",
    "ordered_wait",
    "retry_after",
    "transient",
    "unordered_wait",
]

publish(globals())
