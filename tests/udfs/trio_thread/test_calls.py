"""The user's function as the operator's function of rows, on virtual time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import trio
from pyspark.sql.types import ArrayType, DoubleType, FloatType, TimestampType
from trio.testing import MockClock

from trio_asyncio_io import AsyncFunction, AsyncWaitOperator, ElementTimeoutError, FixedDelay, NotAsyncError
from trio_asyncio_io.gates import Auto, Budget, BudgetError, RateLimit, settle
from trio_asyncio_io.policies import hedged
from trio_asyncio_io.report import report
from trio_asyncio_io.testing import Recorder, Scripted, Step, fails_first
from udfs._sent.row import Failure, Row
from udfs._sent.settings import Settings
from udfs._spark_thread.reading import rows_of
from udfs._spark_thread.writing import ResultWriter
from udfs._trio_thread.calls import GroupCalls, RowCalls
from udfs._trio_thread.room import Room


def row_calls(function: Any, on_timeout: Any, made: Settings) -> RowCalls:
    return RowCalls(function, on_timeout, made, Room(made))


def group_calls(function: Any, on_timeout: Any, made: Settings) -> GroupCalls:
    return GroupCalls(function, on_timeout, made, Room(made))


@pytest.fixture
def run(settings: Any, rows: Any) -> Any:
    """The rows of one batch after their way through the operator."""

    async def go(function: Any, values: Any, *, on_timeout: Any = None, **more: Any) -> list[Row]:
        made = settings(function, **more)
        calls = row_calls(function, on_timeout, made)
        async with AsyncWaitOperator(calls, source=rows(list(values)), **calls.options()) as operator:
            return [row async for row in operator.output]

    return go


@pytest.fixture
def run_groups(settings: Any, autojump_clock: MockClock) -> Any:
    """The rows of one batch, in groups, and their calls after their way through the operator."""

    async def go(function: Any, *columns: Any, **more: Any) -> tuple[list[Row], GroupCalls]:
        calls = group_calls(function, None, settings(function, **{"group": 3, **more}))
        source = rows_of([pa.array(values) for values in columns], 0)
        async with AsyncWaitOperator(calls, source=source, **calls.options()) as operator:
            return [row async for row in operator.output], calls

    return go


def outcome(row: Row) -> tuple[Any, int, str | None, float | None]:
    failure = row.failure
    return row.result, row.attempts, failure and repr(failure.exception), failure and failure.seconds


async def test_the_function_is_called_with_the_values_of_the_row(settings: Any) -> None:
    async def join(*values: Any) -> str:
        return repr(values)

    calls = row_calls(join, None, settings(join))
    [row, null] = rows_of([pa.array(["EWR", None]), pa.array([5, None])], 0)
    assert (await calls.invoke(row)) is row
    assert row.result == "('EWR', 5)"
    assert (await calls.invoke(null)).result == "(None, None)"


async def test_a_report_shows_the_names_that_the_user_has_given(
    settings: Any, rows: Any, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async def lookup(value: str) -> str:
        raise ValueError

    async def last_known(value: str) -> str:
        return value

    with report(tmp_path / "run.html") as observer:
        calls = row_calls(lookup, last_known, settings(lookup, on_error="column", observer=observer))
        async with AsyncWaitOperator(calls, source=rows(["a"]), **calls.options()) as operator:
            assert [row.failure is not None async for row in operator.output] == [True]
    page = (tmp_path / "run.html").read_text("utf-8")
    assert "<td>on_error</td><td>column</td>" in page
    assert "last_known" in page
    assert "RowCalls" not in page


@pytest.mark.parametrize(("show_values", "shown"), [(True, "'A'"), (False, "a result of the type str")])
@pytest.mark.parametrize("on_error", ["raise", "null"])
async def test_a_function_that_is_not_async_ends_the_task_at_its_first_call(
    run: Any, show_values: bool, shown: str, on_error: Any
) -> None:
    calls = []

    def upper(value: str) -> str:
        calls.append(value)
        return value.upper()

    message = rf"^the function must be async, but upper returned {shown}, which cannot be awaited\. .*in_thread"
    with pytest.raises(NotAsyncError, match=message):
        await run(upper, "ab", capacity=1, show_values=show_values, on_error=on_error, retry=FixedDelay(1, 0.0))
    assert calls == ["a"]


async def test_an_on_timeout_that_is_not_async_is_named(run: Any, autojump_clock: MockClock) -> None:
    def last_known(value: str) -> str:
        return value

    with pytest.raises(NotAsyncError, match="but last_known returned 'a', which cannot be awaited"):
        await run(Scripted(default=Step(9.0)), "a", timeout=1.0, on_timeout=last_known)


async def fetch(*values: Any) -> Any:
    return values


async def forgets_await(value: Any) -> Any:
    return fetch(value)


async def forgets_for_each(values: Any) -> Any:
    return [fetch(value) for value in values]


@pytest.mark.parametrize("on_error", ["raise", "column"])
async def test_a_forgotten_await_ends_the_task_with_an_error_that_names_it(run: Any, on_error: Any) -> None:
    with pytest.raises(NotAsyncError, match=r"^forgets_await returned a coroutine: write `return await fetch\(\.\.\."):
        await run(forgets_await, "ab", on_error=on_error, retry=FixedDelay(1, 0.0))


async def test_a_forgotten_await_in_on_timeout_is_named(run: Any, autojump_clock: MockClock) -> None:
    with pytest.raises(NotAsyncError, match=r"^on_timeout returned a coroutine: write `return await fetch\("):
        await run(Scripted(default=Step(9.0)), "a", timeout=1.0, on_timeout=forgets_await)


@pytest.mark.parametrize("function", [forgets_await, forgets_for_each])
async def test_a_forgotten_await_for_a_group_is_named(settings: Any, rows: Any, function: Any) -> None:
    calls = group_calls(function, None, settings(function, group=2))
    with pytest.raises(NotAsyncError, match=r"^forgets_\w+ returned a coroutine: write `return await fetch\("):
        await calls.invoke(rows("a"))


async def test_attempts_are_counted_per_row(run: Any, autojump_clock: MockClock) -> None:
    function = Scripted({"b": fails_first(2, OSError("busy"))}, default=Step(1.0))
    out = await run(function, "abc", retry=FixedDelay(3, 0.5))
    assert [(row.result, row.attempts) for row in out] == [("a", 1), ("b", 3), ("c", 1)]


async def test_retry_on_result_receives_the_users_result(run: Any, autojump_clock: MockClock) -> None:
    function = Scripted({"b": [Step(result="pending"), Step(result="pending"), Step(result="done")]})
    retry = FixedDelay(5, 0.5, retry_on_result=lambda result: result == "pending")
    out = await run(function, "ab", retry=retry)
    assert [(row.result, row.attempts) for row in out] == [("a", 1), ("done", 3)]


async def test_a_null_input_is_skipped_and_its_result_is_never_retried(run: Any, autojump_clock: MockClock) -> None:
    recorder: Recorder[str, str] = Recorder(Scripted())
    retry = FixedDelay(5, 0.5, retry_on_result=lambda result: result is None)
    out = await run(recorder, ["a", None], retry=retry, skip_nulls=True)
    assert [(row.result, row.attempts) for row in out] == [("a", 1), (None, 0)]
    assert recorder.values == ["a"]


async def test_a_skipped_row_neither_waits_for_a_gate_nor_counts_in_it(run: Any, autojump_clock: MockClock) -> None:
    recorder: Recorder[str, str] = Recorder(Scripted())
    await run(recorder, ["a", None, None, "b"], gate=RateLimit(1.0), skip_nulls=True)
    assert [(call.value, call.started) for call in recorder.calls] == [("a", 0.0), ("b", 1.0)]
    assert trio.current_time() == 1.0


async def test_a_row_that_failed_before_its_call_makes_none(settings: Any, rows: Any) -> None:
    recorder: Recorder[str, str] = Recorder(Scripted())
    retry = FixedDelay(5, 0.5, retry_on_result=lambda result: result is None)
    calls = row_calls(recorder, None, settings(recorder, retry=retry))
    [row] = rows(["a"])
    row.failure = Failure(ValueError("no year 10000"), 0, 0.0)
    async with AsyncWaitOperator(calls, source=[row], **calls.options()) as operator:
        assert [each async for each in operator.output] == [row]
    assert recorder.values == []


async def test_without_skip_nulls_a_function_is_called_with_none(run: Any) -> None:
    async def known(value: Any) -> bool:
        return value is not None

    assert [(row.result, row.attempts) for row in await run(known, ["a", None])] == [(True, 1), (False, 1)]


async def test_the_error_column_has_the_seconds_from_first_call_to_last(run: Any, autojump_clock: MockClock) -> None:
    await trio.sleep(7.0)
    errors = [Step(1.0, error=OSError("busy")), Step(2.0, error=OSError("still busy"))]
    [row] = await run(Scripted({"a": errors}), "a", retry=FixedDelay(1, 0.5), on_error="column")
    assert outcome(row) == (None, 2, "OSError('still busy')", 3.5)


async def test_a_result_is_timed_in_case_its_type_is_wrong(run: Any, autojump_clock: MockClock) -> None:
    steps = [Step(1.0, error=OSError("busy")), Step(2.0)]
    [row] = await run(Scripted({"a": steps}), "a", retry=FixedDelay(1, 0.5), on_error="column")
    assert row.seconds == 3.5


async def test_seconds_do_not_count_the_wait_for_a_slot(run: Any, autojump_clock: MockClock) -> None:
    function = Scripted({"b": Step(1.0, error=OSError("busy"))}, default=Step(10.0))
    out = await run(function, "ab", capacity=1, on_error="column")
    assert outcome(out[1]) == (None, 1, "OSError('busy')", 1.0)


async def test_a_timeout_is_a_failure(run: Any, autojump_clock: MockClock) -> None:
    function = Scripted({"b": Step(99.0)})
    out = await run(function, "abc", timeout=5.0, on_error="column")
    assert [row.result for row in out] == ["a", None, "c"]
    failure = out[1].failure
    assert isinstance(failure.exception, ElementTimeoutError)
    assert str(failure.exception) == "the function gave no result for row ('b') within its timeout of 5 s"
    assert (failure.attempts, failure.seconds) == (1, 5.0)


async def test_on_timeout_provides_the_result(run: Any, autojump_clock: MockClock) -> None:
    async def give_up(value: str) -> str:
        return f"no {value}"

    recorder: Recorder[str, str] = Recorder(Scripted({"b": Step(99.0)}))
    out = await run(recorder, "ab", timeout=5.0, on_timeout=give_up)
    assert [row.result for row in out] == ["a", "no b"]
    assert out[1].failure is None
    assert recorder.cancelled == 1


async def test_an_object_may_have_a_timeout_method(run: Any, autojump_clock: MockClock) -> None:
    class Lookup(AsyncFunction[str, str]):
        async def invoke(self, value: str) -> str:
            await trio.sleep_forever()
            return value

        async def timeout(self, value: str) -> str:
            return f"no {value}"

    [row] = await run(Lookup(), "a", timeout=5.0)
    assert row.result == "no a"


async def test_a_timeout_attribute_that_is_not_callable_is_ignored(run: Any, autojump_clock: MockClock) -> None:
    """Many clients keep their own timeout in one."""

    class Lookup(AsyncFunction[str, str]):
        timeout = 2.5

        async def invoke(self, value: str) -> str:
            await trio.sleep_forever()
            return value

    with pytest.raises(ElementTimeoutError):
        await run(Lookup(), "a", timeout=5.0)


async def test_an_exception_in_on_timeout_fails_the_row(run: Any, autojump_clock: MockClock) -> None:
    async def give_up(value: str) -> str:
        raise LookupError("no default either")

    [row] = await run(Scripted(default=Step(99.0)), "a", timeout=5.0, on_timeout=give_up, on_error="column")
    assert outcome(row) == (None, 1, "LookupError('no default either')", 5.0)


async def test_each_attempt_gets_lists_and_dicts_of_its_own(run: Any, autojump_clock: MockClock) -> None:
    async def busy(value: dict[str, Any]) -> None:
        value["tags"].append("busy")
        value["id"] = None
        raise ConnectionError(value)

    value = {"id": 1, "tags": ["new"]}
    [row] = await run(busy, [value], retry=FixedDelay(2, 0.5), on_error="column")
    assert outcome(row)[1:3] == (3, "ConnectionError({'id': None, 'tags': ['new', 'busy']})")
    assert row.inputs == (value,)


async def test_on_timeout_gets_lists_and_dicts_of_its_own(run: Any, autojump_clock: MockClock) -> None:
    async def slow(value: list[str]) -> str:
        value.clear()
        await trio.sleep_forever()
        return ""

    async def give_up(value: list[str]) -> str:
        return value.pop()

    [row] = await run(slow, [["last"]], timeout=5.0, on_timeout=give_up)
    assert (row.result, row.inputs) == ("last", (["last"],))


async def test_a_gate_holds_back_calls_and_its_weight_gets_the_input_values(
    run: Any, autojump_clock: MockClock
) -> None:
    recorder = Recorder(Scripted())
    gate = RateLimit(1.0, weight=lambda value: value)
    await run(recorder, [3, 1, 2], gate=gate)
    assert [call.started for call in recorder.calls] == [0.0, 3.0, 4.0]


async def test_named_gates_of_two_functions_are_one_gate_with_the_weight_of_each(
    settings: Any, rows: Any, autojump_clock: MockClock
) -> None:
    recorder = Recorder(Scripted())

    async def task(gate: RateLimit, *values: int) -> None:
        function = Scripted() if gate.weight else recorder
        calls = row_calls(function, None, settings(function, gate=gate))
        async with AsyncWaitOperator(calls, source=rows(list(values)), **calls.options()) as operator:
            assert [row.result async for row in operator.output] == list(values)

    await task(RateLimit(0.5, weight=lambda value: value, name="api"), 3)
    await task(RateLimit(0.5, name="api"), 1, 2)
    assert [call.started for call in recorder.calls] == [6.0, 8.0]


async def test_a_capacity_that_adapts_keeps_its_limit(settings: Any, autojump_clock: MockClock) -> None:
    calls = row_calls(Scripted(), None, settings(Scripted(), capacity=9, gate=Auto(3, 9)))
    [gate] = calls.options()["gate"]
    assert (gate.start, gate.most) == (3, 9)
    assert calls.options()["gate"] == [gate]


async def test_weights_are_summed_over_the_calls_of_a_row(run: Any, autojump_clock: MockClock) -> None:
    async def ask(_: int) -> None:
        settle(0.25)
        raise ConnectionError

    gate = Budget(2.5, weight=float)
    options = {"gate": gate, "retry": FixedDelay(1, 1.0), "on_error": "column", "capacity": 1}
    asked, refused = await run(ask, [1, 3], metadata="how", **options)
    assert (asked.attempts, asked.weights) == (2, (2.0, 0.5))
    assert (refused.attempts, refused.weights, type(refused.failure.exception)) == (0, None, BudgetError)


async def test_weights_of_a_row_include_second_calls_of_hedged(run: Any, autojump_clock: MockClock) -> None:
    calls: list[int] = []

    async def ask(number: int) -> int:
        calls.append(number)
        if calls.count(number) == 1:
            await trio.sleep(10.0)
        settle(0.25)
        return number

    gate = Budget(10, weight=lambda _: 1.0)
    function = hedged(ask, after=0.1, budget=1.0)
    [row] = await run(function, [1], metadata="how", gate=gate)
    assert (row.attempts, row.weights) == (1, (2.0, 1.25))


# Groups


async def test_with_group_the_function_gets_a_list_for_each_column(run_groups: Any) -> None:
    seen: list[Any] = []

    async def joined(names: list[str | None], numbers: list[int]) -> list[str]:
        seen.append((names, numbers))
        return [f"{name}{number}" for name, number in zip(names, numbers, strict=True)]

    out, calls = await run_groups(joined, ["a", None, "c", "d"], [1, 2, 3, 4])
    assert [row.result for row in out] == ["a1", "None2", "c3", "d4"]
    assert seen == [(["a", None, "c"], [1, 2, 3]), (["d"], [4])]
    assert (calls.made, [row.attempts for row in out]) == (2, [1, 1, 1, 1])


async def test_each_attempt_of_a_group_gets_lists_and_dicts_of_its_own(run_groups: Any) -> None:
    seen: list[str] = []

    async def changes(values: list[list[str]]) -> list[int]:
        seen.append(repr(values))
        values[0].append("x")
        raise ConnectionError

    out, _ = await run_groups(changes, [["a"], ["b"]], group=2, retry=FixedDelay(1, 0.5), on_error="null")
    assert [row.inputs for row in out] == [(["a"],), (["b"],)]
    assert seen == ["[['a'], ['b']]"] * 2


async def test_rows_with_nulls_are_not_in_a_group_that_skips_nulls(run_groups: Any) -> None:
    seen: list[list[str]] = []

    async def echoed(values: list[str]) -> list[str]:
        seen.append(values)
        return values

    out, _ = await run_groups(echoed, ["a", None, "c"], skip_nulls=True)
    assert [row.result for row in out] == ["a", None, "c"]
    assert seen == [["a", "c"]]


NAN = float("nan")
MAP = pa.map_(pa.string(), pa.int64())
UNION = pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])])
pd: Any = pytest.importorskip("pandas")


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (np.array([1, 2, 3], np.int16), [1, 2, 3]),
        (np.array([1.5, NAN, 2.5], np.float32), [1.5, NAN, 2.5]),
        (np.array(["a", "b", "c"]), ["a", "b", "c"]),
        (np.array(["2013-01-01"] * 3, "datetime64[us]"), [datetime(2013, 1, 1)] * 3),
        (pd.Series([1, 2, 3], index=[7, 8, 9]), [1, 2, 3]),
        (pd.Series([1.5, NAN, None]), [1.5, None, None]),
        (pd.Series([1, None, 3], dtype="Int64"), [1, None, 3]),
        (pa.array([1, None, 3]), [1, None, 3]),
        (UNION, [1, "b", 3]),
        (pa.chunked_array([[1.5], [NAN, None]]), [1.5, NAN, None]),
        (pa.array([{"a": 1}, None, {"a": 2}]), [{"a": 1}, None, {"a": 2}]),
        (pa.array([[("k", 1)], None, []], MAP), [{"k": 1}, None, {}]),
        (pa.array([{"m": [("k", 1)]}, None, {}], pa.struct({"m": MAP})), [{"m": {"k": 1}}, None, {"m": None}]),
        (pa.chunked_array([[[("k", 1)], None], [[]]], MAP), [{"k": 1}, None, {}]),
        (np.array(["2013-01-01", "NaT", "9999-01-01"], "M8[us]"), [datetime(2013, 1, 1), None, datetime(9999, 1, 1)]),
        (np.array(["2013-01-01", "NaT", "2014"], "M8[ns]"), [pd.Timestamp(2013, 1, 1), None, pd.Timestamp(2014, 1, 1)]),
        (np.array([1000, "NaT", 0], "m8[ns]"), [pd.Timedelta(timedelta(0, 0, 1)), None, pd.Timedelta(timedelta(0))]),
        (np.ma.masked_array([1.5, 2.5, 3.5], [False, True, False]), [1.5, None, 3.5]),
        (np.ma.masked_array(["2013", "2014", "2015"], [0, 1, 1], "M8[ns]"), [pd.Timestamp(2013, 1, 1), None, None]),
    ],
    ids=lambda value: f"{type(value).__module__}.{type(value).__name__}",
)
async def test_the_results_of_a_group_may_be_an_array(run_groups: Any, results: Any, expected: list[Any]) -> None:
    """The values are those of Python, as from a list."""

    async def ask(values: list[str]) -> Any:
        return results

    out, _ = await run_groups(ask, ["a", "b", "c"])
    assert repr([row.result for row in out]) == repr(expected)


async def test_the_results_of_a_group_may_be_the_rows_of_an_array(run_groups: Any) -> None:
    """Embedding models return them."""

    async def embed(values: list[str]) -> Any:
        return np.arange(len(values) * 4, dtype=np.float32).reshape(len(values), 4)

    rows, calls = await run_groups(embed, ["a", "b", "c"])
    for kind in (ArrayType(FloatType()), ArrayType(DoubleType())):
        [(_, array)] = ResultWriter(kind, "UTC", calls._settings).write(rows, [row.result for row in rows])
        assert array.to_pylist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


async def test_nanoseconds_of_a_group_are_refused_where_microseconds_cannot_hold_them(run_groups: Any) -> None:
    async def at(values: list[str]) -> Any:
        return np.array(["2013-01-01T00:00:00.000001", "2013-01-01T00:00:00.000001001"], "M8[ns]")

    (exact, refused), calls = await run_groups(at, ["a", "b"], group=2, on_error="null")
    writer = ResultWriter(TimestampType(), "UTC", calls._settings)
    [(_, array)] = writer.write([exact, refused], [exact.result, refused.result])
    assert array.to_pylist() == [datetime(2013, 1, 1, microsecond=1, tzinfo=UTC), None]
    assert exact.failure is None
    assert "round it to microseconds, which Spark stores, such as value.round('us')" in str(refused.failure.exception)


@pytest.mark.parametrize(
    "results",
    [["b", "c"], np.zeros(2), np.array(3), pd.Series([1.0]), pd.DataFrame({"a": [1, 2, 3]}), pa.array([1, 2, 3, 4])],
    ids=lambda value: type(value).__name__,
)
async def test_another_number_of_results_is_refused(run_groups: Any, results: Any) -> None:
    async def ask(values: list[str]) -> Any:
        return results

    with pytest.raises((TypeError, ValueError), match="the function must return"):
        await run_groups(ask, ["a", "b", "c"])


async def test_a_result_that_is_an_exception_fails_its_row(run_groups: Any) -> None:
    async def partly(values: list[str]) -> list[Any]:
        return [LookupError(value) if value == "b" else value for value in values]

    out, _ = await run_groups(partly, ["a", "b", "c"], on_error="column")
    assert [outcome(row)[:3] for row in out] == [
        ("a", 1, None),
        (None, 1, "LookupError('b')"),
        ("c", 1, None),
    ]


async def test_with_group_split_only_the_row_that_is_refused_fails(run_groups: Any) -> None:
    async def refused(values: list[str]) -> list[Any]:
        if "b" in values:
            raise LookupError("b")
        return values

    out, calls = await run_groups(refused, ["a", "b", "c"], group_split=True, on_error="column")
    assert [outcome(row)[:3] for row in out] == [("a", 3, None), (None, 3, "LookupError('b')"), ("c", 2, None)]
    assert calls.made == 5


async def test_the_rows_of_a_group_have_equal_parts_of_its_weights(run_groups: Any) -> None:
    async def ask(values: list[int]) -> list[int]:
        settle(0.5)
        return values

    gate = Budget(6.0, weight=float)
    out, calls = await run_groups(ask, [1, 3, 4, 4], group=2, gate=gate, metadata="how", on_error="null")
    assert [row.weights for row in out] == [(2.0, 0.25), (2.0, 0.25), None, None]
    assert [row.attempts for row in out] == [1, 1, 0, 0]
    assert calls.made == 1


async def upper_of_series(name: Any) -> Any:
    return name.str.upper()


async def of_an_attribute(name: Any) -> Any:
    return name.origin.str.upper()


ONE_VALUE = "the function is called for each row with its values, not with a pandas.Series"


async def test_a_function_for_a_series_is_told_that_it_gets_a_value(run: Any) -> None:
    with pytest.raises(AttributeError, match="'str' object has no attribute 'str'") as caught:
        await run(upper_of_series, ["EWR"])
    assert ONE_VALUE in caught.value.__notes__


async def test_another_missing_attribute_has_no_note_on_series(run: Any) -> None:
    with pytest.raises(AttributeError, match="origin") as caught:
        await run(of_an_attribute, ["EWR"])
    assert ONE_VALUE not in caught.value.__notes__
