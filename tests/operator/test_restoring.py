"""Snapshots of a running operator, and runs that restore them."""

from __future__ import annotations

import math
import pickle
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support import outputs
from trio_asyncio_io import (
    AsyncWaitOperator,
    FixedDelay,
    Snapshot,
    SnapshotElement,
    StreamRecord,
    Watermark,
    assign_watermarks,
    keyed_wait,
    ordered_wait,
    unordered_wait,
)
from trio_asyncio_io.testing import Recorder, Scripted, Step, fails_first

AT_ONCE = Scripted()
NEVER = Scripted(default=Step(math.inf))


async def interrupted(received: int, make: Callable[..., Any], source: Any) -> tuple[list[Any], Snapshot]:
    """Receive some outputs; return them and the snapshot taken after them, pickled and unpickled."""
    async with make(source) as results:
        out = [await results.receive() for _ in range(received)]
        return out, pickle.loads(pickle.dumps(results.snapshot()))


def held(snapshot: Snapshot) -> list[tuple[Any, Any]]:
    return [(each.element, each.results) for each in snapshot.elements]


SOURCE = [
    StreamRecord("a", 1),
    StreamRecord("b", 2),
    Watermark(2),
    Watermark(3),
    StreamRecord("c", 4),
    StreamRecord("d", 5),
    StreamRecord("e", 6),
    Watermark(6),
    StreamRecord("f", 7),
]
LATENCIES = {"a": Step(2.0), "b": Step(1.0), "c": Step(2.0), "d": Step(3.0), "e": Step(0.5), "f": Step(1.0)}


@pytest.mark.parametrize("received", range(len(SOURCE) + 1))
@pytest.mark.parametrize("limits", [{"capacity": 4}, {"capacity": 1, "buffer": 1}])
async def test_received_and_restored_outputs_equal_those_of_an_undisturbed_run(
    autojump_clock: MockClock, received: int, limits: dict[str, int]
) -> None:
    def make(source: Any, **options: Any) -> Any:
        return ordered_wait(source, Scripted(LATENCIES), timeout=5.0, **options)

    source = iter(SOURCE)
    first, snapshot = await interrupted(received, lambda source: make(source, capacity=4), source)
    rest = await outputs(make(source, restore=snapshot, **limits))
    assert first + rest == SOURCE


@pytest.mark.parametrize("received", range(len(SOURCE) + 1))
async def test_in_unordered_mode_they_are_equal_within_segments(autojump_clock: MockClock, received: int) -> None:
    def make(source: Any, **options: Any) -> Any:
        return unordered_wait(source, Scripted(LATENCIES), timeout=5.0, **options)

    source = iter(SOURCE)
    first, snapshot = await interrupted(received, lambda source: make(source, capacity=4), source)
    out = first + await outputs(make(source, restore=snapshot, capacity=2, buffer=2))
    assert [out[2:4], out[7]] == [SOURCE[2:4], SOURCE[7]]
    assert sorted(each.value for each in out[:2]) == ["a", "b"]
    assert sorted(each.value for each in out[4:7]) == ["c", "d", "e"]
    assert out[8:] == SOURCE[8:]


@pytest.mark.parametrize("received", range(10))
async def test_in_keyed_mode_a_restored_run_keeps_the_order_of_each_key(
    autojump_clock: MockClock, received: int
) -> None:
    values = ["a0", "a1", "b0", "a2", "b1", "c0", "a3", "b2", "c1"]
    function = Scripted({value: Step((number * 5 % 7) / 2) for number, value in enumerate(values)})

    def make(source: Any, **options: Any) -> Any:
        return keyed_wait(source, function, key=lambda value: value[0], timeout=5.0, **options)

    source = iter(values)
    first, snapshot = await interrupted(received, lambda source: make(source, capacity=4), source)
    out = first + await outputs(make(source, restore=snapshot, capacity=2, buffer=3))
    for key in "abc":
        assert [value for value in out if value[0] == key] == [value for value in values if value[0] == key]


