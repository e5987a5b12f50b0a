"""from_asyncio, without a server. The loop runs in real time: tests wait for events, and move Trio's clock by hand."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import os
import pickle
import signal
import threading
import traceback
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest
import sniffio
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.interrupting import default_sigint
from tests.support import PATIENCE, outputs
from trio_asyncio_io import AsyncFunction, FixedDelay, ordered_wait, unordered_wait
from trio_asyncio_io.adapters import from_asyncio
from trio_asyncio_io.adapters._asyncio import Mailbox
from trio_asyncio_io.policies import cached

CALLER = ContextVar("CALLER", default="nobody")


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = loop_threads()
    yield
    assert loop_threads() == before


def loop_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "trio_asyncio_io asyncio loop"]


class Events:
    """Names of events, reported in any thread, for a Trio task that waits for them."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._token = trio.lowlevel.current_trio_token()
        self._send, self._receive = trio.open_memory_channel[str](math.inf)

    def add(self, name: str) -> None:
        self.names.append(name)
        self._token.run_sync_soon(self._send.send_nowait, name)

    async def wait_for(self, *names: str) -> None:
        with trio.CancelScope(shield=True):
            for name in names:
                assert await self._receive.receive() == name


class Latch:
    """Opened by Trio, awaited in asyncio."""

    def __init__(self) -> None:
        self._opened = threading.Event()

    def open(self) -> None:
        self._opened.set()

    async def wait(self) -> None:
        await asyncio.shield(asyncio.to_thread(self._opened.wait, PATIENCE))


async def forever() -> None:
    await asyncio.Event().wait()


async def double(value: int) -> int:
    await asyncio.sleep(0)
    return 2 * value


@asynccontextmanager
async def opened(function: Any) -> AsyncIterator[from_asyncio[Any]]:
    adapter: from_asyncio[Any] = from_asyncio(function)
    await adapter.open()
    try:
        yield adapter
    finally:
        await adapter.close()


async def test_an_asyncio_function_becomes_a_trio_function() -> None:
    assert await outputs(ordered_wait([1, 2, 3], from_asyncio(double), timeout=math.inf)) == [2, 4, 6]


async def test_a_hundred_invocations_run_concurrently_in_one_loop_and_another_thread() -> None:
    loops, threads = set(), set()
    latch = asyncio.Event()

    async def all_wait(value: int) -> int:
        loops.add(asyncio.get_running_loop())
        threads.add(threading.current_thread())
        if value == 99:
            latch.set()
        await latch.wait()
        return value

    found = await outputs(ordered_wait(range(100), from_asyncio(all_wait), capacity=100, timeout=math.inf))
    assert found == list(range(100))
    assert len(loops) == 1
    (thread,) = threads
    assert thread is not threading.current_thread()
    assert not thread.daemon


