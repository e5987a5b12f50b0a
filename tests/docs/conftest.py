"""What the examples run on: a Spark session, and a service on loopback that answers for port 8000."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

ANSWERS = {"weather": {"temp": 39.02, "wind": 12.66}, "planes": {"model": "737-824", "seats": 149}}


class Lookup(BaseHTTPRequestHandler):
    """`/weather/...` and `/planes/...` are there, but nothing that ends in `unknown`."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        kind = self.path.split("/")[1]
        found = None if self.path.endswith("unknown") else ANSWERS.get(kind)
        body = json.dumps(found).encode()
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # an idle connection would keep it waiting


@pytest.fixture(scope="session")
def service() -> Iterator[str]:
    """The URL of a service that runs in this process."""
    with Server(("127.0.0.1", 0), Lookup) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A local session with two slots, and this very Python for its workers."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - the pages without Spark are run without it

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    is_ours = SparkSession.getActiveSession() is None
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    yield session
    if is_ours:
        session.stop()


@pytest.fixture
def lent(spark: Any, service: str) -> dict[str, Any]:
    """The names that README.md's examples take for granted."""
    from udfs import AsyncFunction  # noqa: PLC0415 - as above
    from udfs.http import client  # noqa: PLC0415

    class Weather(AsyncFunction[Any, Any]):
        async def open(self) -> None:
            self.http = client(base_url=service)

        async def invoke(self, origin: str, time_hour: str) -> Any:
            return (await self.http.get(f"/weather/{origin}/{time_hour}")).json()

    async def lookup(ip: str) -> str:
        return "NL"

    Weather.__module__ = lookup.__module__ = "__main__"  # so that they are sent whole, as from a script
    rows = [("203.0.113.7", "EWR", "2013-01-01T10:00:00Z"), ("203.0.113.8", "JFK", None)]
    df = spark.createDataFrame(rows, "ip string, origin string, time_hour string")
    return {"df": df, "lookup": lookup, "Weather": Weather}
