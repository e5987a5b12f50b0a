"""Observers see each step of a record at its instant, and cannot harm the operator."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.observing import RECORD_HOOKS, StepRecorder
from trio_asyncio_io import FixedDelay, Observer, StreamRecord, Watermark, ordered_wait
from trio_asyncio_io.testing import Scripted, Step, fails_first


async def steps_of(
    operator_of: Any, *arguments: Any, hooks: tuple[str, ...] = RECORD_HOOKS, **options: Any
) -> list[tuple[Any, ...]]:
    recorder = StepRecorder(hooks)
    async with operator_of(*arguments, observer=recorder, **options) as results:
        async for _ in results:
            pass
    return recorder.steps


async def test_a_record_is_accepted_started_completed_and_emitted(async_wait: Any, autojump_clock: MockClock) -> None:
    record = StreamRecord("a", 7)
    assert await steps_of(async_wait, [record, Watermark(7)], Scripted(default=Step(1.5)), timeout=5.0) == [
        ("accepted", 0.0, 0, record),
        ("started", 0.0, 0, record),
        ("completed", 1.5, 0, record, 1, 1.5),
        ("emitted", 1.5, 0, record),
    ]


async def test_each_failed_attempt_is_reported(async_wait: Any, autojump_clock: MockClock) -> None:
    function = Scripted({"a": fails_first(2, OSError("no"), then=Step(1.0))})
    assert await steps_of(async_wait, "a", function, timeout=9.0, retry=FixedDelay(5, 2.0)) == [
        ("accepted", 0.0, 0, "a"),
        ("started", 0.0, 0, "a"),
        ("attempt_failed", 0.0, 0, "a", 1, "no"),
        ("attempt_failed", 2.0, 0, "a", 2, "no"),
        ("completed", 5.0, 0, "a", 3, 5.0),
        ("emitted", 5.0, 0, "a"),
    ]


async def test_an_attempt_timeout_is_a_failed_attempt(async_wait: Any, autojump_clock: MockClock) -> None:
    function = Scripted({"a": [Step(math.inf), Step(0.0)]})
    steps = await steps_of(async_wait, "a", function, timeout=9.0, retry=FixedDelay(1, 0.0, attempt_timeout=1.0))
    assert [step[0] for step in steps] == ["accepted", "started", "attempt_failed", "completed", "emitted"]


async def test_a_failure_is_reported_before_on_error_is_applied(async_wait: Any, autojump_clock: MockClock) -> None:
    assert await steps_of(
        async_wait, "a", Scripted(default=Step(1.0, error=OSError("no"))), timeout=9.0, on_error="skip"
    ) == [
        ("accepted", 0.0, 0, "a"),
        ("started", 0.0, 0, "a"),
        ("attempt_failed", 1.0, 0, "a", 1, "no"),
        ("failed", 1.0, 0, "a", 1, 1.0, "no"),
    ]


async def test_a_timeout_without_on_timeout_is_also_a_failure(async_wait: Any, autojump_clock: MockClock) -> None:
    steps = await steps_of(async_wait, "a", Scripted(default=Step(math.inf)), timeout=3.0, on_error="skip")
    assert steps[2] == ("timed_out", 3.0, 0, "a", 1, 3.0)
    assert steps[3][:6] == ("failed", 3.0, 0, "a", 1, 3.0)


async def test_a_result_of_on_timeout_is_emitted_without_a_failure(async_wait: Any, autojump_clock: MockClock) -> None:
    steps = await steps_of(async_wait, "a", Scripted(default=Step(math.inf)), timeout=3.0, on_timeout=Scripted())
    assert [step[0] for step in steps] == ["accepted", "started", "timed_out", "emitted"]


async def test_a_cancelled_invocation_is_reported(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = StepRecorder()
    async with async_wait("a", Scripted(default=Step(math.inf)), timeout=math.inf, observer=recorder):
        await trio.sleep(4.0)
    assert recorder.steps[2:] == [("cancelled", 4.0, 0, "a", 1, 4.0)]


async def test_receiving_a_dead_letter_counts_as_emitted(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = StepRecorder()
    async with async_wait(
        "a", Scripted(default=Step(error=OSError)), timeout=1.0, on_error="dead_letter", observer=recorder
    ) as results:
        await trio.sleep(5.0)
        await results.dead_letters.receive()
    assert recorder.steps[-1] == ("emitted", 5.0, 0, "a")


async def test_each_output_of_a_flattened_element_is_reported(async_wait: Any, autojump_clock: MockClock) -> None:
    steps = await steps_of(async_wait, ["xyz", ""], Scripted(), timeout=1.0, flatten=True)
    assert [step[2] for step in steps if step[0] == "emitted"] == [0, 0, 0]


async def test_a_restored_element_is_accepted_again(async_wait: Any, autojump_clock: MockClock) -> None:
    async with async_wait("ab", Scripted(default=Step(1.0)), timeout=5.0) as results:
        await trio.sleep(0.5)
        saved = results.snapshot()
    steps = await steps_of(async_wait, [], Scripted(), timeout=5.0, restore=saved)
    assert [step[2:] for step in steps if step[0] == "accepted"] == [(0, "a"), (1, "b")]


async def test_an_observer_that_raises_is_logged_once_and_the_operator_continues(
    async_wait: Any, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Observer):
        def completed(self, *arguments: Any) -> None:
            raise ZeroDivisionError

    async with async_wait("abc", Scripted(), timeout=5.0, observer=Broken()) as results:
        assert sorted([result async for result in results]) == ["a", "b", "c"]
    assert caplog.text.count("nothing more is reported to it") == 1
    assert "completed of the observer" in caplog.text


SLOT_HOOKS = ("backing_off", "retried", "slot_freed", "dequeued", "watermark_accepted", "watermark_emitted")


async def test_a_backoff_is_reported_at_its_start_and_at_its_end(async_wait: Any, autojump_clock: MockClock) -> None:
    function = Scripted({"a": fails_first(1, OSError("no"), then=Step(1.0))})
    assert await steps_of(async_wait, "a", function, hooks=SLOT_HOOKS, timeout=9.0, retry=FixedDelay(5, 2.0)) == [
        ("backing_off", 0.0, 0, "a", 1, 2.0),
        ("retried", 2.0, 0, "a", 2),
        ("slot_freed", 3.0, 0, "a"),
        ("dequeued", 3.0, 0, "a"),
    ]


@pytest.mark.parametrize(
    "function",
    [Scripted(default=Step(math.inf)), Scripted(default=Step(1.0, error=OSError))],
    ids=["cancelled", "failed"],
)
async def test_the_slot_is_freed_when_the_operator_stops(
    async_wait: Any, autojump_clock: MockClock, function: Any
) -> None:
    recorder = StepRecorder(SLOT_HOOKS)
    with trio.move_on_after(2.0), contextlib.suppress(OSError):
        async with async_wait("a", function, timeout=math.inf, observer=recorder) as results:
            await results.receive()
    assert [step[0] for step in recorder.steps] == ["slot_freed"]


async def test_a_record_leaves_the_queue_when_its_place_in_the_order_has_come(autojump_clock: MockClock) -> None:
    function = Scripted({"a": Step(3.0), "b": Step(1.0)})
    steps = await steps_of(ordered_wait, "ab", function, hooks=("dequeued",), timeout=9.0)
    assert steps == [("dequeued", 3.0, 0, "a"), ("dequeued", 3.0, 1, "b")]


async def test_a_watermark_is_reported_when_it_is_accepted_and_when_it_is_received(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    hooks = ("watermark_accepted", "watermark_emitted")
    assert await steps_of(async_wait, ["a", Watermark(7)], Scripted(default=Step(1.5)), hooks=hooks, timeout=5.0) == [
        ("watermark_accepted", 0.0, 1, Watermark(7)),
        ("watermark_emitted", 1.5, 1, Watermark(7)),
    ]


async def test_hooks_run_in_the_task_that_calls_the_function(async_wait: Any, autojump_clock: MockClock) -> None:
    tasks: dict[str, Any] = {}

    class Where(Observer):
        def started(self, *arguments: Any) -> None:
            tasks["started"] = trio.lowlevel.current_task()

        def completed(self, *arguments: Any) -> None:
            tasks["completed"] = trio.lowlevel.current_task()

    async def function(value: str) -> str:
        tasks["called"] = trio.lowlevel.current_task()
        await trio.sleep(1.0)
        return value

    async with async_wait("a", function, timeout=5.0, observer=Where()) as results:
        await results.receive()
    assert tasks["started"] is tasks["called"] is tasks["completed"]


def test_an_observer_of_another_type_is_refused(async_wait: Any) -> None:
    with pytest.raises(TypeError, match="observer must be an Observer or None, got 'me'"):
        async_wait("a", Scripted(), timeout=1.0, observer="me")
