"""The bridge: passes rows to the operator in another thread, and returns them with their results."""

from __future__ import annotations

import asyncio
import gc
import threading
import traceback
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import trio

import udfs._spark_thread.bridge
import udfs._trio_thread.room
from tests.support import PATIENCE
from trio_asyncio_io import AsyncWaitOperator
from udfs._pyspark_worker import HangUpError, WorkerConnection
from udfs._spark_thread.bridge import TaskOperator, WaitLimit, enrich
from udfs._trio_thread.runtime import Runtime

NOBODY: list[str] = []
CONNECTED = WorkerConnection(Any, None)


@pytest.fixture(autouse=True)
def _nothing_left(tasks_of_the_loop: Any) -> Iterator[None]:
    yield
    assert tasks_of_the_loop() == NOBODY


def values(chunks: Any) -> list[Any]:
    return [row.result for chunk in chunks for row in chunk]


async def double(value: int) -> int:
    return 2 * value


def test_every_row_comes_out_with_its_result(rows: Any, settings: Any) -> None:
    chunks = enrich(iter([rows([1, 2, 3]), rows([4, 5], 1)]), settings(double))
    out = [(row.batch, row.index, row.inputs, row.result) for chunk in chunks for row in chunk]
    assert out == [(0, 0, (1,), 2), (0, 1, (2,), 4), (0, 2, (3,), 6), (1, 0, (4,), 8), (1, 1, (5,), 10)]


def test_no_rows_cause_no_calls(settings: Any) -> None:
    assert values(enrich(iter([]), settings(double))) == []
    assert values(enrich(iter([[], []]), settings(double))) == []


def test_empty_batches_are_skipped(rows: Any, settings: Any) -> None:
    assert values(enrich(iter([[], rows([1]), [], rows([2]), []]), settings(double))) == [2, 4]


def test_a_call_of_the_next_batch_starts_while_one_of_this_batch_still_runs(rows: Any, settings: Any) -> None:
    """The first row of each batch completes only after the last row of the next has started."""
    started = [trio.Event() for _ in range(6)]

    async def meet(value: int) -> int:
        started[value].set()
        if value + 3 < len(started):
            await started[value + 3].wait()
        return value

    batches = [rows([0, 1], 0), rows([2, 3], 1), rows([4, 5], 2)]
    assert values(enrich(iter(batches), settings(meet, capacity=6))) == list(range(6))


