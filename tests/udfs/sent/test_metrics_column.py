"""The column from which Spark computes the metrics of a query: sums of chunks, and what totals have gained."""

from __future__ import annotations

from typing import Any

from trio_asyncio_io import ElementTimeoutError, Totals
from trio_asyncio_io.integration import TaskTimes
from udfs._sent.extra_columns import NUMBERS, MetricsColumn
from udfs._sent.row import Failure


def numbers_of(column: MetricsColumn, rows: Any, name: str) -> float:
    """One number of a chunk, which only its first row has."""
    first, *others = column.array(rows).to_pylist()
    assert all(each["numbers"] is each["seconds_by_gate"] is each["refusal"] is None for each in others)
    return first["numbers"][NUMBERS[name]]


def test_the_first_row_of_a_chunk_has_its_sums(rows: Any) -> None:
    batch = rows("abcd")
    for row, attempts in zip(batch, (1, 3, 0, 1), strict=True):
        row.attempts, row.seconds = attempts, attempts / 2
    batch[2].cached = True
    batch[0].failure = Failure(OSError(), 1, 0.5)
    batch[3].failure = Failure(ElementTimeoutError("late", 7.0), 1, 7.0)
    array = MetricsColumn().array(batch)
    numbers = array[0]["numbers"].as_py()
    found = {name: numbers[NUMBERS[f"rows.{name}"]] for name in ("rows", "calls", "retried", "failed", "timed_out")}
    assert found == {"rows": 4, "calls": 5, "retried": 2, "failed": 2, "timed_out": 1}
    assert [numbers[NUMBERS[f"rows.{name}"]] for name in ("cached", "seconds", "slowest")] == [1, 9.0, 7.0]
    assert array.field("seconds").to_pylist() == [0.5, 1.5, 0.0, 7.0]
    assert array.field("numbers").to_pylist()[1:] == [None] * 3


def test_a_row_counts_once_if_its_outputs_are_in_two_arrays(rows: Any) -> None:
    first, second = rows("ab")
    first.attempts, second.attempts = 2, 3
    column = MetricsColumn()
    assert numbers_of(column, [first, first], "rows.calls") == 2
    assert numbers_of(column, [first, second], "rows.calls") == 3


def test_each_chunk_adds_what_its_totals_have_more_than_those_before(rows: Any) -> None:
    first, second, third, fourth = rows("abcd")
    first.totals = Totals(completed=3, capacity=9), TaskTimes(tasks=1, began=5.0, ended=6.0)
    third.totals = Totals(completed=10, capacity=9), TaskTimes(tasks=1, began=5.0, ended=8.0)
    column = MetricsColumn()
    names = ("totals.completed", "totals.capacity", "tasks.tasks", "tasks.began", "tasks.ended")
    chunks = [column.array(each)[0]["numbers"].as_py() for each in ([first, second], [third], [fourth])]
    found = [[numbers[NUMBERS[name]] for name in names] for numbers in chunks]
    assert found == [[3, 9, 1, 5.0, 6.0], [7, 9, 0, 5.0, 8.0], [0] * 5]


def test_the_waits_for_gates_are_added_by_gate(rows: Any) -> None:
    first, second = rows("ab")
    first.totals = Totals(seconds_by_gate={"RateLimit": 2.0}), TaskTimes()
    second.totals = (
        Totals(seconds_by_gate={"RateLimit": 5.0, "CircuitBreaker": 1.0}, refusal="no", finding="9 at once"),
        TaskTimes(),
    )
    column = MetricsColumn()
    found = [column.array([row]).to_pylist()[0] for row in (first, second)]
    assert [dict(each["seconds_by_gate"]) for each in found] == [
        {"RateLimit": 2.0},
        {"RateLimit": 3.0, "CircuitBreaker": 1.0},
    ]
    assert [each["refusal"] for each in found] == [None, '"no"']
    assert [each["finding"] for each in found] == [None, '"9 at once"']


def test_totals_of_rows_in_another_order_have_the_same_sum(rows: Any) -> None:
    batch = rows("abc")
    for calls, row in enumerate(batch, start=1):
        row.totals = Totals(completed=calls, seconds=calls), TaskTimes()
    column = MetricsColumn()
    chunks = [[batch[1], batch[0]], [batch[2]]]
    assert sum(numbers_of(column, chunk, "totals.completed") for chunk in chunks) == 3
