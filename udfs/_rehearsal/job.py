"""The forecast of a job: a few real calls on the driver, and a simulation of the tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType

from trio_asyncio_io.integration import check_int, check_keywords
from trio_asyncio_io.rehearsal import Forecast

from .._dataframe import ordered_wait, unordered_wait
from .._plan.arguments import check_dataframe
from .._plan.session import task_slots
from .forecast import Job
from .sample import JobRows

OPERATORS = {"ordered": ordered_wait, "unordered": unordered_wait}


def rehearse(
    df: DataFrame,
    function: Any,
    schema: DataType | str,
    sample: int = 200,
    rows: int | None = None,
    *,
    timeout: float,
    capacity: int | Sequence[int] = (),
    mode: Literal["ordered", "unordered"] = "ordered",
    tasks: int | None = None,
    **options: Any,
) -> Forecast:
    """Forecast a job of `ordered_wait` or `unordered_wait`: its time, its calls, and what they cost.

    Spark counts the rows of each partition and draws some of them. The driver calls the function for these, at two
    loads, and the job is simulated: the tasks that run at once, with their capacity and their partitions, in front of
    one service. With `memo=`, rows whose key is in the memo are not called, and each answer of the sample is added to
    it when it arrives: the job does not pay for it again, and the forecast does not count it. The sample makes no call
    beyond a `cluster_budget` or a `Budget`, but what it has spent is not taken from the job's. Only the job
    checks whether answers fit the schema.

    Spark's own time, the start of its Python workers and the CPU time of the function are not in the forecast. With a
    small `buffer`, in front of a service that limits all tasks, an ordered job takes longer than forecast.

    Args:
        df: A batch DataFrame. It is computed twice: to count its rows, and to draw the sample. With `memo`, it is
            computed a third time, to count its keys.
        function: As for `ordered_wait`. It is called on the driver, which must reach the service.
        schema: As for `ordered_wait`.
        sample: How many calls to make, at least 1, 200 by default; see `record`. With `group=`, each is for a group of
            rows.
        rows: The number of rows of the job, at least 1. None: as many as `df` has. Otherwise, its partitions have the
            same proportions.
        timeout: As for `ordered_wait`.
        capacity: The capacity of each task, or a list of capacities to compare. Empty: a tenth, a quarter, half and all
            of the load that the sample has reached, divided by the tasks.
        mode: The operator of the job: "ordered" (the default) or "unordered".
        tasks: How many tasks can run at once, at least 1. None: according to the configuration of the session.
        options: Other arguments of the operator, such as `inputs`, `retry`, `cluster_rate`, `cluster_budget`, `gate`,
            `group` and `memo`. A gate must be a `RateLimit` or a `Budget`; each task has a copy. Groups are full. The
            weight of a call is that of the first gate with a weight, or else of the `cluster_budget`. The forecast has
            this weight only: calls use a `cluster_rate` with another one as those of the sample did, on average.

    Returns:
        A `Forecast`. Its capacities count per task, and its elements are the rows, or groups, to call. Its `best` has
        arguments for the operator.

    Raises:
        TypeError, ValueError: An argument is invalid, as for `ordered_wait`, or no row needs a call.

    Example:
        job = df, weather, "temp double"
        forecast = udfs.rehearse(*job, timeout=5.0, capacity=[20, 50, 100], memo="weather")
        print(forecast)
        ordered_wait(*job, **forecast.best)
    """
    given: Any = capacity  # a str, such as "auto", is refused as a whole
    is_list = isinstance(given, Iterable) and not isinstance(given, str)
    capacities: list[Any] = list(given) if is_list else [given]
    _check(df, function, schema, mode, capacities, timeout=timeout, **options)
    for name, number in (("sample", sample), ("rows", rows), ("tasks", tasks)):
        if number is not None:
            check_int(name, number, at_least=1)
    order = mode if options.get("memo") is None else "unordered"  # the rows are sorted after the calls
    job = Job(options, order, timeout, tasks or task_slots(df.sparkSession, "rehearse", "tasks="))
    job_rows = JobRows(df, function, schema, timeout, options)
    counts = job_rows.partitions()
    at_once = min(len(counts), job.slots)
    gates, rates = job.gates(at_once), job.measured_rates()
    weighing = next((gate for gate in gates if gate.weight is not None), None)
    recorded = job_rows.record(
        sample,
        sum(counts),
        at_once * max(capacities, default=sample),
        retry=options.get("retry"),
        gate=[*gates, *rates] or None,
        weight=None if weighing is None else weighing.weight,
        weight_name=None if weighing is None else weighing.name,
    )
    taken = recorded.sample
    job = replace(job, paces=[rate.pace(len(taken.calls)) for rate in rates])
    total = sum(counts) if rows is None else rows
    called = job_rows.called(counts, recorded.share * total / sum(counts), recorded.remembered)
    return job.forecast(taken, called, total, capacities)


def _check(df: Any, function: Any, schema: Any, mode: str, capacities: Sequence[int], **options: Any) -> None:
    """Check the arguments of the operator, before any call is paid.

    Raises:
        TypeError, ValueError: One is invalid.
    """
    check_dataframe(df)
    if df.isStreaming:
        raise ValueError("df must be a batch DataFrame, got a streaming one: rehearse with rows of one micro-batch")
    if mode not in OPERATORS:
        raise ValueError(f'mode must be "ordered" or "unordered", got {mode!r}')
    if options.get("cluster_capacity") is not None:
        raise ValueError("rehearse compares capacity=, that of one task, got cluster_capacity=: omit it")
    check_keywords(unordered_wait, options, "rehearse")  # the operator's own check would name the operator
    checked = {name: value for name, value in options.items() if name != "metrics"}  # an Observation is for one query
    for capacity in capacities:
        check_int("capacity", capacity, at_least=1)
    OPERATORS[mode](df, function, schema, capacity=max(capacities, default=1), **checked)