class Counter:
    """An object with `open`, `invoke` and `close` in asyncio, not derived from `AsyncFunction`."""

    def __init__(self) -> None:
        self.events: list[str] = []

    async def open(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.task = asyncio.create_task(forever())
        self.events.append("open")

    async def invoke(self, value: int, times: int = 2) -> int:
        assert asyncio.get_running_loop() is self.loop
        return value * times

    async def close(self) -> None:
        assert asyncio.get_running_loop() is self.loop
        self.task.cancel()
        self.events.append("close")


async def test_an_object_is_opened_invoked_and_closed_in_the_loop() -> None:
    counter = Counter()
    assert sorted(await outputs(unordered_wait([3, 1, 2], from_asyncio(counter), timeout=math.inf))) == [2, 4, 6]
    assert counter.events == ["open", "close"]


async def test_different_tasks_may_open_and_close_it(nothing_left: Any) -> None:
    """In a Spark worker, a task opens it and the idle timer closes it."""
    adapter: from_asyncio[Any] = from_asyncio(Counter())
    with nothing_left():
        for step in (adapter.open, partial(adapter.invoke, 1), adapter.close):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(step)
        await wait_all_tasks_blocked()


async def test_opening_it_twice_is_refused() -> None:
    async with opened(double) as adapter:
        with pytest.raises(RuntimeError, match=r"from_asyncio\(.*double.*\) is open already: create one for each"):
            await adapter.open()
        assert await adapter.invoke(1) == 2


async def test_using_it_while_it_is_not_open_is_refused() -> None:
    async with opened(double) as closed:
        pass
    for adapter in (from_asyncio(double), closed):
        for method in (partial(adapter.invoke, 1), adapter.close):
            with pytest.raises(RuntimeError, match="is not open: give it to an operator"):
                await method()


async def test_operators_share_an_asyncio_loop_through_a_policy() -> None:
    function = cached(from_asyncio(double))
    async with ordered_wait([1], function, timeout=math.inf), ordered_wait([2], function, timeout=math.inf) as results:
        assert [result async for result in results] == [4]


async def test_the_function_and_its_tasks_have_the_callers_context_variables() -> None:
    async def caller(value: int) -> tuple[str, str]:
        before = CALLER.get(), await asyncio.create_task(inner())
        CALLER.set("the function")
        return before

    async def inner() -> str:
        return CALLER.get()

    async with opened(caller) as adapter:
        CALLER.set("this test")
        assert await adapter.invoke(3) == ("this test", "this test")
        assert CALLER.get() == "this test"


async def test_libraries_for_several_frameworks_recognise_asyncio() -> None:
    async def library(value: int) -> str:
        return sniffio.current_async_library()

    async with opened(library) as adapter:
        assert await adapter.invoke(1) == "asyncio"
    assert sniffio.current_async_library() == "trio"


async def test_an_exception_is_retried_and_raised_unchanged_with_its_traceback() -> None:
    calls = 0

    async def flaky(value: int) -> int:
        nonlocal calls
        calls += 1
        raise OSError(f"busy {calls}")

    retry = FixedDelay(2, 0.0, retry_on=OSError)
    with pytest.raises(OSError, match="busy 3") as caught:
        await outputs(ordered_wait([7], from_asyncio(flaky), timeout=math.inf, retry=retry))
    assert caught.value.__notes__ == ["element 0, 7, attempt 3 of 3"]
    assert "flaky" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


async def test_a_deadline_cancels_in_asyncio_and_waits_until_the_function_has_unwound(mock_clock: MockClock) -> None:
    events, latch = Events(), Latch()

    async def slow(value: int) -> None:
        events.add("called")
        try:
            await forever()
        except asyncio.CancelledError:
            events.add("cancelled")
            await latch.wait()
            events.add("unwound")
            raise

    async def on_timeout(value: int) -> list[str]:
        events.add("timeout")
        return list(events.names)

    async with ordered_wait([0], from_asyncio(slow), timeout=5.0, on_timeout=on_timeout) as results:
        await events.wait_for("called")
        mock_clock.jump(5.0)
        await events.wait_for("cancelled")
        mock_clock.jump(100.0)
        await wait_all_tasks_blocked()
        assert events.names == ["called", "cancelled"]
        latch.open()
        assert await results.receive() == ["called", "cancelled", "unwound", "timeout"]


async def test_a_deadline_raises_one_cancelled_error() -> None:
    cancellations = 0
    events, latch = Events(), Latch()

    async def slow(value: int) -> None:
        nonlocal cancellations
        events.add("called")
        while not latch._opened.is_set():
            try:
                await asyncio.shield(latch.wait())
            except asyncio.CancelledError:
                cancellations += 1
                events.add("cancelled")

    async with opened(slow) as adapter, trio.open_nursery() as nursery:
        nursery.start_soon(adapter.invoke, 1)
        await events.wait_for("called")
        nursery.cancel_scope.cancel()
        await events.wait_for("cancelled")
        with trio.CancelScope(shield=True):
            await wait_all_tasks_blocked()
        latch.open()
    assert cancellations == 1


async def test_a_result_returned_despite_the_cancellation_counts() -> None:
    events = Events()

    async def stubborn(value: int) -> str:
        events.add("called")
        try:
            await forever()
        except asyncio.CancelledError:
            return "anyway"
        return "in time"

    results = []
    async with opened(stubborn) as adapter, trio.open_nursery() as nursery:

        async def call() -> None:
            results.append(await adapter.invoke(1))

        nursery.start_soon(call)
        await events.wait_for("called")
        nursery.cancel_scope.cancel()
    assert results == ["anyway"]


async def test_a_result_that_comes_at_the_instant_of_the_cancellation_is_not_lost() -> None:
    token, returned, received = trio.lowlevel.current_trio_token(), [], []

    async def races(number: int, scope: trio.CancelScope) -> int:
        for _ in range(number % 3):
            await asyncio.sleep(0)
        token.run_sync_soon(scope.cancel)
        for _ in range(number % 5):
            await asyncio.sleep(0)
        returned.append(number)  # from here on, nothing is awaited
        return number

    async def call(number: int) -> None:
        with trio.CancelScope() as scope:
            received.append(await adapter.invoke(number, scope))

    async with opened(races) as adapter, trio.open_nursery() as nursery:
        for number in range(1_000):
            nursery.start_soon(call, number)
    assert sorted(received) == sorted(returned)
    assert received


async def test_a_call_that_is_cancelled_before_the_loop_sees_it_does_not_begin() -> None:
    called, blocked, latch = [], trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()

    async def block(value: int) -> None:
        token.run_sync_soon(blocked.set)
        latch.wait(PATIENCE)

    async def record(value: int) -> None:
        if value == 0:
            await block(value)
        called.append(value)

    async with opened(record) as adapter, trio.open_nursery() as blocking:
        blocking.start_soon(adapter.invoke, 0)
        await blocked.wait()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(adapter.invoke, 1)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await wait_all_tasks_blocked()
            latch.set()
        assert nursery.cancel_scope.cancelled_caught
    assert called == [0]


async def test_a_call_in_a_cancelled_scope_is_not_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(double) as adapter:
        assert adapter._loop is not None
        handed_over: list[Any] = []
        with trio.CancelScope() as scope, monkeypatch.context() as patch:
            patch.setattr(adapter._loop._to_asyncio, "put", handed_over.append)
            scope.cancel()
            await adapter.invoke(1)
    assert scope.cancelled_caught
    assert handed_over == []


@pytest.mark.parametrize("exit_exception", [SystemExit, KeyboardInterrupt])
async def test_an_exit_exception_does_not_end_other_calls(exit_exception: Any) -> None:
    latch, events = Latch(), Events()

    async def exits(value: int) -> int:
        if value:
            raise exit_exception(value)
        events.add("called")
        await latch.wait()
        return await double(4)

    async with opened(exits) as adapter:

        async def other() -> None:
            assert await adapter.invoke(0) == 8

        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            await events.wait_for("called")
            with pytest.raises(exit_exception):
                await adapter.invoke(1)
            latch.open()


def test_ctrl_c_cancels_the_call_and_comes_out_once_it_has_unwound() -> None:
    unwound = []

    async def interrupted(value: int) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await forever()
        finally:
            unwound.append(value)

    async def main() -> None:
        async with opened(interrupted) as adapter:
            await adapter.invoke(7)

    with default_sigint(), pytest.raises(KeyboardInterrupt):
        trio.run(main)
    assert unwound == [7]


async def test_a_loop_that_the_function_stops_fails_all_calls_and_cannot_be_used_again() -> None:
    events = Events()

    async def stops(value: int) -> None:
        if value:
            asyncio.get_running_loop().stop()
        events.add("called")
        await forever()

    adapter: from_asyncio[Any] = from_asyncio(stops)
    await adapter.open()
    errors = []

    async def call(value: int) -> None:
        with pytest.raises(RuntimeError) as caught:
            await adapter.invoke(value)
        errors.append(str(caught.value))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call, 0)
        await events.wait_for("called")
        nursery.start_soon(call, 1)
    assert len(errors) == 2
    with pytest.raises(RuntimeError, match="the asyncio loop has ended"):
        await adapter.invoke(0)
    with pytest.raises(RuntimeError, match="the asyncio loop has ended") as closing:
        await adapter.close()
    assert "loop stopped" in str(closing.value.__cause__)


