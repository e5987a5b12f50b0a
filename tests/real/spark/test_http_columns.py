"""HTTP columns in real Spark: as columns, in SQL, and what the service sees of them."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from tests.support import PATIENCE
from udfs.http_columns import http_get, http_request, register_http

ERROR = "struct<type:string,message:string,attempts:int,seconds:double>"
SCHEMA = f"struct<status:int,headers:map<string,string>,body:string,error:{ERROR}>"


class Handler(BaseHTTPRequestHandler):
    """Answers with what the test says, and otherwise with the path."""

    protocol_version = "HTTP/1.1"
    server: Site

    def _answer(self) -> None:
        size = int(self.headers.get("content-length", 0))
        status, headers, body = self.server.answer(self, self.rfile.read(size))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    do_GET = do_POST = do_PUT = _answer  # noqa: N815 - http.server's names

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


class Site(ThreadingHTTPServer):
    """A service that counts its callers.

    Attributes:
        paths: What was asked, in the order in which it came.
        peak: Most requests at once.
        plan: (handler, body, how often this path was asked before) -> status, headers and body.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.paths: list[str] = []
        self.running = self.peak = 0
        self.plan: Callable[[Handler, bytes, int], Any] = lambda handler, body, times: (200, {}, handler.path)
        self._lock = threading.Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: callers hang up here by design."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, handler: Handler, body: bytes) -> Any:
        with self._lock:
            times = self.paths.count(handler.path)
            self.paths.append(handler.path)
            self.running += 1
            self.peak = max(self.peak, self.running)
        try:
            return self.plan(handler, body, times)
        finally:
            with self._lock:  # before the answer goes out: who has it may ask the next one at once
                self.running -= 1


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def refusing() -> Iterator[int]:
    """A port that is taken and where nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def test_a_column_of_answers_stands_beside_the_rows_and_asks_once_for_each(spark: SparkSession, site: Site) -> None:
    site.plan = lambda handler, body, times: (404 if handler.path.endswith("3") else 200, {}, handler.path)
    ids = spark.range(0, 20, 1, 2)
    url = F.when(F.col("id") != 5, F.concat(F.lit(f"{site.url}/"), F.col("id")))
    pages = ids.withColumn("url", url).withColumn("page", http_get("url"))
    assert pages.schema["page"].dataType.simpleString() == SCHEMA
    out = pages.where("page.status is null or page.status < 500").select("id", "page").collect()
    assert [row.id for row in out] == list(range(20))
    assert [row.page and (row.page.status, row.page.body, row.page.error) for row in out] == [
        None if n == 5 else (404 if n in {3, 13} else 200, f"/{n}", None) for n in range(20)
    ]
    assert Counter(site.paths) == Counter(f"/{n}" for n in range(20) if n != 5)
    assert ids.select(http_get(F.lit(site.url))).columns == [f"http_get({site.url})"]


def test_sql_retries_what_passes_and_gives_the_rest_as_it_is(spark: SparkSession, site: Site, refusing: int) -> None:
    """One call registers it: a 503 and a 429 that pass, one that does not, a timeout, a refusal, no URL, a bad one."""
    stopped = threading.Event()

    def plan(handler: Handler, body: bytes, times: int) -> Any:
        if handler.path == "/hangs":
            stopped.wait(PATIENCE)
        if handler.path == "/tired" or (handler.path in {"/503", "/429"} and times == 0):
            return 429 if handler.path == "/429" else 503, {"retry-after": "1"}, "later"
        return 200, {"x-agent": handler.headers["x-agent"]}, handler.path

    site.plan = plan
    urls = [f"{site.url}/{name}" for name in ("503", "429", "tired", "hangs")]
    urls += [f"http://127.0.0.1:{refusing}/", "ftp://host/"]
    rows = [*enumerate(urls), (6, None)]
    spark.createDataFrame(rows, "n int, url string").createOrReplaceTempView("urls")
    register_http(spark, timeout=5.0, retries=1, headers={"X-Agent": "spark"})
    answers = dict(map(tuple, spark.sql("select n, http_get(url) as answer from urls").collect()))
    stopped.set()
    assert [(each.status, each.body, each.headers["x-agent"]) for each in (answers[0], answers[1])] == [
        (200, "/503", "spark"),
        (200, "/429", "spark"),
    ]
    assert (answers[2].status, answers[2].headers["retry-after"], answers[2].error) == (503, "1", None)
    failed = [answers[n] for n in (3, 4, 5)]
    assert [(each.status, each.headers, each.body) for each in failed] == [(None, None, None)] * 3
    assert [(each.error.type, each.error.attempts) for each in failed] == [
        ("ElementTimeoutError", 1),
        ("ConnectError", 2),
        ("UnsupportedProtocol", 1),
    ]
    assert answers[6] is None
    assert Counter(site.paths) == {"/503": 2, "/429": 2, "/tired": 2, "/hangs": 1}


def test_sql_posts_a_body_with_headers(spark: SparkSession, site: Site) -> None:
    site.plan = lambda handler, body, times: (
        201,
        {},
        f"{handler.command} {handler.headers['content-type']} {handler.headers['x-all']} {body.decode()}",
    )
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
        assert spark.sql(query, args={"url": site.url}).first() == (body,)


def test_a_request_takes_columns_and_names_and_a_mapping_of_headers(spark: SparkSession, site: Site) -> None:
    site.plan = lambda handler, body, times: (200, {}, f"{handler.command} {handler.headers['x-a']} {body.decode()}")
    row = spark.range(0, 1, 1, 1).select(
        F.lit(site.url).alias("url"), F.lit("PUT").alias("method"), F.lit("b").alias("body")
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


def test_capacity_holds_as_the_service_counts_and_is_used(spark: SparkSession, site: Site) -> None:
    """The service answers three at a time, and nobody before there are three."""
    three = threading.Barrier(3)

    def plan(handler: Handler, body: bytes, times: int) -> Any:
        three.wait(PATIENCE)
        return 200, {}, ""

    site.plan = plan
    urls = spark.range(0, 30, 1, 1).select(F.concat(F.lit(f"{site.url}/"), "id").alias("url"))
    for options in ({"capacity": 3}, {"cluster_capacity": 6}):
        assert urls.where(http_get("url", **options)["status"] == 200).count() == 30
    assert (site.peak, len(site.paths)) == (3, 60)


def test_a_worker_keeps_what_it_was_answered(spark: SparkSession, site: Site) -> None:
    urls = spark.range(0, 100, 1, 1).select(F.concat(F.lit(f"{site.url}/"), F.col("id") % 5).alias("url"))
    register_http(spark, "slow_", cache=60.0, rate=50.0)
    urls.createOrReplaceTempView("repeated")
    assert spark.sql("select slow_get(url).status as status from repeated").where("status = 200").count() == 100
    assert Counter(site.paths) == {f"/{n}": 1 for n in range(5)}


def test_wrong_columns_fail_the_job_and_say_so(spark: SparkSession) -> None:
    register_http(spark, "bad_")
    with pytest.raises(PythonException, match="url of http_get must be a string, and is int32: cast it"):
        spark.sql("select bad_get(1)").collect()
    with pytest.raises(PythonException, match="http_request takes method, url, headers, body"):
        spark.sql("select bad_request('GET')").collect()


def test_a_capacity_that_cannot_be_shared_is_refused_when_it_is_registered(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match=r"cluster_capacity must be at least .* got 1"):
        register_http(spark, cluster_capacity=1)
    with pytest.raises(TypeError, match="cluster_capacity must be a whole number, got 'many'"):
        http_get("url", cluster_capacity="many")  # type: ignore[arg-type]
