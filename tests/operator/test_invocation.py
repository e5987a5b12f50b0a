"""The invocation: the deadline, and what is made of an element whose call was too slow or raised."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from trio_asyncio_io import (
    AsyncFunction,
    ElementTimeoutError,
    FixedDelay,
    NotAsyncError,
    StreamRecord,
    ordered_wait,
)
from trio_asyncio_io.testing import Recorder, Scripted, Step

NEVER = Step(math.inf)


async def outputs(operator: Any) -> list[Any]:
    async with operator as results:
        return [result async for result in results]


async def outputs_at(operator: Any) -> list[tuple[Any, float]]:
    """Each output with the instant at which it was received."""
    async with operator as results:
        return [(result, trio.current_time()) async for result in results]


# The deadline.


async def test_at_the_deadline_the_running_attempt_is_cancelled(wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=NEVER))
    with pytest.raises(ElementTimeoutError) as caught:
        await outputs(wait(["a"], recorder, timeout=2.0))
    assert trio.current_time() == 2.0
    assert (recorder.cancelled, recorder.running) == (1, 0)
    assert caught.value.timeout == 2.0
    assert str(caught.value) == "the function gave no result for 'a' within its timeout of 2 s"


async def test_on_timeout_is_asked_once_the_attempt_has_unwound_and_only_then_is_the_slot_free(
    wait: Any, autojump_clock: MockClock
) -> None:
    async def tidy(value: str) -> str:
        try:
            await trio.sleep(math.inf if value == "a" else 1.0)
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(3.0)
        return value

    recorder = Recorder(tidy)
    on_timeout = Recorder(Scripted(default=Step(1.0, result="late")))
    out = await outputs(wait("ab", recorder, timeout=2.0, capacity=1, on_timeout=on_timeout))
    assert out == ["late", "b"]
    assert [(call.started, call.ended) for call in recorder.calls] == [(0.0, 5.0), (6.0, 10.0)]
    assert [(call.value, call.started, call.ended) for call in on_timeout.calls] == [("a", 5.0, 6.0)]


async def test_a_function_that_swallows_the_cancellation_and_returns_has_given_its_result(
    wait: Any, autojump_clock: MockClock
) -> None:
    async def stubborn(value: str) -> str:
        with trio.move_on_after(1000):
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                return value.upper()
        raise AssertionError

    async with wait("abc", stubborn, timeout=2.0, capacity=1) as results:
        out = [(result, trio.current_time()) async for result in results]
    assert out == [("A", 2.0), ("B", 4.0), ("C", 6.0)]
    assert (results.statistics().completed, results.statistics().timed_out) == (3, 0)


async def test_a_shielded_function_that_is_late_has_given_its_result_too(wait: Any, autojump_clock: MockClock) -> None:
    async def shielded(value: str) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(5.0)
        return value.upper()

    assert await outputs_at(wait("ab", shielded, timeout=2.0, capacity=1)) == [("A", 5.0), ("B", 10.0)]


async def test_a_result_at_the_very_deadline_comes_out_once_or_times_out_once(
    wait: Any, autojump_clock: MockClock
) -> None:
    on_timeout = Recorder(Scripted(default=Step(result="late")))
    async with wait(range(50), Scripted(default=Step(2.0)), timeout=2.0, on_timeout=on_timeout) as results:
        out = [result async for result in results]
    statistics = results.statistics()
    assert len(out) == 50
    assert statistics.completed + statistics.timed_out == 50
    assert out.count("late") == len(on_timeout.calls) == statistics.timed_out


async def test_waiting_for_a_slot_is_not_counted(wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(3.0)))
    out = await outputs_at(wait("abc", recorder, timeout=4.0, capacity=1))
    assert out == [("a", 3.0), ("b", 6.0), ("c", 9.0)]
    assert recorder.cancelled == 0


async def test_the_deadline_covers_all_attempts_and_backoffs(wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0, error=OSError)))
    with pytest.raises(ElementTimeoutError):
        await outputs(wait(["a"], recorder, timeout=6.5, retry=FixedDelay(100, 2.0)))
    assert trio.current_time() == 6.5
    assert [(call.started, call.ended) for call in recorder.calls] == [(0.0, 1.0), (3.0, 4.0), (6.0, 6.5)]


async def test_the_deadline_may_strike_in_a_backoff(wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0, error=OSError)))
    with pytest.raises(ElementTimeoutError):
        await outputs(wait(["a"], recorder, timeout=5.0, retry=FixedDelay(100, 8.0)))
    assert trio.current_time() == 5.0
    assert (len(recorder.calls), recorder.cancelled) == (1, 0)


async def test_no_timeout_is_no_deadline(wait: Any, autojump_clock: MockClock) -> None:
    assert await outputs_at(wait(["a"], Scripted(default=Step(1e6)), timeout=math.inf)) == [("a", 1e6)]


async def test_with_a_timeout_of_zero_a_call_may_not_wait(wait: Any, autojump_clock: MockClock) -> None:
    async def quick(value: str) -> str:
        return value.upper()

    assert await outputs(wait("ab", quick, timeout=0)) == ["A", "B"]
    recorder = Recorder(Scripted(default=NEVER))
    assert await outputs(wait("ab", recorder, timeout=0, on_error="skip")) == []
    assert recorder.cancelled == 2
    assert trio.current_time() == 0.0


async def test_a_timeout_is_not_retried(wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=NEVER))
    assert await outputs(wait(["a"], recorder, timeout=2.0, retry=FixedDelay(3, 0.5), on_error="skip")) == []
    assert len(recorder.calls) == 1


async def test_a_function_that_fails_while_it_is_being_cancelled_has_failed(
    wait: Any, autojump_clock: MockClock
) -> None:
    error = OSError("could not say goodbye")

    async def rude(value: str) -> str:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise error from None
        raise AssertionError

    with pytest.raises(OSError, match="goodbye") as caught:
        await outputs(wait(["a"], rude, timeout=2.0))
    assert caught.value is error


# on_timeout.


async def test_on_timeout_gives_the_result_in_place_with_its_timestamp(autojump_clock: MockClock) -> None:
    source = [StreamRecord("a", 1), StreamRecord("b", 2), StreamRecord("c", 3)]
    on_timeout = Scripted(default=Step(result="late"))
    async with ordered_wait(source, Scripted({"b": NEVER}), timeout=2.0, on_timeout=on_timeout) as results:
        out = [result async for result in results]
    assert out == [StreamRecord("a", 1), StreamRecord("late", 2), StreamRecord("c", 3)]
    statistics = results.statistics()
    assert (statistics.completed, statistics.timed_out, statistics.failed) == (2, 1, 0)


class Slow(AsyncFunction[str, str]):
    async def invoke(self, value: str) -> str:
        await trio.sleep_forever()
        raise AssertionError

    async def timeout(self, value: str) -> str:
        return f"late {value}"


async def test_the_timeout_method_of_an_object_is_its_on_timeout(wait: Any, autojump_clock: MockClock) -> None:
    assert await outputs(wait(["a"], Slow(), timeout=2.0)) == ["late a"]


async def test_the_option_goes_before_the_method(wait: Any, autojump_clock: MockClock) -> None:
    on_timeout = Scripted(default=Step(result="option"))
    assert await outputs(wait(["a"], Slow(), timeout=2.0, on_timeout=on_timeout)) == ["option"]


async def test_an_attribute_named_timeout_that_cannot_be_called_is_not_asked(
    wait: Any, autojump_clock: MockClock
) -> None:
    class Client:
        timeout = 5.0

        async def invoke(self, value: str) -> str:
            await trio.sleep_forever()
            raise AssertionError

    with pytest.raises(ElementTimeoutError):
        await outputs(wait(["a"], Client(), timeout=2.0))


async def test_on_timeout_has_one_timeout_of_its_own(wait: Any, autojump_clock: MockClock) -> None:
    on_timeout = Recorder(Scripted(default=NEVER))
    with pytest.raises(ElementTimeoutError, match="on_timeout gave no result for 'a' within its timeout of 2 s"):
        await outputs(wait(["a"], Scripted(default=NEVER), timeout=2.0, on_timeout=on_timeout))
    assert trio.current_time() == 4.0
    assert on_timeout.cancelled == 1


async def test_what_on_timeout_raises_goes_to_on_error(wait: Any, autojump_clock: MockClock) -> None:
    error = OSError("no fallback")
    asked: list[Any] = []

    async def on_error(value: str, exception: Exception) -> str:
        asked.append((value, exception))
        return "rescued"

    on_timeout = Scripted(default=Step(error=error))
    operator = wait(["a"], Scripted(default=NEVER), timeout=2.0, on_timeout=on_timeout, on_error=on_error)
    assert await outputs(operator) == ["rescued"]
    assert asked == [("a", error)]


async def test_an_on_timeout_that_is_not_async_is_told(wait: Any, autojump_clock: MockClock) -> None:
    with pytest.raises(NotAsyncError, match="returned 'A'"):
        await outputs(wait(["a"], Scripted(default=NEVER), timeout=2.0, on_timeout=str.upper, on_error="skip"))


# on_error.


async def test_an_error_goes_out_as_itself_with_a_note_of_element_and_attempt(
    wait: Any, autojump_clock: MockClock
) -> None:
    error = OSError("busy")
    with pytest.raises(OSError, match="busy") as caught:
        await outputs(wait("ab", Scripted({"b": Step(error=error)}), timeout=2.0))
    assert caught.value is error
    assert error.__notes__ == ["element 1, 'b', attempt 1"]


async def test_skip_leaves_the_element_out_and_counts_it(wait: Any, autojump_clock: MockClock) -> None:
    function = Scripted({"b": Step(error=OSError), "c": NEVER})
    async with wait("abcd", function, timeout=2.0, on_error="skip") as results:
        assert sorted([result async for result in results]) == ["a", "d"]
    statistics = results.statistics()
    assert (statistics.completed, statistics.failed, statistics.timed_out) == (2, 1, 1)
    assert (statistics.skipped, statistics.emitted, statistics.buffered) == (2, 2, 0)


async def test_on_error_gives_the_result_in_place_and_gets_the_value_and_the_exception(
    autojump_clock: MockClock,
) -> None:
    async def on_error(value: str, exception: Exception) -> str:
        await trio.sleep(1.0)
        return f"{value}: {exception}"

    source = [StreamRecord("a", 1), StreamRecord("b", 2)]
    function = Scripted({"a": Step(error=OSError("busy"))})
    out = await outputs(ordered_wait(source, function, timeout=2.0, on_error=on_error))
    assert out == [StreamRecord("a: busy", 1), StreamRecord("b", 2)]


async def test_on_error_runs_in_the_slot_of_its_element(wait: Any, autojump_clock: MockClock) -> None:
    async def on_error(value: str, exception: Exception) -> str:
        await trio.sleep(1.5)
        return value

    recorder = Recorder(Scripted({"a": Step(1.0, error=OSError)}))
    await outputs(wait("ab", recorder, timeout=2.0, capacity=1, on_error=on_error))
    assert [call.started for call in recorder.calls] == [0.0, 2.5]


async def test_on_error_gets_the_timeout_error_and_one_timeout_of_its_own(wait: Any, autojump_clock: MockClock) -> None:
    asked: list[Any] = []

    async def on_error(value: str, exception: Exception) -> None:
        asked.append((trio.current_time(), type(exception)))
        await trio.sleep_forever()

    with pytest.raises(ElementTimeoutError, match="on_error gave no result for 'a'") as caught:
        await outputs(wait(["a"], Scripted(default=NEVER), timeout=2.0, on_error=on_error))
    assert asked == [(2.0, ElementTimeoutError)]
    assert trio.current_time() == 4.0
    assert caught.value.__notes__ == ["element 0, 'a', attempt 1"]


async def test_on_timeout_and_on_error_have_a_timeout_each(wait: Any, autojump_clock: MockClock) -> None:
    async def on_error(value: str, exception: Exception) -> str:
        await trio.sleep(1.5)
        return "rescued"

    operator = wait(["a"], Scripted(default=NEVER), timeout=2.0, on_timeout=Scripted(default=NEVER), on_error=on_error)
    assert await outputs_at(operator) == [("rescued", 5.5)]


@pytest.mark.parametrize("same", [True, False], ids=["the one it got", "another one"])
async def test_what_on_error_raises_goes_out_as_itself_with_the_note(
    wait: Any, autojump_clock: MockClock, same: bool
) -> None:
    first, second = OSError("busy"), ValueError("worse")
    expected = first if same else second

    async def on_error(value: str, exception: Exception) -> None:
        raise expected

    with pytest.raises(type(expected)) as caught:
        await outputs(wait(["a"], Scripted(default=Step(error=first)), timeout=2.0, on_error=on_error))
    assert caught.value is expected
    assert expected.__notes__ == ["element 0, 'a', attempt 1"]


async def test_a_function_that_is_not_async_is_told_whatever_on_error_says(wait: Any) -> None:
    async def on_error(value: str, exception: Exception) -> None:
        raise AssertionError

    for option in ("raise", "skip", on_error):
        with pytest.raises(NotAsyncError, match=r"in_thread") as caught:
            await outputs(wait("a", str.upper, timeout=2.0, on_error=option, retry=FixedDelay(3, 0.0)))
        assert caught.value.__notes__ == ["element 0, 'a', attempt 1 of 4"]


async def test_an_on_error_that_is_not_async_is_told(wait: Any) -> None:
    def on_error(value: str, exception: Exception) -> str:
        return value

    with pytest.raises(NotAsyncError, match=r"on_error.*returned 'a'"):
        await outputs(wait("a", Scripted(default=Step(error=OSError)), timeout=2.0, on_error=on_error))


# Whatever is awaitable.


async def test_a_call_may_give_any_awaitable(wait: Any) -> None:
    class Later:
        def __await__(self) -> Iterator[Any]:
            return Scripted()("result").__await__()

    def call(value: str) -> Awaitable[str]:
        return Later()

    assert await outputs(wait(["a"], call, timeout=2.0)) == ["result"]


async def test_an_exception_before_there_is_an_awaitable_is_one_of_the_element(wait: Any) -> None:
    error = ValueError("bad value")

    def call(value: str) -> Awaitable[str]:
        raise error

    with pytest.raises(ValueError, match="bad value") as caught:
        await outputs(wait(["a"], call, timeout=2.0))
    assert caught.value is error
    assert await outputs(wait(["a"], call, timeout=2.0, on_error="skip")) == []


# flatten.


@pytest.mark.parametrize("as_iterable", [list, tuple, iter, set, lambda values: (value for value in values)])
async def test_a_flattened_result_is_any_number_of_outputs_side_by_side(
    autojump_clock: MockClock, as_iterable: Any
) -> None:
    function = Scripted({value: Step(3.0 - value, result=as_iterable(["x"] * value)) for value in range(3)})
    async with ordered_wait(range(3), function, timeout=5.0, flatten=True) as results:
        assert len([result async for result in results]) == (2 if as_iterable is set else 3)
    assert results.statistics().completed == 3


async def test_outputs_of_one_element_stay_side_by_side_in_every_mode(wait: Any, autojump_clock: MockClock) -> None:
    function = Scripted({value: Step(1.0 + value % 3, result=[value] * 30) for value in range(9)})
    out = await outputs(wait(range(9), function, timeout=5.0, flatten=True, capacity=4, buffer=4))
    groups = [out[start : start + 30] for start in range(0, len(out), 30)]
    assert sorted(groups) == [[value] * 30 for value in range(9)]


async def test_each_output_has_the_timestamp_of_its_record(wait: Any) -> None:
    function = Scripted(default=Step(result=["x", "y"]))
    out = await outputs(wait([StreamRecord("a", 7)], function, timeout=5.0, flatten=True))
    assert out == [StreamRecord("x", 7), StreamRecord("y", 7)]


async def test_a_flattened_result_that_is_no_iterable_is_an_error_of_the_element(wait: Any) -> None:
    function = Scripted({"a": Step(result=3), "b": Step(result=["x"])})
    with pytest.raises(TypeError, match="with flatten=True a result is an iterable of outputs, got 3") as caught:
        await outputs(wait("ab", function, timeout=5.0, flatten=True))
    assert caught.value.__notes__ == ["element 0, 'a', attempt 1"]
    async with wait("ab", function, timeout=5.0, flatten=True, on_error="skip") as results:
        assert [result async for result in results] == ["x"]
    statistics = results.statistics()
    assert (statistics.completed, statistics.failed, statistics.skipped) == (1, 1, 1)


async def test_what_an_iterable_raises_while_it_is_flattened_is_an_error_of_the_element(wait: Any) -> None:
    error = TypeError("from the middle of the rows")

    def rows() -> Iterator[int]:
        yield 1
        raise error

    with pytest.raises(TypeError, match="from the middle") as caught:
        await outputs(wait(["a"], Scripted(default=Step(result=rows())), timeout=5.0, flatten=True))
    assert caught.value is error


async def test_the_results_of_on_timeout_and_on_error_are_flattened_too(wait: Any, autojump_clock: MockClock) -> None:
    async def on_error(value: str, exception: Exception) -> list[str]:
        return ["error", value]

    function = Scripted({"a": NEVER, "b": Step(error=OSError)})
    on_timeout = Scripted(default=Step(result=["late"]))
    operator = wait("ab", function, timeout=2.0, flatten=True, on_timeout=on_timeout, on_error=on_error)
    assert sorted(await outputs(operator)) == ["b", "error", "late"]
