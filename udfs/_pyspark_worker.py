"""PySpark's worker from inside: the one module that depends on parts of PySpark's worker that are not public.

Three such parts are in its frames. A job also runs without them, with the same results; a warning says once per process
what is lost then:

* `sock`, a local variable of PySpark's daemon, is the connection to Spark. Without it, the calls of a cancelled task
  continue until Spark kills the worker.
* `outfile`, another one, is the buffer of the worker's output. Without it, rows reach Spark when that buffer is full or
  the task ends, so `limit` and `first` make more calls.
* The serializer of Spark 3.5 and 4.0, which have no Arrow UDFs, lets a column UDF exchange Arrow arrays. Without it,
  values pass through pandas, and those that pandas might alter are refused.

The fourth part is an environment variable, which hides the tracebacks of exceptions.

This worker runs one task after another. If a later one runs several at once, each in a thread of its own, no task finds
anything of another one here.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from inspect import signature
from io import BufferedWriter
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import pyarrow as pa
import pyspark
from pyspark.sql.types import DataType, StructType

from ._spark_task import SparkTask
from ._spark_version import has_arrow_udf

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["HangUpError", "WorkerConnection", "can_hide_traceback", "for_column_udf", "hide_traceback"]

DAEMON: Final = "pyspark.daemon"

# By the missing part: what is lost
LOSSES: Final = {
    "sock": "the calls of a cancelled task continue until Spark kills this worker",
    "outfile": "rows reach Spark only when its buffer is full or the task ends",
    "serializer": "a column UDF exchanges values through pandas, and refuses those that pandas might alter",
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
# replaced. Spark's worker needs only the length of its pandas objects, which stand-ins have.
#
# Where that is not possible, because another pandas UDF is called on the results or the serializer is not found, values
# pass through pandas if it leaves them unchanged. All others are refused.

ArrowFunction = Callable[[Iterator[Any]], Iterator[pa.Array]]

CONVERSIONS: Final = {"arrow_to_pandas": ["arrow_column"], "_create_batch": ["series"]}


def for_column_udf(function: ArrowFunction, kind: DataType) -> Callable[..., Iterator[Any]]:
    """The function as `column_udf` takes it: unchanged where Spark has Arrow UDFs, otherwise inside a pandas UDF.

    Args:
        function: Maps an iterator of arrays, or of tuples of arrays, to an iterator of arrays.
        kind: The type of its results.
    """
    return function if has_arrow_udf() else _in_pandas_udf(function, kind)


def _in_pandas_udf(function: ArrowFunction, kind: DataType) -> Callable[..., Iterator[Any]]:
    """The function in a form that Spark evaluates as a pandas UDF that maps an iterator to an iterator.

    Runs where: the result runs in Spark's thread of a Python worker. It raises a RuntimeError for values that have to
    pass through pandas, and that pandas would alter. Outside a task, it takes and returns arrays.
    """
    import pandas as pd  # noqa: PLC0415 - newer versions of Spark do not need it here

    names = kind.names if isinstance(kind, StructType) else None

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        if SparkTask.current() is None:  # no worker, as in a user's own tests
            yield from function(batches)
            return
        consumer = _consumer(sys._getframe())  # noqa: SLF001 - as in `_frames`
        serializer = _serializer()
        sock, outfile = _local_of_daemon("sock", socket.socket), _local_of_daemon("outfile", BufferedWriter)
        _report_missing(sock=sock, outfile=outfile, serializer=serializer)
        exchange = _Exchange(run.__name__, serializer)
        if _feeder(batches) == "pyspark":
            exchange.replace_input()
        results: Any = function(map(exchange.arrays, batches))
        with closing(results):  # a generator, whose calls end when Spark needs no more rows
            for array in results:
                yield array if consumer == "udfs" else exchange.result(array, names, to_spark=consumer == "pyspark")

    run.__name__ = run.__qualname__ = function.__name__
    run.__annotations__ = {"batches": Iterator[pd.Series], "return": Iterator[pd.Series]}
    return run


class _Exchange:
    """Passes the arrays of one function to and from Spark's worker, inside stand-ins for pandas objects if possible.

    The worker receives a stand-in before the next one is made, so at most one array is in transit.

    Args:
        name: The name of the function, for error messages.
        serializer: The task's own serializer, which has not read anything yet; None if it is not Apache Spark's.
    """

    def __init__(self, name: str, serializer: Any) -> None:
        self._name = name
        self._serializer = serializer
        self._array: pa.Array | None = None  # in transit
        self._stand_in: Any = None  # of this array
        self._replaces_input = self._replaces_output = False

    def replace_input(self) -> None:
        """Make the serializer deliver Arrow arrays. Only this UDF reads from it."""
        if self._serializer is not None:
            self._serializer.arrow_to_pandas = _Column
            self._replaces_input = True

    def arrays(self, batch: Any) -> pa.Array | tuple[pa.Array, ...]:
        """The arrays of a batch, which Spark passes as one object or, for several columns, a tuple of objects."""
        return tuple(map(self._array_of, batch)) if isinstance(batch, tuple) else self._array_of(batch)

    def result(self, array: pa.Array, names: list[str] | None, *, to_spark: bool) -> Any:
        """A pandas object in place of the array, or with its values.

        Args:
            array: The results.
            names: The fields of a struct, which Spark expects as a DataFrame; None for any other type.
            to_spark: Whether Spark's worker receives it; False: another pandas UDF.
        """
        if self._serializer is None or not to_spark:
            return array_to_pandas(array, self._name)
        if not self._replaces_output:
            self._serializer._create_batch = self._batch  # noqa: SLF001 - in 3.5 and 4.0, which get only corrections
            self._replaces_output = True
        self._array, self._stand_in = array, _stand_in(len(array), names)
        return self._stand_in

    def _array_of(self, column: Any) -> pa.Array:
        if isinstance(column, pa.Array):  # from another function of ours
            return column
        if isinstance(column, _Column):
            return column.array
        if self._replaces_input:  # without effect: this worker does not use the serializer as expected
            self._serializer = None
        return array_from_pandas(column, self._name)

    def _batch(self, result: Any) -> pa.RecordBatch:
        """In place of the conversion of a pandas object to the Arrow type that Spark expects."""
        stand_in, kind = result if isinstance(result, tuple) and len(result) == 2 else (None, None)  # noqa: PLR2004
        if stand_in is not self._stand_in or stand_in is None:  # a pandas UDF in between has computed it
            _refuse_exchange(self._name)
        array, self._array, self._stand_in = self._array, None, None
        assert array is not None
        return pa.RecordBatch.from_arrays([array if array.type == kind else array.cast(kind)], ["_0"])


class _Column:
    """An input column in place of a pandas Series. Spark's worker needs its length."""

    __slots__ = ("array",)

    def __init__(self, column: pa.ChunkedArray) -> None:
        self.array = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)

    def __len__(self) -> int:
        return len(self.array)


