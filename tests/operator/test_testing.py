"""The public helpers for tests of users' functions."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_asyncio_io import AsyncFunction, NotAsyncError, ordered_wait
from trio_asyncio_io.testing import Recorder, Scripted, Step, fails_first


async def outcome_of(function: Any, value: Any) -> Any:
    try:
        return await function(value)
    except Exception as error:  # noqa: BLE001 - the test inspects it
        return error


async def test_an_unscripted_call_returns_its_argument_after_one_checkpoint(autojump_clock: MockClock) -> None:
    with trio.testing.assert_checkpoints():
        assert await Scripted()("a") == "a"
    assert trio.current_time() == 0.0


async def test_a_step_waits_and_returns_its_result(autojump_clock: MockClock) -> None:
    function = Scripted({"a": Step(2.5, result=None)}, default=Step(1.0))
    assert await function("a") is None
    assert trio.current_time() == 2.5
    assert await function("b") == "b"
    assert trio.current_time() == 3.5


async def test_a_step_with_an_error_waits_and_raises(autojump_clock: MockClock) -> None:
    error = OSError("busy")
    assert await outcome_of(Scripted(default=Step(2.0, error=error)), "a") is error
    assert trio.current_time() == 2.0


async def test_an_error_type_is_raised_as_a_new_instance_each_time() -> None:
    function = Scripted(default=Step(error=OSError))
    first, second = await outcome_of(function, "a"), await outcome_of(function, "a")
    assert type(first) is type(second) is OSError
    assert first is not second


async def test_the_steps_of_a_value_run_in_order_and_the_last_one_repeats() -> None:
    function = Scripted({"a": [Step(result=1), Step(result=2)]}, default=Step(result=0))
    assert [await function(value) for value in "abaab"] == [1, 0, 2, 2, 0]


async def test_the_first_calls_can_be_scripted_whatever_their_values() -> None:
    function = Scripted({"a": Step(result="of a")}, calls=[Step(result=1), Step(result=2)])
    assert [await function("a") for _ in range(3)] == [1, 2, "of a"]


@pytest.mark.parametrize("value", [["a"], {"a": 1}, ("a", ["b"])])
async def test_a_value_that_cannot_be_a_key_takes_the_default_step(value: Any) -> None:
    function = Scripted({"a": Step(result="of a")}, default=Step(result="default"))
    assert [await function(value), await function("a")] == ["default", "of a"]


@pytest.mark.parametrize("attempts", [0, 1, 2])
async def test_fails_first_raises_exactly_that_many_times(attempts: int) -> None:
    error = OSError("busy")
    function = Scripted({"a": fails_first(attempts, error, then=Step(result="done"))})
    assert [await outcome_of(function, "a") for _ in range(attempts + 2)] == [error] * attempts + ["done"] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, OSError), "attempts must be at least 0, got -1"),
        ((2, None), "error must be an exception, or a type of exceptions, got None"),
        ((2, OSError, 3), r"then must be a Step such as Step\(0.1, result=3\), got 3"),
    ],
)
def test_an_argument_of_fails_first_that_does_not_fit_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        fails_first(*arguments)


def test_a_value_without_a_step_is_refused() -> None:
    with pytest.raises(ValueError, match=r"values\['a'\] must have at least one step, got \[\]"):
        Scripted({"b": Step(), "a": []})


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ({"values": {"a": 3}}, "values['a']"),
        ({"values": {"a": [3]}}, "values['a']"),
        ({"calls": [3]}, "calls"),
        ({"default": 3}, "default"),
    ],
)
def test_a_result_in_the_place_of_a_step_is_refused(script: Any, name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{re.escape(name)} must have steps such as Step\(0\.1, .*\), got \[?3"):
        Scripted(**script)


@pytest.mark.parametrize("error", ["busy", str])
def test_an_error_that_cannot_be_raised_is_refused(error: Any) -> None:
    with pytest.raises(TypeError, match=r"^error must be an exception, or a type of exceptions, got "):
        Step(error=error)


@pytest.mark.parametrize("latency", [-1.0, math.nan])
def test_an_invalid_latency_is_refused(latency: float) -> None:
    with pytest.raises(ValueError, match=f"latency must be seconds, not negative and not NaN, got {latency}"):
        Step(latency)


async def test_an_infinite_latency_ends_only_by_cancellation(autojump_clock: MockClock) -> None:
    with trio.move_on_after(1e6) as scope:
        await Scripted(default=Step(math.inf))("a")
    assert scope.cancelled_caught


async def test_a_recorder_passes_on_values_results_and_errors() -> None:
    error = OSError("busy")
    recorder = Recorder(Scripted({"b": Step(error=error)}, default=Step(result="result")))
    assert await recorder("a") == "result"
    assert await outcome_of(recorder, "b") is error
    assert recorder.values == ["a", "b"]


def test_the_repr_of_a_recorder_has_its_function() -> None:
    assert repr(Recorder(trio.sleep)).startswith("Recorder(<function sleep")


async def test_a_function_that_is_not_async_raises_the_same_error_in_a_recorder(autojump_clock: MockClock) -> None:
    recorder: Recorder[Any, Any] = Recorder(len)  # type: ignore[arg-type]
    with pytest.raises(NotAsyncError, match="returned 1, which cannot be awaited"):
        await recorder("a")
    assert isinstance(recorder.calls[0].error, NotAsyncError)


async def test_a_recorder_records_the_instants_of_each_call(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": Step(1.0), "b": Step(2.0, error=OSError)}))
    await trio.sleep(0.5)
    await recorder("a")
    await outcome_of(recorder, "b")
    assert [(call.value, call.started, call.ended) for call in recorder.calls] == [("a", 0.5, 1.5), ("b", 1.5, 3.5)]


async def test_a_recorder_counts_running_calls_and_their_peak(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": Step(1.0), "b": Step(2.0)}))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(recorder, "a")
        nursery.start_soon(recorder, "b")
        await wait_all_tasks_blocked()
        assert (recorder.running, recorder.peak_running) == (2, 2)
        assert [call.ended for call in recorder.calls] == [None, None]
        await trio.sleep(1.5)
        assert (recorder.running, recorder.peak_running) == (1, 2)
    assert (recorder.running, recorder.peak_running, recorder.cancelled) == (0, 2, 0)


async def test_a_recorder_counts_a_cancelled_call_after_it_has_unwound(autojump_clock: MockClock) -> None:
    async def unwind_slowly(value: str) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(3.0)

    recorder = Recorder(unwind_slowly)
    with trio.move_on_after(1.0):
        await recorder("a")
    assert (recorder.running, recorder.cancelled) == (0, 1)
    assert [(call.ended, call.cancelled) for call in recorder.calls] == [(4.0, True)]


async def test_a_recorder_counts_a_cancelled_call_that_has_a_nursery(autojump_clock: MockClock) -> None:
    async def call_twice(value: str) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            await trio.sleep_forever()

    recorder = Recorder(call_twice)
    async with ordered_wait(["a", "b"], recorder, timeout=1.0, on_error="skip") as results:
        assert [result async for result in results] == []
    assert recorder.cancelled == 2
    assert [call.cancelled for call in recorder.calls] == [True, True]


async def test_a_recorder_has_the_optional_methods_of_its_function(autojump_clock: MockClock) -> None:
    events: list[str] = []

    class Lookup(AsyncFunction[str, str]):
        async def open(self) -> None:
            events.append("open")

        async def invoke(self, value: str) -> str:
            await trio.sleep(5.0 if value == "late" else 0.5)
            return value.upper()

        async def timeout(self, value: str) -> str:
            return "too late"

        async def close(self) -> None:
            events.append("close")

    recorder = Recorder(Lookup())
    async with ordered_wait(["a", "late"], recorder, timeout=1.0) as results:
        assert [result async for result in results] == ["A", "too late"]
    assert events == ["open", "close"]
    assert [(call.value, call.result, call.cancelled) for call in recorder.calls] == [
        ("a", "A", False),
        ("late", None, True),
    ]


async def test_several_arguments_are_recorded_as_a_tuple(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({("a", 1): Step(error=KeyError("a"))}, default=Step(result="here")))
    assert await recorder("b", 2) == "here"
    with pytest.raises(KeyError):
        await recorder("a", 1)
    assert recorder.values == [("b", 2), ("a", 1)]
    assert isinstance(recorder.calls[1].error, KeyError)
