"""Micro-batch: finished rows, unfinished rows, and rows that are too old."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
import trio
from pyspark.sql import types as T  # noqa: N812 - the usual name

from udfs import CarriedTooLongError, CarryOver
from udfs._sent.settings import Enrichment
from udfs._spark_thread import micro_batch
from udfs._spark_thread.bridge import WaitLimit
from udfs._spark_thread.micro_batch import CarriedRows, MicroBatch

TWICE = T.StructType([T.StructField("twice", T.LongType())])


def batch(*numbers: int, **more: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64()), **more})


@pytest.fixture(autouse=True)
def _the_budget_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for a budget: `max_rows` sets how many rows stay unfinished."""
    monkeypatch.setattr(micro_batch, "WaitLimit", lambda _, max_unfinished: WaitLimit(0.0, max_unfinished))


@pytest.fixture
def run(settings: Any) -> Callable[..., tuple[list[Any], list[CarriedRows]]]:
    """Runs a micro-batch. Returns the enriched rows, and the rows to carry over."""

    def enriched(
        function: Any, parts: Any, *, max_rows: int = 0, max_age: float = 600.0, now: int = 0, **more: Any
    ) -> Any:
        flatten, drop, key = more.pop("flatten", False), more.pop("drop", []), more.pop("key", ())
        made = settings(function, mode="keyed" if key else "unordered", **more)
        enrichment = Enrichment(made, TWICE, "UTC", inputs=(0,), key=key, flatten=flatten)
        micro_batch = MicroBatch(enrichment, CarryOver(budget=1.0, max_rows=max_rows, max_age=max_age), now)
        out = [row for each in micro_batch.run(iter(parts)) for row in each.drop_columns(drop).to_pylist()]
        return out, micro_batch.unfinished()

    return enriched


async def twice(n: int) -> int:
    return 2 * n


class Stubborn:
    """Hangs at odd numbers while `hangs` is true, and records its calls."""

    def __init__(self) -> None:
        self.hangs = True
        self.calls: list[int] = []
        self._called = threading.Semaphore(0)

    def until_called(self, times: int, parts: Any) -> Iterator[Any]:
        """The parts. The input ends after that many further calls have started."""
        yield from parts
        for _ in range(times):
            assert self._called.acquire(timeout=30.0)

    async def invoke(self, n: int) -> int:
        self.calls.append(n)
        self._called.release()
        if n % 2 and self.hangs:
            await trio.sleep_forever()
        return 2 * n


def test_unfinished_rows_are_carried_over_in_order_with_their_times_and_attempts(run: Any) -> None:
    text = [f"row {n}" for n in range(6)]
    parts = [
        CarriedRows(batch(1, 3, text=["a", "b"]), [10, 20], [4, 0]),
        CarriedRows.new(batch(*range(6), text=text), 99),
    ]
    function = Stubborn()
    out, [left] = run(function, function.until_called(8, parts), max_rows=5, now=99)
    assert sorted((row["n"], row["text"]) for row in out) == [(0, "row 0"), (2, "row 2"), (4, "row 4")]
    assert left.rows.to_pydict() == {"n": [1, 3, 1, 3, 5], "text": ["a", "b", "row 1", "row 3", "row 5"]}
    assert left.since == [10, 20, 99, 99, 99]
    assert left.attempts == [5, 1, 1, 1, 1]


def test_each_row_comes_out_of_exactly_one_micro_batch(run: Any) -> None:
    function = Stubborn()
    first, left = run(function, function.until_called(10, [CarriedRows.new(batch(*range(10)), 0)]), max_rows=5)
    written = [value for each in left for value in each.to_state(["bigint"])]
    state = [part for part, _ in CarriedRows.from_state(written)]
    again, left = run(function, function.until_called(5, state), max_rows=5, now=1)
    assert again == []
    function.hangs = False
    last, left = run(function, [*left, CarriedRows.new(batch(10), 2)], now=2)
    assert sorted(row["n"] for row in first + last) == list(range(11))
    assert left == []
    assert sorted(function.calls) == sorted([*range(11), *[1, 3, 5, 7, 9] * 2])


def test_a_row_that_waits_for_a_slot_is_carried_over_without_an_attempt(run: Any) -> None:
    function = Stubborn()
    _, [left] = run(function, function.until_called(1, [CarriedRows.new(batch(1, 3), 0)]), max_rows=2, capacity=1)
    assert left.attempts == [1, 0]


OLD = [CarriedRows(batch(1, 2, 3), [0, 10_000, 9_999], [7, 7, 0])]