class _Unconvertible:
    """The value in a stand-in. Arrow refuses it, so a worker that does convert stand-ins does not produce nulls."""

    def __str__(self) -> str:  # noqa: PLE0307 - it only raises
        _refuse_exchange("the column UDF")


_UNCONVERTIBLE = _Unconvertible()


def _stand_in(length: int, names: list[str] | None) -> Any:
    import pandas as pd  # noqa: PLC0415 - as above

    values = pd.Series([_UNCONVERTIBLE], dtype=object).repeat(length).reset_index(drop=True)
    return values if names is None else pd.DataFrame(dict.fromkeys(names, values))


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


def _feeder(batches: Iterator[Any]) -> str:
    """The package whose code computes the batches. It is empty for an iterator that no Python function computes."""
    if isinstance(batches, map):
        return _package_of_map(batches)
    frame = getattr(batches, "gi_frame", None)
    return _package(getattr(frame, "f_globals", {}))


def _consumer(frame: FrameType) -> str:
    """The package whose code consumes the results of the generator with this frame; empty if it is not certain.

    A pandas UDF that returns a `map` has no frame. So the caller is the consumer only if its own `map`s lead here.
    """
    caller = frame.f_back
    package = _package(caller.f_globals) if caller is not None else ""
    is_direct = caller is not None and any(
        _generator_frame(each, package) is frame for each in caller.f_locals.values()
    )
    return package if is_direct else ""


