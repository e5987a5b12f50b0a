"""HTTP columns in real Spark: as columns, in SQL, and the requests that the service gets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import pytest
import trio
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from tests.support import variation_except
from tests.udfs.http.serving import Peer, Server, ok, serving_in_thread
from udfs.http_columns import http_get, http_request, register_http

ERROR = "struct<type:string,message:string,attempts:int,seconds:double>"
SCHEMA = f"struct<status:int,headers:map<string,string>,body:string,error:{ERROR}>"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving_in_thread(ok) as server:
        yield server


def test_a_column_has_one_response_per_row_and_sends_one_request(spark: SparkSession, server: Server) -> None:
    async def respond(peer: Peer) -> None:
        await peer.respond(peer.path.encode(), status="404 Nothing Here" if peer.path.endswith("3") else "200 OK")

    server.respond = respond
    ids = spark.range(0, 20, 1, 2)
    url = F.when(F.col("id") != 5, F.concat(F.lit(f"{server.url}/"), F.col("id")))
    pages = ids.withColumn("url", url).withColumn("page", http_get("url"))
    assert pages.schema["page"].dataType.simpleString() == SCHEMA
    out = pages.where("page.status is null or page.status < 500").select("id", "page").collect()
    assert [row.id for row in out] == list(range(20))
    assert [row.page and (row.page.status, row.page.body, row.page.error) for row in out] == [
        None if n == 5 else (404 if n in {3, 13} else 200, f"/{n}", None) for n in range(20)
    ]
    assert Counter(server.paths) == Counter(f"/{n}" for n in range(20) if n != 5)
    assert ids.select(http_get(F.lit(server.url))).columns == [f"http_get({server.url})"]


@pytest.mark.parametrize("tasks", variation_except([4], [2, 4]))
def test_each_process_finds_how_many_requests_a_host_takes(spark: SparkSession, server: Server, tasks: int) -> None:
    """Two tasks at once have 200 requests by default, and the host takes 12."""
    running, refused = 0, 0

    async def respond(peer: Peer) -> None:
        nonlocal running, refused
        if running == 12:
            refused += 1
            await peer.respond(b"busy", status="503 Busy")
            return
        running += 1
        try:
            await trio.sleep(0.05)
        finally:
            running -= 1
        await peer.respond(b"fine")

    server.respond = respond
    urls = spark.range(0, 600, 1, tasks).select(F.concat(F.lit(f"{server.url}/"), F.col("id")).alias("url"))
    pages = urls.select(http_get("url", capacity="auto", retries=50, timeout=math.inf).alias("page"))
    assert {row.page.status for row in pages.collect()} == {200}
    assert refused <= 300


def test_a_host_that_refuses_requests_holds_back_no_other_one(spark: SparkSession, server: Server) -> None:
    """There is one slot. The host that refuses is paused after its first response, until the other one has all rows."""
    others: list[str] = []

    async def respond(peer: Peer) -> None:
        is_over = len(others) == 5
        await peer.respond(b"", "retry-after: 1", status="200 OK" if is_over else "429 Too Many Requests")

    async def respond_at_once(peer: Peer) -> None:
        others.append(peer.path)
        await peer.respond()

    server.respond = respond
    with serving_in_thread(respond_at_once) as other:
        urls = [(f"{each.url}/{number}",) for number in range(5) for each in (server, other)]
        rows = spark.createDataFrame(urls, "url string").coalesce(1)
        out = rows.select(http_get("url", capacity=1, retries=20, timeout=60.0).status).collect()
    assert [row[0] for row in out] == [200] * 10
    assert len(others) == 5


def test_sql_posts_a_body_with_headers(spark: SparkSession, server: Server) -> None:
    async def respond(peer: Peer) -> None:
        sent = peer.request
        kind, common = sent.headers.get("content-type"), sent.headers.get("x-all")
        await peer.respond(f"{sent.method} {kind} {common} {sent.body.decode()}".encode(), status="201 Created")

    server.respond = respond
    register_http(spark, "shop_", headers={"x-all": "yes"})
    calls = {
        "shop_request('POST', url, map('content-type', 'application/json'), to_json(named_struct('id', id)))": (
            'POST application/json yes {"id":0}'
        ),
        "shop_request('put', url)": "PUT None yes ",
        "shop_request('POST', url, null, cast('raw' as binary))": "POST None yes raw",
        "shop_get(url, map('x-all', 'own'))": "GET None own ",
    }
    for call, body in calls.items():  # one by one: each call of a query has a worker process of its own
        query = f"select {call}.body from (select :url as url, id from range(0, 1, 1, 1))"
        assert spark.sql(query, args={"url": server.url}).first() == (body,)


def test_a_request_takes_columns_names_and_a_mapping_of_headers(spark: SparkSession, server: Server) -> None:
    async def respond(peer: Peer) -> None:
        sent = peer.request
        await peer.respond(f"{sent.method} {sent.headers.get('x-a')} {sent.body.decode()}".encode())

    server.respond = respond
    row = spark.range(0, 1, 1, 1).select(
        F.lit(server.url).alias("url"), F.lit("PUT").alias("method"), F.lit("b").alias("body")
    )
    own = F.create_map(F.lit("x-a"), F.lit("own"))
    columns = [
        http_request("POST", "url", {"X-A": "all"}, "body"),
        http_request(F.col("method"), F.col("url"), own),
        http_request("GET", "url"),
    ]
    bodies = ["POST all b", "PUT own ", "GET None "]
    assert [row.select(column.body).first() for column in columns] == [(body,) for body in bodies]
    assert "all" not in str(row.select(http_get("url", {"X-A": "all"})).columns)


def test_a_worker_caches_responses(spark: SparkSession, server: Server) -> None:
    urls = spark.range(0, 100, 1, 1).select(F.concat(F.lit(f"{server.url}/"), F.col("id") % 5).alias("url"))
    register_http(spark, "slow_", cache=60.0, rate=50.0)
    urls.createOrReplaceTempView("repeated")
    assert spark.sql("select slow_get(url).status as status from repeated").where("status = 200").count() == 100
    assert Counter(server.paths) == {f"/{n}": 1 for n in range(5)}
