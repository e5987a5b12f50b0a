"""The emitter: order and instants of the outputs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support import outputs, timed_outputs
from trio_asyncio_io import Watermark, keyed_wait, ordered_wait, unordered_wait
from trio_asyncio_io._operator.results import CHUNKS_PER_PASS
from trio_asyncio_io.testing import Recorder, Scripted, Step

NEVER = Step(math.inf)
LATENCIES = Scripted({"a": Step(3.0), "b": Step(1.0), "c": Step(2.0)})


async def test_ordered_outputs_wait_for_earlier_ones(autojump_clock: MockClock) -> None:
    assert await timed_outputs(ordered_wait("abc", LATENCIES, timeout=5.0)) == [("a", 3.0), ("b", 3.0), ("c", 3.0)]


async def test_unordered_outputs_do_not_wait(autojump_clock: MockClock) -> None:
    assert await timed_outputs(unordered_wait("abc", LATENCIES, timeout=5.0)) == [("b", 1.0), ("c", 2.0), ("a", 3.0)]


async def test_keyed_outputs_wait_for_their_key_only(autojump_clock: MockClock) -> None:
    operator = keyed_wait("abc", LATENCIES, timeout=5.0, key=lambda value: value in "ab")
    assert await timed_outputs(operator) == [("c", 2.0), ("a", 3.0), ("b", 4.0)]


async def test_invocations_start_behind_a_straggler_at_the_head(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({0: Step(100.0)}, default=Step(1.0)))
    out = await timed_outputs(ordered_wait(range(50), recorder, timeout=200.0, capacity=2, buffer=50))
    assert out == [(value, 100.0) for value in range(50)]
    assert [call.started for call in recorder.calls] == [0.0, *map(float, range(49))]


async def test_with_a_buffer_equal_to_the_capacity_completed_records_hold_slots_as_in_flink(
    autojump_clock: MockClock,
) -> None:
    recorder = Recorder(Scripted({0: Step(100.0)}, default=Step(1.0)))
    await timed_outputs(ordered_wait(range(6), recorder, timeout=200.0, capacity=3, buffer=3))
    assert [call.started for call in recorder.calls] == [0.0] * 3 + [100.0] * 3


async def test_a_watermark_in_an_idle_operator_is_emitted_immediately(
    make_operator: Any, autojump_clock: MockClock
) -> None:
    async with make_operator(Scripted(default=Step(1.0)), timeout=5.0) as operator:
        for timestamp in (1, 2, 2):
            await operator.put(Watermark(timestamp))
            assert await operator.output.receive() == Watermark(timestamp)
        assert trio.current_time() == 0.0
        await operator.put("a")
        await operator.put(Watermark(3))
        assert await operator.output.receive() == "a"
        assert await operator.output.receive() == Watermark(3)
        assert trio.current_time() == 1.0


async def test_an_element_may_have_ten_thousand_outputs(async_wait: Any) -> None:
    function = Scripted(default=Step(result=range(10_000)))
    out = await timed_outputs(async_wait(["a"], function, timeout=5.0, capacity=1, buffer=1, flatten=True))
    assert [result for result, _ in out] == list(range(10_000))


async def test_a_record_that_completes_while_the_emitter_pauses_has_no_negative_wait(mock_clock: MockClock) -> None:
    async def function(value: int) -> int:
        if value >= 20:
            raise ValueError
        while results.statistics().buffered > 20:  # until the emitter pauses after the skipped records
            await trio.lowlevel.checkpoint()
        mock_clock.jump(1.0)
        return value

    source = range(20 + CHUNKS_PER_PASS)
    async with unordered_wait(source, function, timeout=math.inf, buffer=len(source), on_error="skip") as results:
        assert len([result async for result in results]) == 20
    assert results.statistics().head_wait.quantile(1.0) >= 0.0


class Steps(trio.abc.Instrument):
    """Counts the steps of all tasks by the name of the task."""

    def __init__(self) -> None:
        self.by_task: Counter[str] = Counter()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.by_task[task.name] += 1


@pytest.fixture
async def steps(mock_clock: MockClock) -> AsyncIterator[Steps]:
    """On a clock that stands still, so that no step ends because of its time."""
    instrument = Steps()
    trio.lowlevel.add_instrument(instrument)
    yield instrument
    trio.lowlevel.remove_instrument(instrument)


async def one_checkpoint(value: int) -> int:
    await trio.lowlevel.checkpoint()
    return value


async def test_with_a_capacity_of_one_only_worker_and_consumer_run_for_an_element(
    async_wait: Any, steps: Steps
) -> None:
    await outputs(async_wait(range(4_000), one_checkpoint, timeout=5.0, capacity=1))
    assert steps.by_task["trio_asyncio_io emitter"] < 10
    assert steps.by_task["trio_asyncio_io feeder"] < 4_000 / 10
    assert steps.by_task.total() < 2.1 * 4_000


@pytest.mark.slow
async def test_few_workers_wait_for_a_job_while_the_source_is_fast(async_wait: Any, steps: Steps) -> None:
    """A worker that waited for each element would take more than two steps for it.

    The mean of several runs, because the order in which Trio runs tasks is random.
    """
    for _ in range(3):
        await outputs(async_wait(range(5_000), one_checkpoint, timeout=5.0, capacity=1_000))
    assert steps.by_task["trio_asyncio_io worker"] < 1.95 * 3 * 5_000


async def test_an_idle_emitter_is_not_scheduled(async_wait: Any, autojump_clock: MockClock) -> None:
    async with async_wait(["a"], Scripted(default=NEVER), timeout=math.inf):
        await wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_runnable == 0


async def test_ordered_output_reaches_the_throughput_of_littles_law_despite_stragglers(
    autojump_clock: MockClock,
) -> None:
    """One call in a hundred takes fifty times as long as the others."""
    function = Scripted({number: Step(50.0) for number in range(0, 2_000, 100)}, default=Step(1.0))
    out = await timed_outputs(ordered_wait(range(2_000), function, timeout=60.0, capacity=10))
    assert [result for result, _ in out] == list(range(2_000))
    work = 20 * 50.0 + 1_980 * 1.0
    assert work / 10 <= trio.current_time() < 1.2 * work / 10
