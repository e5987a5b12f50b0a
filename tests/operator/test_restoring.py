"""Runs that restore a snapshot."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.support import outputs, receive_and_snapshot
from trio_asyncio_io import (
    AsyncWaitOperator,
    FixedDelay,
    Snapshot,
    SnapshotElement,
    StreamRecord,
    Watermark,
    keyed_wait,
    ordered_wait,
    unordered_wait,
)
from trio_asyncio_io.testing import Recorder, Scripted, Step, fails_first

AT_ONCE = Scripted()
NEVER = Scripted(default=Step(math.inf))


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
    first, snapshot = await receive_and_snapshot(received, lambda source: make(source, capacity=4), source)
    rest = await outputs(make(source, restore=snapshot, **limits))
    assert first + rest == SOURCE


@pytest.mark.parametrize("received", range(len(SOURCE) + 1))
async def test_in_unordered_mode_they_are_equal_within_segments(autojump_clock: MockClock, received: int) -> None:
    def make(source: Any, **options: Any) -> Any:
        return unordered_wait(source, Scripted(LATENCIES), timeout=5.0, **options)

    source = iter(SOURCE)
    first, snapshot = await receive_and_snapshot(received, lambda source: make(source, capacity=4), source)
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
    first, snapshot = await receive_and_snapshot(received, lambda source: make(source, capacity=4), source)
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
    first, snapshot = await receive_and_snapshot(received, make, source)
    rest = await outputs(make(source, restore=snapshot))
    assert first + rest == [(value, row) for value in range(3) for row in range(3)]


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


async def test_an_empty_snapshot_restores_nothing(async_wait: Any) -> None:
    assert await outputs(async_wait("a", AT_ONCE, timeout=5.0, restore=Snapshot())) == ["a"]


async def test_an_exception_of_the_key_function_for_a_restored_record_is_raised_unchanged() -> None:
    snapshot = Snapshot((SnapshotElement(0, "a"), SnapshotElement(1, 5), SnapshotElement(2, "b")))
    operator = AsyncWaitOperator(NEVER, mode="keyed", key=len, timeout=5.0, restore=snapshot)
    with pytest.raises(TypeError, match="has no len"):
        async with operator:
            await trio.sleep_forever()
    assert [each.element for each in operator.snapshot().elements] == ["a", 5, "b"]
