"""`on_timeout` and `on_error`: results of elements whose call timed out or raised."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.support import outputs, timed_outputs
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


async def test_the_result_of_on_timeout_has_the_place_and_timestamp_of_its_record(autojump_clock: MockClock) -> None:
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


async def test_the_timeout_method_of_the_function_is_its_on_timeout(async_wait: Any, autojump_clock: MockClock) -> None:
    assert await outputs(async_wait(["a"], Slow(), timeout=2.0)) == ["late a"]


async def test_the_option_on_timeout_takes_precedence_over_the_method(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    on_timeout = Scripted(default=Step(result="option"))
    assert await outputs(async_wait(["a"], Slow(), timeout=2.0, on_timeout=on_timeout)) == ["option"]


async def test_an_attribute_named_timeout_that_is_not_callable_is_ignored(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    class Client:
        timeout = 5.0

        async def invoke(self, value: str) -> str:
            await trio.sleep_forever()
            raise AssertionError

    with pytest.raises(ElementTimeoutError):
        await outputs(async_wait(["a"], Client(), timeout=2.0))


async def test_on_timeout_has_its_own_timeout(async_wait: Any, autojump_clock: MockClock) -> None:
    on_timeout = Recorder(Scripted(default=NEVER))
    with pytest.raises(ElementTimeoutError, match="on_timeout gave no result for 'a' within its timeout of 2 s"):
        await outputs(async_wait(["a"], Scripted(default=NEVER), timeout=2.0, on_timeout=on_timeout))
    assert trio.current_time() == 4.0
    assert on_timeout.cancelled == 1


async def test_an_exception_of_on_timeout_is_passed_to_on_error(async_wait: Any, autojump_clock: MockClock) -> None:
    error = OSError("no fallback")
    received: list[Any] = []

    async def on_error(value: str, exception: Exception) -> str:
        received.append((value, exception))
        return "rescued"

    on_timeout = Scripted(default=Step(error=error))
    operator = async_wait(["a"], Scripted(default=NEVER), timeout=2.0, on_timeout=on_timeout, on_error=on_error)
    assert await outputs(operator) == ["rescued"]
    assert received == [("a", error)]


# on_error


async def test_skip_drops_the_element_and_counts_it(async_wait: Any, autojump_clock: MockClock) -> None:
    function = Scripted({"b": Step(error=OSError), "c": NEVER})
    async with async_wait("abcd", function, timeout=2.0, on_error="skip") as results:
        assert sorted([result async for result in results]) == ["a", "d"]
    statistics = results.statistics()
    assert (statistics.completed, statistics.failed, statistics.timed_out) == (2, 1, 1)
    assert (statistics.skipped, statistics.emitted, statistics.buffered) == (2, 2, 0)


async def test_on_error_receives_value_and_exception_and_its_result_takes_the_elements_place(
    autojump_clock: MockClock,
) -> None:
    async def on_error(value: str, exception: Exception) -> str:
        await trio.sleep(1.0)
        return f"{value}: {exception}"

    source = [StreamRecord("a", 1), StreamRecord("b", 2)]
    function = Scripted({"a": Step(error=OSError("busy"))})
    out = await outputs(ordered_wait(source, function, timeout=2.0, on_error=on_error))
    assert out == [StreamRecord("a: busy", 1), StreamRecord("b", 2)]


async def test_on_error_runs_in_its_elements_slot(async_wait: Any, autojump_clock: MockClock) -> None:
    async def on_error(value: str, exception: Exception) -> str:
        await trio.sleep(1.5)
        return value

    recorder = Recorder(Scripted({"a": Step(1.0, error=OSError)}))
    await outputs(async_wait("ab", recorder, timeout=2.0, capacity=1, on_error=on_error))
    assert [call.started for call in recorder.calls] == [0.0, 2.5]


async def test_on_error_receives_the_timeout_error_and_has_its_own_timeout(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    received: list[Any] = []

    async def on_error(value: str, exception: Exception) -> None:
        received.append((trio.current_time(), type(exception)))
        await trio.sleep_forever()

    with pytest.raises(ElementTimeoutError, match="on_error gave no result for 'a'") as caught:
        await outputs(async_wait(["a"], Scripted(default=NEVER), timeout=2.0, on_error=on_error))
    assert received == [(2.0, ElementTimeoutError)]
    assert trio.current_time() == 4.0
    assert caught.value.__notes__ == ["element 0, 'a', attempt 1"]


async def test_on_timeout_and_on_error_have_separate_timeouts(async_wait: Any, autojump_clock: MockClock) -> None:
    async def on_error(value: str, exception: Exception) -> str:
        await trio.sleep(1.5)
        return "rescued"

    operator = async_wait(
        ["a"], Scripted(default=NEVER), timeout=2.0, on_timeout=Scripted(default=NEVER), on_error=on_error
    )
    assert await timed_outputs(operator) == [("rescued", 5.5)]


@pytest.mark.parametrize("same", [True, False], ids=["the one it got", "another one"])
async def test_an_exception_of_on_error_is_raised_unchanged_with_the_note(
    async_wait: Any, autojump_clock: MockClock, same: bool
) -> None:
    first, second = OSError("busy"), ValueError("worse")
    expected = first if same else second

    async def on_error(value: str, exception: Exception) -> None:
        raise expected

    with pytest.raises(type(expected)) as caught:
        await outputs(async_wait(["a"], Scripted(default=Step(error=first)), timeout=2.0, on_error=on_error))
    assert caught.value is expected
    assert expected.__notes__ == [*([] if same else ["raised by on_error"]), "element 0, 'a', attempt 1"]


async def test_a_handler_that_is_not_async_is_named(async_wait: Any, autojump_clock: MockClock) -> None:
    steps = {"error": Step(error=OSError("busy")), "timeout": NEVER}
    for what, handler in (("error", lambda value, error: None), ("timeout", lambda value: None)):
        with pytest.raises(NotAsyncError) as caught:
            await outputs(async_wait([what], Scripted(steps), timeout=2.0, **{f"on_{what}": handler}))
        assert caught.value.__notes__ == [f"raised by on_{what}", f"element 0, '{what}', attempt 1"]


async def test_a_function_that_is_not_async_raises_not_async_error_with_any_on_error(async_wait: Any) -> None:
    async def on_error(value: str, exception: Exception) -> None:
        raise AssertionError

    for option in ("raise", "skip", on_error):
        with pytest.raises(NotAsyncError, match=r"in_thread") as caught:
            await outputs(async_wait("a", str.upper, timeout=2.0, on_error=option, retry=FixedDelay(3, 0.0)))
        assert caught.value.__notes__ == ["element 0, 'a', attempt 1 of 4"]