@pytest.mark.parametrize("received", range(9))
async def test_a_partly_received_flattened_element_is_resumed(
    async_wait: Any, autojump_clock: MockClock, received: int
) -> None:
    recorder = Recorder(Scripted({value: Step(1.0, result=[(value, row) for row in range(3)]) for value in range(3)}))

    def make(source: Any, **options: Any) -> Any:
        return async_wait(source, recorder, timeout=5.0, flatten=True, capacity=1, buffer=3, **options)

    source = iter(range(3))
    first, snapshot = await interrupted(received, make, source)
    rest = await outputs(make(source, restore=snapshot))
    assert first + rest == [(value, row) for value in range(3) for row in range(3)]


async def test_a_snapshot_has_completed_results_so_no_call_is_repeated(
    autojump_clock: MockClock,
) -> None:
    recorder = Recorder(Scripted({"a": Step(3.0)}, default=Step(1.0)))
    async with ordered_wait("abcd", recorder, timeout=5.0, capacity=3) as results:
        await trio.sleep(1.5)
        snapshot = results.snapshot()
    assert held(snapshot) == [("a", None), ("b", ["b"]), ("c", ["c"]), ("d", None)]
    assert await outputs(ordered_wait([], recorder, timeout=5.0, restore=snapshot)) == list("abcd")
    assert recorder.values == ["a", "b", "c", "d", "a", "d"]


async def test_a_snapshot_has_the_element_that_waits_for_room(async_wait: Any) -> None:
    source = iter("abcd")
    async with async_wait(source, NEVER, timeout=5.0, capacity=1, buffer=2) as results:
        await wait_all_tasks_blocked()
        snapshot = results.snapshot()
        assert held(snapshot) == [("a", None), ("b", None), ("c", None)]
        assert [each.sequence for each in snapshot.elements] == [0, 1, 2]
    assert sorted(await outputs(async_wait(source, AT_ONCE, timeout=5.0, restore=snapshot))) == list("abcd")


async def test_a_snapshot_has_the_watermark_that_waits_for_room(async_wait: Any) -> None:
    source = iter([Watermark(number) for number in range(9)])
    async with async_wait(source, NEVER, timeout=5.0, capacity=1, buffer=2) as results:
        await wait_all_tasks_blocked()
        snapshot = results.snapshot()
    assert held(snapshot) == [(Watermark(number), None) for number in range(3)]
    out = await outputs(async_wait(source, NEVER, timeout=5.0, capacity=1, buffer=1, restore=snapshot))
    assert out == [Watermark(number) for number in range(9)]


async def test_a_snapshot_is_synchronous_and_stops_nothing(async_wait: Any, autojump_clock: MockClock) -> None:
    async with async_wait(range(20), Scripted(default=Step(1.0)), timeout=5.0, capacity=2) as results:
        out = []
        async for result in results:
            out.append(result)
            before = trio.current_time()
            assert len(results.snapshot()) == 20 - len(out)
            assert trio.current_time() == before
    assert len(out) == 20


async def test_a_snapshot_can_be_taken_during_a_restore(async_wait: Any, autojump_clock: MockClock) -> None:
    first = Snapshot(tuple(SnapshotElement(number, number) for number in range(10)))
    source = iter([10, 11])
    options = {"timeout": 5.0, "capacity": 1, "buffer": 2}
    async with async_wait(source, AT_ONCE, restore=first, **options) as results:
        assert held(results.snapshot()) == [(number, None) for number in range(10)]
        assert await results.receive() == 0
        await wait_all_tasks_blocked()
        second = results.snapshot()
        assert held(second) == [(1, [1]), (2, [2]), *((number, None) for number in range(3, 10))]
    assert await outputs(async_wait(source, AT_ONCE, restore=second, **options)) == list(range(1, 12))


async def test_restored_records_precede_those_of_the_source(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0)))
    snapshot = Snapshot((SnapshotElement(5, "x"), SnapshotElement(9, Watermark(1)), SnapshotElement(11, "y")))
    out = await outputs(async_wait("ab", recorder, timeout=5.0, capacity=1, restore=snapshot))
    assert out == ["x", Watermark(1), "y", "a", "b"]
    assert recorder.values == ["x", "y", "a", "b"]


