"""An asynchronous-I/O operator on Trio: many requests in flight, with a capacity, a deadline and an order."""

# The layout. Imports point down only; what stands right of the bar is pure, without await.
#
#     _stream          ordered_wait, unordered_wait, keyed_wait: the doors
#     _operator        owns the nursery
#     _feeder  _worker  _emitter  _results          |
#              _invocation                          |  _ledger
#              _function                            |  _ordered  _unordered  _keyed  (_queue)
#                                                   |  _options  _retry  _snapshot  _statistics
#                                                   |  _elements  _watermarks
#
#     adapters  policies  testing      beside the operator, which knows none of them

from ._elements import StreamRecord, Watermark
from ._errors import ElementTimeoutError, NotAsyncError, SnapshotError
from ._function import AsyncFunction
from ._keyed import KeyedStreamElementQueue
from ._operator import AsyncWaitOperator
from ._options import Options
from ._ordered import OrderedStreamElementQueue
from ._results import Results
from ._retry import ExponentialBackoff, FixedDelay, RetryStrategy
from ._snapshot import Snapshot, SnapshotElement
from ._statistics import Statistics
from ._stream import keyed_wait, ordered_wait, unordered_wait
from ._unordered import UnorderedStreamElementQueue
from ._watermarks import assign_watermarks

__all__ = [
    "AsyncFunction",
    "AsyncWaitOperator",
    "ElementTimeoutError",
    "ExponentialBackoff",
    "FixedDelay",
    "KeyedStreamElementQueue",
    "NotAsyncError",
    "Options",
    "OrderedStreamElementQueue",
    "Results",
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
    "unordered_wait",
]
