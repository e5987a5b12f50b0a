"""Conversion of rows with a memo, without a JVM."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import trio
import trio.testing
from pyspark.sql import types as T  # noqa: N812 - the usual name

from tests.support import PATIENCE, wait_until
from tests.udfs.memo.looking import known
from trio_asyncio_io.gates import Budget
from udfs import Memo, MemoError, ResultTypeError
from udfs._memo.directory import Directory
from udfs._memo.format import ParquetFile
from udfs._memo.keys import key_of
from udfs._memo.reader import Reader
from udfs._plan.memo_layout import memo_schema
from udfs._sent.extra_columns import METRICS_COLUMN, NUMBERS
from udfs._spark_thread.batches import ranges
from udfs._spark_thread.memo_rows import with_answers
from udfs._trio_thread.task_clock import TaskClock


def by_number(rows: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    return sorted(((row["n"], row["temp"]) for row in rows), key=repr)


def test_equal_inputs_are_called_once_in_a_task(run: Any, batch: Any, halve: Any) -> None:
    rows = run(halve, batch(1, 2, 1), batch(2, 2, 3))
    assert by_number(rows) == [(1, 0.5), (1, 0.5), (2, 1.0), (2, 1.0), (2, 1.0), (3, 1.5)]
    assert sorted(halve.calls) == [1, 2, 3]


def test_a_second_task_calls_only_what_is_missing(run: Any, batch: Any, halve: Any) -> None:
    run(halve, batch(1, 2))
    assert by_number(run(halve, batch(2, 3, 1))) == [(1, 0.5), (2, 1.0), (3, 1.5)]
    assert sorted(halve.calls) == [1, 2, 3]


def test_null_is_a_key_whose_answer_may_be_null(run: Any, batch: Any, halve: Any) -> None:
    for _ in range(2):
        assert by_number(run(halve, batch(None, 4, None))) == [(4, 2.0), (None, None), (None, None)]
    assert sorted(halve.calls, key=str) == [4, None]


def test_the_columns_that_are_not_inputs_keep_their_values(run: Any, batch: Any, halve: Any) -> None:
    run(halve, batch(1, text=["z"]))
    rows = run(halve, batch(1, 2, 1, text=["a", "b", "c"]))
    assert sorted((row["text"], row["temp"]) for row in rows) == [("a", 0.5), ("b", 1.0), ("c", 0.5)]
    assert set(rows[0]) == {"n", "text", "temp"}


def test_a_row_that_made_no_call_is_reported_as_cached(run: Any, batch: Any, halve: Any) -> None:
    run(halve, batch(1))
    rows = run(halve, batch(1, 2, 2), metadata="how")
    assert sorted((row["n"], row["how"]["cached"], row["how"]["attempts"]) for row in rows) == [
        (1, True, 0),
        (2, False, 1),
        (2, True, 0),
    ]


@pytest.mark.parametrize(("flatten", "expected"), [(True, [1, 2, 2]), ("outer", [0, 1, 2, 2])], ids=str)
def test_flattened_outputs_are_remembered(run: Any, batch: Any, flatten: Any, expected: list[int]) -> None:
    calls = []

    async def repeat(n: int) -> list[float]:
        calls.append(n)
        return [float(n)] * n

    for _ in range(2):
        rows = run(repeat, batch(2, 0, 1), flatten=flatten)
        assert sorted(row["n"] for row in rows) == expected
        assert all(row["temp"] == (row["n"] or None) for row in rows)
    assert sorted(calls) == [0, 1, 2]


def test_a_failure_is_shared_in_the_task_and_not_remembered(run: Any, batch: Any) -> None:
    calls = []

    async def fragile(n: int) -> float:
        calls.append(n)
        if n == 1 and calls.count(1) == 1:
            raise ConnectionError("down")
        return n / 2

    first = run(fragile, batch(1, 2, 1), on_error="column")
    assert [row["error"]["message"] for row in first if row["n"] == 1] == ["down", "down"]
    assert by_number(run(fragile, batch(1, 2), on_error="column")) == [(1, 0.5), (2, 1.0)]
    assert sorted(calls) == [1, 1, 2]


def test_a_remembered_failure_fails_with_the_same_error(run: Any, batch: Any, tmp_path: Path) -> None:
    calls = []

    async def fragile(n: int) -> float:
        calls.append(n)
        raise ConnectionError("down")

    memo = Memo(tmp_path, remember_failures_for=3600.0)  # type: ignore[arg-type]
    for _ in range(2):
        [row] = run(fragile, batch(1), on_error="column", memo=memo)
        assert (row["temp"], row["error"]["type"], row["error"]["message"]) == (None, "ConnectionError", "down")
    assert calls == [1]
    run(fragile, batch(1), on_error="column")
    assert calls == [1, 1]


def test_a_call_that_a_gate_refused_is_not_remembered(run: Any, batch: Any, tmp_path: Path, halve: Any) -> None:
    memo = Memo(tmp_path, remember_failures_for=3600.0)  # type: ignore[arg-type]
    [row] = run(halve, batch(4), on_error="column", memo=memo, gate=Budget(0))
    assert (row["error"]["type"], row["error"]["attempts"]) == ("BudgetError", 0)
    [row] = run(halve, batch(4), on_error="column", memo=memo)
    assert row["temp"] == 2.0


def test_a_call_that_a_gate_refused_is_made_for_a_later_row_of_the_task(run: Any, batch: Any, halve: Any) -> None:
    weights = [1.0, 0.0]
    budget = Budget(0, weight=lambda _: weights.pop(0))
    options = {"on_error": "column", "metadata": "how", "capacity": 1, "buffer": 1}
    rows = run(halve, batch(4), batch(4), gate=budget, **options)
    assert [(row["temp"], row["how"]["attempts"], row["how"]["cached"]) for row in rows] == [
        (None, 0, False),
        (2.0, 1, False),
    ]


def test_rows_that_wait_for_a_call_that_a_gate_refuses_are_not_cached(run: Any, batch: Any, halve: Any) -> None:
    rows = run(halve, batch(4, 4), on_error="column", metadata="how", gate=Budget(0))
    assert [(row["error"]["type"], row["how"]["attempts"], row["how"]["cached"]) for row in rows] == [
        ("BudgetError", 0, False),
        ("BudgetError", 0, False),
    ]


def test_a_function_may_change_its_argument_in_place(run: Any, tmp_path: Path) -> None:
    kind = pa.struct([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("tags", pa.list_(pa.string()))])
    item = {"id": 3, "at": datetime(2013, 1, 1, tzinfo=UTC), "tags": ["b", "a"]}
    batch = pa.RecordBatch.from_pydict({"n": pa.array([item], kind), "bucket": pa.array([0], pa.int32())})
    fields = T.StructType().add("id", "long").add("at", "timestamp").add("tags", T.ArrayType(T.StringType()))
    inputs = T.StructType().add("n", fields)
    calls = []

    async def price(item: dict[str, Any]) -> float:
        item["at"] = item["at"].isoformat()
        item["tags"].append("c")
        calls.append(item)
        return float(item["id"])

    for _ in range(2):
        [row] = run(price, batch, inputs=inputs)
        assert (row["n"], row["temp"]) == (item, 3.0)
    assert len(calls) == 1
    directory = Directory(str(tmp_path), memo_schema("look_up", inputs, T.DoubleType(), ("n",)))
    [stored] = Reader(directory).bucket(0)["inputs"].to_pylist()
    assert stored == {"n": item}


def test_answers_before_a_failure_are_written(run: Any, batch: Any, halve: Any) -> None:
    async def fails_on_three(n: int) -> float:
        if n == 3:
            raise ConnectionError("down")
        return await halve(n)

    with pytest.raises(ConnectionError):
        run(fails_on_three, batch(1, 2, 3), capacity=1)
    run(halve, batch(1, 2, 3))
    assert sorted(halve.calls) == [1, 2, 3]


@pytest.mark.parametrize("error", [ConnectionError, SystemExit])
def test_answers_of_the_instant_of_a_failure_are_written(
    run: Any, batch: Any, halve: Any, error: type[BaseException]
) -> None:
    has_failed = trio.Event()

    async def the_last_fails(n: int) -> float:
        if n == 9:
            has_failed.set()
            raise error
        await has_failed.wait()
        return n / 2

    with pytest.raises(error):
        run(the_last_fails, batch(*range(10)))
    run(halve, batch(*range(10)))
    assert halve.calls == [9]


def test_a_result_that_does_not_fit_its_type_loses_no_other_answer(run: Any, batch: Any, halve: Any) -> None:
    """All calls end in one pass of the loop, so their answers are recorded together."""
    numbers = range(1, 101)
    has_all = trio.Event()

    async def misfit(n: int) -> Any:
        await halve(n)
        if len(halve.calls) == len(numbers):
            has_all.set()
        await has_all.wait()
        return "warm" if n == 50 else n / 2

    with pytest.raises(
        ResultTypeError, match=r"returned str 'warm' for row \(50\), but column '\w+' is declared double: return a"
    ):
        run(misfit, batch(*numbers), capacity=100)
    halve.calls.clear()
    assert len(run(halve, batch(*numbers))) == 100
    assert halve.calls == [50]


def test_a_flattened_result_that_is_no_list_loses_no_other_answer(run: Any, batch: Any) -> None:
    calls: list[int] = []
    has_all = trio.Event()

    async def repeat(n: int) -> Any:
        calls.append(n)
        if len(calls) == 3:
            has_all.set()
        await has_all.wait()
        return n if n == 2 and calls.count(2) == 1 else [float(n)] * n

    with pytest.raises(
        ResultTypeError,
        match=r"returned int for .*, and with flatten=True a result is a list of outputs: return a list",
    ):
        run(repeat, batch(1, 2, 3), flatten=True)
    assert len(run(repeat, batch(1, 2, 3), flatten=True)) == 6
    assert sorted(calls) == [1, 2, 2, 3]


def test_a_finished_answer_does_not_wait_for_the_threads_of_the_function(conversion: Any, batch: Any) -> None:
    """These may fill all threads that Trio starts by default."""
    is_over = threading.Event()

    async def blocks(n: int) -> float:
        if n:
            await trio.to_thread.run_sync(is_over.wait, PATIENCE)
        else:
            limiter = trio.to_thread.current_default_thread_limiter()
            while limiter.available_tokens:
                await trio.testing.wait_all_tasks_blocked()
        return n / 2

    out = conversion(blocks, capacity=101, timeout=PATIENCE).run(iter([batch(*range(101))]))
    try:
        assert next(out).column("n").to_pylist() == [0]
    finally:
        is_over.set()
    assert sum(len(each) for each in out) == 100


def test_answers_are_in_the_memo_although_spark_has_closed_the_task(
    conversion: Any, batch: Any, tmp_path: Path
) -> None:
    """This happens after a `limit`. Calls that have not ended are not remembered."""
    answered = []

    async def answers_the_first(n: int) -> float:
        if n > 20:
            await trio.sleep_forever()
        answered.append(n)
        return n / 2

    out = conversion(answers_the_first).run(iter([batch(*range(1, 50))]))
    next(out)
    out.close()
    assert known(Directory.existing(str(tmp_path)), range(3)) == sorted(answered)


def test_the_result_of_on_timeout_is_not_remembered(run: Any, batch: Any, halve: Any) -> None:
    async def hang(n: int) -> float:
        await trio.sleep_forever()
        raise AssertionError

    async def guess(n: int) -> float:
        return -1.0

    assert by_number(run(hang, batch(1, 1), timeout=0.01, on_timeout=guess)) == [(1, -1.0), (1, -1.0)]
    assert by_number(run(halve, batch(1))) == [(1, 0.5)]


def test_a_skipped_row_is_neither_called_nor_remembered(run: Any, batch: Any, halve: Any, tmp_path: Path) -> None:
    assert by_number(run(halve, batch(None), skip_nulls=True)) == [(None, None)]
    assert halve.calls == []
    assert known(Directory.existing(str(tmp_path)), range(3)) == []


def test_answers_of_another_version_do_not_count(run: Any, batch: Any, halve: Any, tmp_path: Path) -> None:
    run(halve, batch(1))
    run(halve, batch(1), memo=Memo(str(tmp_path), version="2"))
    run(halve, batch(1))
    assert halve.calls == [1, 1]


def test_an_answer_older_than_max_age_is_called_again(
    run: Any, batch: Any, halve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    run(halve, batch(1))
    for later, expected in ((59.0, [1]), (61.0, [1, 1])):
        monkeypatch.setattr(time, "time", lambda later=later: now + later)
        run(halve, batch(1), memo=Memo(str(tmp_path), max_age=60.0))
        assert halve.calls == expected


def test_rows_that_wait_for_a_call_count_towards_the_buffer(run: Any, batch: Any) -> None:
    """Otherwise a task would read all rows of one key into memory while the first is called."""
    answered = []

    async def slow(n: int) -> float:
        await trio.testing.wait_all_tasks_blocked(0.05)
        answered.append(n)
        return n / 2

    def source() -> Iterator[pa.RecordBatch]:
        yield batch(1, 1, 1, 1)
        assert answered == [1]
        yield batch(1, 2)

    assert len(run(slow, batch(1), source=source(), capacity=1, buffer=4)) == 6


def test_an_answer_of_the_task_counts_until_its_bucket_is_over(run: Any, batch: Any, halve: Any) -> None:
    rows = run(halve, batch(0), batch(0, 1), batch(1, 2), in_buckets=True, capacity=1, buffer=1)
    assert by_number(rows) == [(0, 0.0), (0, 0.0), (1, 0.5), (1, 0.5), (2, 1.0)]
    assert halve.calls == [0, 1, 2]


def test_rows_that_are_known_do_not_wait_for_calls_of_their_batch(conversion: Any, batch: Any, halve: Any) -> None:
    list(conversion(halve).run(iter([batch(1, 2)])))

    async def hang(n: int) -> float:
        await trio.sleep_forever()
        raise AssertionError

    out = conversion(hang, capacity=1, buffer=1).run(iter([batch(1, 3, 2)]))
    assert by_number(next(out).to_pylist()) == [(1, 0.5), (2, 1.0)]
    out.close()


def test_rows_that_are_known_are_never_converted_to_rows(conversion: Any, batch: Any, halve: Any) -> None:
    """They stay Arrow data, which costs a fraction."""
    list(conversion(halve).run(iter([batch(1, 2)])))
    made = conversion(halve)
    read = []
    original = made._conversion.read
    made._conversion.read = lambda part: read.append(part.column("n").to_pylist()) or original(part)
    assert len([row for part in made.run(iter([batch(1, 3, 2)])) for row in part.to_pylist()]) == 3
    assert read == [[3]]


def test_the_metrics_count_each_row_that_is_known(run: Any, batch: Any, halve: Any) -> None:
    run(halve, batch(1, 2))
    settings = {"has_metrics": True, "on_error": "column"}
    rows = run(halve, batch(1, 2, 2), batch(1), batch(1, 3), **settings)
    metrics = [row[METRICS_COLUMN] for row in rows]
    sums = [each["numbers"] for each in metrics if each["numbers"]]
    assert [sum(each[NUMBERS[name]] for each in sums) for name in ("rows.rows", "rows.cached")] == [6, 5]
    assert sum(each["seconds"] is not None for each in metrics) == 6


def test_known_rows_misses_and_remembered_failures_of_one_batch_keep_apart(
    run: Any, batch: Any, tmp_path: Path
) -> None:
    async def fragile(n: int) -> float:
        if n == 2:
            raise ConnectionError("down")
        return n / 2

    memo = Memo(str(tmp_path), remember_failures_for=3600.0)
    run(fragile, batch(1, 2), on_error="column", memo=memo)
    rows = run(fragile, batch(2, 1, 3, 2, 1), on_error="column", metadata="how", memo=memo)
    messages = [row["error"] and row["error"]["message"] for row in rows]
    found = [(row["n"], row["temp"], row["how"]["cached"]) for row in rows]
    assert sorted((*each, message) for each, message in zip(found, messages, strict=True)) == [
        (1, 0.5, True, None),
        (1, 0.5, True, None),
        (2, None, True, "down"),
        (2, None, True, "down"),
        (3, 1.5, False, None),
    ]


def test_a_failure_that_is_later_than_an_answer_counts(run: Any, memo: Directory, batch: Any, tmp_path: Path) -> None:
    key = key_of("1", (1,))
    error = {"type": "ConnectionError", "message": "down", "attempts": 1, "seconds": 0.0}
    row = {"bucket": 1, "key": key, "inputs": {"n": 1}, "function": "look_up", "version": "1"}
    now = round(time.time() * 1e6)
    rows = [
        {**row, "answer": 0.5, "error": None, "answered_at": now - 10},
        {**row, "answer": None, "error": error, "answered_at": now},
    ]
    memo.put_table(pa.Table.from_pylist(rows, memo.schema), range(256))

    async def never(n: int) -> float:
        raise AssertionError(n)

    kept = Memo(str(tmp_path), remember_failures_for=3600.0)
    [failed] = run(never, batch(1), on_error="column", memo=kept)
    assert (failed["temp"], failed["error"]["message"]) == (None, "down")
    assert by_number(run(never, batch(1))) == [(1, 0.5)]


@pytest.mark.parametrize("flatten", [False, "outer"], ids=str)
def test_known_answers_that_could_be_too_large_together_come_in_several_batches(
    conversion: Any, batch: Any, monkeypatch: pytest.MonkeyPatch, flatten: Any
) -> None:
    """Many rows may share one large answer. Together they could pass the limit of an Arrow array."""
    text = T.StructType([T.StructField("temp", T.StringType())])

    async def large(n: int) -> Any:
        answer = "x" * 1_000 if n == 1 else "y"
        return [answer] if flatten else answer

    numbers = [1, 1, 2, 1, 2]
    options = {"added": text, "flatten": flatten}
    list(conversion(large, **options).run(iter([batch(1, 2)])))
    monkeypatch.setattr("udfs._spark_thread.memo_rows.SAFE_BYTES", 2_000)
    monkeypatch.setattr("udfs._spark_thread.batches.SLICE_BYTES", 2_500)
    original = ranges
    monkeypatch.setattr("udfs._spark_thread.memo_rows.ranges", lambda sizes: original(sizes, 2_500))
    parts = list(conversion(large, **options).run(iter([batch(*numbers)])))
    assert [part.num_rows for part in parts] == [3, 2]
    rows = [row for part in parts for row in part.to_pylist()]
    assert [(row["n"], row["temp"][0]) for row in rows] == [(n, "x" if n == 1 else "y") for n in numbers]


def test_a_batch_is_divided_by_buckets_if_the_memo_is_large(
    conversion: Any, batch: Any, halve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a task never has more than a part of the memo in memory."""
    list(conversion(halve).run(iter([batch(*range(30))])))
    monkeypatch.setattr("udfs._memo.reader.PASS_BYTES", 1)
    made = conversion(halve)
    looked_up = []
    original = made._reader.find
    made._reader.find = lambda buckets, keys: looked_up.append(list(buckets)) or original(buckets, keys)
    rows = [row for part in made.run(iter([batch(*range(31))])) for row in part.to_pylist()]
    assert by_number(rows) == sorted(((n, n / 2) for n in range(31)), key=repr)
    assert looked_up == [[0], [1], [2]]
    assert halve.calls.count(30) == 1
    assert len(halve.calls) == 31


