"""A rate for the whole cluster, as a service sees it."""

from __future__ import annotations

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import Observation, SparkSession

from tests.entry_points import COLUMN_AND_ROWS, with_answer
from tests.service import Service
from tests.support import PATIENCE, thorough_except
from udfs import ClusterRate, explain, ordered_wait
from udfs._plan.limits import _servers

# A call that is delayed on its way arrives together with those behind it, and the machine may be busy
LATE = 1.25


class Arrivals:
    """The instants at which calls arrive at a service."""

    def __init__(self, service: Service) -> None:
        self.instants: list[float] = []
        service.answer = self._answer

    async def _answer(self, question: str) -> str:
        self.instants.append(time.monotonic())
        return question

    @property
    def most_in_a_second(self) -> int:
        starts = self.instants
        return max(sum(first <= each < first + 1.0 for each in starts) for first in starts)

    @property
    def rate(self) -> float:
        return (len(self.instants) - 1) / (self.instants[-1] - self.instants[0])


@COLUMN_AND_ROWS
def test_tasks_share_a_rate(spark: SparkSession, service: Service, entry_point: str) -> None:
    arrivals = Arrivals(service)
    df = with_answer(spark.range(0, 60, 1, 4), entry_point, service.client.ask, cluster_rate=20)
    assert df.where("answer = id").count() == 60
    assert arrivals.most_in_a_second <= 20 * LATE
    assert arrivals.rate <= 20


@pytest.mark.parametrize("entry_point", thorough_except(["unordered"], ["column", "unordered"]))
def test_tasks_share_a_rate_of_weights_beside_one_of_calls(
    spark: SparkSession, service: Service, entry_point: str
) -> None:
    arrivals = Arrivals(service)
    rates = [1_000, ClusterRate(200, weight=lambda number: 10)]
    df = with_answer(spark.range(0, 60, 1, 4), entry_point, service.client.ask, cluster_rate=rates)
    assert df.where("answer = id").count() == 60
    assert arrivals.most_in_a_second <= (20 + 4) * LATE  # one call more for each task


@pytest.mark.thorough
def test_the_wait_for_the_rate_is_reported(spark: SparkSession, service: Service) -> None:
    seen = Observation()
    options = {"timeout": PATIENCE, "cluster_rate": 20, "metrics": seen}
    ordered_wait(spark.range(0, 20, 1, 2), service.client.ask, "answer string", inputs=["id"], **options).collect()
    assert json.loads(seen.get["explain"])["gate_wait_seconds"] > 0


def test_tasks_lease_a_rate_from_the_driver(spark: SparkSession, service: Service) -> None:
    arrivals = Arrivals(service)
    rate = ClusterRate(40, by="lease")
    df = with_answer(spark.range(0, 120, 1, 3), "unordered", service.client.ask, cluster_rate=rate)
    assert df.where("answer = id").count() == 120
    assert arrivals.most_in_a_second <= 40 * LATE


@pytest.mark.thorough
def test_two_queries_at_once_share_a_lease_by_its_name(spark: SparkSession, service: Service) -> None:
    arrivals = Arrivals(service)

    def run(entry_point: str) -> int:
        rate = ClusterRate(30, by="lease", name="shared")
        df = with_answer(spark.range(0, 60, 1, 1), entry_point, service.client.ask, cluster_rate=rate)
        return df.where("answer = id").count()

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(run, ["column", "unordered"])) == [60, 60]
    assert arrivals.most_in_a_second <= 30 * LATE
    with pytest.raises(ValueError, match="named 'shared' is 30 calls per second in this session, got 60"):
        with_answer(
            spark.range(3), "ordered", service.client.ask, cluster_rate=ClusterRate(60, by="lease", name="shared")
        )


def hang_up(listener: socket.socket, connections: int) -> None:
    """Accept as many connections, without an answer. Each process tries again after a quarter of a second."""
    for _ in range(connections):
        listener.accept()[0].close()


@pytest.mark.thorough
@pytest.mark.parametrize("entry_point", ["column", "unordered"])
def test_calls_wait_while_the_source_is_away_and_continue_when_it_is_back(
    spark: SparkSession, service: Service, entry_point: str
) -> None:
    """Another program listens at its address meanwhile."""
    arrivals = Arrivals(service)
    rate = ClusterRate(40, by="lease", name=f"{entry_point} that waits")
    seen = Observation()
    options = {} if entry_point == "column" else {"metrics": seen}
    df = with_answer(spark.range(0, 160, 1, 2), entry_point, service.client.ask, cluster_rate=rate, **options)
    server = _servers[spark.sparkContext.applicationId]
    with ThreadPoolExecutor(1) as threads:
        counted = threads.submit(df.where("answer = id").count)
        service.wait_until(lambda: len(service.calls) > 40)
        port = server.listen()
        server.close()
        with socket.create_server(("127.0.0.1", port)) as stranger:
            hang_up(stranger, 12)  # the tokens of two processes have expired by then
            before = len(service.calls)
            hang_up(stranger, 24)
            assert len(service.calls) == before
        assert server.listen() == port
        assert counted.result() == 160
    assert arrivals.most_in_a_second <= 40 * LATE
    if options:
        verdict = explain(seen)
        assert verdict.limit == "gate"
        assert "ClusterRateSourceAway" in str(verdict)


@pytest.mark.parametrize("entry_point", thorough_except(["unordered"], ["column", "unordered"]))
def test_a_task_fails_when_the_source_was_away_for_too_long(
    spark: SparkSession, service: Service, entry_point: str
) -> None:
    rate = ClusterRate(40, by="lease", name=f"{entry_point} that fails", give_up=2.0)
    df = with_answer(spark.range(0, 160, 1, 2), entry_point, service.client.ask, cluster_rate=rate, on_error="null")
    server = _servers[spark.sparkContext.applicationId]
    server.close()
    with pytest.raises(Exception, match=r"udfs.ClusterLimitError: the driver at 127\.0\.0\.1:\d+") as caught:
        df.collect()
    assert "give_up=2. The last attempt failed with ConnectionRefusedError: " in str(caught.value)
    assert "Check that the driver is alive" in str(caught.value)
    assert not service.calls
