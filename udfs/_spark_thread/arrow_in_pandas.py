"""Arrow in a pandas UDF: arrays reach the function unchanged where Spark has no Arrow UDF (3.5 and 4.0).

pandas would alter values: integers with a null become floats, NaN and null become the same, a null struct becomes a
struct of nulls, and dates and times beyond its range raise. So the two conversions of the task's serializer are
replaced. Spark's worker needs only the length of its pandas objects, which stand-ins have.

Where that is not possible, because another pandas UDF is called on the results or the worker is not Apache Spark's,
values pass through pandas if it leaves them unchanged. All others are refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from inspect import signature
from types import FrameType
from typing import Any, NoReturn

import pyarrow as pa
import pyspark
from pyspark import TaskContext
from pyspark.sql.types import DataType, StructType

from .._spark_version import has_arrow_udf
from .pandas_values import array_from_pandas, array_to_pandas

__all__ = ["for_column_udf"]

ArrowFunction = Callable[[Iterator[Any]], Iterator[pa.Array]]

CONVERSIONS = {"arrow_to_pandas": ["arrow_column"], "_create_batch": ["series"]}


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
        if TaskContext.get() is None:  # no worker, as in a user's own tests
            yield from function(batches)
            return
        consumer = _consumer(sys._getframe())  # noqa: SLF001 - the documented way to walk the stack
        exchange = _Exchange(run.__name__, _serializer())
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
        """Let the serializer pass arrays. Spark feeds this function, and no other pandas UDF needs its objects."""
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
        if stand_in is not self._stand_in or stand_in is None:  # computed from it: a pandas UDF has had it in between
            _refuse(self._name)
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
        _refuse("the column UDF")


_UNCONVERTIBLE = _Unconvertible()


def _stand_in(length: int, names: list[str] | None) -> Any:
    import pandas as pd  # noqa: PLC0415 - as above

    values = pd.Series([_UNCONVERTIBLE], dtype=object).repeat(length).reset_index(drop=True)
    return values if names is None else pd.DataFrame(dict.fromkeys(names, values))


def _serializer() -> Any:
    """The serializer of this task, which is in a frame of PySpark's worker; None if it is not found."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - as above
    while frame is not None:
        found = frame.f_locals.get("self")
        if _is_serializer(found):
            return found
        frame = frame.f_back
    return None


def _is_serializer(found: Any) -> bool:
    """Whether it has the two conversions that Apache Spark 3.5 and 4.0 have, with the same parameters."""
    return all(
        callable(method := getattr(found, name, None)) and list(signature(method).parameters) == parameters
        for name, parameters in CONVERSIONS.items()
    )


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
    is_direct = caller is not None and any(_innermost(each, package) is frame for each in caller.f_locals.values())
    return package if is_direct else ""


def _innermost(iterator: Any, package: str) -> FrameType | None:
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


def _refuse(name: str) -> NoReturn:
    raise RuntimeError(
        f"{name} cannot exchange Arrow data with the Python worker of this Spark, {pyspark.__version__}, or with "
        "another pandas UDF: use ordered_wait, or Spark 4.1 or newer"
    )
