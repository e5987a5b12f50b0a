"""Shared resources and named gates in a real Spark."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio
from pyspark.sql import SparkSession

from tests.service import Client, Service
from trio_asyncio_io.gates import RateLimit
from udfs import async_pandas_udf, shared


@asynccontextmanager
async def connected(client: Client) -> AsyncIterator[Any]:
    """One connection, for one question at a time."""
    async with await client.connect() as stream:
        lock = trio.Lock()

        async def ask(question: str) -> str:
            async with lock:
                return await client.ask_on(stream, question)

        yield ask


def asking(line: shared[Any], word: str) -> Any:
    async def function(number: int) -> str:
        async with line as ask:
            return await ask(f"{word} {number} {os.getpid()}")

    return function


def processes_of(service: Service, word: str) -> set[str]:
    return {call.split()[2] for call in service.calls if call.startswith(word)}


def test_columns_of_one_query_share_a_connection_in_each_process(spark: SparkSession, service: Service) -> None:
    line = shared("columns", partial(connected, service.client))
    gate = RateLimit(1000.0, burst=100.0, name="columns")
    columns = {
        word: async_pandas_udf(asking(line, word), "string", timeout=60.0, gate=gate)("id")
        for word in ("temperature", "wind")
    }
    for _ in range(2):
        rows = spark.range(0, 20, 1, 4).withColumns(columns).collect()
        assert all(row.temperature.startswith(f"temperature {row.id} ") for row in rows)
        assert all(row.wind.startswith(f"wind {row.id} ") for row in rows)
    assert len(service.calls) == 80
    assert service.connections == len(processes_of(service, ""))