async def test_a_call_that_arrives_when_the_loop_stops_is_not_started() -> None:
    events, has_arrived, called = Events(), threading.Event(), list[str]()

    async def stops(value: str) -> None:
        called.append(value)
        if value == "first":
            events.add("called")
            assert has_arrived.wait(PATIENCE)
            asyncio.get_running_loop().stop()
        await forever()

    adapter: from_asyncio[Any] = from_asyncio(stops)
    await adapter.open()

    async def call(value: str) -> None:
        with pytest.raises(RuntimeError):
            await adapter.invoke(value)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call, "first")
        await events.wait_for("called")
        nursery.start_soon(call, "late")
        await wait_all_tasks_blocked()
        has_arrived.set()
    assert called == ["first"]
    with pytest.raises(RuntimeError, match="the asyncio loop has ended"):
        await adapter.close()


# Opening and closing


class Broken(Counter):
    async def open(self) -> None:
        await super().open()
        raise OSError("no route")


async def test_an_exception_of_open_is_raised_unchanged_and_no_task_is_left(nothing_left: Any) -> None:
    broken = Broken()
    with nothing_left():
        with pytest.raises(OSError, match="no route"):
            await outputs(ordered_wait([1], from_asyncio(broken), timeout=math.inf))
        await wait_all_tasks_blocked()
    assert broken.task.cancelled()