def test_the_batches_of_a_stream_read_a_small_memo_once(
    conversion: Any, batch: Any, halve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(conversion(halve).run(iter([batch(1, 2, 3)])))
    groups = []
    original = ParquetFile._group
    monkeypatch.setattr(ParquetFile, "_group", lambda self, number: groups.append(number) or original(self, number))
    made = conversion(halve)
    assert len([row for part in made.run(iter([batch(1, 2)] * 5)) for row in part.to_pylist()]) == 10
    assert len(groups) == 1


@pytest.mark.parametrize("answer", [{"a": 1, "b": None}, [{"a": 1, "b": None}]], ids=["struct", "list"])
def test_an_old_answer_may_be_null_where_the_schema_says_not_null(run: Any, batch: Any, answer: Any) -> None:
    async def nested(n: int) -> dict[str, Any]:
        return {"temp": answer}

    async def never(n: int) -> Any:
        raise AssertionError(n)

    def schema(*, is_nullable: bool) -> T.StructType:
        inner = T.StructType().add("a", "long").add("b", "long", is_nullable)
        return T.StructType().add("temp", T.ArrayType(inner) if isinstance(answer, list) else inner)

    run(nested, batch(1), added=schema(is_nullable=True))
    assert [row["temp"] for row in run(never, batch(1), added=schema(is_nullable=False))] == [answer]


def test_a_memo_that_the_worker_does_not_see_is_refused(run: Any, batch: Any, halve: Any, tmp_path: Path) -> None:
    with pytest.raises(MemoError, match=r"this worker does not see the memo .*/elsewhere, .* use a path on storage"):
        run(halve, batch(1), memo=Memo(str(tmp_path / "elsewhere")), claims=False)


def test_the_clock_of_a_task_begins_before_its_first_batch_is_read(
    task: Any, batch: Any, halve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, `explain` would leave out the time for which the task waits for its rows."""
    steps: list[str] = []
    begin = TaskClock.__init__
    monkeypatch.setattr(TaskClock, "__init__", lambda *arguments: steps.append("clock") or begin(*arguments))

    def batches() -> Iterator[pa.RecordBatch]:
        steps.append("read")
        yield batch(1)

    assert len(list(with_answers(*task(halve), batches()))) == 1
    assert steps == ["clock", "read"]


def test_the_answers_of_all_calls_are_recorded_while_the_consumer_stalls(
    conversion: Any, batch: Any, run: Any, settled: Any, halve: Any
) -> None:
    made = conversion(halve, capacity=5, buffer=20)
    with closing(made.run(iter([batch(*range(400))]))) as chunks:
        next(chunks)
        settled()
        called = list(halve.calls)
        assert len(called) == 40
        wait_until(lambda: known(made.writer._directory, range(3)) == sorted(called), "answers are not in the memo")
        assert len(run(halve, batch(*called), claims=False)) == 40
        assert halve.calls == called