def test_a_row_older_than_max_age_is_not_called_again_and_has_an_error(run: Any) -> None:
    function = Stubborn()
    out, left = run(function, OLD, max_age=10.0, now=20_000, on_error="column")
    errors = {row["n"]: row["error"] for row in out}
    assert errors[2] is None
    assert (errors[1]["type"], errors[1]["attempts"], errors[1]["seconds"]) == ("CarriedTooLongError", 7, 20.0)
    assert errors[3]["message"] == "the row was not finished in 10.0 s and 0 calls: max_age is 10 s"
    assert function.calls == [2]
    assert left == []


def test_a_row_older_than_max_age_fails_the_task_if_on_error_is_raise(run: Any) -> None:
    with pytest.raises(CarriedTooLongError, match=r"not finished in 20\.0 s and 7 calls") as caught:
        run(twice, OLD, max_age=10.0, now=20_000)
    assert caught.value.__notes__ == ["row (1)"]


def test_a_row_older_than_max_age_comes_out_once_with_flatten(run: Any) -> None:
    async def none(n: int) -> list[int]:
        return []

    out, _ = run(none, OLD, max_age=10.0, now=20_000, on_error="column", flatten=True)
    assert sorted(row["n"] for row in out) == [1, 3]


def test_a_row_older_than_max_age_comes_out_before_the_later_rows_of_its_key(run: Any) -> None:
    parts = [CarriedRows(batch(1, 2, 3, of=[0, 0, 0]), [0, 10_000, 20_000], [7, 7, 0])]
    out, left = run(twice, parts, max_age=10.0, now=20_001, on_error="null", key=(1,))
    assert [(row["n"], row["twice"]) for row in out] == [(1, None), (2, None), (3, 6)]
    assert left == []


def test_a_row_older_than_max_age_fails_even_if_its_function_does_not_open(run: Any) -> None:
    class Closed:
        async def open(self) -> None:
            await trio.sleep_forever()

        async def invoke(self, n: int) -> int:
            raise AssertionError("not open")

    parts = [CarriedRows(batch(1, 2), [0, 10_000], [7, 7])]
    out, [left] = run(Closed(), parts, max_rows=2, max_age=10.0, now=20_000, on_error="null")
    assert [row["n"] for row in out] == [1]
    assert left.rows.to_pydict() == {"n": [2]}


def test_an_infinite_max_age_never_expires(run: Any) -> None:
    out, _ = run(twice, [CarriedRows(batch(1), [0], [10**6])], max_age=math.inf, now=10**15)
    assert [row["twice"] for row in out] == [2]


def test_attempts_are_counted_across_micro_batches(run: Any) -> None:
    async def fail(n: int) -> int:
        raise ValueError("no")

    out, _ = run(fail, [CarriedRows(batch(1), [0], [4])], on_error="column")
    assert out[0]["error"]["attempts"] == 5


def test_the_time_zone_of_the_session_may_change_between_runs(run: Any) -> None:
    def at(zone: str) -> pa.RecordBatch:
        return batch(1, ts=pa.array([0], pa.timestamp("us", tz=zone)))

    out, _ = run(twice, [CarriedRows.new(at("UTC"), 0), CarriedRows.new(at("Asia/Tokyo"), 0)])
    assert [row["ts"].timestamp() for row in out] == [0.0, 0.0]


def test_the_function_gets_carried_timestamps_in_the_time_zone_of_the_query(run: Any) -> None:
    """Naive datetimes in its results are in that zone."""
    seen: list[int] = []

    async def hour(at: datetime) -> int:
        seen.append(at.hour)
        return at.hour

    def at(zone: str) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array([0], pa.timestamp("us", tz=zone))], names=["at"])

    run(hour, [CarriedRows.new(at("Asia/Tokyo"), 0), CarriedRows.new(at("UTC"), 0)])
    assert seen == [0, 0]


def test_a_row_that_fails_without_a_call_waits_for_the_rows_of_its_key(run: Any) -> None:
    """It is carried over with them, and then comes out once and in its place."""
    year_14645 = 400_000_000_000_000_000
    rows = pa.RecordBatch.from_pydict(
        {
            "at": pa.array([1, year_14645, 2, 4, year_14645, 6], pa.timestamp("us")),
            "n": pa.array(range(6), pa.int64()),
            "of": ["slow"] * 3 + ["quick"] * 3,
        }
    )
    hangs = True

    async def microsecond(at: Any) -> int:
        if at.microsecond < 4 and hangs:
            await trio.sleep_forever()
        return int(at.microsecond)

    options: dict[str, Any] = {"on_error": "null", "key": (2,), "drop": ["at"]}
    out, left = run(microsecond, [CarriedRows.new(rows, 0)], max_rows=3, **options)
    assert [(row["n"], row["twice"]) for row in out] == [(3, 4), (4, None), (5, 6)]
    hangs = False
    out, left = run(microsecond, left, now=1, **options)
    assert [(row["n"], row["twice"]) for row in out] == [(0, 1), (1, None), (2, 2)]
    assert left == []
