"""Typical mistakes: each message says what is wrong and what to do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
import trio

from tests.support import outputs
from trio_asyncio_io import AsyncWaitOperator, FixedDelay, ordered_wait
from trio_asyncio_io.testing import Scripted

ENTER_FIRST = "^enter the operator first: `async with ordered_wait"


async def sleeps(value: Any) -> None:
    await asyncio.sleep(0.01)


async def yields(value: Any) -> None:
    await asyncio.sleep(0)


async def async_for(wait: Any) -> None:
    async for _ in wait:
        pass


async def with_block(wait: Any) -> None:
    with wait:
        pass


async def as_list(wait: Any) -> None:
    list(wait)


async def awaited(wait: Any) -> None:
    await wait


@pytest.mark.parametrize("use", [async_for, with_block, as_list, awaited])
async def test_an_operator_without_async_with_is_refused(async_wait: Any, use: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=ENTER_FIRST):
        await use(async_wait([1], Scripted(), timeout=5.0))


async def test_a_plain_loop_over_the_results_is_refused(async_wait: Any) -> None:
    async with async_wait([1], Scripted(), timeout=5.0) as results:
        with pytest.raises(TypeError, match=r"^receive the results with `async for"):
            list(results)


async def test_the_results_of_one_operator_can_still_be_the_source_of_another(async_wait: Any) -> None:
    async with async_wait([1, 2], Scripted(), timeout=5.0) as results:
        assert sorted(await outputs(async_wait(results, Scripted(), timeout=5.0))) == [1, 2]


def test_a_misspelt_option_has_a_suggestion(async_wait: Any) -> None:
    with pytest.raises(TypeError, match=r"_wait got an unexpected .* 'capcity': did you mean 'capacity'\?$"):
        async_wait([1], Scripted(), timeout=5.0, capcity=10)


def test_an_unknown_option_of_the_operator_lists_all() -> None:
    options: Any = {"attempts": 3}
    with pytest.raises(TypeError, match=r"^AsyncWaitOperator got .* 'attempts': use mode, timeout, .*, retry, "):
        AsyncWaitOperator(Scripted(), timeout=5.0, **options)


def test_a_mode_that_contradicts_the_operator_is_refused() -> None:
    options: Any = {"mode": "unordered"}
    with pytest.raises(TypeError, match=r"^ordered_wait got an unexpected keyword argument 'mode'"):
        ordered_wait([1], Scripted(), timeout=5.0, **options)


def test_a_coroutine_instead_of_a_function_is_refused(async_wait: Any) -> None:
    coroutine: Any = sleeps(1)
    with pytest.raises(TypeError, match=r"give the function itself, without calling it$"):
        async_wait([1], coroutine, timeout=5.0)
    coroutine.close()


@pytest.mark.parametrize("retry", [None, FixedDelay(1, delay=0.0)])
@pytest.mark.parametrize("function", [sleeps, yields])
async def test_an_asyncio_function_fails_with_the_name_of_its_adapter(
    async_wait: Any, function: Any, retry: Any
) -> None:
    with pytest.raises((RuntimeError, TypeError), match=r"no running event loop|asyncio") as caught:
        await outputs(async_wait([1], function, timeout=5.0, retry=retry))
    assert "adapters.from_asyncio(function)" in caught.value.__notes__[0]


async def test_a_dead_letter_of_an_asyncio_function_names_the_adapter(async_wait: Any) -> None:
    async with async_wait([1], sleeps, timeout=5.0, on_error="dead_letter") as results:
        assert [result async for result in results] == []
        (dead,) = [each async for each in results.dead_letters]
    assert "adapters.from_asyncio(function)" in dead.error.__notes__[0]


async def test_an_asyncio_function_of_groups_fails_with_the_name_of_its_adapter(async_wait: Any) -> None:
    with pytest.raises(RuntimeError, match="no running event loop") as caught:
        await outputs(async_wait([1, 2], sleeps, timeout=5.0, group=2))
    assert any("adapters.from_asyncio(function)" in note for note in caught.value.__notes__)


async def blocking(value: Any) -> Any:
    time.sleep(0.02)  # noqa: ASYNC251 - the mistake
    return value


async def waiting(value: Any) -> Any:
    await trio.sleep(0.02)
    return value


async def test_a_function_that_blocks_the_loop_is_logged(async_wait: Any, caplog: pytest.LogCaptureFixture) -> None:
    await outputs(async_wait(range(20), blocking, timeout=5.0))
    (record,) = caplog.records
    assert record.name == "trio_asyncio_io"
    assert "blocking at 0x" in record.message
    assert "adapters.in_thread" in record.message
    assert "BlockedLoop()" in record.message


@pytest.mark.parametrize("capacity", [1, 10])
async def test_a_function_that_waits_is_not_logged(
    async_wait: Any, autojump_clock: Any, caplog: pytest.LogCaptureFixture, capacity: int
) -> None:
    await outputs(async_wait(range(20), waiting, timeout=5.0, capacity=capacity))
    assert not caplog.records


async def test_a_function_is_not_logged_if_the_source_is_slow(
    async_wait: Any, autojump_clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def source() -> Any:
        for number in range(20):
            await trio.sleep(1.0)
            yield number

    await outputs(async_wait(source(), waiting, timeout=5.0))
    assert not caplog.records