async def test_restored_records_precede_those_that_are_put(make_operator: Any, autojump_clock: MockClock) -> None:
    snapshot = Snapshot(tuple(SnapshotElement(number, f"old {number}") for number in range(5)))
    operator = make_operator(AT_ONCE, timeout=5.0, capacity=1, buffer=2, restore=snapshot)
    async with operator, trio.open_nursery() as nursery:
        with pytest.raises(trio.WouldBlock):
            operator.put_nowait("new")
        nursery.start_soon(operator.put, "new")
        out = [await operator.output.receive() for _ in range(6)]
    assert out == [f"old {number}" for number in range(5)] + ["new"]


async def test_without_new_input_the_output_ends_after_the_restored_records(make_operator: Any) -> None:
    snapshot = Snapshot(tuple(SnapshotElement(number, number) for number in range(5)))
    async with make_operator(AT_ONCE, timeout=5.0, capacity=1, buffer=1, restore=snapshot) as operator:
        operator.end_input()
        assert [result async for result in operator.output] == list(range(5))


async def test_a_restored_result_is_emitted_with_its_timestamp_and_without_a_call(async_wait: Any) -> None:
    snapshot = Snapshot((SnapshotElement(0, StreamRecord("a", 7), ["A", "AA"]), SnapshotElement(1, "b", [])))
    recorder = Recorder(AT_ONCE)
    out = await outputs(async_wait([], recorder, timeout=5.0, restore=snapshot))
    assert out == [StreamRecord("A", 7), StreamRecord("AA", 7)]
    assert recorder.calls == []


