"""The column UDF: one value for each row, at its row."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, Unpack, cast, overload

import pyarrow as pa
import pyspark
from pyspark.sql import Column
from pyspark.sql.types import DataType, StructField, StructType

from trio_asyncio_io import AsyncFunction

from ._loop.bridge import enrich
from ._plan.schema import parse_type
from ._plan.session import active_session, default_time_zone, share_of, time_zone
from ._plan.worker_python import needs_packages, use_the_drivers_python
from ._settings import Settings, SettingsArguments, make_settings
from ._task.converters import plan_type
from ._task.output import Output, extras_of
from ._task.reading import rows_of
from ._task.slices import slices
from ._task.tracebacks import traceback_as_note
from ._task.zone import Zone

__all__ = ["AsyncPandasUDF", "async_pandas_udf"]

AnyFunction: TypeAlias = Callable[..., Awaitable[Any]] | AsyncFunction[Any, Any]
F = TypeVar("F", bound=AnyFunction)

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    # `AsyncPandasUDF` without a parameter is valid under strict type checking, too
    F_co = TypeVarWithDefault("F_co", bound=AnyFunction, covariant=True, default=Any)
else:
    F_co = TypeVar("F_co", bound=AnyFunction, covariant=True)


@dataclass(frozen=True, slots=True)
class _Work:
    """What a task needs to know; pickled."""

    settings: Settings
    kind: DataType
    zone: Zone

    def run(self, batches: Iterator[Any]) -> Iterator[pa.Array]:
        settings, extras = self.settings, extras_of(self.settings)
        output = Output(
            self.kind,
            zone=self.zone.of_query(),
            on_error=settings.on_error,
            name=settings.function.name,
            show_values=settings.show_values,
        )
        columns = (each if isinstance(each, tuple) else (each,) for each in batches)
        rows = (rows_of(each, number, settings.row, on_error=settings.on_error) for number, each in enumerate(columns))
        for chunk in enrich(rows, settings):
            start = 0
            for values in output.arrays(chunk, [row.result for row in chunk]):
                part = chunk[start : start + len(values)]
                start += len(values)
                arrays = [values, *(extra.array(part) for extra in extras)]
                names = ["result", *(extra.name for extra in extras)]
                yield from slices(pa.StructArray.from_arrays(arrays, names=names) if extras else values)


@dataclass(frozen=True)
class AsyncPandasUDF(Generic[F_co]):
    """An async function as a column; made by `async_pandas_udf`.

    Call it with columns or names of columns. `spark.udf.register(name, it)` makes it an SQL function. It has
    what Spark looks for in a UDF (`func`, `returnType`, `evalType`, `deterministic`), each made when it is
    asked for, so that the decorator needs no session.

    Attributes:
        settings: How its tasks work.
        declared: The result's type as it was given.
        cluster_capacity: The limit for all tasks together, or None.
        deterministic: Whether Spark may call it again for the same row.
        function: The async callable or `AsyncFunction` itself. Await it to test it without Spark.
    """

    __module__ = "udfs"

    settings: Settings
    declared: DataType | str
    cluster_capacity: int | None = None
    deterministic: bool = False
    function: F_co = field(default=cast(Any, None), repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Without the function, which the settings hold packed: its name leads to the UDF if it was decorated."""
        return {**vars(self), "function": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, function=state["settings"].function.unpack())

    def __call__(self, *columns: Column | str) -> Column:
        """The column of the function's results.

        Args:
            columns: `Column`s or names of columns, one for each parameter of the function, at least one.

        Raises:
            TypeError: There is no column.
        """
        if not columns:
            raise TypeError(f"{self.__name__} needs at least one column to be called with")
        made = _arrow_udf(self.func, self.returnType)
        column: Column = (made if self.deterministic else made.asNondeterministic())(*columns)
        return column

    def asNondeterministic(self) -> AsyncPandasUDF[F_co]:  # noqa: N802 - the name by which Spark knows a UDF
        """The same UDF, which Spark must not call again for the same row; it is so by default."""
        return replace(self, deterministic=False)

    @property
    def __name__(self) -> str:
        return self.settings.function.name

    @property
    def returnType(self) -> DataType:  # noqa: N802 - Spark's name
        """The type of the column."""
        kind = plan_type(parse_type(self.declared))
        extras = extras_of(self.settings)
        if not extras:
            return kind
        return StructType([StructField("result", kind), *(StructField(each.name, each.kind) for each in extras)])

    @property
    def evalType(self) -> int:  # noqa: N802 - Spark's name
        """Spark's number for an Arrow UDF from iterator to iterator."""
        return int(_arrow_udf(_identity, parse_type("string")).evalType)

    @property
    def func(self) -> Callable[[Iterator[Any]], Iterator[pa.Array]]:
        """What Spark sends to the workers."""
        session = active_session()
        use_the_drivers_python(session)
        settings = self.settings
        if self.cluster_capacity is not None:
            settings = replace(settings, capacity=share_of(self.cluster_capacity, session))
        zone = Zone(time_zone(session), default_time_zone(session))
        work = _Work(settings, parse_type(self.declared), zone)

        def run(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
            with traceback_as_note():
                yield from work.run(batches)

        run.__name__ = run.__qualname__ = self.__name__
        return needs_packages(run)


@overload
def async_pandas_udf(
    f: F,
    returnType: DataType | str,  # noqa: N803 - pandas_udf's names
    *,
    timeout: float,
    deterministic: bool = False,
    **arguments: Unpack[SettingsArguments],
) -> AsyncPandasUDF[F]: ...


@overload
def async_pandas_udf(
    f: DataType | str,
    *,
    timeout: float,
    deterministic: bool = False,
    **arguments: Unpack[SettingsArguments],
) -> Callable[[F], AsyncPandasUDF[F]]: ...


@overload
def async_pandas_udf(
    *,
    returnType: DataType | str,  # noqa: N803 - pandas_udf's names
    timeout: float,
    deterministic: bool = False,
    **arguments: Unpack[SettingsArguments],
) -> Callable[[F], AsyncPandasUDF[F]]: ...


def async_pandas_udf(
    f: Any = None,
    returnType: DataType | str | None = None,  # noqa: N803 - pandas_udf's names
    *,
    timeout: float,
    deterministic: bool = False,
    **arguments: Unpack[SettingsArguments],
) -> Any:
    """An async function as a column, called once for each row, many rows at a time.

    Use it like `pandas_udf`, as a decorator or as a function. The function is called with one row's values
    of the columns, as Python values, and returns one value, which may be a mapping, a dataclass or a named
    tuple for a struct.

    **Batch**: requests stay in flight across Arrow batches; there is no barrier at a batch's end.
    **Order**: always the rows' own. A scalar UDF that reordered would corrupt data; for output in the order
    of completion, see `udfs.unordered_wait`.
    **Nulls**: a null is None, in both directions. A `timestamp` comes as a datetime with the session's time
    zone; a naive one that is returned is in that zone.
    **Runs where**: in each task's Python worker, on a Trio loop that all tasks of the worker process share.
    An `AsyncFunction` is opened once per process, stays open from task to task and from micro-batch to
    micro-batch, and is closed after 45 idle seconds; a process that Spark kills closes nothing.

    Args:
        f: An async callable or an `AsyncFunction`, or the return type when used as a decorator.
        returnType: The type of one result: a DDL string such as "struct<temp double, wind double>", or a
            Spark type.
        timeout: Seconds from the start of a row's invocation to its result, all attempts and backoffs included;
            not negative, `math.inf` for none. Required.
        deterministic: True lets Spark call the function again for the same row, or not at all.
        arguments: As in `trio_asyncio_io.Options`: `capacity=100`, invocations running at once in each running
            task; `buffer=None`, rows; `retry=None`; `on_timeout=None`, an async callable of the same
            arguments; `observer=None`, told in the worker. Further: `cluster_capacity=None`, most invocations over all
            tasks that can run at once, shared evenly among them in place of `capacity`; `on_error="raise"` fails the
            job with the function's exception, "null" gives null, and "column" makes the column a
            struct<result, error: struct<type, message, attempts, seconds>>; `metadata=None`, or the name of a further
            field, struct<attempts, seconds, cached, error>; `open_timeout=30.0`, seconds that its `open` may take
            in a worker; `show_values=True`, False keeps the rows' values out of errors.

    Returns:
        An `AsyncPandasUDF`, or a decorator that makes one.

    Raises:
        TypeError: The function is not async, or captures what cannot be sent to the workers.
        ValueError: An argument is out of its range; the message names it and its value.

    Example:
        @async_pandas_udf("string", capacity=100, timeout=5.0)
        async def country(ip: str) -> str:
            ...

        df.select("ip", country("ip"))
        await country.function("127.0.0.1")  # without Spark
    """
    if f is None or isinstance(f, str | DataType):
        kind = f if returnType is None else returnType
        if kind is None:
            raise TypeError('give the return type, such as async_pandas_udf("string", timeout=5.0)')
        return lambda function: _make(function, kind, timeout, dict(arguments), deterministic=deterministic)
    if returnType is None:
        raise TypeError('give the return type, such as async_pandas_udf(function, "string", timeout=5.0)')
    return _make(f, returnType, timeout, dict(arguments), deterministic=deterministic)


def _make(
    function: F, kind: DataType | str, timeout: float, arguments: dict[str, Any], *, deterministic: bool
) -> AsyncPandasUDF[F]:
    cluster_capacity = arguments.pop("cluster_capacity", None)
    if cluster_capacity is not None:
        arguments["capacity"] = 1  # the least; the share is known where there is a session
    settings = make_settings(function, timeout, arguments)
    return AsyncPandasUDF(settings, kind, cluster_capacity, deterministic, function)


def _arrow_udf(function: Callable[..., Any], kind: DataType) -> Any:
    try:
        from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # noqa: PLC0415 - new in Spark 4.1
    except ImportError:
        raise RuntimeError(
            f"async_pandas_udf needs Spark 4.1 or newer, and this is {pyspark.__version__}; udfs.ordered_wait and "
            "udfs.unordered_wait work with it"
        ) from None
    untyped: Any = arrow_udf  # PySpark's stub requires its functionType
    return untyped(function, kind)  # the function's type hints say that it goes from iterator to iterator


def _identity(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
    return batches
