"""PySpark's worker from inside: the one module that depends on parts of PySpark's worker that are not public.

Three such parts are in its frames. A job also runs without the first two, with the same results; a warning says once
per process what is lost then:

* `sock`, a local variable of PySpark's daemon, is the connection to Spark. Without it, the calls of a cancelled task
  continue until Spark kills the worker.
* `outfile`, another one, is the buffer of the worker's output. Without it, rows reach Spark when that buffer is full or
  the task ends, so `limit` and `first` make more calls.
* The serializer of Spark 3.5 and 4.0, which have no Arrow UDFs, lets a column UDF exchange Arrow arrays. Without it, a
  column UDF is refused.

The fourth part is an environment variable, which hides the tracebacks of exceptions.

This worker runs one task after another. If a later one runs several at once, each in a thread of its own, no task finds
anything of another one here.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from inspect import signature
from io import BufferedWriter
from types import FrameType
from typing import Any, Final, NoReturn, TypeVar

import pyarrow as pa
import pyspark
from pyspark.sql.types import DataType, StructType

from ._spark_task import SparkTask
from ._spark_version import has_arrow_udf

DAEMON: Final = "pyspark.daemon"

# By the missing part: what is lost
LOSSES: Final = {
    "sock": "the calls of a cancelled task continue until Spark kills this worker",
    "outfile": "rows reach Spark only when its buffer is full or the task ends",
}

logger = logging.getLogger("udfs")

T = TypeVar("T")

_reported: set[str] = set()


class HangUpError(RuntimeError):
    """Spark has closed the connection to this worker, because the task was cancelled or needs no more rows."""

    __module__ = "udfs"


@dataclass(frozen=True, slots=True)
class WorkerConnection:
    """The connection between Spark and this worker, as far as it is found.

    Attributes:
        socket: Its socket, or None.
        output: PySpark's buffer in front of the socket, or None. PySpark sends it when it is full (`spark.buffer.size`,
            64 KiB) or the task ends.
    """

    socket: socket.socket | None
    output: BufferedWriter | None

    @classmethod
    def of_task(cls) -> WorkerConnection:
        """The connection of the task that runs in this thread, which must be Spark's."""
        found = cls(_local_of_daemon("sock", socket.socket), _local_of_daemon("outfile", BufferedWriter))
        _report_missing(sock=found.socket, outfile=found.output)
        return found

    def flush(self) -> None:
        """Send the output that Spark's thread has written so far, if the buffer is found.

        Raises:
            HangUpError: Spark has closed the connection.
        """
        if self.output is not None:
            try:
                self.output.flush()
            except OSError as error:
                raise HangUpError("Spark has closed the connection to this worker") from error


def _local_of_daemon(name: str, of_type: type[T]) -> T | None:
    """A local variable of PySpark's daemon, or None if there is none with this name and type.

    The daemon (PySpark 3.5 to 4.3) runs as `__main__`.
    """
    of_daemon = (each for each in _frames() if getattr(each.f_globals.get("__spec__"), "name", None) == DAEMON)
    return next((found for each in of_daemon if isinstance(found := each.f_locals.get(name), of_type)), None)


def _frames() -> Iterator[FrameType]:
    """The frames below the caller, innermost first."""
    frame = sys._getframe().f_back  # noqa: SLF001 - the documented way to walk the stack
    while frame is not None:
        yield frame
        frame = frame.f_back


def _report_missing(**parts: object) -> None:
    """Warn of what is lost without the parts that are None, once per process. Outside a task, they are not expected."""
    missing = {name for name, part in parts.items() if part is None} - _reported
    if missing and SparkTask.current() is not None:
        _reported.update(missing)
        losses = "; ".join(loss for name, loss in LOSSES.items() if name in missing)
        logger.warning(
            "the Python worker of this PySpark, %s, differs from the supported ones, 3.5 to 4.3. Results are the same, "
            "but: %s",
            pyspark.__version__,
            losses,
        )


# How exceptions are shown: the worker reads this variable of its environment when it sends one.

HIDE: Final = "SPARK_HIDE_TRACEBACK"
BY_UDFS: Final = "by udfs"  # the value that differs from Spark's


def can_hide_traceback() -> bool:
    """Whether the user has not configured the form of tracebacks. Another task of the process may have hidden them."""
    is_configured = os.environ.get(HIDE, "") not in {"", BY_UDFS} or os.environ.get("SPARK_TRACEBACK_WITH_LOCALS")
    return bool(os.environ.get("SPARK_SIMPLIFIED_TRACEBACK")) and not is_configured


def hide_traceback() -> None:
    """Let the worker send exceptions without their traceback. Today's worker ends after the first one."""
    os.environ[HIDE] = BY_UDFS


# Arrow in a pandas UDF: arrays reach the function unchanged where Spark has no Arrow UDF.
#
# pandas would alter values: integers with a null become floats, NaN and null become the same, a null struct becomes a
# struct of nulls, and dates and times beyond its range raise. So the two conversions of the task's serializer are
# replaced. That is impossible where the serializer is not found, or where another pandas UDF works on the values.

