"""The forecast of a job's tasks, beside operators that share a service on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import trio

from benchmarks.forecast.__main__ import in_virtual_time, sample_of
from benchmarks.forecast._services import SERVICES, Planted, function_of
from tests.rehearsal.planted import sampled
from tests.support import thorough_except
from trio_asyncio_io import AsyncWaitOperator
from trio_asyncio_io.gates import Auto, Budget, Outcome, RateLimit
from trio_asyncio_io.rehearsal import Forecast
from udfs import ClusterBudget, ClusterRate
from udfs._rehearsal import job
from udfs._rehearsal.forecast import Job
from udfs._rehearsal.sample import JobRows, _SampledFunction
from udfs._sent.row import Row
from udfs._spark_thread.reading import rows_of

BY_NAME = {service.name: service for service in SERVICES}
EVEN, SKEWED = (600,) * 8, (2400,) + (400,) * 7


def forecast_of(
    service: Planted, sizes: Sequence[int], tasks: int, capacity: int, mode: Any = "ordered", **options: Any
) -> Forecast:
    return Job(options, mode, 60.0, tasks).forecast(sample_of(service, 3), sizes, sum(sizes), [capacity])


def measured(
    service: Planted, sizes: Sequence[int], tasks: int, gate_of: Callable[[int], Any] = lambda _: None, **options: Any
) -> float:
    """The seconds of so many tasks with an operator for each partition, in front of one service."""
    partitions, function = iter(sizes), function_of(service, Random(1))

    async def run_task(gate: Any) -> None:
        for size in partitions:
            async with AsyncWaitOperator(function, source=range(size), timeout=60.0, gate=gate, **options) as operator:
                async for _ in operator.output:
                    pass

    async def main() -> float:
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for task in range(tasks):
                nursery.start_soon(run_task, gate_of(task))
        return trio.current_time() - began

    return float(in_virtual_time(main))


@pytest.mark.parametrize(
    ("name", "sizes"),
    thorough_except(
        [("gamma", SKEWED), ("35 servers", EVEN)],
        [("gamma", EVEN), ("gamma", SKEWED), ("35 servers", EVEN), ("35 servers", SKEWED)],
    ),
)
def test_a_job_takes_the_time_of_its_tasks_in_front_of_one_service(name: str, sizes: tuple[int, ...]) -> None:
    (row,) = forecast_of(BY_NAME[name], sizes, 4, 30).rows
    seconds = measured(BY_NAME[name], sizes, 4, capacity=30)
    assert row.seconds == pytest.approx(seconds, rel=0.1)
    assert row.low <= seconds <= row.high
    assert row.calls == sum(sizes)


@pytest.mark.parametrize(
    ("options", "gate"),
    [
        ({"gate": RateLimit(50.0)}, RateLimit(50.0)),
        pytest.param({"cluster_rate": ClusterRate(203, by="share")}, RateLimit(50.0), marks=pytest.mark.thorough),
    ],
)
def test_a_gate_of_each_task_limits_the_partitions_of_each(options: dict[str, Any], gate: RateLimit) -> None:
    sizes = [400, 100, 100, 100]
    (row,) = forecast_of(BY_NAME["gamma"], sizes, 4, 30, **options).rows
    seconds = measured(BY_NAME["gamma"], sizes, 4, lambda _: deepcopy(gate), capacity=30)
    assert seconds > 7.5
    assert row.seconds == pytest.approx(seconds, rel=0.05)


def test_a_leased_rate_goes_to_the_tasks_that_have_rows() -> None:
    sizes, leased = [300, 100, 100, 100], RateLimit(200.0)
    (row,) = forecast_of(BY_NAME["gamma"], sizes, 4, 30, cluster_rate=ClusterRate(200, by="lease")).rows
    seconds = measured(BY_NAME["gamma"], sizes, 4, lambda _: leased, capacity=30)
    assert seconds < 3.5
    assert row.seconds == pytest.approx(seconds, rel=0.1)


@pytest.mark.variation
def test_fewer_partitions_than_slots_use_their_shares_of_the_rate_only() -> None:
    taken = sample_of(BY_NAME["gamma"], 3)
    (row,) = Job({"cluster_rate": 80}, "unordered", 60.0, 8).forecast(taken, [200, 200], 400, [30]).rows
    assert row.seconds == pytest.approx(20.0, rel=0.05)


@pytest.mark.variation
def test_the_default_capacities_divide_the_load_of_the_sample() -> None:
    forecast = Job({}, "ordered", 60.0, 4).forecast(sample_of(BY_NAME["gamma"], 3), EVEN, 9600, [])
    assert [row.capacity for row in forecast.rows] == [3, 9, 18, 37]
    assert all(row.is_tested for row in forecast.rows)
    assert forecast.best["capacity"] == 37
    assert "Up to 4 tasks run at once, 8 in all" in forecast.assumptions[0]
    assert "4,800 of 9,600 rows need a call" in forecast.assumptions[0]


def test_the_query_is_built_once_for_any_number_of_capacities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each query with a memo lists its directory, and may merge its files."""
    built: list[Any] = []
    monkeypatch.setitem(job.OPERATORS, "ordered", lambda *_, **options: built.append(options))
    df = SimpleNamespace(mapInArrow=print, sparkSession=None, isStreaming=False)
    job._check(df, None, "answer string", "ordered", [5, 50, 20], timeout=5.0)
    job._check(df, None, "answer string", "ordered", [], timeout=5.0)
    assert built == [{"capacity": 50, "timeout": 5.0}, {"capacity": 1, "timeout": 5.0}]


