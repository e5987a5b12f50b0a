"""The functions for Spark, as their users call them."""

from typing import Any, assert_type

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StringType, StructType

from trio_asyncio_io.gates import Auto, RateLimit
from udfs import (
    AsyncFunction,
    AsyncPandasUDF,
    CarryOver,
    ClusterRate,
    ExponentialBackoff,
    Memo,
    async_pandas_udf,
    keyed_wait,
    ordered_wait,
    unordered_wait,
)
from udfs.http import StackTransport, client
from udfs.http_columns import http_get, http_request, register_http


class Weather(AsyncFunction[Any, dict[str, float]]):
    async def open(self) -> None:
        self.http = client(base_url="http://127.0.0.1:8000")

    async def invoke(self, origin: str, hour: str) -> dict[str, float]:
        found: dict[str, float] = (await self.http.get(f"/weather/{origin}/{hour}")).json()
        return found

    async def close(self) -> None:
        await self.http.aclose()


async def country(ip: str) -> str:
    return "NL"


async def nowhere(ip: str) -> None: ...


async def the_column_udf_as_a_function(df: DataFrame) -> None:
    made = async_pandas_udf(country, StringType(), timeout=5.0, on_timeout=nowhere)
    assert_type(made.deterministic, bool)
    assert_type(await made.asNondeterministic().function("127.0.0.1"), str)
    assert_type(df.select("ip", made("ip"), made(df.ip)), DataFrame)
    assert_type(made("ip"), Column)
    df.sparkSession.udf.register("country", made)
    without_parameter: AsyncPandasUDF = made
    without_parameter("ip")
    assert_type(async_pandas_udf(Weather(), "temp double", timeout=5.0), AsyncPandasUDF[Weather])
    made(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def the_column_udf_as_a_decorator(df: DataFrame) -> None:
    @async_pandas_udf("string", timeout=5.0, on_error="null", cluster_capacity=400, cluster_rate=500)
    async def decorated(ip: str) -> str:
        return ip

    @async_pandas_udf(returnType=StringType(), timeout=5.0)
    async def by_keyword(ip: str, hour: int) -> str | None:
        return ip if hour else None

    df.withColumn("country", decorated(df.ip))
    assert_type(await decorated.function("127.0.0.1"), str)
    assert_type(await by_keyword.function("127.0.0.1", 10), str | None)
    await decorated.function(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await by_keyword.function("127.0.0.1")  # type: ignore[call-arg, misc]  # pyright: ignore[reportCallIssue]
    await decorated("ip")  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]

    @async_pandas_udf("string", timeout=5.0)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
    def blocking(ip: str) -> str:
        return ip


def wrong_arguments_of_the_column_udf() -> None:
    async_pandas_udf("string")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    async_pandas_udf(country, timeout=5.0)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    async_pandas_udf("string", timeout=5.0, on_error="skip")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]


def the_operators(df: DataFrame) -> None:
    retry = ExponentialBackoff(3, initial=0.1, maximum=1.0)
    assert_type(ordered_wait(df, Weather(), "temp double", inputs=["origin", "hour"], timeout=5.0), DataFrame)
    more = unordered_wait(
        df,
        Weather(),
        StructType().add("temp", "double"),
        inputs=("origin", "hour"),
        timeout=5.0,
        capacity=10,
        buffer=1_000,
        retry=retry,
        on_error="column",
        flatten=True,
        event_time="ts",
        max_out_of_orderness="10 seconds",
    )
    assert_type(more, DataFrame)
    assert_type(df.transform(ordered_wait, country, "country string", timeout=5.0), DataFrame)
    ordered_wait(df, country, "country string", timeout=5.0, event_time="ts")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    ordered_wait(df, country, "country string", timeout=5.0, gate=[RateLimit(9.5), Auto(most=9)], skip_nulls=True)
    keyed_wait(df, country, "country string", key="ip", timeout=5.0, gate=RateLimit(5))
    ordered_wait(df, country, "country string", timeout=5.0, gate="fast")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    carried = unordered_wait(df, country, "country string", timeout=5.0, carry_over=CarryOver(budget=1, max_rows=10))
    assert_type(carried, DataFrame)
    keyed_wait(df, country, "country string", key="ip", timeout=5.0, carry_over=CarryOver(max_age=60.0))
    unordered_wait(df, country, "country string", timeout=5.0, carry_over=5.0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ordered_wait(df, country, "country string", timeout=5.0, carry_over=CarryOver())  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def the_transport() -> None:
    StackTransport(max_idle=5, keepalive_expiry=30.0)


def the_http_columns(df: DataFrame) -> None:
    assert_type(http_get("url"), Column)
    assert_type(http_request("GET", df.url), Column)
    assert_type(Memo("answers").read(df.sparkSession), DataFrame)
    df.select(http_get("url"), http_get(df.url, {"accept": "text/plain"}, timeout=5.0, cache=60.0))
    df.select(http_request("POST", "url", "headers", df.body, retries=0, retry_statuses=[503], cluster_capacity=50))
    df.select(http_request("GET", "url", cluster_rate=9.5))
    df.select(http_get("url", allowed_hosts=["example.org", "*.example.com"], only_public=True))
    df.select(http_request("GET", "url", cluster_rate=ClusterRate(9.5, by="lease", name="shared")))
    register_http(df.sparkSession, "geo_", headers={"accept": "text/plain"}, rate=10, follow_redirects=True)
    http_get(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    http_request(df, "url")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    register_http(df)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    http_get("url", time_out=5.0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    register_http(df.sparkSession, rate="fast")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
