"""A budget for the whole cluster, as a service sees it."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from pyspark.sql import Observation, SparkSession

from tests.entry_points import COLUMN_AND_ROWS, with_answer
from tests.service import Client, Service
from tests.support import thorough_except
from trio_asyncio_io.gates import settle
from udfs import ClusterBudget, FixedDelay, explain, summary, unordered_wait

PRICE = 0.01


def priced(client: Client) -> Callable[[int], Awaitable[str]]:
    async def ask(id: int) -> str:  # noqa: A002 - the name of the column
        answer = await client.ask(id)
        settle(PRICE)
        return answer

    return ask


@pytest.mark.parametrize("entry_point", thorough_except(["unordered"], ["column", "unordered"]))
def test_tasks_spend_99_percent_of_a_budget_although_estimates_are_ten_times_too_high(
    spark: SparkSession, service: Service, entry_point: str
) -> None:
    budget = ClusterBudget(10.0, weight=lambda _: 10 * PRICE)
    options = {"cluster_budget": budget, "on_error": "column", "capacity": 10}
    df = with_answer(spark.range(0, 1500, 1, 6), entry_point, priced(service.client), **options)
    errors = [row.error for row in df.collect()]
    assert 0.99 * 10.0 <= len(service.calls) * PRICE <= 10.0
    assert sum(error is None for error in errors) == len(service.calls)
    assert {error.type for error in errors if error} == {"BudgetError"}


@COLUMN_AND_ROWS
def test_a_budget_ends_a_job_by_default(spark: SparkSession, service: Service, entry_point: str) -> None:
    df = with_answer(spark.range(0, 100, 1, 2), entry_point, service.client.ask, cluster_budget=ClusterBudget(7))
    with pytest.raises(Exception, match=r"BudgetError: budget used up by all tasks: 7\.00 of 7\.00, "):
        df.collect()
    assert len(service.calls) <= 7


@pytest.mark.variation
def test_each_row_reports_its_weights_and_the_query_why_calls_were_refused(
    spark: SparkSession, service: Service
) -> None:
    async def fails_once(question: str) -> str:
        return "again" if service.calls.count(question) == 1 else question

    service.answer = fails_once
    seen = Observation()
    out = unordered_wait(
        spark.range(0, 20, 1, 2),
        priced(service.client),
        "answer string",
        inputs=["id"],
        timeout=60.0,
        retry=FixedDelay(1, 0.0, retry_on_result=lambda answer: answer == "again"),
        cluster_budget=ClusterBudget(1.0, weight=lambda _: 0.1),
        on_error="null",
        metadata="how",
        metrics=seen,
    ).collect()
    answered = [row.how for row in out if row.answer is not None]
    assert answered
    for how in answered:
        assert (how.attempts, how.settled_weight) == (2, pytest.approx(2 * PRICE))
        assert how.estimated_weight == pytest.approx(0.2)
    assert all(row.how.error is None for row in out)
    assert "refused" not in summary(seen)


@pytest.mark.variation
def test_a_budget_without_weight_counts_calls_and_metrics_say_that_it_is_used_up(
    spark: SparkSession, service: Service
) -> None:
    seen = Observation()
    budget = ClusterBudget(30, name="thirty calls")
    options = {"cluster_budget": budget, "on_error": "null", "metrics": seen, "timeout": 60.0, "inputs": ["id"]}
    unordered_wait(spark.range(0, 100, 1, 2), service.client.ask, "answer string", **options).collect()
    assert len(service.calls) == seen.get["calls"] == 30
    why = "budget 'thirty calls' used up by all tasks: 30.00 of 30.00, and the call needs 1.00"
    assert f"70 refused ({why})" in summary(seen)
    assert f"Gates refused 70 other records, for which no call was made: {why}." in explain(seen).sentences


@pytest.mark.variation
def test_queries_share_a_budget_by_its_name_and_a_file(spark: SparkSession, service: Service, tmp_path: Path) -> None:
    for _ in range(2):
        budget = ClusterBudget(50, name="shared", path=tmp_path / "budgets")
        options = {"cluster_budget": budget, "on_error": "column"}
        with_answer(spark.range(0, 40, 1, 2), "ordered", service.client.ask, **options).collect()
    assert len(service.calls) == 50


def test_a_job_that_fails_with_a_worker_and_runs_again_pays_at_most_the_budget(
    spark: SparkSession, service: Service
) -> None:
    """A worker is killed here; test_budget_killed.py also kills drivers."""
    capacity = 5

    async def serve(question: str) -> str:
        return "die" if len(service.calls) == 30 else question

    service.answer = serve
    client = service.client

    async def ask(id: int) -> str:  # noqa: A002 - the name of the column
        answer = await client.ask(id)
        if answer == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    budget = ClusterBudget(150, name="survives a worker")
    options = {"cluster_budget": budget, "on_error": "column", "capacity": capacity}
    df = with_answer(spark.range(0, 400, 1, 4), "unordered", ask, **options)
    with pytest.raises(Exception, match="worker"):
        df.collect()
    df.collect()
    assert 150 - 2 * capacity <= len(service.calls) <= 150