ArrowFunction = Callable[[Iterator[Any]], Iterator[pa.Array]]

CONVERSIONS: Final = {"arrow_to_pandas": ["arrow_column"], "_create_batch": ["series"]}
ARRAY: Final = "_udfs_array"


def for_column_udf(function: ArrowFunction, dtype: DataType) -> Callable[..., Iterator[Any]]:
    """The function as `column_udf` takes it: unchanged where Spark has Arrow UDFs, otherwise inside a pandas UDF.

    Args:
        function: Maps an iterator of arrays, or of tuples of arrays, to an iterator of arrays.
        dtype: The type of its results.
    """
    return function if has_arrow_udf() else _in_pandas_udf(function, dtype)


def _in_pandas_udf(function: ArrowFunction, dtype: DataType) -> Callable[..., Iterator[Any]]:
    """The function in a form that Spark evaluates as a pandas UDF that maps an iterator to an iterator.

    Runs where: the result runs in Spark's thread of a Python worker, and raises a RuntimeError if it cannot exchange
    arrays there. Outside a task, it takes and returns arrays.
    """
    import pandas as pd  # noqa: PLC0415 - newer versions of Spark do not need it here

    names = dtype.names if isinstance(dtype, StructType) else None

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        if SparkTask.current() is None:  # no worker, as in a user's own tests
            yield from function(batches)
            return
        feeder, consumer = _feeder(batches), _package(sys._getframe(1).f_globals)  # noqa: SLF001 - as in `_frames`
        serializer = _serializer()
        if serializer is None or not {feeder, consumer} <= {"pyspark", "udfs"}:
            _refuse_exchange(run.__name__)
        if feeder == "pyspark":
            serializer.arrow_to_pandas = pa.ChunkedArray.combine_chunks
        if consumer == "pyspark":
            serializer._create_batch = partial(_to_batch, run.__name__)  # noqa: SLF001 - in 3.5 and 4.0, which get only corrections
        results: Any = function(batches)
        with closing(results):  # a generator, whose calls end when Spark needs no more rows
            for array in results:
                yield array if consumer == "udfs" else _stand_in(array, names)

    run.__name__ = run.__qualname__ = function.__name__
    run.__annotations__ = {"batches": Iterator[pd.Series], "return": Iterator[pd.Series]}
    return run


def _stand_in(array: pa.Array, names: list[str] | None) -> Any:
    """A pandas object, as Spark's worker expects it, with the array as an attribute, which no copy of it has.

    Arrow refuses its values, so a worker that converts it itself raises.

    Args:
        array: The results.
        names: The fields of a struct, for which Spark expects a DataFrame; None for any other type.
    """
    import pandas as pd  # noqa: PLC0415 - as above

    values = pd.Series([object()] * len(array), dtype=object)
    stand_in = values if names is None else pd.DataFrame(dict.fromkeys(names, values))
    vars(stand_in)[ARRAY] = array
    return stand_in


def _to_batch(name: str, series: Any) -> pa.RecordBatch:
    """In place of the conversion of a pandas object to the Arrow type that Spark expects. Finds the array again.

    Args:
        name: The name of the function, for the error.
        series: What the worker passes, under the name of PySpark's parameter.
    """
    stand_in, dtype = series
    array = vars(stand_in).get(ARRAY)
    if array is None:  # a pandas UDF in between has computed it
        _refuse_exchange(name)
    return pa.RecordBatch.from_arrays([array if array.type == dtype else array.cast(dtype)], ["_0"])


def _serializer() -> Any:
    """The serializer of this task, which is in a frame of PySpark's worker; None if it is not found."""
    return next((each for frame in _frames() if _is_serializer(each := frame.f_locals.get("self"))), None)


def _is_serializer(found: Any) -> bool:
    """Whether it has the two conversions that Apache Spark 3.5 and 4.0 have, with the same parameters."""
    try:
        return all(
            list(signature(getattr(found, name)).parameters) == parameters for name, parameters in CONVERSIONS.items()
        )
    except Exception:  # noqa: BLE001 - any other object, in any frame
        return False


def _feeder(batches: Any) -> str:
    """The package whose code computes the batches. It is empty for an iterator that no Python function computes."""
    if isinstance(batches, map):
        function: Any = batches.__reduce__()[1][0]
        return _package(getattr(function, "__globals__", {}))
    return _package(getattr(getattr(batches, "gi_frame", None), "f_globals", {}))


def _package(variables: dict[str, Any]) -> str:
    """The top-level package of a module with these global variables."""
    name = getattr(variables.get("__spec__"), "name", None) or str(variables.get("__name__", ""))
    return name.partition(".")[0]


def _refuse_exchange(name: str) -> NoReturn:
    raise RuntimeError(
        f"{name} cannot exchange Arrow data with the Python worker of this Spark, {pyspark.__version__}, or with "
        "another pandas UDF: use ordered_wait, or Spark 4.1 or newer"
    )