@pytest.mark.parametrize(
    ("nbytes", "options", "most"),
    [(2**20, {"capacity": 2, "buffer": 5}, 4), (24, {"capacity": 100}, 2)],
    ids=["rows of the buffer", "bytes of three rows"],
)
def test_the_next_batch_is_read_exactly_when_the_unfinished_batches_are_below_the_limit(
    rows: Any,
    settings: Any,
    gate: Any,
    monkeypatch: pytest.MonkeyPatch,
    *,
    nbytes: int,
    options: dict[str, int],
    most: int,
) -> None:
    monkeypatch.setattr(udfs._spark_thread.bridge, "BUFFER_BYTES", nbytes)
    limit_is_reached = gate()
    out = 0
    unfinished_when_read = []

    def batches() -> Iterator[Any]:
        for number in range(10):
            unfinished_when_read.append(2 * number - out)
            if 2 * number == most:
                limit_is_reached.open()
            yield rows([0, 1], number)

    async def wait(value: int) -> int:
        await limit_is_reached.wait()
        return value

    for chunk in enrich(batches(), settings(wait, **options)):
        out += len(chunk)
    assert unfinished_when_read[: most // 2 + 1] == [*range(0, most + 1, 2)]  # no row had come out yet
    assert max(unfinished_when_read) <= most
    assert out == 20


def test_a_batch_larger_than_the_buffer_is_the_only_one_that_is_held(rows: Any, settings: Any) -> None:
    out = 0
    unfinished_when_read = []

    def batches() -> Iterator[Any]:
        for number in range(4):
            unfinished_when_read.append(100 * number - out)
            yield rows(range(100), number)

    for chunk in enrich(batches(), settings(double, capacity=1, buffer=7)):
        out += len(chunk)
    assert max(unfinished_when_read) < 7
    assert out == 400


def test_a_batch_with_too_many_bytes_is_read_when_no_other_is_unfinished(
    rows: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(udfs._spark_thread.bridge, "BUFFER_BYTES", 1)
    assert values(enrich(iter([rows([n, n]) for n in range(5)]), settings(double))) == [0, 0, 2, 2, 4, 4, 6, 6, 8, 8]


def last_first(count: int) -> Any:
    """A function whose calls with 0 to count - 1 run at once and complete in descending order."""
    done = [trio.Event() for _ in range(count)]

    async def call(value: int) -> int:
        if value + 1 < count:
            await done[value + 1].wait()
            await trio.testing.wait_all_tasks_blocked()  # until the previous row has been emitted
        done[value].set()
        return value

    return call


@pytest.mark.parametrize(("mode", "expected"), [("ordered", [0, 1, 2]), ("unordered", [2, 1, 0])])
def test_the_order_is_that_of_the_mode(rows: Any, settings: Any, mode: str, expected: list[int]) -> None:
    batches = [rows([0]), rows([1, 2], 1)]
    assert values(enrich(iter(batches), settings(last_first(3), mode=mode))) == expected


def test_no_row_crosses_a_watermark(rows: Any, settings: Any) -> None:
    """The first row makes a watermark, and so does the fourth, which advances event time by more than the bound."""
    times = [0, 1, 2, 20, 20]
    chunks = enrich(iter([rows(range(5), 0, times)]), settings(last_first(5), mode="unordered", delay=5))
    assert values(chunks) == [0, 3, 2, 1, 4]


def test_watermarks_alone_make_no_chunk(rows: Any, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last watermark follows the end of the input, which may be long after the last row."""
    for module in (udfs._spark_thread.bridge, udfs._trio_thread.room):
        monkeypatch.setattr(module, "CHUNK_ROWS", 1)
    chunks = enrich(iter([rows([1, 2], 0, [5, 50])]), settings(double, mode="unordered", delay=1))
    assert [len(chunk) for chunk in chunks] == [1, 1]


async def fail_on_two(value: int) -> int:
    if value == 2:
        raise ValueError("two is too many")
    return value


def test_the_users_exception_is_raised_unchanged_and_names_the_row(rows: Any, settings: Any) -> None:
    with pytest.raises(ValueError, match="two is too many") as caught:
        values(enrich(iter([rows([0, 1, 2, 3])]), settings(fail_on_two)))
    assert caught.value.__notes__ == ["element 2, row (2), attempt 1"]


def test_the_traceback_has_no_frames_of_the_loop(rows: Any, settings: Any) -> None:
    with pytest.raises(ValueError, match="too many") as caught:
        values(enrich(iter([rows([2])]), settings(fail_on_two)))
    names = [entry.name for entry in caught.traceback]
    assert names[-1] == "fail_on_two"
    assert set(names[names.index("enrich") : -1]) <= {"enrich", "last_chunks", "chunks_until"}  # of Spark's thread


def test_a_failure_cancels_the_other_calls_and_waits_until_they_have_unwound(rows: Any, settings: Any) -> None:
    started, unwound = [], []

    async def call(value: int) -> int:
        if value == 2:
            raise ValueError("two is too many")
        started.append(value)
        try:
            await trio.sleep_forever()
        finally:
            unwound.append(value)

    with pytest.raises(ValueError, match="two is too many"):
        values(enrich(iter([rows([0, 1, 2, 3])]), settings(call)))
    assert sorted(unwound) == sorted(started)


@pytest.mark.parametrize("on_error", ["null", "column"])
def test_a_row_that_failed_comes_out_in_its_place_with_its_failure(rows: Any, settings: Any, on_error: str) -> None:
    chunks = enrich(iter([rows([1, 2, 3])]), settings(fail_on_two, on_error=on_error))
    out = [row for chunk in chunks for row in chunk]
    assert [row.result for row in out] == [1, None, 3]
    assert [row.failure is None for row in out] == [True, False, True]
    assert repr(out[1].failure.exception) == "ValueError('two is too many')"


def test_closing_the_generator_cancels_the_calls_and_waits_until_they_have_unwound(rows: Any, settings: Any) -> None:
    started, unwound = [], []
    all_hang = trio.Event()

    async def call(value: int) -> int:
        if value == 0:
            await all_hang.wait()
            return value
        started.append(value)
        if len(started) == 3:
            all_hang.set()
        try:
            await trio.sleep_forever()
        finally:
            unwound.append(value)

    chunks = enrich(iter([rows([0, 1, 2, 3])]), settings(call))
    assert [row.result for row in next(chunks)] == [0]
    assert unwound == []
    chunks.close()
    assert sorted(unwound) == [1, 2, 3]


def test_closing_waits_for_a_limited_time(
    rows: Any, settings: Any, gate: Any, tasks_of_the_loop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(udfs._spark_thread.bridge, "STOP_SECONDS", 0.01)
    stubborn = gate()

    async def call(value: int) -> int:
        if value == 1:
            with trio.CancelScope(shield=True):
                await stubborn.wait()
        return value

    with closing(enrich(iter([rows([0, 1])]), settings(call))) as chunks:
        next(chunks)
        stubborn.wait_until_reached()
    assert tasks_of_the_loop() != NOBODY
    stubborn.open()
    while tasks_of_the_loop():
        pass  # each call is a scheduler pass


def test_an_exception_of_the_input_is_raised_unchanged_and_cancels_the_calls(
    rows: Any, settings: Any, gate: Any
) -> None:
    running, unwound = gate(), []

    def batches() -> Iterator[Any]:
        yield rows([0])
        running.wait_until_reached()
        raise OSError("the shuffle file is gone")

    async def call(value: int) -> int:
        try:
            await running.wait()
        finally:
            unwound.append(value)
        return value

    with pytest.raises(OSError, match="the shuffle file is gone"):
        values(enrich(batches(), settings(call)))
    assert unwound == [0]


def test_a_hang_up_of_spark_cancels_the_calls_and_wakes_sparks_thread(
    rows: Any, settings: Any, gate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung_up, unwound = gate(), []
    monkeypatch.setattr(WorkerConnection, "of_task", lambda: CONNECTED)
    monkeypatch.setattr(udfs._spark_thread.bridge, "until_hangup", lambda connection: hung_up.wait())

    async def call(value: int) -> int:
        hung_up.open()
        try:
            await trio.sleep_forever()
        finally:
            unwound.append(value)

    with pytest.raises(HangUpError, match="closed the connection"):
        values(enrich(iter([rows([0])]), settings(call)))
    assert unwound == [0]


async def never(connection: Any) -> None:
    await trio.sleep_forever()


def test_the_watch_ends_with_the_task(rows: Any, settings: Any, gate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkerConnection, "of_task", lambda: CONNECTED)
    monkeypatch.setattr(udfs._spark_thread.bridge, "until_hangup", never)
    assert values(enrich(iter([rows([1])]), settings(double))) == [2]


@pytest.mark.parametrize("on_error", ["raise", "null", "column"])
def test_a_function_on_asyncio_fails_the_task_with_the_name_of_the_adapter(
    rows: Any, settings: Any, on_error: str
) -> None:
    """Whatever `on_error` is, because no row can succeed."""

    async def sleep(value: int) -> None:
        await asyncio.sleep(0.1)

    with pytest.raises(RuntimeError, match="no running event loop") as caught:
        values(enrich(iter([rows([1])]), settings(sleep, on_error=on_error)))
    assert any("trio_asyncio_io.adapters.from_asyncio(function)" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
@pytest.mark.parametrize("count", [1, 3])
def test_a_base_exception_fails_the_task(rows: Any, settings: Any, kind: type[BaseException], count: int) -> None:
    """Also if several calls raise at the same time."""

    async def leave(value: int) -> int:
        raise kind("over and out")

    before = Runtime.current()
    with pytest.raises(kind, match="over and out") as caught:
        values(enrich(iter([rows(range(count))]), settings(leave)))
    assert [entry.name for entry in caught.traceback][-1] == "leave"
    assert Runtime.current() is before


def test_a_function_that_cancels_the_operator_fails_the_task(rows: Any, settings: Any) -> None:
    """The operator ends without an error then, and Spark's thread would wait for its rows forever."""

    async def cancel(value: int) -> int:
        trio.lowlevel.current_task().parent_nursery.cancel_scope.cancel()
        return await double(value)

    with pytest.raises(RuntimeError, match="cancel has cancelled its operator: cancel only scopes that it has opened"):
        values(enrich(iter([rows([1, 2])]), settings(cancel)))


def test_the_death_of_the_loop_is_reported_and_the_next_task_gets_a_new_loop(rows: Any, settings: Any) -> None:
    async def kill(value: int) -> int:
        Runtime.current().soon(_crash)
        await trio.sleep_forever()

    before = Runtime.current()
    with pytest.raises(trio.TrioInternalError) as caught:
        values(enrich(iter([rows([1])]), settings(kill)))
    assert "the loop crashes" in "".join(traceback.format_exception(caught.value))
    assert Runtime.current() is not before
    assert values(enrich(iter([rows([1])]), settings(double))) == [2]


def test_the_death_of_the_loop_while_spark_reads_the_input_is_reported(rows: Any, settings: Any) -> None:
    """The task calls into the loop before it reads its outbox."""

    def batches() -> Iterator[Any]:
        yield rows([1])
        thread = next(thread for thread in threading.enumerate() if thread.name == "udfs-trio")
        Runtime.current().soon(_crash)
        thread.join(PATIENCE)
        yield rows([2], 1)

    with pytest.raises(trio.TrioInternalError):
        values(enrich(batches(), settings(trio.sleep)))


def _crash() -> None:
    raise AssertionError("the loop crashes")


def test_the_source_is_closed_even_if_the_buffer_is_full(rows: Any, settings: Any, gate: Any) -> None:
    """Otherwise the garbage collector would warn about its generators."""
    hanging = gate()

    async def call(value: int) -> int:
        if value:
            await hanging.wait()
        return value

    chunks = enrich(
        iter([rows(range(30), 0, range(30))]), settings(call, capacity=2, buffer=2, mode="unordered", delay=5)
    )
    next(chunks)
    hanging.wait_until_reached()
    chunks.close()
    gc.collect()


def test_chunks_are_not_larger_than_the_limit(rows: Any, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (udfs._spark_thread.bridge, udfs._trio_thread.room):
        monkeypatch.setattr(module, "CHUNK_ROWS", 3)
    sizes = [len(chunk) for chunk in enrich(iter([rows(range(100))]), settings(double))]
    assert max(sizes) == 3
    assert sum(sizes) == 100


def test_each_chunk_is_flushed_before_waiting_for_the_next(
    rows: Any, settings: Any, gate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second row completes only after the first has left the output buffer."""
    first_has_left = gate()
    monkeypatch.setattr(WorkerConnection, "flush", lambda self: first_has_left.open())

    async def call(value: int) -> int:
        if value:
            await first_has_left.wait()
        return value

    chunks = enrich(iter([rows([0, 1])]), settings(call))
    assert [[row.result for row in chunk] for chunk in chunks] == [[0], [1]]


def test_a_chunk_waits_for_no_more_rows_than_earlier_chunks_had(
    rows: Any, settings: Any, gate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regardless of the time limit of a chunk: the first two rows are sent alone, the next two together."""
    monkeypatch.setattr(udfs._spark_thread.bridge, "LINGER_SECONDS", PATIENCE)
    gates = [gate() for _ in range(4)]

    async def call(value: int) -> int:
        await gates[value].wait()
        return value

    chunks = enrich(iter([rows(range(4))]), settings(call))
    sizes = []
    for opened in ([0], [1], [2, 3]):
        for number in opened:
            gates[number].open()
        sizes.append(len(next(chunks)))
    assert sizes == [1, 1, 2]
    assert list(chunks) == []


SPENT = 0.0  # seconds, so that no test waits for the end of its budget


def until(gate: Any, batch: Any) -> Iterator[Any]:
    """An input that ends when a call waits at the gate."""
    yield batch
    gate.wait_until_reached()


def test_a_spent_budget_leaves_max_unfinished_rows_and_cancels_their_calls(rows: Any, settings: Any) -> None:
    unwound: list[int] = []

    async def call(value: int) -> int:
        if value < 3:
            try:
                await trio.sleep_forever()
            finally:
                unwound.append(value)
        return value

    chunks = enrich(
        iter([rows(range(5)), rows(range(5, 10), 1)]), settings(call, mode="unordered"), WaitLimit(SPENT, 3)
    )
    assert sorted(values(chunks)) == list(range(3, 10))
    assert sorted(unwound) == [0, 1, 2]


def test_after_its_budget_a_task_continues_until_max_unfinished_rows_are_left(
    rows: Any, settings: Any, gate: Any
) -> None:
    """Four stragglers are one too many: the task waits until one of them completes."""
    fourth = gate()

    async def call(value: int) -> int:
        if value < 3:
            await trio.sleep_forever()
        if value == 3:
            await fourth.wait()
        return value

    def release() -> Iterator[Any]:
        yield rows(range(6))
        threading.Thread(target=lambda: (fourth.wait_until_reached(), held.append(len(out)), fourth.open())).start()

    held: list[int] = []
    out: list[int] = []
    for chunk in enrich(release(), settings(call, mode="unordered"), WaitLimit(SPENT, 3)):
        out += [row.result for row in chunk]
    assert sorted(out) == [3, 4, 5]
    assert held[0] < len(out)


def test_all_batches_are_read_after_the_budget_is_spent(
    rows: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are not read in this micro-batch would be lost. No limit waits for calls that are to be cancelled."""
    monkeypatch.setattr(udfs._spark_thread.bridge, "BUFFER_BYTES", 1)
    read: list[int] = []

    def batches() -> Iterator[Any]:
        for number in range(5):
            read.append(number)
            yield rows([number], number)

    async def call(value: int) -> None:
        await trio.sleep_forever()

    assert values(enrich(batches(), settings(call, mode="unordered", capacity=1, buffer=1), WaitLimit(SPENT, 5))) == []
    assert read == [0, 1, 2, 3, 4]


def test_a_budget_that_is_spent_while_the_operator_ends_is_no_failure(
    rows: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cancellation leaves the operator's block in a group then."""
    operator = TaskOperator(settings(double, mode="keyed"))
    leave = AsyncWaitOperator.__aexit__

    async def cancelled_leave(*arguments: Any) -> Any:
        operator._scope.cancel()
        return await leave(*arguments)

    monkeypatch.setattr(AsyncWaitOperator, "__aexit__", cancelled_leave)
    with closing(operator):
        operator.send(rows([1, 2]))
        operator._runtime.soon(operator._inbox.close)
        assert operator._has_ended.wait(PATIENCE)
        assert values(operator.chunks_until(operator._unfinished + 1)) == [2, 4]


def test_a_budget_that_is_not_spent_ends_with_the_last_row(rows: Any, settings: Any) -> None:
    assert values(enrich(iter([rows([1, 2])]), settings(double), WaitLimit(PATIENCE, 100))) == [2, 4]


def test_a_call_that_returns_although_it_is_cancelled_comes_out(rows: Any, settings: Any, gate: Any) -> None:
    running = gate()

    async def call(value: int) -> int:
        try:
            await running.wait()
        except trio.Cancelled:
            pass
        return value

    chunks = enrich(until(running, rows([1])), settings(call, mode="unordered"), WaitLimit(SPENT, 1))
    assert values(chunks) == [1]


def test_a_call_that_fails_while_it_is_cancelled_fails_the_task(rows: Any, settings: Any, gate: Any) -> None:
    running = gate()

    async def call(value: int) -> None:
        try:
            await running.wait()
        finally:
            raise ValueError("the rollback failed")

    with pytest.raises(ValueError, match="the rollback failed"):
        values(enrich(until(running, rows([1])), settings(call, mode="unordered"), WaitLimit(SPENT, 1)))


def test_unfinished_keyed_rows_are_the_last_ones_of_their_keys(rows: Any, settings: Any) -> None:
    async def call(value: int) -> int:
        if value == 3:
            await trio.sleep_forever()
        return value

    made = rows(range(6))
    for row in made:
        row.key = (row.inputs[0] % 2,)
    out = values(enrich(iter([made]), settings(call, mode="keyed"), WaitLimit(SPENT, 2)))
    assert [value for value in out if value % 2] == [1]
    assert [value for value in out if value % 2 == 0] == [0, 2, 4]


def test_a_keyed_row_without_a_call_remains_behind_an_unfinished_one_of_its_key(rows: Any, settings: Any) -> None:
    async def call(value: int) -> int:
        if value == 1:
            await trio.sleep_forever()
        return value

    made = rows([1, None, 2, None])
    for row, key in zip(made, "aabb", strict=True):
        row.key = (key,)
    finished = enrich(iter([made]), settings(call, mode="keyed", skip_nulls=True), WaitLimit(SPENT, 2))
    assert [row.index for chunk in finished for row in chunk] == [2, 3]


def test_the_last_chunk_has_the_totals_although_the_end_of_the_input_is_not_yet_known(rows: Any, settings: Any) -> None:
    """With a buffer of one row, Spark's thread reads on only when the row before has come out."""
    made = settings(double, capacity=1, buffer=1, has_metrics=True)
    found = [row for chunk in enrich(iter([rows([1]), rows([2], 1), rows([3], 2)]), made) for row in chunk]
    assert [row.totals and row.totals[0].done for row in found] == [1, 2, 3]
