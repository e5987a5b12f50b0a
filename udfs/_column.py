"""The column UDF: one value per row, in row order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, Unpack, cast, overload

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql.types import DataType, StringType, StructField, StructType

from trio_asyncio_io import AsyncFunction, Options
from trio_asyncio_io.integration import check_keywords, list_keywords

from ._limits.cluster_limits import ClusterBudget, ClusterRate, as_cluster_rates
from ._plan.arguments import UDFArguments, for_session, make_settings
from ._plan.schema import check_time_zone, parse_type
from ._plan.session import default_time_zone, time_zone
from ._plan.worker_python import as_task, use_the_drivers_python, with_package_check
from ._pyspark_worker import for_column_udf
from ._sent.arrow_types import plan_type
from ._sent.extra_columns import extra_columns
from ._sent.settings import Settings
from ._sent.signature import check_arity, signature_of
from ._sent.zone import Zone
from ._spark_thread.conversion import ColumnConversion
from ._spark_version import column_udf

AnyFunction: TypeAlias = Callable[..., Awaitable[Any]] | AsyncFunction[Any, Any]
F = TypeVar("F", bound=AnyFunction)

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    # `AsyncPandasUDF` without a parameter is valid under strict type checking, too
    F_co = TypeVarWithDefault("F_co", bound=AnyFunction, covariant=True, default=Any)
else:
    F_co = TypeVar("F_co", bound=AnyFunction, covariant=True)


@dataclass(frozen=True, repr=False)
class AsyncPandasUDF(Generic[F_co]):
    """A column UDF with an async function, as `async_pandas_udf` returns it.

    Call it with columns or names of columns. `spark.udf.register(name, udf)` makes it an SQL function: it has the
    attributes of Spark's own UDFs (`func`, `returnType`, `evalType`, `deterministic`).

    Attributes:
        settings: How its tasks work.
        declared: The type of a result, as the user declared it.
        cluster_capacity: The limit of all tasks together, or None.
        cluster_rate: The rates of all tasks together.
        cluster_budget: The budget of all tasks together, or None.
        deterministic: Whether Spark may call the function again for the same row.
        function: The async callable or `AsyncFunction` itself. Await it to test it without Spark.
    """

    __module__ = "udfs"

    settings: Settings
    declared: DataType | str
    cluster_capacity: int | None = None
    deterministic: bool = False
    cluster_rate: tuple[ClusterRate, ...] = ()
    cluster_budget: ClusterBudget | None = None
    function: F_co = field(default=cast(Any, None), compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Without the function, because a decorated function's name refers to the UDF. The settings have it packed."""
        return {**vars(self), "function": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, function=state["settings"].function.unpack())

    def __repr__(self) -> str:
        declared = self.declared if isinstance(self.declared, str) else self.declared.simpleString()
        return f"<async_pandas_udf {self.__name__} -> {declared}>"

    def __call__(self, *columns: Column | str) -> Column:
        """The column of results.

        Args:
            columns: `Column`s or names of columns, one for each parameter of the function, at least one.

        Raises:
            TypeError: No column is given, or the function takes another number of them.
        """
        check_arity(self.__name__, signature_of(self.function), columns)
        udf = column_udf(self.func, self.returnType)
        column: Column = (udf if self.deterministic else udf.asNondeterministic())(*columns)
        return column

    def asNondeterministic(self) -> AsyncPandasUDF[F_co]:  # noqa: N802 - Spark's name
        """This UDF with `deterministic=False`, which is the default: Spark does not call it again for the same row."""
        return replace(self, deterministic=False)

    @property
    def __name__(self) -> str:
        return self.settings.function.name

    @property
    def returnType(self) -> DataType:  # noqa: N802 - Spark's name
        """The type of the column."""
        dtype = plan_type(parse_type(self.declared))
        extras = extra_columns(self.settings)
        if not extras:
            return dtype
        return StructType([StructField("result", dtype), *(StructField(each.name, each.dtype) for each in extras)])

    @property
    def evalType(self) -> int:  # noqa: N802 - Spark's name
        """Spark's number for a UDF that maps an iterator to an iterator: an Arrow UDF or, before 4.1, a pandas UDF."""
        return int(column_udf(for_column_udf(as_task("any", iter), StringType()), StringType()).evalType)

    @property
    def func(self) -> Callable[[Iterator[Any]], Iterator[Any]]:
        """The function that Spark sends to the workers: an iterator of arrays -> an iterator of arrays."""
        session = SparkSession.active()
        use_the_drivers_python(session)
        limits = self.cluster_capacity, self.cluster_rate, self.cluster_budget
        settings = for_session(self.settings, *limits, session)
        zone = Zone(time_zone(session), default_time_zone(session))
        dtype = parse_type(self.declared)
        check_time_zone(zone.active, dtype)
        signature = signature_of(self.function)
        return self._task(lambda batches: ColumnConversion(settings, dtype, zone.of_query(), signature).run(batches))

    def _task(self, run: Callable[[Iterator[Any]], Iterator[pa.Array]]) -> Callable[[Iterator[Any]], Iterator[Any]]:
        """What Spark sends to the workers so that they run this, under the name of the UDF."""
        return with_package_check(for_column_udf(as_task(self.__name__, run), self.returnType))