async def test_a_cancelled_open_leaves_no_task(nothing_left: Any) -> None:
    events = Events()

    class SlowToOpen(Counter):
        async def open(self) -> None:
            await super().open()
            events.add("opening")
            await forever()

    slow = SlowToOpen()
    adapter: from_asyncio[Any] = from_asyncio(slow)
    with nothing_left():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(adapter.open)
            await events.wait_for("opening")
            nursery.cancel_scope.cancel()
        await wait_all_tasks_blocked()
    assert slow.task.cancelled()


class BrokenClose(Counter):
    async def close(self) -> None:
        raise OSError("hung up")


async def test_an_exception_of_close_is_raised_unchanged_and_no_task_is_left(nothing_left: Any) -> None:
    with nothing_left():
        with pytest.raises(OSError, match="hung up"):
            await outputs(ordered_wait([1], from_asyncio(BrokenClose()), timeout=math.inf))
        await wait_all_tasks_blocked()


async def test_a_close_that_hangs_is_cancelled_after_thirty_seconds(mock_clock: MockClock) -> None:
    events = Events()

    class HangingClose(Counter):
        async def close(self) -> None:
            events.add("closing")
            await forever()

    async def jump() -> None:
        await events.wait_for("closing")
        mock_clock.jump(30.0)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(jump)
        with pytest.raises(trio.TooSlowError):
            await outputs(ordered_wait([1], from_asyncio(HangingClose()), timeout=math.inf))


async def test_close_ends_what_the_calls_have_left() -> None:
    """Tasks are cancelled and awaited, async generators are closed, and threads of the executor are joined."""
    left: list[Any] = []
    events: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            events.append("generator closed")

    async def unwinds() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0)
            events.append("task unwound")

    async def leave(value: int) -> None:
        generator = numbers()
        await anext(generator)
        left.extend([generator, asyncio.create_task(unwinds()), await asyncio.to_thread(threading.current_thread)])
        await asyncio.sleep(0)

    await outputs(ordered_wait([1], from_asyncio(leave), timeout=math.inf))
    assert left[1].cancelled()
    assert not left[2].is_alive()
    assert sorted(events) == ["generator closed", "task unwound"]


async def test_a_background_task_that_fails_is_logged_and_the_loop_goes_on(caplog: Any) -> None:
    async def fails() -> None:
        raise OSError("in the background")

    async def start_one(value: int) -> int:
        task = asyncio.create_task(fails())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        del task
        gc.collect()
        return await double(value)

    with caplog.at_level(logging.ERROR, "asyncio"):
        assert await outputs(ordered_wait([1, 2], from_asyncio(start_one), timeout=math.inf)) == [2, 4]
    assert "Task exception was never retrieved" in caplog.text


