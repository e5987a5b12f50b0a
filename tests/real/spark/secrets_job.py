"""Jobs that hold secrets and fail, each in its own way. Prints each error with its causes, as Python does.

    python secrets_job.py

The secret is not in this file, whose lines a traceback shows.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import trio
from pyspark.sql import SparkSession

from udfs import AsyncFunction, ClusterRate, Memo, async_pandas_udf, ordered_wait
from udfs.http_columns import http_get

SECRET = os.environ["TEST_SECRET"]


@dataclass
class Client(AsyncFunction[int, Any]):
    """A client with a token, which its repr shows, and whose method of this name fails."""

    failing: str
    token: str = SECRET

    async def open(self) -> None:
        if self.failing == "open":
            raise OSError("cannot open")

    async def invoke(self, id: int) -> Any:  # type: ignore[override]  # noqa: A002 - the name of the column
        if self.failing == "result":
            return len(self.token)
        if self.failing == "timeout":
            await trio.sleep_forever()
        raise ValueError("no such row")


def jobs(spark: SparkSession) -> Iterator[Callable[[], Any]]:
    token = SECRET
    rows = spark.range(2)

    async def captured(id: int) -> str:  # noqa: A002 - the name of the column
        raise ValueError(f"no row {id} for {len(token)} characters")

    def broken_headers() -> dict[str, str]:
        raise RuntimeError(f"no token of {len(token)} characters")

    for failing in ("open", "invoke", "result", "timeout"):
        yield lambda each=failing: ordered_wait(rows, Client(each), "x string", timeout=0.5).collect()
    yield lambda: rows.select(async_pandas_udf(captured, "string", timeout=5.0)("id")).collect()
    urls = spark.createDataFrame([(f"http://u:{SECRET}@127.0.0.1:1/?key={SECRET}",)], "url string")
    for headers in ({"authorization": SECRET}, broken_headers):
        outcome = http_get("url", headers=headers, timeout=5.0, retries=0)
        yield lambda column=outcome: urls.select(column["error"]["message"].alias("message")).collect()
    column = http_get("url", headers={"authorization": SECRET}, timeout=5.0, verify="/missing")
    yield lambda: urls.select(column).collect()
    memo = Memo(f"s3://KEY:{SECRET}@bucket/memo?scheme=http&endpoint_override=127.0.0.1:1")
    yield lambda: ordered_wait(rows, captured, "x string", timeout=5.0, memo=memo).collect()
    rate = ClusterRate(5.0, by=f"redis://user:{SECRET}@127.0.0.1:1/0", name="r", give_up=0.5)
    yield lambda: rows.select(async_pandas_udf(captured, "string", timeout=5.0, cluster_rate=rate)("id")).collect()


def main() -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.python.daemon.module", "preloading_daemon")  # each failed job ends its workers
    with builder.getOrCreate() as spark:
        for job in jobs(spark):
            try:
                sys.stdout.write(f"RETURNED {job()}\n")
            except Exception:  # noqa: BLE001 - each job fails in its own way
                sys.stdout.write(f"RAISED {traceback.format_exc()}\n")


if __name__ == "__main__":
    main()
