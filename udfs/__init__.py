"""Async functions in Spark: a column UDF and DataFrame operators around `trio_asyncio_io`."""

# The layout, by where the code runs. Imports point down only.
#
#     check                whether this machine can run this package: Python, Java, Spark
#     demo                 a job on real flights and weather
#     http_columns         HTTP as columns and SQL functions
#     _rehearsal           the forecast of a job
#     _column  _dataframe  progress                the public functions, on the driver
#     _plan                on the driver only: the query behind an operator, schema, session, metrics
#     _spark_thread        in a worker, the thread that reads and writes Arrow; its `bridge` is the worker's only way
#                          into Trio: half of it runs there, and the `Recorder` of a memo in a third thread
#     _trio_thread         in a worker, the thread that runs Trio
#     _sent                pickled on the driver, used in workers: settings, function, rows, types, extra columns
#     _memo                the files of a memo; without Spark
#     _limits              one rate, or one budget, for all tasks of a cluster
#     http                 an httpx client for Trio; imports neither Spark nor the operator
#     _tracebacks          the user's frames and exceptions, as Spark shows them
#     _pyspark_worker      what depends on PySpark's worker from inside
#     _extras  _spark_task  _spark_version  _urls
#                          missing packages, the task of a thread, versions of Spark, URLs in messages

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._extras import needs_extra

if TYPE_CHECKING:
    from trio_asyncio_io import (
        AsyncFunction,
        ExponentialBackoff,
        FixedDelay,
        Observer,
        RetryBudget,
        shared,
        transient,
    )

    from ._column import AsyncPandasUDF, async_pandas_udf
    from ._dataframe import keyed_wait, ordered_wait, unordered_wait
    from ._limits.cluster_gates import ClusterLimitError
    from ._limits.cluster_limits import ClusterBudget, ClusterRate
    from ._memo.directory import MemoError
    from ._memo.keys import idempotency_key
    from ._plan.memo import Memo
    from ._plan.metrics import explain, summary
    from ._pyspark_worker import HangUpError
    from ._rehearsal.job import rehearse
    from ._sent.settings import CarriedTooLongError, CarryOver
    from ._spark_thread.misfits import ResultTypeError

__all__ = [
    "AsyncFunction",
    "AsyncPandasUDF",
    "CarriedTooLongError",
    "CarryOver",
    "ClusterBudget",
    "ClusterLimitError",
    "ClusterRate",
    "ExponentialBackoff",
    "FixedDelay",
    "HangUpError",
    "Memo",
    "MemoError",
    "Observer",
    "ResultTypeError",
    "RetryBudget",
    "async_pandas_udf",
    "explain",
    "idempotency_key",
    "keyed_wait",
    "ordered_wait",
    "rehearse",
    "shared",
    "summary",
    "transient",
    "unordered_wait",
]

# The modules of the other names. They are imported at a name's first use, because `udfs.http` works without PySpark and
# without the operator, and the demo's service without PySpark.
_NAMES = {
    "._column": ("AsyncPandasUDF", "async_pandas_udf"),
    "._dataframe": ("keyed_wait", "ordered_wait", "unordered_wait"),
    "._limits.cluster_gates": ("ClusterLimitError",),
    "._limits.cluster_limits": ("ClusterBudget", "ClusterRate"),
    "._memo.directory": ("MemoError",),
    "._memo.keys": ("idempotency_key",),
    "._plan.memo": ("Memo",),
    "._plan.metrics": ("explain", "summary"),
    "._pyspark_worker": ("HangUpError",),
    "._rehearsal.job": ("rehearse",),
    "._sent.settings": ("CarriedTooLongError", "CarryOver"),
    "._spark_thread.misfits": ("ResultTypeError",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use.

    Raises:
        ModuleNotFoundError: PySpark or a package that it needs is not installed. The message says what to install.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs_extra(f"{__name__}.{name}", "spark"):
        module = import_module(_MODULES.get(name, "trio_asyncio_io"), __name__)
    globals()[name] = value = getattr(module, name)
    return value


def __dir__() -> list[str]:
    """The public names, and the modules that were imported. Not what this module uses itself."""
    hidden = {"Any", "TYPE_CHECKING", "import_module", "needs_extra"}
    return sorted({*globals(), *__all__} - hidden)
