"""The simulation of a job's tasks in front of one service."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapreplace
from math import ceil, inf
from typing import Any, Literal

from trio_asyncio_io import Options
from trio_asyncio_io.gates import Budget, Gate, Outcome, RateLimit
from trio_asyncio_io.rehearsal import Forecast, ForecastRow, Sample
from trio_asyncio_io.rehearsal import rehearse as rehearse_run

from .._plan.metrics import called_rows
from .._sent.cluster_rate import ClusterRate, as_cluster_rates

__all__ = ["Job", "JobForecast", "MeasuredRate", "given_gates", "of_call"]

CAPACITIES = (0.1, 0.25, 0.5, 1.0)  # parts of the load of the sample, to compare by default


class JobForecast(Forecast):
    """The forecast of a job. Its capacities are those of one task, and its elements the rows that need a call."""

    __slots__ = ()

    def compare(self, statistics: Any, seconds: float, *, capacity: int | None = None) -> str:
        """What was forecast, what it became, and why they differ, in sentences.

        Args:
            statistics: The `Observation` that was passed as `metrics=`, after an action; or the observed `Row`.
            seconds: How long the action took.
            capacity: The job's. None: that of `best`.

        Raises:
            ValueError: The forecast has no such capacity, or the job made no call.
        """
        return super().compare(called_rows(statistics), seconds, capacity=capacity)


@dataclass(frozen=True, slots=True)
class Job:
    """How a job runs.

    Args:
        options, mode, timeout: From the user.
        slots: How many tasks can run at once.
        paces: Calls per second that the rates with weights allow; see `MeasuredRate`.
    """

    options: Mapping[str, Any]
    mode: Literal["ordered", "unordered"]
    timeout: float
    slots: int
    paces: Sequence[float] = ()

    @property
    def group(self) -> int | None:
        """The rows of a call."""
        return self.options.get("group")

    @property
    def _rates(self) -> Sequence[ClusterRate]:
        return as_cluster_rates(self.options.get("cluster_rate"))

    def measured_rates(self) -> list[MeasuredRate]:
        """Gates for the rates of the job that have weights."""
        return [
            MeasuredRate(rate.rate, weight=of_call(rate.weight, self.group), name=rate.name)
            for rate in self._rates
            if rate.weight is not None
        ]

    def gates(self, tasks: int) -> list[Gate]:
        """The gates of tasks that run at once, as those of one operator.

        Raises:
            ValueError: Gates of this class have no sum.
        """
        gates = [_sum_of(gate, tasks, self.group) for gate in given_gates(self.options)]
        paces = [pace * tasks / self.slots for pace in self.paces if pace < inf]
        return [*gates, *map(RateLimit, [*self._calls_per_second(tasks), *paces])]

    def _calls_per_second(self, tasks: int) -> Iterator[float]:
        """What the rates without weights allow so many tasks."""
        for given in self._rates:
            if given.weight is None:
                share = tasks * max(1, given.rate // self.slots)
                yield given.rate if given.by != "share" else min(given.rate, share)

    def forecast(self, taken: Sample, sizes: Sequence[int], rows: int, capacities: Sequence[int]) -> JobForecast:
        """The forecast of partitions with these sizes.

        All tasks as one operator give the time that the service and the gates need. A job is not shorter than the
        partitions of the slot that ends last, one after the other, in front of a service of their own.
        """
        tasks = min(self.slots, len(sizes))
        most, partitions = _longest(sizes, tasks)
        one = max(1, round(most / partitions))
        group = self.group or 1
        capacities = capacities or sorted({max(1, int(part * taken.tested / tasks)) for part in CAPACITIES})
        calls = sum(ceil(size / group) for size in sizes)
        together = [self._simulated(taken, calls, each, tasks, "unordered") for each in capacities]
        alone = [self._simulated(taken, ceil(one / group), each, 1, self.mode) for each in capacities]
        merged = [_merged(*pair, partitions, group) for pair in zip(together, alone, strict=True)]
        said = (
            f"Up to {tasks:,} tasks run at once, {len(sizes):,} in all, each with its capacity. {sum(sizes):,} of "
            f"{rows:,} rows need a call. Spark's own time is not included."
        )
        assumptions = (said, *self._on_budget(merged[0]), *together[0].assumptions)
        return JobForecast(merged, sum(sizes), assumptions, {"timeout": self.timeout, **self.options})

    def _on_budget(self, row: ForecastRow) -> list[str]:
        budget = self.options.get("cluster_budget")
        if budget is None:
            return []
        needed = row.calls if budget.weight is None else row.weight
        enough = f"{budget.amount / needed:.0%} of these rows" if needed > budget.amount else "all of them"
        return [f"They need {needed:,.2f} of the budget of {budget.amount:,.2f}, which is enough for {enough}."]

    def _simulated(self, taken: Sample, rows: int, capacity: int, tasks: int, mode: Any) -> Forecast:
        """The forecast of so many tasks as one operator."""
        buffer = Options(self.timeout, capacity=capacity, buffer=self.options.get("buffer")).buffer
        assert buffer is not None
        return rehearse_run(
            taken, rows, capacity=tasks * capacity, buffer=tasks * buffer, mode=mode, gate=self.gates(tasks) or None
        )


def given_gates(options: Mapping[str, Any]) -> list[Any]:
    """The argument `gate` as a list."""
    gate = options.get("gate")
    return [] if gate is None else list(gate) if isinstance(gate, Sequence) else [gate]


class MeasuredRate(RateLimit):
    """A rate of weights that the sample has, too.

    A forecast has one weight for each call, which is its cost. So its calls have the mean of this one.

    Attributes:
        used: The weights of all calls together.
    """

    used = 0.0

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        """Add the weight of a call."""
        super().ended(now, seconds, outcome, weight)
        self.used += weight

    def pace(self, calls: int) -> float:
        """How many calls per second it allows, if so many have used it."""
        return self.rate * calls / self.used if self.used else inf


def _sum_of(gate: Any, tasks: int, group: int | None) -> Gate:
    """A gate that admits as much as copies of it in so many tasks. Weights are those of `of_call`."""
    weight = of_call(getattr(gate, "weight", None), group)
    if isinstance(gate, RateLimit):
        return RateLimit(tasks * gate.rate, burst=tasks * gate.burst, weight=weight, name=gate.name)
    if isinstance(gate, Budget):
        return Budget(tasks * gate.amount, weight=weight, name=gate.name)
    raise ValueError(
        f"gate must be a RateLimit or a Budget, got {gate!r}: rehearse one task with trio_asyncio_io.rehearsal"
    )


def _longest(sizes: Sequence[int], tasks: int) -> tuple[int, int]:
    """The rows and partitions of the slot that ends last. A slot takes the next partition when it is free."""
    slots = [(0, 0)] * tasks
    for size in sizes:
        rows, partitions = slots[0]
        heapreplace(slots, (rows + size, partitions + 1))
    return max(slots)


def _merged(together: Forecast, alone: Forecast, partitions: int, group: int) -> ForecastRow:
    """The row of the job: the longer times of both, and the counts of rows for those of calls."""
    (row,), (task,) = together.rows, alone.rows
    low, high = max(row.low, partitions * task.low), max(row.high, partitions * task.high)
    return replace(
        row,
        capacity=task.capacity,
        seconds=max(row.seconds, partitions * task.seconds),
        low=low,
        high=high,
        p50=max(row.p50, task.p50),
        p99=max(row.p99, task.p99),
        intervals={**row.intervals, "seconds": (low, high)},
        **{name: group * getattr(row, name) for name in ("retried", "timed_out", "failed")},
    )


def of_call(weight: Callable[..., float] | None, group: int | None) -> Callable[[Any], float] | None:
    """A function of the values of a row's inputs, as one of their tuple, or of a list of tuples for each group."""
    if weight is None or group is None:
        return None if weight is None else lambda inputs: weight(*inputs)
    return lambda rows: sum(weight(*inputs) for inputs in rows)
