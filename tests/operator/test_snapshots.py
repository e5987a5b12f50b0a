"""Snapshots of a running operator: elements, results and `taken`."""

from __future__ import annotations

import math
import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support import outputs, receive_and_snapshot
from trio_asyncio_io import (
    AsyncWaitOperator,
    Snapshot,
    SnapshotElement,
    StreamRecord,
    Watermark,
    assign_watermarks,
    ordered_wait,
)
from trio_asyncio_io.testing import Recorder, Scripted, Step

AT_ONCE = Scripted()
NEVER = Scripted(default=Step(math.inf))


def held(snapshot: Snapshot) -> list[tuple[Any, Any]]:
    return [(each.element, each.results) for each in snapshot.elements]


async def test_a_snapshot_has_completed_results_so_no_call_is_repeated(autojump_clock: MockClock) -> None:
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


async def test_the_snapshot_of_an_operator_not_yet_entered_is_the_restored_one() -> None:
    snapshot = Snapshot((SnapshotElement(0, "a", ["A"]), SnapshotElement(1, "b")))
    assert AsyncWaitOperator(NEVER, timeout=5.0, restore=snapshot).snapshot() == snapshot


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
    source = [StreamRecord("a", 1), Watermark(1), StreamRecord("b", 2), Watermark(2), StreamRecord("c", 3)]
    operator = partial(async_wait, function=AT_ONCE, timeout=5.0, capacity=1, buffer=1)
    first, snapshot = await receive_and_snapshot(3, operator, source)
    rest = await outputs(async_wait(source[snapshot.taken :], AT_ONCE, timeout=5.0, restore=snapshot))
    assert first + rest == source
