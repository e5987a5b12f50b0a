"""The simulation of a job's tasks in front of one service."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapreplace
from math import inf
from typing import Any, Literal

from trio_asyncio_io import Options
from trio_asyncio_io.gates import Budget, Gate, Outcome, RateLimit
from trio_asyncio_io.integration import sum_as_written
from trio_asyncio_io.rehearsal import Forecast, ForecastRow, Sample
from trio_asyncio_io.rehearsal import rehearse as rehearse_run

from .._limits.cluster_limits import ClusterRate, as_cluster_rates
from .._sent.row import Row

CAPACITIES = (0.1, 0.25, 0.5, 1.0)  # parts of the load of the sample, to compare by default


@dataclass(frozen=True, slots=True)
class Job:
    """How a job runs.

    Args:
        options, mode, timeout: From the user.
        slots: The number of tasks that can run at once.
        paces: Calls per second that the rates with weights allow; see `MeasuredRate`.
    """

    options: Mapping[str, Any]
    mode: Literal["ordered", "unordered"]
    timeout: float
    slots: int
    paces: Sequence[float] = ()

    @property
    def _rates(self) -> Sequence[ClusterRate]:
        return as_cluster_rates(self.options.get("cluster_rate"))

    def measured_rates(self) -> list[MeasuredRate]:
        """Gates for the rates of the job that have weights."""
        return [
            MeasuredRate(rate.rate, weight=self.weight_of(rate.weight), name=rate.name)
            for rate in self._rates
            if rate.weight is not None
        ]

    def gates(self, tasks: int) -> list[Gate]:
        """The gates of tasks that run at once, as the gates of one operator.

        Raises:
            ValueError: Gates of this class have no sum.
        """
        given = self.options.get("gate")
        gates = given if isinstance(given, Sequence) else [] if given is None else [given]
        copies = [self._sum_of(gate, tasks) for gate in gates]
        budget = self.options.get("cluster_budget")
        if budget is not None:
            copies.append(Budget(budget.amount, weight=self.weight_of(budget.weight), name=budget.name))
        paces = [pace * tasks / self.slots for pace in self.paces if pace < inf]
        return [*copies, *map(RateLimit, [*self._calls_per_second(tasks), *paces])]

    def _calls_per_second(self, tasks: int) -> Iterator[float]:
        """The calls per second that the rates without weights allow this number of tasks."""
        for cluster in self._rates:
            if cluster.weight is None:
                share = tasks * max(1, cluster.rate // self.slots)
                yield min(cluster.rate, share) if cluster.by == "share" else cluster.rate

    def weight_of(self, weight: Callable[..., float] | None) -> Callable[[Sequence[Row]], float] | None:
        """The weight of a call, from its rows. None: there is none."""
        if weight is None:
            return None
        if self.options.get("group") is None:
            return lambda rows: weight(*rows[0].inputs)
        return lambda rows: sum_as_written(weight(*row.inputs) for row in rows)

    def _sum_of(self, gate: Any, tasks: int) -> Gate:
        """One gate for `tasks` tasks, in place of a copy in each task."""
        if isinstance(gate, RateLimit):
            weight = self.weight_of(gate.weight)
            return RateLimit(tasks * gate.rate, burst=tasks * gate.burst, weight=weight, name=gate.name)
        if isinstance(gate, Budget):
            return Budget(tasks * gate.amount, weight=self.weight_of(gate.weight), name=gate.name)
        raise ValueError(
            f"gate must be a RateLimit or a Budget, got {gate!r}: rehearse one task with trio_asyncio_io.rehearsal"
        )

    def forecast(self, taken: Sample, called: Sequence[int], rows: int, capacities: Sequence[int]) -> Forecast:
        """The forecast of partitions with these numbers of rows to call.

        All tasks as one operator give the time that the service and the gates need. A job is not shorter than the
        partitions of the slot that ends last, one after the other, in front of a service of their own.

        Args:
            taken: The sample.
            called: The rows to call of each partition.
            rows: All rows of the job.
            capacities: To compare, per task; empty for parts of the load that the sample has reached.
        """
        group = self.options.get("group") or 1
        sizes = [-(-each // group) for each in called]
        tasks = min(self.slots, len(sizes))
        most, partitions = _longest(sizes, tasks)
        one = max(1, round(most / partitions))
        capacities = capacities or sorted({max(1, int(part * taken.tested / tasks)) for part in CAPACITIES})
        together = [self._simulated(taken, sum(sizes), each, tasks, "unordered") for each in capacities]
        alone = [self._simulated(taken, one, each, 1, self.mode) for each in capacities]
        merged = [_merged(*pair, partitions) for pair in zip(together, alone, strict=True)]
        said = (
            f"Up to {tasks:,} tasks run at once, {len(sizes):,} in all, each with its capacity. {sum(called):,} of "
            f"{rows:,} rows need a call. Spark's own time is not included."
        )
        options = {"timeout": self.timeout, **self.options}
        return Forecast(merged, sum(sizes), (said, *together[0].assumptions), options, together[0].is_known)

    def _simulated(self, taken: Sample, rows: int, capacity: int, tasks: int, mode: Any) -> Forecast:
        """The forecast of `tasks` tasks as one operator."""
        group, buffer = self.options.get("group"), self.options.get("buffer")
        options = Options(self.timeout, capacity=capacity, buffer=buffer, group=group)
        buffer = max(capacity, options.bound // (group or 1))
        return rehearse_run(
            taken, rows, capacity=tasks * capacity, buffer=tasks * buffer, mode=mode, gate=self.gates(tasks) or None
        )


class MeasuredRate(RateLimit):
    """A rate with a weight, for a sample.

    A forecast has one weight for each call, its cost. So for this rate, each of its calls has the mean weight of the
    sample.

    Attributes:
        used: The sum of the weights of all calls.
    """

    used = 0.0

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        """Add the weight of a call."""
        super().ended(now, seconds, outcome, weight)
        self.used += weight

    def pace(self, calls: int) -> float:
        """The calls per second that the rate allows, from the mean weight of `calls` calls."""
        return self.rate * calls / self.used if self.used else inf


def _longest(sizes: Sequence[int], tasks: int) -> tuple[int, int]:
    """The rows and partitions of the slot that ends last. A slot takes the next partition when it is free."""
    slots = [(0, 0)] * tasks
    for size in sizes:
        rows, partitions = slots[0]
        heapreplace(slots, (rows + size, partitions + 1))
    return max(slots)


def _merged(together: Forecast, alone: Forecast, partitions: int) -> ForecastRow:
    """The row of the job: its times are the longer ones of the two."""
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
    )
