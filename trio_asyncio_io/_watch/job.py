"""The account of a Spark job: where the time of its tasks went."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from .._account.verdict import Verdict
from .._values.describe import duration, plural

# Shares of the time
TOO_MUCH = 0.1
PROCESSOR_IS_BUSY = 0.25

PROCESSOR = (
    "The processors of the machines were the limit, and more capacity changes nothing: run fewer tasks at once on a "
    "machine, use more machines, or free them of other work."
)
# The advice for these limits, such as more capacity, does not help while threads wait for a processor
BEHIND_PROCESSOR = frozenset({"capacity", "service", "source", "consumer", "cpu"})
# If one of these is the limit, Spark's threads may be the cause
BEHIND_SPARK = frozenset({"source", "consumer"})
# These limits also hold back the last calls of a task, so its tail is not a cause of its own
BEHIND_TAILS = frozenset({"gate", "blocking"})

# Rounds of tasks. With more of them, fewer are better
ROUNDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTimes:
    """Where the time of one or several tasks went, in seconds. `+` adds tasks.

    Args:
        tasks: The number of tasks.
        at_once: The number of tasks that ran at once: the tasks that did not take the place of an earlier one.
        began: When the first task began, since 1970; 0.0: there is none.
        ended: When the last task ended, since 1970.
        arrived: The sum of the instants at which these tasks began, in seconds since 1970.
        seconds: The sum of the durations of the tasks.
        start: The part of `seconds` from the arrival of a task's first rows until it could accept them, such as to
            open the function. The wait for these rows is the time of their source.
        tail: The part of `seconds` in which fewer rows were left in a task than half of its slots.
        gap: The time from the end of a task to the beginning of the one in its place.
        processor: The time for which the loops' threads were ready to run, and waited for a processor.
        spark_processor: The same for Spark's threads, which convert rows.
    """

    tasks: int = 0
    at_once: int = 0
    began: float = 0.0
    ended: float = 0.0
    arrived: float = 0.0
    seconds: float = 0.0
    start: float = 0.0
    tail: float = 0.0
    gap: float = 0.0
    processor: float = 0.0
    spark_processor: float = 0.0

    def __add__(self, other: TaskTimes) -> TaskTimes:
        names = [each.name for each in fields(self)]
        values: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in names}
        values["began"] = min(filter(None, (self.began, other.began)), default=0.0)
        values["ended"] = max(self.ended, other.ended)
        return TaskTimes(**values)

    def applied_to(self, verdict: Verdict) -> Verdict:
        """The verdict on the calls of these tasks, completed by the sentences and the advice that the times give."""
        whole = self.at_once * self.ended - self.arrived  # from the first task in each place on
        if verdict.limit == "unknown" or whole <= 0 or not self.tasks:
            return verdict
        waited = self.processor + (self.spark_processor if verdict.limit in BEHIND_SPARK else 0.0)
        is_busy = waited >= PROCESSOR_IS_BUSY * self.seconds > 0
        sentences = (self._parts(whole), *verdict.sentences)
        if is_busy:
            share = min(1.0, waited / self.seconds)
            sentences = (*sentences, f"The tasks waited for a processor of their machine {share:.0%} of the time.")
        if is_busy and verdict.limit in BEHIND_PROCESSOR:
            return Verdict("cpu", PROCESSOR, sentences)
        return Verdict(verdict.limit, f"{verdict.advice} {self._advice(whole, verdict.limit)}".rstrip(), sentences)

    def _parts(self, whole: float) -> str:
        parts = {
            "starts of tasks": self.start,
            "work": self.seconds - self.start - self.tail,
            "tails, in which fewer rows were left than half of the slots": self.tail,
            "gaps between tasks": self.gap,
            "no task": whole - self.seconds - self.gap,
        }
        shares = ", ".join(f"{name} {max(0.0, seconds) / whole:.0%}" for name, seconds in parts.items())
        tasks, seconds = plural(self.tasks, "task"), duration(self.ended - self.began)
        return f"{tasks} in {seconds}, {self.at_once:,} at once: {shares}."

    def _advice(self, whole: float, limit: str) -> str:
        tail = 0.0 if limit in BEHIND_TAILS else self.tail
        lost = self.start + tail + self.gap
        few = ROUNDS * self.at_once
        if self.tasks > few and lost > TOO_MUCH * whole:
            parts = "Starts, tails and gaps" if tail else "Starts and gaps"
            return (
                f"{parts} of tasks take {lost / whole:.0%} of the time: use fewer partitions, "
                f"{self.at_once:,} or {few:,} in place of {self.tasks:,}."
            )
        idle = whole - self.seconds - self.gap
        if self.tasks != few and idle > TOO_MUCH * whole:
            return f"There was no task {idle / whole:.0%} of the time: repartition to {few:,} partitions of equal size."
        if limit != "source" and tail > TOO_MUCH * whole:  # tasks with fewer rows than slots have this limit
            return (
                f"Tails take {tail / whole:.0%} of the time: end the slowest calls earlier, with an "
                "attempt_timeout and a retry, or with hedged. Fewer and larger tasks have fewer tails."
            )
        return ""