def test_the_error_for_an_unknown_argument_names_rehearse() -> None:
    df: Any = SimpleNamespace(mapInArrow=print, sparkSession=None, isStreaming=False)
    with pytest.raises(TypeError, match=r"^rehearse got an unexpected keyword argument 'weight': use "):
        job.rehearse(df, None, "answer string", timeout=5.0, weight=len)


def test_a_capacity_is_tested_if_the_sample_has_reached_that_of_all_tasks() -> None:
    (row,) = forecast_of(BY_NAME["gamma"], EVEN, 4, 40).rows
    assert not row.is_tested


def test_a_gate_whose_copies_have_no_sum_is_refused() -> None:
    with pytest.raises(ValueError, match=r"gate must be a RateLimit or a Budget, got .*Auto"):
        Job({"gate": Auto(2, 10)}, "ordered", 60.0, 4).gates(4)


def test_each_task_has_a_budget() -> None:
    (budget,) = Job({"gate": Budget(100.0)}, "ordered", 60.0, 4).gates(4)
    assert isinstance(budget, Budget)
    assert budget.amount == 400.0


def test_the_tasks_share_the_budget_of_the_cluster() -> None:
    (budget,) = Job({"cluster_budget": ClusterBudget(100.0, name="answers")}, "ordered", 60.0, 4).gates(4)
    assert isinstance(budget, Budget)
    assert (budget.amount, budget.name) == (100.0, "answers")


def test_a_group_is_one_call_that_weighs_what_its_rows_weigh() -> None:
    gate = RateLimit(300.0, burst=10.0, weight=len)
    job = Job({"gate": gate, "group": 10}, "ordered", 60.0, 2)
    assert gate.weight is not None
    (copy,) = job.gates(1)
    assert copy.weight is not None
    assert copy.weight(rows_of([pa.array(["a", "bcd"])], 0)) == 4
    taken = sampled(Planted("evenly", lambda _: (0.1, None)), 1, weight=lambda _: 20.0)
    forecast = job.forecast(taken, [1005, 1005], 2010, [5, 50])
    assert forecast.elements == 202
    assert [row.seconds for row in forecast.rows] == pytest.approx([101 * 20 / 300] * 2, rel=0.05)


def test_a_budget_admits_a_group_whose_weights_are_exactly_the_amount() -> None:
    job = Job({"gate": Budget(0.3, weight=lambda _: 0.1), "group": 3}, "ordered", 60.0, 1)
    (budget,) = job.gates(1)
    assert budget.weight is not None
    assert budget.weight(rows_of([pa.array([1, 2, 3])], 0)) == 0.3


def test_the_weight_of_a_gate_gets_the_values_of_the_row() -> None:
    gate = RateLimit(100.0, burst=5.0, weight=lambda prompt, answer: len(prompt) + answer)
    (pooled,) = Job({"gate": [gate]}, "ordered", 60.0, 2).gates(2)
    assert isinstance(pooled, RateLimit)
    assert (pooled.rate, pooled.burst) == (200.0, 10.0)
    assert pooled.weight is not None
    assert pooled.weight(rows_of([pa.array(["abc"]), pa.array([4])], 0)) == 7


@pytest.mark.variation
def test_a_rate_with_a_weight_has_the_mean_weight_of_the_sample() -> None:
    job = Job({"cluster_rate": [800, ClusterRate(1_000, weight=len, name="tokens")]}, "unordered", 60.0, 4)
    (rate,) = job.measured_rates()
    for weight in (10.0, 30.0):
        rate.started(0.0, 50.0)
        rate.ended(0.0, 1.0, Outcome("ok"), weight)
    assert rate.pace(2) == 50.0
    (row,) = replace(job, paces=[rate.pace(2)]).forecast(sample_of(BY_NAME["gamma"], 3), [100] * 8, 800, [30]).rows
    assert row.seconds == pytest.approx(800 / 50.0, rel=0.02)


async def test_each_attempt_of_a_sample_gets_lists_and_dicts_of_its_own() -> None:
    kept: list[Any] = []

    def keep(answers: Sequence[tuple[Row, Any]]) -> None:
        kept.extend((row.inputs, answer) for row, answer in answers)

    async def changes(tags: list[str]) -> int:
        tags.append("x")
        return len(tags)

    [row] = rows_of([pa.array([["a"]])], 0)
    function = _SampledFunction(JobRows(None, changes, "n int", 5.0, {}), keep)  # type: ignore[arg-type]
    assert [await function.invoke([row]) for _ in range(2)] == [2, 2]
    assert kept == [((["a"],), 2)] * 2
