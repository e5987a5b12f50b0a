"""`on_timeout` and `on_error`: results of elements whose call timed out or raised."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.support import outputs
from trio_asyncio_io import AsyncFunction, ElementTimeoutError, FixedDelay, NotAsyncError, StreamRecord, ordered_wait
from trio_asyncio_io.testing import Scripted, Step

NEVER = Step(math.inf)


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