async def test_restored_elements_without_outputs_fit_the_smallest_buffer(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    snapshot = Snapshot(tuple(SnapshotElement(number, number, []) for number in range(5)))
    with trio.fail_after(60.0):
        out = await outputs(async_wait("a", AT_ONCE, timeout=5.0, capacity=1, buffer=1, restore=snapshot))
    assert out == ["a"]


async def test_a_restored_record_has_a_new_deadline_and_starts_at_attempt_one(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    function = Scripted({"a": [Step(1.0, error=OSError), Step(math.inf)]})
    async with async_wait("a", function, timeout=4.0, retry=FixedDelay(3, 0.0)) as results:
        await trio.sleep(3.0)
        snapshot = results.snapshot()
    error = OSError("still busy")
    recorder = Recorder(Scripted({"a": fails_first(3, error, then=Step(3.5, error=error))}))
    began = trio.current_time()
    with pytest.raises(OSError, match="still busy") as caught:
        await outputs(async_wait([], recorder, timeout=4.0, retry=FixedDelay(3, 0.0), restore=snapshot))
    assert caught.value.__notes__ == ["element 0, 'a', attempt 4 of 4"]
    assert trio.current_time() == began + 3.5


async def test_a_repaired_run_resumes_from_the_snapshot_of_a_failed_one(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    async def receive_all() -> None:
        nonlocal results
        async with operator as results:
            async for result in results:
                received.append(result)

    source = iter(range(20))
    received: list[int] = []
    results: Any = None
    broken = Scripted({7: Step(1.0, error=OSError("busy"))}, default=Step(1.0))
    operator = async_wait(source, broken, timeout=5.0, capacity=3, buffer=6)
    with pytest.raises(OSError, match="busy"):
        await receive_all()
    snapshot = pickle.loads(pickle.dumps(results.snapshot()))
    assert 7 in [each.element for each in snapshot.elements]
    received += await outputs(async_wait(source, Scripted(default=Step(1.0)), timeout=5.0, restore=snapshot))
    assert sorted(received) == list(range(20))


async def test_the_snapshot_of_a_cancelled_run_is_complete(async_wait: Any, autojump_clock: MockClock) -> None:
    source = iter(range(20))
    received = []
    with trio.move_on_after(3.5):
        async with async_wait(source, Scripted(default=Step(1.0)), timeout=5.0, capacity=2, buffer=4) as results:
            async for result in results:
                received.append(result)  # noqa: PERF401 - what was received before counts
    received += await outputs(async_wait(source, AT_ONCE, timeout=5.0, restore=results.snapshot()))
    assert sorted(received) == list(range(20))


async def test_a_snapshot_with_several_consumers_is_complete(async_wait: Any, autojump_clock: MockClock) -> None:
    received: list[int] = []

    async def consume(results: Any) -> None:
        async for result in results:
            received.append(result)
            await trio.sleep(0.75)

    source = iter(range(30))
    operator = async_wait(source, Scripted(default=Step(1.0)), timeout=5.0, capacity=3, buffer=5)
    async with operator as results, trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(consume, results)
        await trio.sleep(4.25)
        snapshot = results.snapshot()
        nursery.cancel_scope.cancel()
    received += await outputs(async_wait(source, AT_ONCE, timeout=5.0, restore=snapshot))
    assert sorted(received) == list(range(30))


async def test_the_snapshot_of_an_operator_not_yet_entered_is_the_restored_one() -> None:
    snapshot = Snapshot((SnapshotElement(0, "a", ["A"]), SnapshotElement(1, "b")))
    assert AsyncWaitOperator(NEVER, timeout=5.0, restore=snapshot).snapshot() == snapshot


async def test_an_empty_snapshot_restores_nothing(async_wait: Any) -> None:
    assert await outputs(async_wait("a", AT_ONCE, timeout=5.0, restore=Snapshot())) == ["a"]


async def test_an_exception_of_the_key_function_for_a_restored_record_is_raised_unchanged() -> None:
    snapshot = Snapshot((SnapshotElement(0, "a"), SnapshotElement(1, 5), SnapshotElement(2, "b")))
    operator = AsyncWaitOperator(NEVER, mode="keyed", key=len, timeout=5.0, restore=snapshot)
    with pytest.raises(TypeError, match="has no len"):
        async with operator:
            await trio.sleep_forever()
    assert [each.element for each in operator.snapshot().elements] == ["a", 5, "b"]


def with_watermarks(values: Any) -> Any:
    return assign_watermarks(values, timestamp=lambda value: value, max_out_of_orderness=0)


class _Numbers:
    """An async source that is not a generator, so it need not be closed."""

    def __init__(self, values: list[int]) -> None:
        self._left = iter(values)

    def __aiter__(self) -> AsyncIterator[int]:
        return self

    async def __anext__(self) -> int:
        await trio.lowlevel.checkpoint()
        for value in self._left:
            return value
        raise StopAsyncIteration


@asynccontextmanager
async def closed_at_the_end(source: Any) -> AsyncIterator[Any]:
    yield source
    if hasattr(source, "aclose"):
        await source.aclose()


@pytest.mark.parametrize("source_of", [list, _Numbers], ids=["sync", "async"])
@pytest.mark.parametrize("buffer", [1, 2, 5])
async def test_skipping_taken_elements_loses_and_repeats_no_record_with_assigned_watermarks(
    async_wait: Any, autojump_clock: MockClock, source_of: Any, buffer: int
) -> None:
    """In three runs, each of which reads the source again."""
    values = list(range(12))
    records: list[int] = []
    snapshot = Snapshot()
    for received in (5, 6, math.inf):
        options = {"timeout": 5.0, "capacity": 1, "buffer": buffer, "restore": snapshot}
        async with (
            closed_at_the_end(with_watermarks(source_of(values[snapshot.taken :]))) as source,
            async_wait(source, AT_ONCE, **options) as results,
        ):
            count = 0
            async for output in results:
                count += 1
                if isinstance(output, StreamRecord):
                    records.append(output.value)
                if count == received:
                    break
        snapshot = pickle.loads(pickle.dumps(results.snapshot()))
    assert records == values
    assert snapshot.taken == len(values)


async def test_watermarks_of_the_source_itself_count_as_taken(async_wait: Any, autojump_clock: MockClock) -> None:
    first, snapshot = await interrupted(
        5, partial(async_wait, function=AT_ONCE, timeout=5.0, capacity=1, buffer=1), SOURCE
    )
    rest = await outputs(async_wait(SOURCE[snapshot.taken :], AT_ONCE, timeout=5.0, restore=snapshot))
    assert first + rest == SOURCE
