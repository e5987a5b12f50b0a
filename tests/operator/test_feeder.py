"""The feeder reads sources until the buffer is full."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from itertools import count
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support import outputs, stable_id
from trio_asyncio_io import AsyncWaitOperator, Watermark
from trio_asyncio_io.testing import Scripted, Step

NEVER = Scripted(default=Step(math.inf))
AT_ONCE = Scripted()


class CountingSource:
    """An endless source that counts the elements read from it."""

    def __init__(self) -> None:
        self.read = 0


class SyncSource(CountingSource):
    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        self.read += 1
        return self.read


class AsyncSource(CountingSource):
    def __aiter__(self) -> AsyncIterator[int]:
        return self

    async def __anext__(self) -> int:
        await trio.lowlevel.checkpoint()
        self.read += 1
        return self.read


# Sources


async def async_generator(values: Any) -> AsyncIterator[Any]:
    for value in values:
        await trio.lowlevel.checkpoint()
        yield value


def memory_channel(values: Any) -> trio.MemoryReceiveChannel[Any]:
    send, receive = trio.open_memory_channel[Any](math.inf)
    for value in values:
        send.send_nowait(value)
    send.close()
    return receive


@pytest.mark.parametrize(
    "source_of",
    [list, tuple, iter, dict.fromkeys, lambda values: (value for value in values), async_generator, memory_channel],
    ids=["list", "tuple", "iterator", "dict", "generator", "async generator", "memory channel"],
)
@pytest.mark.parametrize("values", [[], ["a"], ["a", "b", "c"]], ids=["empty", "one", "three"])
async def test_a_source_is_any_iterable_async_iterable_or_channel(
    async_wait: Any, source_of: Any, values: list[str]
) -> None:
    assert sorted(await outputs(async_wait(source_of(values), AT_ONCE, timeout=5.0))) == values


@pytest.mark.parametrize("source", [3, None, object(), trio.sleep], ids=stable_id)
async def test_a_source_that_is_not_iterable_is_refused(async_wait: Any, source: Any) -> None:
    with pytest.raises(TypeError, match="the source must be an iterable or an async iterable, got"):
        async_wait(source, AT_ONCE, timeout=5.0)


async def test_an_async_generator_is_not_closed(async_wait: Any) -> None:
    """The caller may continue to read it."""

    async def numbers() -> AsyncIterator[int]:
        for number in range(100):
            yield number

    async with aclosing(numbers()) as source:
        async with async_wait(source, AT_ONCE, timeout=5.0, capacity=2, buffer=4) as results:
            assert await results.receive() in range(2)
            await wait_all_tasks_blocked()
            held = [each.element for each in results.snapshot().elements]
        assert held[-1] == 5
        assert await anext(source) == 6


async def test_a_generator_is_not_closed(async_wait: Any) -> None:
    source = (number for number in range(100))
    async with async_wait(source, NEVER, timeout=5.0, capacity=2, buffer=4):
        await wait_all_tasks_blocked()
    assert next(source) == 5


async def test_a_channel_is_not_closed(async_wait: Any) -> None:
    send, receive = trio.open_memory_channel[int](math.inf)
    async with async_wait(receive, AT_ONCE, timeout=5.0) as results:
        send.send_nowait(1)
        assert await results.receive() == 1
    send.send_nowait(2)
    assert receive.receive_nowait() == 2


@pytest.mark.parametrize("source_of", [list, async_generator], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("key", "error"),
    [
        (lambda value: 1 / value, ZeroDivisionError),
        (lambda value: [], TypeError),
        (lambda value: next(iter([])), RuntimeError),  # Python does so, too, with a StopIteration in a coroutine
    ],
)
async def test_a_key_function_that_raises_stops_the_operator_and_loses_no_element(
    source_of: Any, key: Any, error: type[Exception]
) -> None:
    source = source_of([0])
    operator = AsyncWaitOperator(NEVER, mode="keyed", key=key, timeout=5.0, source=source)
    with pytest.raises(error), trio.fail_after(60.0):
        async with operator:
            await trio.sleep_forever()
    assert [each.element for each in operator.snapshot().elements] == [0]


async def test_invocations_start_before_a_long_synchronous_source_ends(async_wait: Any) -> None:
    """Even if the buffer has room for all of it."""
    read_at_the_first_call = []

    async def count_read(value: int) -> int:
        read_at_the_first_call.append(source.read)
        return value

    source = SyncSource()
    async with async_wait(source, count_read, timeout=5.0, capacity=1, buffer=1_000_000) as results:
        await results.receive()
    assert read_at_the_first_call[0] <= 2_000  # two scheduler passes, depending on the order of tasks


# The buffer


@pytest.mark.parametrize("make", [SyncSource, AsyncSource])
@pytest.mark.parametrize(("capacity", "buffer"), [(1, 1), (2, 2), (2, 5), (4, 64)])
@pytest.mark.parametrize("function", [NEVER, AT_ONCE], ids=["never done", "done at once"])
async def test_without_a_consumer_the_source_is_read_one_element_beyond_the_buffer(
    async_wait: Any, make: Any, capacity: int, buffer: int, function: Any
) -> None:
    source = make()
    async with async_wait(source, function, timeout=math.inf, capacity=capacity, buffer=buffer) as results:
        await wait_all_tasks_blocked()
        assert source.read == buffer + 1
        assert results.statistics().buffered == buffer
        assert [each.element for each in results.snapshot().elements] == list(range(1, buffer + 2))


async def test_a_source_is_read_again_when_a_sixteenth_of_the_buffer_is_free(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    source = SyncSource()
    function = Scripted(default=Step(1.0))
    async with async_wait(source, function, timeout=5.0, capacity=1, buffer=48) as results:
        read = []
        for _ in range(7):
            await results.receive()
            await wait_all_tasks_blocked()
            read.append(source.read)
    assert read == [49, 49, 52, 52, 52, 55, 55]


@pytest.mark.parametrize("make", [SyncSource, AsyncSource])
async def test_a_worker_without_a_job_lets_the_source_be_read_into_any_room(
    async_wait: Any, autojump_clock: MockClock, make: Any
) -> None:
    source = make()
    function = Scripted(default=Step(1.0))
    async with async_wait(source, function, timeout=5.0, capacity=1, buffer=48) as results:
        await results.receive()
        await trio.sleep(40.0)
        assert source.read == 49
        await trio.sleep(40.0)
        assert source.read == 50
        assert results.statistics().buffered == 48


async def test_more_watermarks_than_the_buffer_stop_the_feeder(async_wait: Any) -> None:
    read = 0

    def watermarks() -> Iterator[Watermark]:
        nonlocal read
        for read in count(1):
            yield Watermark(read)

    async with async_wait(watermarks(), AT_ONCE, timeout=5.0, capacity=1, buffer=7) as results:
        await wait_all_tasks_blocked()
        assert read == 7 + 1
        assert results.statistics().buffered == 0
        assert await results.receive() == Watermark(1)
        await wait_all_tasks_blocked()
        assert read == 7 + 2


async def test_a_source_is_read_only_a_few_rounds_of_calls_ahead_while_calls_are_short(async_wait: Any) -> None:
    source, ahead, received = SyncSource(), 0, 0
    async with async_wait(source, AT_ONCE, timeout=5.0, capacity=100) as results:
        async for _ in results:
            received += 1
            if received > 5_000:
                ahead = max(ahead, source.read - received)
            if received == 10_000:
                break
    assert 0 < ahead <= 20 * 100  # the buffer would hold 10,000