def _generator_frame(iterator: Any, package: str) -> FrameType | None:
    """The frame of the generator below the `map`s of a package."""
    while isinstance(iterator, map) and _package_of_map(iterator) == package:
        iterator = iterator.__reduce__()[1][1]
    frame: FrameType | None = getattr(iterator, "gi_frame", None)
    return frame


def _package_of_map(iterator: map[Any]) -> str:
    function: Any = iterator.__reduce__()[1][0]
    return _package(getattr(function, "__globals__", {}))


def _package(variables: dict[str, Any]) -> str:
    """The top-level package of a module with these global variables."""
    name = getattr(variables.get("__spec__"), "name", None) or str(variables.get("__name__", ""))
    return name.partition(".")[0]


def _refuse_exchange(name: str) -> NoReturn:
    raise RuntimeError(
        f"{name} cannot exchange Arrow data with the Python worker of this Spark, {pyspark.__version__}, or with "
        "another pandas UDF: use ordered_wait, or Spark 4.1 or newer"
    )


# Arrays as pandas objects and back, for the values that pandas leaves unchanged.

# Their exact types: a `pd.Timestamp` is a `date`, and may have been a null
UNCHANGED = frozenset({type(None), bool, bytes, date, Decimal, int, str})

AS_OBJECTS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_decimal,
    pa.types.is_date32,
)


def array_from_pandas(column: Any, name: str) -> pa.Array:
    """The values of an input column.

    Args:
        column: A `Series` or, for structs, a `DataFrame`.
        name: The name of the function, for error messages.

    Raises:
        RuntimeError: They may not be the values that Spark has.
    """
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    if kind == "O":
        return _from_objects(column.tolist(), name)
    if kind == "f" and column.isna().any():
        _refuse_value(name, "a number that may be null or NaN")
    if kind not in {"b", "f", "i", "u"}:
        _refuse_value(name, f"a value of type {column.dtype}" if kind else "a struct")
    return pa.array(column)


def array_to_pandas(array: pa.Array, name: str) -> pd.Series[Any]:
    """A `Series` that a pandas UDF can use, and that PySpark converts to exactly this array.

    Args:
        array: The results.
        name: The name of the function, for error messages.

    Raises:
        RuntimeError: pandas would alter values of this type.
    """
    import pandas as pd  # noqa: PLC0415 - only needed here, with old versions of Spark

    if any(each(array.type) for each in AS_OBJECTS):
        return pd.Series(array.to_pylist(), dtype=object)
    if not (pa.types.is_primitive(array.type) and not pa.types.is_temporal(array.type)):
        _refuse_value(name, f"a result of type {array.type}")
    has_nan = pa.types.is_floating(array.type) and any(map(math.isnan, array.drop_null().to_pylist()))
    if array.null_count or has_nan:
        return pd.Series(array.to_pandas(types_mapper=_nullable(pd).get))
    return pd.Series(array.to_pandas())


def _from_objects(values: list[Any], name: str) -> pa.Array:
    values = [bytes(value) if type(value) is bytearray else value for value in values]
    for value in values:
        if type(value) not in UNCHANGED:
            _refuse_value(name, f"a {type(value).__name__}")
    return pa.array(values, from_pandas=False)


def _nullable(pd: Any) -> dict[pa.DataType, Any]:
    """Types of pandas in which null and NaN differ, and integers may be null."""
    return {
        pa.bool_(): pd.BooleanDtype(),
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.float32(): pd.Float32Dtype(),
        pa.float64(): pd.Float64Dtype(),
    }


def _refuse_value(name: str, what: str) -> NoReturn:
    raise RuntimeError(
        f"{name} cannot exchange {what} with Spark {pyspark.__version__} or with another pandas UDF, because pandas "
        "might alter it: use ordered_wait, or Spark 4.1 or newer"
    )
