"""The public functions `http_get`, `http_request` and `register_http`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, Unpack

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import DataType

from trio_asyncio_io.integration import check_keywords, list_keywords

from .._column import AsyncPandasUDF
from .._plan.worker_python import use_the_drivers_python
from .._sent.settings import Settings
from ._arrow import RESPONSE_TYPE, HttpConversion
from ._headers import CommonHeaders, is_function
from ._options import HttpArguments, HttpOptions

ColumnOrName: TypeAlias = Column | str

_METHODS: Final = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE")


@list_keywords(HttpArguments, HttpOptions)
def http_request(
    method: ColumnOrName,
    url: ColumnOrName,
    headers: CommonHeaders | ColumnOrName | None = None,
    body: ColumnOrName | None = None,
    **options: Unpack[HttpArguments],
) -> Column:
    """Return a column with the response to an HTTP request for each row.

    Every response is a result, whatever its status. After a response with a status of `retry_statuses`, and after a
    network error, another attempt follows while retries and time are left. The backoff starts at 0.2 s, doubles up to
    10 s, is randomized, and is at least the response's `Retry-After`. The last outcome is the result.

    A request whose method is not idempotent (RFC 9110, section 9.2.2), such as POST and PATCH, is retried only if the
    service has not processed it: the connection failed, or the response is a 429, or a 503 with a `Retry-After`. With
    the header `Idempotency-Key` in its row, it is retried as the others are.

    Semantics:
        * **Batch**: requests stay in flight across Arrow batches.
        * **Order**: the order of the rows.
        * **Nulls**: a null URL or method gives a null struct. Null headers and a null body are left out, and so is a
          header whose value is null.
        * **Runs where**: in each task's Python worker. Columns with equal options share one client there, with its
          connections, its cache and its gates, whose state lasts from one task to the next. Rows do not share cookies.

    Args:
        method: A method such as "POST", or a column of strings.
        url: A column of strings, or its name. A user and password in a URL are sent as Basic authentication.
        headers: A mapping that is sent with every row; a function without arguments, async or not, that returns one,
            for tokens that expire; or a column of map<string, string>, or its name. The function is called in the
            worker for each attempt, after the wait for `rate`. Redirects to the same origin have the same headers. An
            `AsyncFunction`, such as a policy, is opened once per worker process. If the function fails with an error
            that `trio_asyncio_io.transient` knows, the attempt is retried. None (the default): none.
        body: A column of strings, sent as UTF-8, or of binary, or its name. None: no body.
        timeout: Seconds from the start of a row's first attempt to its result, all attempts and backoffs included, 0
            or more; 30 by default. `math.inf`: no limit.
        capacity: Requests that run at once. "auto" (the default): each Python worker process finds how many each host
            takes, up to 800, by its responses 429 and 503; a `gates.Auto` sets other limits. Requests that wait hold no
            slot, and their timeout does not run. After 300 s in which a host has responded with nothing else, the task
            fails. A number, at least 1: the upper limit in each running task, and the first limit of each host.
        cluster_capacity: The upper limit in all tasks that can run at once, instead of `capacity`. None (the default):
            no such limit.
        cluster_rate: Upper limit of attempts that start per second in all tasks that can run at once. Each task gets an
            equal share, rounded down to whole calls, at least one; a `udfs.ClusterRate` can lease them to tasks that
            have rows. Rows whose response is cached count, too. The wait does not count towards the timeout. None (the
            default): no limit.
        cluster_budget: A `udfs.ClusterBudget` without `weight`: the number of attempts that all tasks together may
            make. Rows beyond it have the error `BudgetError`. Rows whose response is cached count, too. None (the
            default): no limit.
        buffer: Upper limit of rows, with their bodies, that a task holds; at least the capacity. None (the default): a
            hundred times the capacity, at least 1,000.
        buffer_bytes: About how many bytes the bodies have that a task holds, by the mean size of a response; at least
            1, 64 MiB by default. It never lowers a `capacity` that is a number. With `capacity="auto"`, large bodies
            lower the requests at once, down to 8, or to the gate's `start`.
        retries: Attempts after the first, at least 0; 3 by default.
        retry_statuses: The statuses that are retried, from 100 to 599; 429, 500, 502, 503 and 504 by default.
        rate: Attempts that start per second in each running task, above 0. Above 100, those of 10 ms may start
            together. None (the default): no limit.
        per_host: A gate of `trio_asyncio_io.gates`, or a list of them. Each host (scheme, name and port of the
            row's URL) has its own copy. Requests that wait for them hold no slot, and their timeout does not run. None
            (the default): none besides the one of `capacity`.
        cache: Seconds for which a worker process stores the response to a GET, for equal URLs and headers, above 0. It
            stores the 4,000 that were used last, if their status is 2xx, 3xx or 404 and not in `retry_statuses`, and
            their body and their headers have at most 64 Ki characters each. None (the default): no cache.
        max_body_bytes: Upper limit of a decompressed body, from 1 to 512 MiB; 10 MiB by default. A larger body is an
            error.
        follow_redirects: Whether redirects are followed, up to 20 of them. Another origin (scheme, host and port) gets
            none of the headers, neither the configured ones nor the row's, except `Content-Type`, `Content-Encoding`
            and `Content-Language` of a body that is sent again. As in httpx, `https://` on the host of an `http://` URL
            counts as the same origin if both ports are the default ones. False by default.
        allowed_hosts: The hosts to which requests may be sent, redirects included: "example.org" at any port,
            "example.org:8443", "https://example.org" for one origin, or "*.example.org" for the hosts below it. A
            request to another host is an error, and so is a row's own header `Host`. None (the default): all hosts.
        only_public: Whether only hosts whose addresses are globally routable may be connected to, redirects included.
            The address is checked when the connection is made, so a host cannot change it in between. Set it when the
            URLs come from somebody who must not reach services inside the network. It does not fit `trust_env`. False
            by default.
        verify: True (the default) for certifi's authorities; the path, on the workers, of a file or a directory of
            other authorities' certificates, such as those of a company; or False for no verification.
        trust_env: Whether the environment of the workers applies, as with httpx: `SSL_CERT_FILE` and `SSL_CERT_DIR`
            replace certifi's authorities, and `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` name proxies.
            False by default.

    Returns:
        A column of the struct that `udfs.http_columns` describes.

    Raises:
        TypeError, ValueError: An option or a header is out of its range; the message names it.

    Example:
        body = F.to_json(F.struct("id", "name"))
        http_request("POST", "url", {"content-type": "application/json"}, body)
    """
    if isinstance(method, str) and method.upper() not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}, or a column such as F.col('method')")
    check_keywords(http_request, options)
    constant, column = _split(headers)
    columns = [_checked(each) for each in (url, column, body)]
    udf = _udf("http_request", _settings(HttpOptions(constant, **options), SparkSession.active()))
    if body is None:
        columns = columns[: 1 if column is None else 2]
    elif column is None:
        columns[1] = F.lit(None).cast("map<string, string>")
    return udf(F.lit(method) if isinstance(method, str) else method, *columns)


@list_keywords(HttpArguments, http_request)
def http_get(
    url: ColumnOrName, headers: CommonHeaders | ColumnOrName | None = None, **options: Unpack[HttpArguments]
) -> Column:
    """Return a column with the response to a GET request for each row.

    The same as `http_request("GET", url, headers, ...)`.

    Args:
        The same as for `http_request`.

    Raises:
        TypeError, ValueError: An option or a header is out of its range; the message names it.

    Example:
        page = http_get("url", timeout=10.0, cache=300.0).alias("page")
        pages.select("url", page).where("page.status = 200")
    """
    check_keywords(http_get, options)
    constant, column = _split(headers)
    columns = [_checked(each) for each in (url, column) if each is not None]
    return _udf("http_get", _settings(HttpOptions(constant, **options), SparkSession.active()))(*columns)


@list_keywords(HttpArguments, http_request)
def register_http(
    spark: SparkSession,
    prefix: str = "http_",
    *,
    headers: CommonHeaders | None = None,
    **options: Unpack[HttpArguments],
) -> None:
    """Register the SQL functions `http_get(url[, headers])` and `http_request(method, url[, headers[, body]])`.

    Args:
        The options of `http_request`, and:
        spark: The session in which they are registered.
        prefix: The start of their names, "http_" by default. Register several prefixes for several sets of options.
        headers: A mapping that is sent with every row, or a function that returns one. A row's own headers replace
            those of the same name.

    Raises:
        TypeError, ValueError: An option or a header is out of its range, or the prefix cannot start the name of a
            function; the message names it.

    Example:
        register_http(spark, "geo_", headers={"authorization": f"Bearer {token}"}, rate=50.0)
        spark.sql("select ip, geo_get('https://geo.example/' || ip).body from visits")
    """
    check_keywords(register_http, options)
    if not f"{prefix}get".isidentifier():
        raise ValueError(f"prefix must be the beginning of a function's name, got {prefix!r}")
    settings = _settings(HttpOptions(headers, **options), spark)
    for function in ("http_get", "http_request"):
        spark.udf.register(prefix + function.removeprefix("http_"), _udf(function, settings))


@dataclass(frozen=True, repr=False)
class _HttpUDF(AsyncPandasUDF):
    """An HTTP column, with the attributes that Spark reads from a UDF.

    Attributes:
        sql_name: "http_get" or "http_request".
    """

    sql_name: str = "http_get"

    def __repr__(self) -> str:
        return f"<HTTP column {self.sql_name}>"

    @property
    def __name__(self) -> str:
        return self.sql_name

    @property
    def returnType(self) -> DataType:  # noqa: N802 - Spark's name
        return RESPONSE_TYPE

    @property
    def func(self) -> Callable[[Iterator[Any]], Iterator[Any]]:
        settings, sql_name = self.settings, self.sql_name
        return self._task(lambda batches: HttpConversion(settings, sql_name).run(batches))


def _settings(options: HttpOptions, session: Any) -> Settings:
    use_the_drivers_python(session)
    return options.settings(session)


def _udf(sql_name: str, settings: Settings) -> _HttpUDF:
    return _HttpUDF(settings, RESPONSE_TYPE, sql_name=sql_name)


def _split(headers: Any) -> tuple[CommonHeaders | None, Any]:
    """Return the headers for all rows and the headers as a column; one of them is None."""
    is_common = headers is None or isinstance(headers, Mapping) or is_function(headers)
    return (headers, None) if is_common else (None, headers)


def _checked(column: Any) -> Any:
    if isinstance(column, str) and "://" in column:
        raise ValueError("a str is the name of a column, but this one is a URL: for a constant URL, write F.lit(url)")
    return column
