"""Async functions in Spark: a column UDF and DataFrame operators around `trio_asyncio_io`."""

# The layout. Imports point down only; `_bridge` is the one place where synchronous code enters Trio.
#
#     _column  _dataframe                      the doors, on the driver
#     _stages                                  the plan of a query that carries rows over
#     _settings  _schema  _session  _pack  _metrics  _carry_over  _worker_python    what is checked there and pickled
#     ─────────────────────────────────────────────────────────────────────────
#     _stateful  _micro_batch  _buckets        a bucket's state and rows from one micro-batch to the next
#     _headline                                what is read first of a task that failed
#     _bridge  _budget  _task_log              Spark's thread and the loop's thread
#     _runtime  _blocked_loop  _hangup  _calls  _observer    in the loop
#     _enrichment  _rows  _results  _scalars  _output  _text    rows in and out, in Spark's thread
#     _carry  _carried  _payload  _slices  _zone    Arrow that is not turned into Python
#     _daemon  _output_buffer                  this worker's connection to Spark
#
#     http                                     an httpx client that stays fast on Trio
#     _http_client  _http_reply                what of httpx is made shorter
#     _http_transport  _http_proxies           which connection is used; a proxy of the environment is refused
#     _http_connection  _http_dial  _http_upload  _http_socket  _http_tls  _http_deadlines    one connection
#     _http_parser  _http_head  _http_url  _http_idle               plain data
#     _http_decoding  _http_charset            the content coding and the charset of a body
#     http_columns                             HTTP as columns and SQL functions, without a function
#     _http_options  _http_rows  _http_call  _http_request  _http_answer
#     progress  _job_watch                     a line about a session's tasks and micro-batches, on the driver
#     demo                                     the main job, on real flights and weather

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trio_asyncio_io import AsyncFunction, DelayList, ExponentialBackoff, FixedDelay, Observer, RetryBudget, transient

if TYPE_CHECKING:
    from ._carry_over import CarriedTooLongError, CarryOver
    from ._column import AsyncPandasUDF, async_pandas_udf
    from ._dataframe import keyed_wait, ordered_wait, unordered_wait
    from ._hangup import HangUpError
    from ._plan.metrics import summary
    from ._results import ResultTypeError

__all__ = [
    "AsyncFunction",
    "AsyncPandasUDF",
    "CarriedTooLongError",
    "CarryOver",
    "DelayList",
    "ExponentialBackoff",
    "FixedDelay",
    "HangUpError",
    "Observer",
    "ResultTypeError",
    "RetryBudget",
    "async_pandas_udf",
    "keyed_wait",
    "ordered_wait",
    "summary",
    "transient",
    "unordered_wait",
]

# The names that need PySpark, and where they are. They are imported at their first use, because `udfs.http` and the
# demo's service need no PySpark.
_MODULES = {
    "AsyncPandasUDF": "_column",
    "CarriedTooLongError": "_carry_over",
    "CarryOver": "_carry_over",
    "HangUpError": "_hangup",
    "ResultTypeError": "_results",
    "async_pandas_udf": "_column",
    "keyed_wait": "_dataframe",
    "ordered_wait": "_dataframe",
    "summary": "_metrics",
    "unordered_wait": "_dataframe",
}


def __getattr__(name: str) -> Any:
    """A public name, imported at its first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
