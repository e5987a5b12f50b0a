"""Forecasts of real jobs: the calls of the sample are counted at a service."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.service import Service
from tests.support import PATIENCE
from trio_asyncio_io.gates import settle
from udfs import ClusterBudget, ClusterRate, ordered_wait, rehearse

ROWS, SAMPLE = 400, 40


@pytest.fixture
def questions(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, 4).withColumnRenamed("id", "question")


def test_a_forecast_calls_a_sample_and_its_best_setting_runs(questions: DataFrame, service: Service) -> None:
    arguments: Any = (questions, service.client.ask, "answer string")
    forecast = rehearse(*arguments, SAMPLE, timeout=PATIENCE, metrics=(seen := Observation()))
    assert len(service.calls) == len(set(service.calls)) == SAMPLE
    assert len({int(question) // 100 for question in service.calls}) > 1
    assert forecast.elements == ROWS
    assert "Up to 2 tasks run at once, 4 in all" in forecast.assumptions[0]

    assert ordered_wait(*arguments, **forecast.best).count() == ROWS
    assert len(service.calls) == SAMPLE + ROWS
    assert seen.get["rows"] == ROWS


def test_the_job_does_not_pay_again_for_the_sample(spark: SparkSession, service: Service, tmp_path: Path) -> None:
    df = spark.range(0, ROWS, 1, 4).withColumn("question", F.col("id") % 100)
    arguments: Any = (df, service.client.ask, "answer string")
    rehearse(*arguments, SAMPLE, timeout=PATIENCE, capacity=5, memo=tmp_path)
    calls = len(service.calls)
    forecast = rehearse(*arguments, SAMPLE, timeout=PATIENCE, capacity=5, memo=tmp_path)
    assert calls < len(service.calls) < 2 * SAMPLE
    assert max(Counter(service.calls).values()) == 1
    # Without those of both samples. The share of rows that are known is estimated from the rows of the sample
    assert forecast.elements == pytest.approx(100 - len(service.calls), abs=25)
    assert ordered_wait(*arguments, **forecast.best).select("answer").distinct().count() == 100
    assert Counter(service.calls) == Counter(map(str, range(100)))
    with pytest.raises(ValueError, match="no row of the sample needs a call: the memo has their answers"):
        rehearse(*arguments, SAMPLE, timeout=PATIENCE, capacity=5, memo=tmp_path)


@pytest.mark.variation
def test_groups_of_rows_are_called_and_kept_in_the_memo(questions: DataFrame, service: Service, tmp_path: Path) -> None:
    client = service.client

    async def ask(question: list[int]) -> list[str]:
        await client.ask(question)
        return [str(each) for each in question]

    arguments: Any = (questions, ask, "answer string")
    forecast = rehearse(*arguments, 8, timeout=PATIENCE, capacity=2, memo=tmp_path, group=10)
    assert len(service.calls) == 8
    answers = ordered_wait(*arguments, **forecast.best).collect()
    assert all(row.answer == str(row.question) for row in answers)
    assert sum(question.count(",") + 1 for question in service.calls) == ROWS


@pytest.mark.variation
@pytest.mark.filterwarnings("ignore:the sample has reached a load")
def test_a_sample_of_groups_has_the_cost_of_the_budget(questions: DataFrame, service: Service) -> None:
    client = service.client

    async def ask(question: list[int]) -> list[str]:
        await client.ask(question)
        settle(2.0 * len(question), "cents")
        settle(float(len(question)), "tokens")
        return [str(each) for each in question]

    tokens = ClusterRate(50, weight=lambda question: 3, name="tokens")
    budget = ClusterBudget(600.0, weight=lambda question: 5, name="cents")
    options: Any = {"group": 10, "cluster_rate": [1_000, tokens], "cluster_budget": budget}
    forecast = rehearse(questions, ask, "answer string", 8, timeout=PATIENCE, capacity=2, **options)
    (row,) = forecast.rows
    assert row.weight == pytest.approx(2 * ROWS)
    assert row.seconds == pytest.approx(ROWS / 50, rel=0.1)
    assert any("The budget has 600 left, and the run needs 800" in each for each in forecast.assumptions)


@pytest.mark.filterwarnings("ignore:the sample has reached a load")
def test_a_sample_ends_at_the_budget(questions: DataFrame, service: Service) -> None:
    budget = ClusterBudget(5.0, weight=lambda question: 0.5)
    forecast = rehearse(questions, service.client.ask, "answer string", 40, timeout=PATIENCE, cluster_budget=budget)
    assert len(service.calls) == 10
    assert forecast.rows[0].weight == pytest.approx(0.5 * ROWS)


@pytest.mark.variation
def test_rows_that_are_skipped_are_no_calls(questions: DataFrame, service: Service) -> None:
    df = questions.withColumn("question", F.when(F.col("question") < ROWS // 2, F.col("question")))
    forecast = rehearse(
        df, service.client.ask, "answer string", 60, 1000, timeout=PATIENCE, capacity=5, skip_nulls=True
    )
    assert forecast.elements == pytest.approx(500, abs=350)
    assert "None" not in service.calls


@pytest.mark.variation
def test_rows_that_are_skipped_are_no_keys_of_a_memo(questions: DataFrame, service: Service, tmp_path: Path) -> None:
    df = questions.withColumn("question", F.when(F.col("question") < ROWS // 2, F.col("question")))
    arguments: Any = (df, service.client.ask, "answer string")
    options: Any = {"timeout": PATIENCE, "capacity": 5, "skip_nulls": True, "memo": tmp_path}
    forecast = rehearse(*arguments, 60, **options)
    # All other keys. Spark estimates their number, and each partition has at least one
    assert forecast.elements == pytest.approx(ROWS // 2 - len(service.calls), abs=20)
    assert ordered_wait(*arguments, **forecast.best).count() == ROWS
    assert len(service.calls) == ROWS // 2


def test_the_function_gets_the_values_that_a_worker_would_give_it(spark: SparkSession, service: Service) -> None:
    df = spark.sql("select timestamp'2024-07-01 12:00:00' as at, decimal(1.50) as amount, array(1, null) as numbers")
    client = service.client

    async def ask(at: Any, amount: Any, numbers: Any) -> str:
        return await client.ask([at.isoformat(), str(amount), numbers])

    rehearse(df, ask, "answer string", 1, timeout=PATIENCE)
    (row,) = ordered_wait(df, ask, "answer string", timeout=PATIENCE).collect()
    assert service.calls == [row.answer] * 2


@pytest.mark.variation
def test_an_input_column_may_come_twice(questions: DataFrame, service: Service, tmp_path: Path) -> None:
    client = service.client

    async def ask(question: int, again: int) -> str:
        assert question == again
        return await client.ask(question)

    arguments: Any = (questions, ask, "answer string")
    options: Any = {"inputs": ["question", "question"], "memo": tmp_path}
    forecast = rehearse(*arguments, SAMPLE, timeout=PATIENCE, capacity=5, **options)
    assert ordered_wait(*arguments, **forecast.best).count() == ROWS
    assert len(service.calls) == ROWS


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mode": "keyed"}, ValueError, 'mode must be "ordered" or "unordered", got \'keyed\''),
        ({"cluster_capacity": 10}, ValueError, "rehearse compares capacity=, that of one task, got cluster_capacity="),
        ({"capacity": "auto"}, TypeError, "capacity must be a whole number, got 'auto'"),
        ({"on_error": "ignore"}, ValueError, 'on_error must be "raise", "null" or "column"'),
        ({"df": None}, TypeError, "df must be a Spark DataFrame"),
    ],
)
def test_an_invalid_argument_costs_no_call(
    questions: DataFrame, service: Service, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    common: dict[str, Any] = {"df": questions, "function": service.client.ask, "schema": "answer string"}
    with pytest.raises(error, match=message):
        rehearse(**{**common, "timeout": PATIENCE, **arguments})
    assert not service.calls


def test_an_empty_dataframe_has_no_forecast(questions: DataFrame, service: Service) -> None:
    with pytest.raises(ValueError, match="df has no rows, so no call can be made"):
        rehearse(questions.limit(0), service.client.ask, "answer string", timeout=PATIENCE)
