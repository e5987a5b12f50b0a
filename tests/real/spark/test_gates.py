"""Gates in real Spark, in front of an HTTP service that is down, or asks for a pause. The service counts the calls."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import udfs.http
from tests.entry_points import with_answer
from tests.support import thorough_except
from tests.udfs.http.serving import Peer, Server, ok, reset, serving_in_thread
from trio_asyncio_io.gates import CircuitBreaker
from udfs import AsyncFunction, ExponentialBackoff

ENTRY_POINTS = pytest.mark.parametrize("entry_point", thorough_except(["unordered"], ["column", "unordered"]))

OPEN_FOR = 0.2
BREAKER = CircuitBreaker(calls=5, open_for=OPEN_FOR, max_open=2 * OPEN_FOR)
CAPACITY = 4
# Requests of a process until its breaker is open: the calls that end meanwhile, and those that the client sends again
# because it had used their connections before
UNTIL_OPEN = BREAKER.calls + CAPACITY - 1 + CAPACITY


class Fetch(AsyncFunction[int, str]):
    """Sends a request with the process and the row."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def open(self) -> None:
        self.client = udfs.http.client()

    async def invoke(self, id: int) -> str:  # noqa: A002 - the name of the column
        response = await self.client.get(f"{self.url}/{os.getpid()}/{id}")
        return response.raise_for_status().text.rsplit("/", 1)[-1]

    async def close(self) -> None:
        await self.client.aclose()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving_in_thread(ok) as server:
        yield server


def answers(spark: SparkSession, server: Server, entry_point: str, rows: int, **options: Any) -> list[str]:
    retry = ExponentialBackoff(100, 0.01, 0.1)
    df = with_answer(spark.range(0, rows, 1, 2), entry_point, Fetch(server.url), retry=retry, **options)
    return [row.answer for row in df.select("answer").collect()]


def process_of(peer: Peer) -> str:
    return peer.path.split("/")[1]


class Outage:
    """Resets each connection from one request on, until `is_over`."""

    def __init__(self, start: int, is_over: Callable[[Outage], bool]) -> None:
        self.start = start
        self.is_over = is_over
        self.answered: list[float] = []
        self.refused: dict[str, list[float]] = defaultdict(list)  # by process

    @property
    def calls(self) -> int:
        return sum(map(len, self.refused.values()))

    async def respond(self, peer: Peer) -> None:
        if len(self.answered) >= self.start and not self.is_over(self):
            self.refused[process_of(peer)].append(time.monotonic())
            await reset(peer.stream)
        else:
            self.answered.append(time.monotonic())
            await ok(peer)


@ENTRY_POINTS
def test_a_job_pauses_while_its_service_is_down_and_loses_no_row(
    spark: SparkSession, server: Server, entry_point: str
) -> None:
    """With an open circuit, a process makes single probes, at intervals."""
    outage = Outage(20, lambda outage: outage.calls >= 2 * UNTIL_OPEN + 6)
    server.respond = outage.respond
    found = answers(spark, server, entry_point, 200, capacity=CAPACITY, gate=BREAKER)
    assert sorted(found, key=int) == [str(n) for n in range(200)]
    assert outage.calls == 2 * UNTIL_OPEN + 6
    for calls in outage.refused.values():
        assert all(later - earlier >= 0.8 * OPEN_FOR for earlier, later in pairwise(calls[UNTIL_OPEN:]))


@ENTRY_POINTS
def test_a_job_whose_breaker_gives_up_fails_with_the_exception_of_its_service_although_errors_go_into_a_column(
    spark: SparkSession, server: Server, entry_point: str
) -> None:
    server.respond = Outage(0, lambda outage: False).respond
    gate = CircuitBreaker(calls=5, open_for=0.1, give_up=1.0)
    with pytest.raises(PythonException) as caught:
        answers(spark, server, entry_point, 20, capacity=CAPACITY, gate=gate, on_error="column")
    lines = str(caught.value).strip().splitlines()
    assert lines[-2].startswith("httpx.ReadError: ")
    assert lines[-1].startswith("the service has accepted no call for 1 second (give_up), so the operator stops. ")