def test_a_trio_run_ends_although_the_adapter_is_still_open() -> None:
    counter = Counter()
    adapter: from_asyncio[Any] = from_asyncio(counter)

    async def main() -> Any:
        await adapter.open()
        return await adapter.invoke(1)

    for _ in range(2):  # the adapter can be opened in another run
        assert trio.run(main) == 2
        assert counter.task.cancelled()
        assert loop_threads() == []


async def test_an_error_at_the_start_of_the_loop_is_raised_by_open(monkeypatch: Any, nothing_left: Any) -> None:
    def no_loop() -> Any:
        raise OSError("too many open files")

    adapter: from_asyncio[Any] = from_asyncio(double)
    monkeypatch.setattr(asyncio.events, "new_event_loop", no_loop)
    with nothing_left():
        with pytest.raises(RuntimeError, match=r"the asyncio loop did not start: .*too many open files") as caught:
            await adapter.open()
        await wait_all_tasks_blocked()
    assert isinstance(caught.value.__cause__, OSError)


# The method `timeout`, and what it accepts


async def test_the_timeout_method_runs_in_the_loop(mock_clock: MockClock) -> None:
    events = Events()

    class WithTimeout(Counter):
        async def invoke(self, value: int, times: int = 2) -> int:
            events.add("called")
            await forever()
            return value * times

        async def timeout(self, value: int) -> str:
            assert asyncio.get_running_loop() is self.loop
            return f"no result for {value}"

    async with ordered_wait([60], from_asyncio(WithTimeout()), timeout=5.0) as results:
        await events.wait_for("called")
        mock_clock.jump(5.0)
        assert await results.receive() == "no result for 60"


class Lookup(AsyncFunction[int, int]):
    """Derived from `AsyncFunction`, whose `open` and `close` work in asyncio too, because they do nothing."""

    async def invoke(self, value: int) -> int:
        return await double(value)


async def test_a_subclass_of_async_function_may_have_an_asyncio_invoke() -> None:
    assert await outputs(ordered_wait([1], from_asyncio(Lookup()), timeout=math.inf)) == [2]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (None, r"the function must be an async callable or an AsyncFunction, got None$"),
        (Lookup, r"got <class .*Lookup.*: give an instance, not the class"),
        (len, r"<built-in function len> is not async. .*`async def`.*in_thread\(function\)"),
    ],
)
def test_a_function_that_is_not_async_is_refused_and_the_error_has_the_remedy(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        from_asyncio(function)


async def test_it_pickles_as_its_function_and_an_open_one_as_a_closed_one() -> None:
    async with opened(asyncio.sleep) as adapter:
        copy = pickle.loads(pickle.dumps(adapter))
        assert copy.function is asyncio.sleep
        assert repr(copy).startswith("from_asyncio(<function sleep")
        await copy.open()
        assert await copy.invoke(0, "result") == "result"
        await copy.close()


# The mailbox


def test_items_that_arrive_before_the_other_thread_runs_need_one_wake_up() -> None:
    wake_ups: list[Any] = []
    received: list[str] = []
    mailbox = Mailbox[str](wake_ups.append, received.append)
    for item in "abc":
        mailbox.put(item)
    assert len(wake_ups) == 1
    wake_ups.pop()()
    assert received == ["a", "b", "c"]
    mailbox.put("d")
    assert len(wake_ups) == 1


def test_an_item_that_arrives_after_the_last_look_needs_another_wake_up() -> None:
    wake_ups: list[Any] = []
    received: list[str] = []
    late = ["late"]

    class Items(deque[str]):
        def __bool__(self) -> bool:
            """Whether there are items. The late one arrives right after this was False."""
            has_items = len(self) > 0
            if not has_items and late:
                mailbox.put(late.pop())
            return has_items

    mailbox = Mailbox[str](wake_ups.append, received.append)
    mailbox._items = Items()
    mailbox.put("first")
    while wake_ups:
        wake_ups.pop()()
    assert received == ["first", "late"]


async def test_an_open_adapter_is_called_as_its_function_is() -> None:
    async def parse(text: str, base: int = 10) -> int:
        return int(text, base)

    adapter = from_asyncio(parse)
    await adapter.open()
    assert await adapter("ff", base=16) == 255
    await adapter.close()
