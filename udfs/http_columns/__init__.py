"""HTTP as columns and as SQL functions: the commonest need, without a Python function.

    from udfs.http_columns import http_get, http_request, register_http

    df.select(http_get("url"))
    register_http(spark, capacity=50, rate=20.0)
    spark.sql("select http_get(url).body from pages")

All give a struct<status: int, headers: map<string, string>, body: string, error: struct<type: string,
message: string, attempts: int, seconds: double>>, one for each row:

    the service answered        status, headers and body, whatever the status; error is null
    there was no answer         error says why; the rest is null
    there is no URL or method   the struct itself is null, and nobody is asked

A row never fails the job. For what these cannot do (a certificate, a client of another kind, a body that is not text)
write an `AsyncFunction` around `udfs.http.client`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, Unpack

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import DataType

from .._column import AsyncPandasUDF
from .._plan.session import active_session
from .._plan.worker_python import needs_packages, use_the_drivers_python
from ._options import HttpArguments, HttpOptions
from ._task import ANSWER_TYPE, HttpWork

__all__ = ["http_get", "http_request", "register_http"]

ColumnOrName: TypeAlias = Any  # a `Column`, classic or Connect, or a str

_METHODS: Final = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE")


def http_get(
    url: ColumnOrName, headers: Mapping[str, str] | ColumnOrName | None = None, **options: Unpack[HttpArguments]
) -> Any:
    """A GET request for each row: `http_request("GET", url, headers, ...)`.

    Args:
        url: A column of strings, or its name.
        headers, options: As in `http_request`.

    Example:
        pages.select("url", http_get("url", timeout=10.0, cache=300.0).alias("page")).where("page.status = 200")
    """
    constant, column = _parted(headers)
    columns = [_checked(each) for each in (url, column) if each is not None]
    return _udf("http_get", HttpOptions.of(constant, options), active_session())(*columns)


def http_request(
    method: str | Any,
    url: ColumnOrName,
    headers: Mapping[str, str] | ColumnOrName | None = None,
    body: ColumnOrName | None = None,
    **options: Unpack[HttpArguments],
) -> Any:
    """An HTTP request for each row, as a column.

    Every answer is a result, whatever its status. One with a status of `retry_statuses`, and an error of the network,
    is followed by another attempt, as long as there are `retries` and time: after a backoff of 0.2 s that doubles up
    to 10 s and is spread at random, and not before the answer's `Retry-After`. Then the last outcome stands.

    POST, PATCH and others that are not idempotent are sent again only if nothing has come of them: no connection was
    made, or the answer is a 429, or a 503 with a `Retry-After`. With a header `Idempotency-Key` in the row they are
    retried as the others are.

    **Batch**: requests stay in flight across Arrow batches. **Order**: the rows' own. **Nulls**: a null URL or method
    gives a null struct; null headers or a null body are none; a header whose value is null is not sent. **Runs where**:
    in each task's Python worker. Columns with equal options share one client there, with its connections and its
    cache. A row has no cookies of another one, and proxies of the environment are not used.

    Args:
        method: Such as "POST", or a column of strings.
        url: A column of strings, or its name. A user and password in it are sent as Basic authentication.
        headers: A mapping, sent with every row; or a column of map<string, string>, or its name. In
            `register_http` a mapping, and a row's own headers come in place of those of the same name.
        body: A column of strings, sent as UTF-8, or of binary, or its name. None: no body.
        options: `timeout=30.0`, seconds from the start of a row's first attempt to its answer, all attempts and
            backoffs included. `capacity=100`, requests at once in each running task, or `cluster_capacity=None`, over
            all tasks that can run at once. `buffer=None`, most rows, with their bodies, held in a task: a hundred
            times the capacity, at least 1,000. `retries=3`, attempts after the first.
            `retry_statuses=(429, 500, 502, 503, 504)`. `rate=None`, attempts that start per second in each running
            task; above 100, those of 10 ms may start together. `cache=None`, seconds for which a worker process keeps
            the answer to a GET for equal URLs and headers: the 4,000 that were used last, of a status 2xx, 3xx or 404
            and up to 64 Ki characters of body and of headers. `max_body_bytes=10485760`, decompressed; a larger body is
            an error. `follow_redirects=False`; True sends the headers, but no `Authorization`, to other hosts too.

    Returns:
        A column.

    Raises:
        TypeError, ValueError: An option or a header is wrong; the message names it.

    Example:
        http_request("POST", "url", {"content-type": "application/json"}, F.to_json(F.struct("id", "name")))
    """
    if isinstance(method, str) and method.upper() not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}, or a column such as F.col('method')")
    constant, column = _parted(headers)
    columns = [_checked(each) for each in (url, column, body)]
    udf = _udf("http_request", HttpOptions.of(constant, options), active_session())
    if body is None:
        columns = columns[: 1 if column is None else 2]
    elif column is None:
        columns[1] = F.lit(None).cast("map<string, string>")
    return udf(F.lit(method) if isinstance(method, str) else method, *columns)


def register_http(
    spark: Any,
    prefix: str = "http_",
    *,
    headers: Mapping[str, str] | None = None,
    **options: Unpack[HttpArguments],
) -> None:
    """Make SQL functions `http_get(url[, headers])` and `http_request(method, url[, headers[, body]])`.

    Args:
        spark: The session that is to know them.
        prefix: What their names begin with; several prefixes have options of their own.
        headers, options: As in `http_request`.

    Raises:
        TypeError, ValueError: An option or a header is wrong; the message names it.

    Example:
        register_http(spark, "geo_", headers={"authorization": f"Bearer {token}"}, rate=50.0)
        spark.sql("select ip, geo_get('https://geo.example/' || ip).body from visits")
    """
    if not f"{prefix}get".isidentifier():
        raise ValueError(f"prefix must be the beginning of a function's name, got {prefix!r}")
    if headers is not None and not isinstance(headers, Mapping):
        raise TypeError(f"headers must be a mapping of names to values, got a {type(headers).__name__}")
    checked = HttpOptions.of(headers, options)
    for kind in ("http_get", "http_request"):
        spark.udf.register(prefix + kind.removeprefix("http_"), _udf(kind, checked, spark))


@dataclass(frozen=True)
class _HttpUDF(AsyncPandasUDF):
    """An HTTP column, as Spark looks at a UDF.

    Attributes:
        kind: "http_get" or "http_request".
    """

    kind: str = "http_get"

    @property
    def __name__(self) -> str:
        return self.kind

    @property
    def returnType(self) -> DataType:  # noqa: N802 - Spark's name
        return ANSWER_TYPE

    @property
    def func(self) -> Callable[[Iterator[Any]], Iterator[pa.Array]]:
        work = HttpWork(self.settings, self.kind)

        def run(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
            return work.run(batches)

        run.__name__ = run.__qualname__ = self.__name__
        return needs_packages(run)


def _udf(kind: str, options: HttpOptions, session: Any) -> _HttpUDF:
    use_the_drivers_python(session)
    return _HttpUDF(options.settings(session), ANSWER_TYPE, kind=kind)


def _parted(headers: Any) -> tuple[Mapping[str, str] | None, Any]:
    """The headers that are the same for all rows, and the column of those that are not."""
    return (headers, None) if headers is None or isinstance(headers, Mapping) else (None, headers)


def _checked(column: Any) -> Any:
    if isinstance(column, str) and "://" in column:
        raise ValueError("a str is the name of a column, and this one is a URL: write F.lit(url)")
    return column