@overload
def async_pandas_udf(
    f: F,
    returnType: DataType | str,  # noqa: N803 - pandas_udf's names
    *,
    timeout: float,
    deterministic: bool = False,
    **arguments: Unpack[UDFArguments],
) -> AsyncPandasUDF[F]: ...


@overload
def async_pandas_udf(
    f: DataType | str | None = None,
    returnType: DataType | str | None = None,  # noqa: N803 - as above
    *,
    timeout: float,
    deterministic: bool = False,
    **arguments: Unpack[UDFArguments],
) -> Callable[[F], AsyncPandasUDF[F]]: ...


@list_keywords(UDFArguments, UDFArguments, Settings, Options)
def async_pandas_udf(
    f: Any = None,
    returnType: DataType | str | None = None,  # noqa: N803 - the name in pandas_udf
    *,
    timeout: float,
    deterministic: bool = False,
    **arguments: Unpack[UDFArguments],
) -> Any:
    """Make a column UDF of an async function.

    Use it as `pandas_udf` is used: as a decorator or as a function. The async function is called once per row, for many
    rows at a time. It receives the values of one row's columns as Python values, and returns one value; for a struct, a
    mapping, a dataclass or a named tuple.

    Semantics:
        * **Batch**: calls stay in flight from one Arrow batch to the next; no batch waits for its last call.
        * **Order**: row order, always. For completion order, use `udfs.unordered_wait`.
        * **Nulls**: a null is None, in both directions. A `timestamp` is a datetime in the session's time zone; a naive
          datetime in a result is taken to be in that time zone.
        * **Runs where**: in the Python worker of each task, on a Trio loop that all tasks of the process share. An
          `AsyncFunction` is opened once per process. It stays open between tasks and between micro-batches, and is
          closed after 45 idle seconds. A process that Spark kills closes nothing.

    Args:
        f: An async callable or an `AsyncFunction`; or, as a decorator, the return type.
        returnType: The type of a result: a DDL string such as "struct<temp double, wind double>", or a Spark type.
        timeout: Seconds from the start of a row's first call to its result, with all attempts and backoffs; 0 or more,
            `math.inf` for no limit. Required.
        deterministic: True allows Spark to call the function again for the same row, or not at all, such as for rows
            that a later filter on other columns drops. False by default: it drops them after their calls.
        on_error: "raise" (the default) fails the job with the function's exception; "null" makes the result null;
            "column" makes the column a struct<result, error: struct<type, message, attempts, seconds>>, whose `error`
            is null for a row that did not fail.
        error: The name of that field, "error" by default.
        metadata: The name of another field, struct<attempts, seconds, cached, error, estimated_weight,
            settled_weight>, that reports how each result was obtained. The weights are sums over the row's calls in the
            `cluster_budget`, or else in the first gate with a weight; rows of one group have equal parts. None (the
            default): no such field.
        skip_nulls: True: a row with null in one of the columns makes no call, and its result is null, as in an SQL
            function that returns null on null input. False by default: the function is called with None.
        And the other arguments, as for `ordered_wait`, from `capacity` on.

    Returns:
        An `AsyncPandasUDF`, or a decorator that returns one.

    Raises:
        TypeError: The function is not async, or captures an object that cannot be sent to the workers.
        ValueError: An argument is out of range; the message names it and its value.

    Example:
        @async_pandas_udf("string", capacity=100, timeout=5.0)
        async def country(ip: str) -> str:
            ...

        df.select("ip", country("ip"))
        await country.function("127.0.0.1")  # without Spark
    """
    if f is None or isinstance(f, str | DataType):
        dtype = f if returnType is None else returnType
        if dtype is None:
            raise TypeError('give the return type, such as async_pandas_udf("string", timeout=5.0)')
        return lambda function: _make(function, dtype, timeout, arguments, deterministic=deterministic)
    if returnType is None:
        raise TypeError('give the return type, such as async_pandas_udf(function, "string", timeout=5.0)')
    return _make(f, returnType, timeout, arguments, deterministic=deterministic)


def _make(
    function: F, dtype: DataType | str, timeout: float, arguments: UDFArguments, *, deterministic: bool
) -> AsyncPandasUDF[F]:
    check_keywords(async_pandas_udf, arguments)
    settings = make_settings(function, timeout, arguments)
    fields = {"result"}
    for extra in extra_columns(settings):
        if extra.name.lower() in fields:  # Spark ignores case by default
            raise ValueError(f"the column has a field {extra.name!r} already: give {extra.option} another name")
        fields.add(extra.name.lower())
    return AsyncPandasUDF(
        settings,
        dtype,
        cluster_capacity=arguments.get("cluster_capacity"),
        cluster_rate=as_cluster_rates(arguments.get("cluster_rate")),
        cluster_budget=arguments.get("cluster_budget"),
        deterministic=deterministic,
        function=function,
    )
