"""Arrow in a pandas UDF: arrays reach the function unchanged where Spark has no Arrow UDF (3.5 and 4.0).

pandas would alter values: integers with a null become floats, NaN and null become the same, a null struct becomes a
struct of nulls, and dates and times beyond its range raise. So the two conversions of the task's serializer are
replaced. Spark's worker needs only the length of its pandas objects, which stand-ins have.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

import pyarrow as pa
import pyspark
from pyspark import TaskContext
from pyspark.sql.types import DataType, StructType

from .._spark_version import has_arrow_udf

__all__ = ["for_column_udf"]

ArrowFunction = Callable[[Iterator[Any]], Iterator[pa.Array]]


def for_column_udf(function: ArrowFunction, kind: DataType) -> Callable[..., Iterator[Any]]:
    """The function as `column_udf` takes it: unchanged where Spark has Arrow UDFs, otherwise inside a pandas UDF.

    Args:
        function: Maps an iterator of arrays, or of tuples of arrays, to an iterator of arrays.
        kind: The type of its results.
    """
    return function if has_arrow_udf() else _in_pandas_udf(function, kind)


def _in_pandas_udf(function: ArrowFunction, kind: DataType) -> Callable[..., Iterator[Any]]:
    """The function in a form that Spark evaluates as a pandas UDF that maps an iterator to an iterator.

    Runs where: the result runs in Spark's thread of a Python worker. It raises a RuntimeError before the first row if
    the worker is not the one of Apache Spark 3.5 or 4.0, or if another pandas UDF is called on its results, or it on
    theirs, because Spark passes pandas objects between them. Outside a task, it takes and returns arrays.
    """
    import pandas as pd  # noqa: PLC0415 - newer versions of Spark do not need it here

    names = kind.names if isinstance(kind, StructType) else None

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        if TaskContext.get() is None:  # no worker, as in a user's own tests
            yield from function(batches)
            return
        name = run.__name__
        _check_neighbours(batches, sys._getframe(1), name)  # noqa: SLF001 - the documented way to walk the stack
        exchange = _Exchange.of_task(name)
        results: Any = function(map(exchange.arrays, batches))
        with closing(results):  # a generator, whose calls end when Spark needs no more rows
            for array in results:
                yield exchange.stand_in(array, names)

    run.__name__ = run.__qualname__ = function.__name__
    run.__annotations__ = {"batches": Iterator[pd.Series], "return": Iterator[pd.Series]}
    return run


class _Exchange:
    """Passes arrays through the task's serializer, inside stand-ins for pandas objects.

    Every UDF of a chain, such as `f(g("x"))`, uses the same exchange. A stand-in is received before the next one is
    made, so at most one array is in transit.

    Args:
        serializer: The task's own serializer. It has not read anything yet.
        name: The name of the function, for error messages.
    """

    def __init__(self, serializer: Any, name: str) -> None:
        self._name = name
        self._array: pa.Array | None = None  # in transit
        self._stand_in: Any = None  # of this array
        serializer.arrow_to_pandas = _Column
        serializer._create_batch = self._batch  # noqa: SLF001 - in 3.5 and 4.0, which get only corrections

    @classmethod
    def of_task(cls, name: str) -> _Exchange:
        """The exchange of the current task.

        Raises:
            RuntimeError: The worker has no serializer of the expected class.
        """
        serializer = _serializer()
        if serializer is None:
            _refuse_worker(name)
        batch = vars(serializer).get("_create_batch")
        found = getattr(batch, "__self__", None)
        return found if isinstance(found, cls) else cls(serializer, name)

    def arrays(self, batch: Any) -> pa.Array | tuple[pa.Array, ...]:
        """The arrays of a batch, which Spark passes as one object or, for several columns, a tuple of objects."""
        return tuple(map(self._array_of, batch)) if isinstance(batch, tuple) else self._array_of(batch)

    def stand_in(self, array: pa.Array, names: list[str] | None) -> Any:
        """A pandas object of the length of the array.

        Args:
            array: The results.
            names: The fields of a struct, which Spark expects as a DataFrame; None for any other type.
        """
        import pandas as pd  # noqa: PLC0415 - as above

        values = pd.Series([_UNCONVERTIBLE], dtype=object).repeat(len(array)).reset_index(drop=True)
        self._array = array
        self._stand_in = values if names is None else pd.DataFrame(dict.fromkeys(names, values))
        return self._stand_in

    def _array_of(self, column: Any) -> pa.Array:
        return column.array if isinstance(column, _Column) else self._receive(column)

    def _receive(self, stand_in: Any) -> pa.Array:
        if stand_in is not self._stand_in:  # computed from it: a pandas UDF has had it in between
            _refuse_chain(self._name)
        array, self._array, self._stand_in = self._array, None, None
        return array

    def _batch(self, result: tuple[Any, pa.DataType]) -> pa.RecordBatch:
        """In place of the conversion of a pandas object to the Arrow type that Spark expects."""
        stand_in, kind = result
        array = self._receive(stand_in)
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
        _refuse_worker("the column UDF")


_UNCONVERTIBLE = _Unconvertible()


def _serializer() -> Any:
    """The serializer of this task, which is in a frame of PySpark's worker; None if it is not found."""
    expected = import_module("pyspark.sql.pandas.serializers").ArrowStreamPandasUDFSerializer
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - as above
    while frame is not None:
        found = frame.f_locals.get("self")
        if type(found) is expected:
            return found
        frame = frame.f_back
    return None


def _check_neighbours(batches: Iterator[Any], consumer: FrameType, name: str) -> None:
    """Check that PySpark's worker, or another function of ours, feeds this one and consumes its results."""
    feeder = getattr(batches, "gi_frame", None)
    is_fed = isinstance(batches, map) if feeder is None else _is_of(("udfs",), feeder)
    if not (is_fed and _is_of(("pyspark", "udfs"), consumer)):
        _refuse_chain(name)


def _is_of(packages: tuple[str, ...], frame: FrameType) -> bool:
    module = getattr(frame.f_globals.get("__spec__"), "name", None) or str(frame.f_globals.get("__name__"))
    return module.partition(".")[0] in packages


def _refuse_chain(name: str) -> NoReturn:
    raise RuntimeError(
        f"before Spark 4.1, {name} and a pandas UDF over iterators cannot be called on each other's results, and this "
        f"is {pyspark.__version__}: use ordered_wait, or cache the DataFrame with the inner result first"
    )


def _refuse_worker(name: str) -> NoReturn:
    raise RuntimeError(
        f"{name} cannot exchange Arrow data with the Python worker of this Spark, {pyspark.__version__}, because it "
        "differs from Apache Spark's: use ordered_wait, or Spark 4.1 or newer"
    )
