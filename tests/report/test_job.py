"""The account of a job: planted cases, as the times of their tasks."""

from __future__ import annotations

import pytest

from trio_asyncio_io import Verdict
from trio_asyncio_io._watch.job import TaskTimes


def task(began: float, seconds: float, *, first: bool = False, **times: float) -> TaskTimes:
    return TaskTimes(
        tasks=1,
        at_once=int(first),
        began=1e9 + began,
        ended=1e9 + began + seconds,
        arrived=1e9 + began if first else 0.0,
        seconds=seconds,
        **times,
    )


def job(*tasks: TaskTimes) -> TaskTimes:
    return sum(tasks, TaskTimes())


LONG = job(task(0, 100, first=True, start=1, tail=2), task(0, 99, first=True, start=1, tail=2))
# Each slot runs 20 tasks of a second, half of which is their tail
SMALL = job(*[task(n, 0.9, first=n == 0, start=0.1, tail=0.5, gap=0.1 if n else 0.0) for n in range(20)] * 2)
SKEWED = job(task(0, 60, first=True, tail=1), task(0, 10, first=True, tail=1), task(10, 10, tail=1))
LATE = job(task(0, 60, first=True), task(30, 30, first=True))
LEASED = job(task(0, 10, first=True), task(10, 10), task(0, 7, first=True), task(7, 7))
TAILS = job(task(0, 20, first=True, tail=8), task(0, 20, first=True, tail=8))
BUSY = job(task(0, 50, first=True, processor=30), task(0, 50, first=True, processor=20))


def verdict(limit: str) -> Verdict:
    return Verdict(limit, "Set capacity=200.", ("Numbers.",))  # type: ignore[arg-type] # one of its literals


def test_the_parts_of_the_time_are_those_of_all_workers() -> None:
    assert LONG.applied_to(verdict("source")).sentences[:-1] == (
        (
            "2 tasks in 100 s, 2 at once: starts of tasks 1%, work 96%, tails, in which fewer rows were left than "
            "half of the slots 2%, gaps between tasks 0%, no task 0%."
        ),
    )
    assert "no task 33%" in SKEWED.applied_to(verdict("source")).sentences[0]
    assert "gaps between tasks 10%" in SMALL.applied_to(verdict("source")).sentences[0]


ADVICE = {
    "few long tasks": (LONG, ""),
    "many small partitions": (SMALL, "use fewer partitions, 2 or 4 in place of 40."),
    "a skewed partition": (SKEWED, "repartition to 4 partitions of equal size."),
    "tails of few tasks": (TAILS, "end the slowest calls earlier"),
    "a late worker": (LATE, ""),
    "no task": (TaskTimes(), ""),
}


@pytest.mark.parametrize(("times", "advice"), ADVICE.values(), ids=list(ADVICE))
def test_the_advice_is_the_number_of_tasks_if_that_is_the_remedy(times: TaskTimes, advice: str) -> None:
    said = times.applied_to(verdict("capacity"))
    assert said.limit == "capacity"
    assert said.advice.startswith("Set capacity=200.")
    assert advice in said.advice
    assert (said.advice == "Set capacity=200.") == (not advice)


@pytest.mark.parametrize("limit", ["gate", "blocking"])
def test_slow_last_calls_are_not_the_cause_if_a_gate_or_the_function_holds_them_back(limit: str) -> None:
    """With `hedged`, there would be even more calls for the gate."""
    assert TAILS.applied_to(verdict(limit)).advice == "Set capacity=200."
    assert "Starts and gaps of tasks take 20% of the time: " in SMALL.applied_to(verdict(limit)).advice


def test_slow_last_calls_are_not_the_cause_if_each_task_has_fewer_rows_than_slots() -> None:
    """Half of the slots are empty from the start. The limit is the source, which has no more rows for them."""
    assert TAILS.applied_to(verdict("source")).advice == "Set capacity=200."


def test_workers_without_a_task_do_not_need_the_number_of_partitions_that_they_have() -> None:
    said = LEASED.applied_to(verdict("gate"))
    assert "no task 15%" in said.sentences[0]
    assert said.advice == "Set capacity=200."


@pytest.mark.parametrize("limit", ["capacity", "service", "source", "consumer", "cpu"])
def test_on_a_busy_machine_more_capacity_is_not_advised(limit: str) -> None:
    said = BUSY.applied_to(verdict(limit))
    assert said.limit == "cpu"
    assert "more capacity changes nothing" in said.advice
    assert said.sentences[-1] == "The tasks waited for a processor of their machine 50% of the time."


@pytest.mark.parametrize(("limit", "found"), [("capacity", "capacity"), ("service", "service"), ("consumer", "cpu")])
def test_a_wait_of_sparks_thread_counts_only_if_source_or_consumer_are_the_limit(limit: str, found: str) -> None:
    """Spark's thread imports pandas when a worker starts, which delays no call."""
    slow = job(task(0, 50, first=True, spark_processor=20), task(0, 50, first=True, spark_processor=20))
    assert slow.applied_to(verdict(limit)).limit == found


@pytest.mark.parametrize("limit", ["gate", "blocking", "key", "timeouts", "retries"])
def test_a_busy_machine_hides_no_other_cause(limit: str) -> None:
    """Such as a function that blocks the event loop: its calls run one after another on any machine."""
    assert BUSY.applied_to(verdict(limit)).limit == limit


def test_a_verdict_on_too_few_calls_stays() -> None:
    assert SMALL.applied_to(verdict("unknown")) == verdict("unknown")


def test_tasks_that_took_no_time_have_a_verdict() -> None:
    times = TaskTimes(tasks=1, at_once=1, began=0.0, ended=1.0)
    assert times.applied_to(verdict("source")).limit == "source"
