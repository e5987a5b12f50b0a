"""The forecast of a job: a few real calls on the driver, and a simulation of the tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heapreplace
from random import Random
from typing import Any, Literal

import trio
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import DataType, LongType, StructField, StructType

from trio_asyncio_io import AsyncFunction, Options
from trio_asyncio_io.gates import Budget, Gate, RateLimit
from trio_asyncio_io.rehearsal import Forecast, ForecastRow, Sample, record
from trio_asyncio_io.rehearsal import rehearse as rehearse_run

from ._dataframe import ordered_wait, unordered_wait
from ._plan.arguments import check_dataframe, column_names
from ._plan.memo import as_memo
from ._plan.session import task_slots
from ._sent.cluster_rate import ClusterRate
from ._sent.packed_function import pack, parameter_names
from ._sent.sampling import Capture, Replay, identity_of

__all__ = ["rehearse"]

OPERATORS = {"ordered": ordered_wait, "unordered": unordered_wait}
ROW, INPUTS, FOUND = "__udfs_row", "__udfs_inputs", "__udfs_found"
LOW_LOAD = 5
SHARE_AT_LARGEST = 0.75
SEED = 1
# A sample of Spark's has a random size
MORE, AT_LEAST = 1.3, 20


def rehearse(
    df: DataFrame,
    function: Any,
    schema: DataType | str,
    sample: int = 200,
    rows: int | None = None,
    *,
    timeout: float,
    capacity: int | Sequence[int] = 100,
    mode: Literal["ordered", "unordered"] = "ordered",
    tasks: int | None = None,
    weight: Callable[..., float] | None = None,
    max_calls: int | None = None,
    **options: Any,
) -> Forecast:
    """Forecast a job of `ordered_wait` or `unordered_wait`: how long its calls take, how many there are, what they cost.

    Spark counts the rows of each partition and draws some of them. The driver calls the function for these, at two
    loads, and the job is simulated: the tasks that run at once, with their capacity and their partitions, in front of
    one service. With `memo=`, rows that it has are not called, and the answers of the sample are added to it, so that
    the job does not pay for them again.

    The forecast has neither Spark's own time, nor the start of its Python workers, nor the CPU time of the function.
    A cache in the function is as cold as in the sample.

    Args:
        df: A batch DataFrame. It is computed twice: to count its rows, and to draw the sample.
        function: As for `ordered_wait`. It is called on the driver, which must reach the service.
        schema: As for `ordered_wait`.
        sample: How many rows to call the function for, at least 20.
        rows: The number of rows of the job. None: that of `df`. Otherwise, its partitions have the same proportions.
        timeout: As for `ordered_wait`.
        capacity: The capacity of each task, or a list of capacities to compare.
        mode: The operator of the job.
        tasks: How many tasks run at once, at least 1. None: according to the configuration of the session.
        weight: The values of the input columns -> what the call weighs; see `record`.
        max_calls: Upper limit of calls; see `record`.
        options: Other arguments of the operator, such as `inputs`, `retry`, `cluster_rate`, `gate` and `memo`. Gates
            may be a `RateLimit` or a `Budget`, of which each task has a copy.

    Returns:
        A `Forecast` whose capacities are those of one task. Its `best` has arguments for the operator.

    Raises:
        TypeError, ValueError: An argument is invalid, as for `ordered_wait`, or the DataFrame has no row to call.

    Example:
        forecast = udfs.rehearse(df, weather, "temp double", timeout=5.0, capacity=[20, 50, 100], memo="/data/weather")
        print(forecast)
        ordered_wait(df, weather, "temp double", **forecast.best)
    """
    check_dataframe(df)
    capacities = [capacity] if isinstance(capacity, int) else list(capacity)
    if mode not in OPERATORS:
        raise ValueError(f'mode must be "ordered" or "unordered", got {mode!r}')
    if df.isStreaming:
        raise ValueError("df must be a batch DataFrame, got a streaming one: rehearse with rows of one micro-batch")
    for each in capacities:
        OPERATORS[mode](df, function, schema, timeout=timeout, capacity=each, **options)  # checks the arguments
    job = _Job(df, function, schema, timeout, options)
    sizes, distinct = job.sizes()
    at_once = min(len(sizes), tasks or task_slots(df.sparkSession, "rehearse", "tasks="))
    taken, known = job.record(sample, sum(sizes), at_once * max(capacities), weight, max_calls)
    scale = (1 - known) * min(1.0, distinct / sum(sizes)) * (1.0 if rows is None else rows / sum(sizes))
    called = [max(1, round(size * scale)) for size in sizes]
    forecast = _simulated(taken, called, at_once, capacities, mode, timeout, options)
    said = _about(len(sizes), at_once, sum(called), sum(sizes) if rows is None else rows)
    return replace(forecast, assumptions=(said, *forecast.assumptions), options={"timeout": timeout, **options})


@dataclass(frozen=True, slots=True)
class _Job:
    """What is forecast.

    Args:
        df, function, schema, timeout, options: From the user.
    """

    df: DataFrame
    function: Any
    schema: DataType | str
    timeout: float
    options: dict[str, Any]

    @property
    def inputs(self) -> list[str]:
        """The names of the input columns."""
        given = self.options.get("inputs")
        return column_names("inputs", parameter_names(self.function) if given is None else given)

    def sizes(self) -> tuple[list[int], int]:
        """The rows of each partition that has any, and with a memo about how many different inputs there are.

        Raises:
            ValueError: There is no row.
        """
        counted = self.df.groupBy(F.spark_partition_id().alias(ROW)).count().collect()
        sizes = [row["count"] for row in sorted(counted, key=lambda row: row[ROW])]
        if not sizes:
            raise ValueError("df has no rows, so no call can be made: give a DataFrame with rows")
        if self.options.get("memo") is None:
            return sizes, sum(sizes)
        (found,) = self.df.select(F.approx_count_distinct(F.struct(*self._columns()), 0.02)).collect()
        return sizes, int(found[0])

    def record(
        self, number: int, rows: int, load: int, weight: Callable[..., float] | None, max_calls: int | None
    ) -> tuple[Sample, float]:
        """Make the calls. Returns the sample, and the share of rows that the memo has."""
        drawn = self._drawn(number, rows)
        known = self._known(drawn)
        values = [inputs for row, inputs in self._captured(drawn) if row not in known]
        if not values:
            raise ValueError("the memo has the answers of all rows of the sample, so there is nothing to forecast")
        most = max(1, min(load, int(SHARE_AT_LARGEST * len(values))))
        gates = [gate for gate in _listed(self.options.get("gate")) if not isinstance(gate, Budget)]
        start = partial(
            record,
            values,
            _Starred(pack(self.function).unpack()),
            len(values),
            timeout=self.timeout,
            loads=(min(LOW_LOAD, most), most),
            retry=self.options.get("retry"),
            gate=gates or None,
            weight=None if weight is None else lambda inputs: weight(*inputs),
            max_calls=max_calls,
        )
        with ThreadPoolExecutor(1, "udfs rehearse") as executor:  # this thread may have a loop, as in a notebook
            taken: Sample = executor.submit(trio.run, start).result()
        self._remember(drawn, taken)
        return taken, len(known) / (len(known) + len(values))

    def _columns(self) -> list[Any]:
        return [F.col(f"`{name.replace('`', '``')}`") for name in self.inputs]

    def _drawn(self, number: int, rows: int) -> DataFrame:
        """Rows spread over the DataFrame, with a number each. They are on the driver, so they stay the same."""
        share = min(1.0, (MORE * number + AT_LEAST) / rows)
        chosen = self.df.select(*self._columns()).sample(share, seed=SEED)
        found = chosen.collect()
        drawn = Random(SEED).sample(found, min(number, len(found)))
        if not drawn:
            raise ValueError("df has no rows, so no call can be made: give a DataFrame with rows")
        numbered = [(position, *row) for position, row in enumerate(drawn)]
        schema = StructType([StructField(ROW, LongType()), *chosen.schema.fields])
        return self.df.sparkSession.createDataFrame(numbered, schema).coalesce(1)

    def _captured(self, drawn: DataFrame) -> list[tuple[int, tuple[Any, ...]]]:
        """The number of each row, and its inputs as the function gets them."""
        more = {"inputs": self.inputs, "timeout": self.timeout, "skip_nulls": self.options.get("skip_nulls", False)}
        captured = ordered_wait(drawn, Capture(), f"{INPUTS} binary", **more)
        found = captured.select(ROW, INPUTS).collect()
        return [(row[ROW], cloudpickle.loads(bytes(row[INPUTS]))) for row in found if row[INPUTS] is not None]

    def _known(self, drawn: DataFrame) -> set[int]:
        """The numbers of the rows that the memo has."""
        if self.options.get("memo") is None:
            return set()
        found = self._replayed(drawn, {}).select(ROW, F.col(f"{FOUND}.cached").alias(FOUND)).collect()
        return {row[ROW] for row in found if row[FOUND]}

    def _remember(self, drawn: DataFrame, taken: Sample) -> None:
        """Add the answers to the memo."""
        if self.options.get("memo") is not None:
            answers = {identity_of(inputs): answer for inputs, answer in taken.answers}
            self._replayed(drawn, answers).select(ROW).collect()

    def _replayed(self, drawn: DataFrame, answers: dict[str, Any]) -> DataFrame:
        """The rows with answers of the memo, or else with these."""
        memo = replace(as_memo(self.options["memo"]), remember_failures_for=0.0)
        return unordered_wait(
            drawn,
            Replay(self.function, answers),
            self.schema,
            inputs=self.inputs,
            timeout=self.timeout,
            flatten=self.options.get("flatten", False),
            on_error="null",
            metadata=FOUND,
            memo=memo,
        )


class _Starred(AsyncFunction[Any, Any]):
    """The user's function, called with the tuple of a row's inputs."""

    def __init__(self, function: Any) -> None:
        self._call = getattr(function, "invoke", function)
        for name in ("open", "close", "flush"):
            if callable(method := getattr(function, name, None)):
                setattr(self, name, method)

    async def invoke(self, inputs: tuple[Any, ...]) -> Any:
        """Call the function."""
        return await self._call(*inputs)


# The simulation


def _listed(gate: Any) -> list[Any]:
    return [] if gate is None else [gate] if not isinstance(gate, Sequence) else list(gate)


def _pooled(gate: Any, tasks: int) -> Gate:
    """A gate for all tasks together, of which each has a copy.

    Raises:
        ValueError: It is not known how copies act together.
    """
    if isinstance(gate, RateLimit):
        return RateLimit(tasks * gate.rate, burst=tasks * gate.burst, weight=gate.weight)
    if isinstance(gate, Budget):
        return Budget(tasks * gate.amount, weight=gate.weight)
    raise ValueError(f"gate must be a RateLimit or a Budget, got {gate!r}: rehearse one task with trio_asyncio_io")


def _simulated(
    taken: Sample,
    sizes: Sequence[int],
    tasks: int,
    capacities: Sequence[int],
    mode: Literal["ordered", "unordered"],
    timeout: float,
    options: dict[str, Any],
) -> Forecast:
    """The forecast of all tasks as one operator, but not shorter than that of the task with the most rows."""
    retry, given = options.get("retry"), _listed(options.get("gate"))
    gates = [_pooled(gate, tasks) for gate in given]
    rate = options.get("cluster_rate")
    if rate is not None:
        gates.append(RateLimit(rate.rate if isinstance(rate, ClusterRate) else rate))
    common: dict[str, Any] = {"mode": mode, "timeout": timeout, "retry": retry}
    partitions, rows = _longest(sizes, tasks)
    results = []
    for capacity in capacities:
        buffer = Options(timeout, capacity=capacity, buffer=options.get("buffer")).buffer
        assert buffer is not None
        together = rehearse_run(
            taken, sum(sizes), capacity=tasks * capacity, buffer=tasks * buffer, gate=gates or None, **common
        )
        alone = rehearse_run(taken, rows, capacity=capacity, buffer=buffer, gate=given or None, **common)
        results.append((together, _merged(together.rows[0], alone.rows[0], partitions, capacity, taken, tasks)))
    return replace(results[0][0], rows=[row for _, row in results])


def _longest(sizes: Sequence[int], tasks: int) -> tuple[int, int]:
    """The partitions of the slot that ends last, and their mean rows: a slot takes the next partition when it is free."""
    slots: list[tuple[int, int]] = [(0, 0)] * tasks
    heapify(slots)
    for size in sizes:
        rows, partitions = slots[0]
        heapreplace(slots, (rows + size, partitions + 1))
    rows, partitions = max(slots)
    return partitions, max(1, round(rows / partitions))


def _merged(
    together: ForecastRow, alone: ForecastRow, partitions: int, capacity: int, taken: Sample, tasks: int
) -> ForecastRow:
    seconds, low, high = (
        max(getattr(together, name), partitions * getattr(alone, name)) for name in ("seconds", "low", "high")
    )
    return replace(
        together,
        capacity=capacity,
        seconds=seconds,
        low=low,
        high=high,
        is_tested=tasks * capacity <= taken.tested,
        intervals={**together.intervals, "seconds": (low, high)},
    )


def _about(partitions: int, tasks: int, called: int, rows: int) -> str:
    return (
        f"{partitions:,} partitions in {tasks:,} tasks at once, each with its capacity; calls for {called:,} of {rows:,} "
        "rows. Not included: Spark's own time, and the start of its Python workers."
    )
