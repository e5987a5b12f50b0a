"""Loops of the operator let other tasks run, even if nothing in them suspends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock, assert_checkpoints

from tests.support import bursts_of, outputs
from trio_asyncio_io import AsyncWaitOperator, Snapshot, SnapshotElement, ordered_wait
from trio_asyncio_io._operator.tasks import SECONDS_PER_PASS, Pace
from trio_asyncio_io.testing import Recorder, Scripted

AT_ONCE = Scripted()


async def step(pace: Pace) -> bool:
    """Count a step; return whether it was a checkpoint."""
    try:
        with assert_checkpoints():
            await pace.step()
    except AssertionError:
        return False
    return True


async def test_a_checkpoint_follows_a_number_of_steps(mock_clock: MockClock) -> None:
    pace = Pace(3)
    assert [await step(pace) for _ in range(7)] == [False, False, True, False, False, True, False]


async def test_a_checkpoint_follows_a_span_of_time(mock_clock: MockClock) -> None:
    pace = Pace(100)
    checkpoints = []
    for _ in range(7):
        mock_clock.jump(SECONDS_PER_PASS / 2)
        checkpoints.append(await step(pace))
    assert checkpoints == [False, True, False, True, False, True, False]


async def test_a_task_may_run_for_half_as_long_as_the_others_ran(mock_clock: MockClock) -> None:
    class Others(trio.abc.Instrument):
        def after_io_wait(self, timeout: float) -> None:
            mock_clock.jump(20 * SECONDS_PER_PASS)

    others = Others()
    trio.lowlevel.add_instrument(others)
    pace = Pace(100)
    await pace.checkpoint()
    trio.lowlevel.remove_instrument(others)
    checkpoints = []
    for _ in range(12):
        mock_clock.jump(SECONDS_PER_PASS)
        checkpoints.append(await step(pace))
    assert checkpoints == [False] * 9 + [True] * 3


class SlowSource:
    """A source whose elements take time, but which never suspends."""

    def __init__(self, clock: MockClock, seconds: float, number: int) -> None:
        self.clock = clock
        self.seconds = seconds
        self.left = iter(range(number))

    def __iter__(self) -> Iterator[int]:
        return self

    def __aiter__(self) -> AsyncIterator[int]:
        return self

    def __next__(self) -> int:
        self.clock.jump(self.seconds)
        return next(self.left)

    async def __anext__(self) -> int:
        for value in self:
            return value
        raise StopAsyncIteration


class AsyncOnly:
    def __init__(self, source: SlowSource) -> None:
        self.source = source

    def __aiter__(self) -> AsyncIterator[int]:
        return self.source


@pytest.mark.parametrize("kind", [iter, AsyncOnly], ids=["sync", "async"])
async def test_calls_start_while_a_slow_source_is_read(async_wait: Any, mock_clock: MockClock, kind: Any) -> None:
    """With one second per element, no two elements share a scheduler pass."""
    recorder = Recorder(AT_ONCE)
    async with async_wait(kind(SlowSource(mock_clock, 1.0, 20)), recorder, timeout=100.0) as results:
        assert len([result async for result in results]) == 20
    assert max(call.started - call.value for call in recorder.calls) <= 2.0
    assert results.statistics().slot_wait_seconds <= 20.0


async def test_a_slow_source_does_not_delay_calls_beyond_their_timeout(async_wait: Any, mock_clock: MockClock) -> None:
    async def four_round_trips(value: int) -> int:
        for _ in range(4):
            await trio.lowlevel.checkpoint()
        return value

    source = iter(SlowSource(mock_clock, 0.001, 500))
    async with async_wait(source, four_round_trips, timeout=0.1, on_error="skip") as results:
        assert len([result async for result in results]) == 500


async def test_slot_wait_starts_when_the_record_arrives(mock_clock: MockClock) -> None:
    recorder = Recorder(AT_ONCE)
    async with ordered_wait(iter(SlowSource(mock_clock, 0.001, 100)), recorder, timeout=5.0) as results:
        assert len([result async for result in results]) == 100
    waits = [call.started - 0.001 * (call.value + 1) for call in recorder.calls]
    assert results.statistics().slot_wait_seconds == pytest.approx(sum(waits))


@pytest.mark.parametrize("fails", [False, True])
async def test_other_tasks_run_after_each_call_of_a_blocking_function(mock_clock: MockClock, fails: bool) -> None:
    calls = 0

    async def block(value: int) -> int:
        nonlocal calls
        calls += 1
        mock_clock.jump(1.0)
        if fails:
            raise OSError
        return value

    async with bursts_of(lambda: calls) as bursts:
        await outputs(ordered_wait(range(50), block, capacity=1, timeout=10.0, on_error="skip"))
    assert calls == 50
    assert max(bursts) <= 2


async def test_a_function_that_sleeps_needs_no_additional_checkpoint(autojump_clock: MockClock) -> None:
    """The worker continues in the same scheduler pass, so the next call starts before other tasks run."""
    events: list[Any] = []

    async def function(value: int) -> int:
        events.append(("start", value))
        await trio.sleep(1.0)
        trio.lowlevel.current_trio_token().run_sync_soon(events.append, ("pass", value))
        events.append(("end", value))
        return value

    async with ordered_wait(range(3), function, capacity=1, timeout=10.0) as results:
        assert [result async for result in results] == [0, 1, 2]
    ends = [events.index(("end", value)) for value in range(2)]
    assert [events[end + 1] for end in ends] == [("start", 1), ("start", 2)]


async def test_other_tasks_run_while_elements_are_restored_or_skipped() -> None:
    """Elements with results pass through the feeder and the emitter only."""
    number = 8_000
    snapshot = Snapshot(tuple(SnapshotElement(each, each, []) for each in range(number)), taken=number)
    operator = AsyncWaitOperator(AT_ONCE, timeout=5.0, buffer=number, restore=snapshot)
    async with bursts_of(lambda: -len(operator.snapshot())) as bursts, operator:
        operator.end_input()
        assert [output async for output in operator.output] == []
    assert max(bursts) <= 2 * 1_000  # Trio runs the tasks of a scheduler pass in random order
