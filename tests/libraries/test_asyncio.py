"""from_asyncio, on virtual time and without a server."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import pickle
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from pyspark import cloudpickle

from tests.support import PATIENCE, outputs
from trio_asyncio_io import AsyncFunction, ElementTimeoutError, FixedDelay, ordered_wait, unordered_wait
from trio_asyncio_io.adapters import from_asyncio
from trio_asyncio_io.adapters._trio_asyncio import trio_asyncio as import_trio_asyncio
from trio_asyncio_io.policies import cached

CALLER = ContextVar("CALLER", default="nobody")


async def double(value: int) -> int:
    await asyncio.sleep(1.0)
    return 2 * value


@asynccontextmanager
async def opened(function: Any) -> AsyncIterator[from_asyncio[Any]]:
    adapter: from_asyncio[Any] = from_asyncio(function)
    await adapter.open()
    try:
        yield adapter
    finally:
        await adapter.close()


def tasks_living() -> int:
    return trio.lowlevel.current_statistics().tasks_living


async def test_an_asyncio_function_becomes_a_trio_function(autojump_clock: Any) -> None:
    assert await outputs(ordered_wait([1, 2, 3], from_asyncio(double), timeout=5.0)) == [2, 4, 6]
    assert trio.current_time() == 1.0


async def test_a_hundred_invocations_share_one_loop(autojump_clock: Any) -> None:
    loops = set()
    latch = asyncio.Event()
    waiting = 0

    async def all_wait(value: int) -> int:
        nonlocal waiting
        loops.add(asyncio.get_running_loop())
        waiting += 1
        if waiting == 100:
            latch.set()
        await latch.wait()
        return value

    found = await outputs(ordered_wait(range(100), from_asyncio(all_wait), capacity=100, timeout=5.0))
    assert found == list(range(100))
    assert len(loops) == 1


class Counter:
    """An object with `open`, `invoke` and `close` in asyncio, not derived from `AsyncFunction`."""

    def __init__(self) -> None:
        self.events: list[str] = []

    async def open(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.task = asyncio.create_task(asyncio.sleep(3600.0))
        self.events.append("open")

    async def invoke(self, value: int, times: int = 2) -> int:
        assert asyncio.get_running_loop() is self.loop
        await asyncio.sleep(value)
        return value * times

    async def close(self) -> None:
        assert asyncio.get_running_loop() is self.loop
        self.task.cancel()
        self.events.append("close")


async def test_an_object_is_opened_invoked_and_closed_in_the_loop(autojump_clock: Any) -> None:
    counter = Counter()
    assert await outputs(unordered_wait([3, 1, 2], from_asyncio(counter), timeout=5.0)) == [2, 4, 6]
    assert counter.events == ["open", "close"]


async def test_it_takes_any_number_of_arguments(autojump_clock: Any) -> None:
    async with opened(Counter()) as adapter:
        assert await adapter.invoke(2, 5) == 10


async def test_different_tasks_may_open_and_close_it(autojump_clock: Any) -> None:
    """In a Spark worker, a task opens it and the idle timer closes it."""
    before = tasks_living()
    adapter: from_asyncio[Any] = from_asyncio(Counter())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(adapter.open)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(adapter.invoke, 1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(adapter.close)
    assert tasks_living() == before


async def test_it_can_be_opened_again_after_it_was_closed(autojump_clock: Any) -> None:
    function = from_asyncio(double)
    for _ in range(2):
        assert await outputs(ordered_wait([1], function, timeout=5.0)) == [2]


async def test_opening_it_twice_is_refused(autojump_clock: Any) -> None:
    async with opened(double) as adapter:
        with pytest.raises(RuntimeError, match=r"from_asyncio\(.*double.*\) is open already: create one for each"):
            await adapter.open()
        assert await adapter.invoke(1) == 2


async def test_using_it_while_it_is_not_open_is_refused(autojump_clock: Any) -> None:
    async with opened(double) as closed:
        pass
    for adapter in (from_asyncio(double), closed):
        for method in (partial(adapter.invoke, 1), adapter.close):
            with pytest.raises(RuntimeError, match="is not open: give it to an operator"):
                await method()


async def test_two_adapters_have_a_loop_each(autojump_clock: Any) -> None:
    async def loop_of(value: int) -> Any:
        return asyncio.get_running_loop()

    async with opened(loop_of) as one, opened(loop_of) as other:
        assert await one.invoke(1) is not await other.invoke(1)


async def test_it_composes_with_policies(autojump_clock: Any) -> None:
    assert await outputs(ordered_wait([1, 2], cached(from_asyncio(double)), capacity=1, timeout=5.0)) == [2, 4]


async def test_the_function_sees_the_callers_context_and_can_call_trio(autojump_clock: Any) -> None:
    async def through_trio(value: int) -> str:
        # Not imported at module level, because then the package would change asyncio in the whole process
        await import_trio_asyncio().trio_as_aio(trio.sleep)(value)
        return CALLER.get()

    async with opened(through_trio) as adapter:
        CALLER.set("this test")
        assert await adapter.invoke(3) == "this test"
    assert trio.current_time() == 3.0


async def test_an_exception_is_retried_and_raised_unchanged(autojump_clock: Any) -> None:
    calls = 0

    async def flaky(value: int) -> int:
        nonlocal calls
        calls += 1
        raise OSError(f"busy {calls}")

    retry = FixedDelay(2, 1.0, retry_on=OSError)
    with pytest.raises(OSError, match="busy 3") as caught:
        await outputs(ordered_wait([7], from_asyncio(flaky), timeout=5.0, retry=retry))
    assert caught.value.__notes__ == ["element 0, 7, attempt 3 of 3"]


async def test_a_deadline_cancels_in_asyncio_and_waits_until_the_function_has_unwound(autojump_clock: Any) -> None:
    unwound: list[float] = []

    async def slow(value: int) -> None:
        try:
            await asyncio.sleep(60.0)
        except asyncio.CancelledError:
            await asyncio.sleep(2.0)
            unwound.append(trio.current_time())
            raise

    async def on_timeout(value: int) -> list[float]:
        return list(unwound)

    assert await outputs(ordered_wait([0], from_asyncio(slow), timeout=5.0, on_timeout=on_timeout)) == [[7.0]]


async def test_an_asyncio_timeout_inside_the_function_is_an_ordinary_exception(autojump_clock: Any) -> None:
    async def impatient(value: int) -> None:
        async with asyncio.timeout(1.0):
            await asyncio.sleep(60.0)

    with pytest.raises(TimeoutError):
        await outputs(ordered_wait([0], from_asyncio(impatient), timeout=5.0))
    assert trio.current_time() == 1.0


async def test_a_result_returned_despite_the_cancellation_counts(autojump_clock: Any) -> None:
    async def stubborn(value: int) -> str:
        try:
            await asyncio.sleep(60.0)
        except asyncio.CancelledError:
            return "anyway"
        return "in time"

    assert await outputs(ordered_wait([0], from_asyncio(stubborn), timeout=5.0)) == ["anyway"]


async def test_a_call_in_a_cancelled_scope_does_not_begin(autojump_clock: Any) -> None:
    called: list[int] = []

    async def record(value: int) -> None:
        called.append(value)

    async with opened(record) as adapter:
        with trio.CancelScope() as scope:
            scope.cancel()
            await adapter.invoke(1)
    assert scope.cancelled_caught
    assert called == []


async def cancels_itself(value: int) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(1.0)


async def raises_cancelled(value: int) -> None:
    raise asyncio.CancelledError


async def waits_for_a_cancelled_task(value: int) -> None:
    task = asyncio.create_task(asyncio.sleep(1.0))
    task.cancel()
    await task


@pytest.mark.parametrize("function", [cancels_itself, raises_cancelled, waits_for_a_cancelled_task])
async def test_a_cancellation_from_inside_asyncio_is_an_ordinary_error(function: Any, autojump_clock: Any) -> None:
    message = rf"{function.__name__}.* was cancelled inside asyncio, not by the operator"
    with pytest.raises(RuntimeError, match=message) as caught:
        await outputs(ordered_wait([0], from_asyncio(function), timeout=5.0))
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)


@pytest.mark.parametrize("exit_exception", [SystemExit, KeyboardInterrupt])
async def test_an_exit_exception_does_not_end_other_calls(exit_exception: Any, autojump_clock: Any) -> None:
    async def exits(value: int) -> int:
        if value:
            raise exit_exception(value)
        return await double(4)

    async with opened(exits) as adapter:

        async def other() -> None:
            assert await adapter.invoke(0) == 8

        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(exit_exception):
                await adapter.invoke(1)


class Broken(Counter):
    async def open(self) -> None:
        await super().open()
        raise OSError("no route")


async def test_an_exception_of_open_is_raised_unchanged_and_no_task_is_left(autojump_clock: Any) -> None:
    before = tasks_living()
    broken = Broken()
    with pytest.raises(OSError, match="no route"):
        await outputs(ordered_wait([1], from_asyncio(broken), timeout=5.0))
    assert tasks_living() == before
    assert broken.task.cancelled()


class SlowToOpen(Counter):
    async def open(self) -> None:
        await super().open()
        await asyncio.sleep(60.0)


async def test_a_cancelled_open_leaves_no_task(autojump_clock: Any) -> None:
    before = tasks_living()
    slow = SlowToOpen()
    adapter: from_asyncio[Any] = from_asyncio(slow)
    with trio.move_on_after(5.0):
        await adapter.open()
    assert trio.current_time() == 5.0
    assert tasks_living() == before
    assert slow.task.cancelled()


class BrokenClose(Counter):
    async def close(self) -> None:
        raise OSError("hung up")


async def test_an_exception_of_close_is_raised_unchanged_and_no_task_is_left(autojump_clock: Any) -> None:
    before = tasks_living()
    with pytest.raises(OSError, match="hung up"):
        await outputs(ordered_wait([1], from_asyncio(BrokenClose()), timeout=5.0))
    assert tasks_living() == before


class HangingClose(Counter):
    async def close(self) -> None:
        await asyncio.sleep(3600.0)


async def test_a_close_that_hangs_is_cancelled_after_thirty_seconds(autojump_clock: Any) -> None:
    before = tasks_living()
    with pytest.raises(trio.TooSlowError):
        await outputs(ordered_wait([1], from_asyncio(HangingClose()), timeout=5.0))
    assert trio.current_time() == 31.0
    assert tasks_living() == before


async def test_close_cancels_the_asyncio_tasks_that_are_left(autojump_clock: Any) -> None:
    left: list[asyncio.Task[None]] = []

    async def leave_one(value: int) -> None:
        left.append(asyncio.create_task(asyncio.sleep(3600.0)))

    await outputs(ordered_wait([1], from_asyncio(leave_one), timeout=5.0))
    assert left[0].cancelled()
    assert trio.current_time() == 0.0


async def test_a_background_task_that_fails_is_logged_and_the_loop_goes_on(autojump_clock: Any, caplog: Any) -> None:
    async def fails() -> None:
        raise OSError("in the background")

    async def start_one(value: int) -> int:
        task = asyncio.create_task(fails())
        await asyncio.sleep(1.0)
        del task
        gc.collect()
        return await double(value)

    with caplog.at_level(logging.ERROR, "asyncio"):
        assert await outputs(ordered_wait([1, 2], from_asyncio(start_one), timeout=5.0)) == [2, 4]
    assert "Task exception was never retrieved" in caplog.text


def test_a_trio_run_ends_although_the_adapter_is_still_open() -> None:
    adapter: from_asyncio[Any] = from_asyncio(double)

    async def main() -> Any:
        await adapter.open()
        return await adapter.invoke(1)

    for _ in range(2):  # the adapter can be opened in another run
        assert trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0)) == 2


async def test_an_error_at_the_start_of_the_loop_is_raised_by_open(monkeypatch: Any) -> None:
    before = tasks_living()

    def open_loop() -> Any:
        raise OSError("too many open files")

    adapter: from_asyncio[Any] = from_asyncio(double)
    monkeypatch.setattr(import_trio_asyncio(), "open_loop", open_loop)
    with pytest.raises(RuntimeError, match=r"the asyncio loop did not start: .*too many open files") as caught:
        await adapter.open()
    assert isinstance(caught.value.__cause__, OSError)
    assert tasks_living() == before


class WithTimeout(Counter):
    async def timeout(self, value: int) -> str:
        assert asyncio.get_running_loop() is self.loop
        await asyncio.sleep(1.0)
        return f"no result for {value}"


async def test_the_timeout_method_runs_in_the_loop(autojump_clock: Any) -> None:
    assert await outputs(ordered_wait([60], from_asyncio(WithTimeout()), timeout=5.0)) == ["no result for 60"]
    assert trio.current_time() == 6.0


async def test_without_a_timeout_method_the_operator_raises_its_timeout_error(autojump_clock: Any) -> None:
    with pytest.raises(ElementTimeoutError):
        await outputs(ordered_wait([60], from_asyncio(Counter()), timeout=5.0))


class Lookup(AsyncFunction[int, int]):
    """Derived from `AsyncFunction`, whose `open` and `close` work in asyncio too, because they do nothing."""

    async def invoke(self, value: int) -> int:
        return await double(value)


async def test_a_subclass_of_async_function_may_have_an_asyncio_invoke(autojump_clock: Any) -> None:
    assert await outputs(ordered_wait([1], from_asyncio(Lookup()), timeout=5.0)) == [2]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (None, r"from_asyncio takes an asyncio coroutine function, or an object .*, got None$"),
        (Lookup, r"got <class .*Lookup.*: give an instance, not the class"),
        (len, r"<built-in function len> is not async. .*`async def`.*in_thread\(function\)"),
    ],
)
def test_a_function_that_is_not_async_is_refused_and_the_error_has_the_remedy(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        from_asyncio(function)


def test_it_pickles_as_its_function() -> None:
    copy = pickle.loads(pickle.dumps(from_asyncio(asyncio.sleep)))
    assert copy.function is asyncio.sleep
    assert repr(copy).startswith("from_asyncio(<function sleep")


async def test_an_open_adapter_pickles_as_a_closed_one(autojump_clock: Any) -> None:
    async with opened(double) as adapter:
        copy = cloudpickle.loads(cloudpickle.dumps(adapter))
        await copy.open()
        assert await copy.invoke(2) == await adapter.invoke(2) == 4
        await copy.close()


def test_without_trio_asyncio_the_error_names_the_extra(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "trio_asyncio", None)
    with pytest.raises(ImportError, match=r"pip install 'trio-asyncio-io\[asyncio\]'"):
        from_asyncio(double)


@pytest.mark.processes
def test_a_trio_asyncio_that_does_not_support_this_python_is_named(tmp_path: Path) -> None:
    """As version 0.16 in Python 3.14, which lacks the classes that it derives its own from."""
    (tmp_path / "trio_asyncio.py").write_text("import asyncio\nasyncio.AbstractThatIsGone\n")
    code = """
import asyncio, trio
from trio_asyncio_io.adapters import from_asyncio
trio.run(from_asyncio(asyncio.sleep).open)
"""
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    last_line = done.stderr.splitlines()[-1]
    assert last_line.startswith("ImportError: from_asyncio needs a trio-asyncio that supports Python 3.")
    assert "no attribute 'AbstractThatIsGone'" in last_line
    assert last_line.endswith("install a newer trio-asyncio or an older Python")


ELSEWHERE = """
import asyncio
import sys
import threading
import trio
from trio_asyncio_io import ordered_wait
from trio_asyncio_io.adapters import from_asyncio

POLICY, LOOP = asyncio.get_event_loop_policy(), type(asyncio.new_event_loop())

async def run_tasks():
    await asyncio.sleep(0)
    assert type(asyncio.get_running_loop()) is LOOP
    assert asyncio.current_task() in asyncio.all_tasks()
    await asyncio.gather(asyncio.sleep(0), asyncio.ensure_future(asyncio.sleep(0)))
    return 42

def check(*_):
    assert asyncio.get_event_loop_policy() is POLICY
    assert asyncio.run(run_tasks()) == 42
    loop = asyncio.new_event_loop()
    assert type(loop) is LOOP
    asyncio.set_event_loop(loop)
    assert asyncio.get_event_loop() is loop
    assert loop.run_until_complete(run_tasks()) == 42
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    assert asyncio.run_coroutine_threadsafe(run_tasks(), loop).result(60) == 42
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    asyncio.set_event_loop(None)

def check_setting_a_policy():
    class Policy(asyncio.DefaultEventLoopPolicy):
        pass

    policy = Policy()
    asyncio.set_event_loop_policy(policy)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(asyncio.get_event_loop_policy()))
    thread.start()
    thread.join()
    assert seen == [policy]
    asyncio.set_event_loop_policy(None)
    assert type(asyncio.get_event_loop_policy()) is asyncio.DefaultEventLoopPolicy
    asyncio.set_event_loop_policy(POLICY)

async def inside(value):
    loop = asyncio.get_running_loop()
    assert loop is asyncio.get_event_loop() and type(loop) is not LOOP
    assert await asyncio.wait_for(asyncio.gather(asyncio.sleep(0, value)), 60) == [value]
    future = asyncio.Future()
    loop.call_soon(future.set_result, value)
    assert await future == value
    await asyncio.to_thread(check)
    return value

async def main():
    check()
    async with ordered_wait([1, 2], function, capacity=1, timeout=60) as results:
        async for _ in results:
            check()
            await trio.to_thread.run_sync(check)

check()
function = from_asyncio(inside)
assert "trio_asyncio" not in sys.modules, "creating an adapter imports nothing"
check()
for _ in range(2):
    trio.run(main)
    check()
    check_setting_a_policy()
check()
"""


@pytest.mark.processes
def test_asyncio_elsewhere_in_the_process_does_not_change() -> None:
    """Before, during and after the use of the adapter; in the main thread, in other threads and in Trio tasks."""
    subprocess.run([sys.executable, "-c", ELSEWHERE], check=True, timeout=PATIENCE)


@pytest.mark.processes
def test_trio_asyncio_is_not_changed_if_the_program_has_imported_it() -> None:
    code = """
import asyncio, trio, trio_asyncio
from trio_asyncio_io.adapters import from_asyncio
before = asyncio.get_event_loop_policy, asyncio.new_event_loop, trio_asyncio._loop._faked_policy
async def main():
    adapter = from_asyncio(asyncio.sleep)
    await adapter.open()
    await adapter.invoke(0)
    await adapter.close()
trio.run(main)
assert before == (asyncio.get_event_loop_policy, asyncio.new_event_loop, trio_asyncio._loop._faked_policy)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


@pytest.mark.processes
def test_trio_asyncio_still_works_for_a_program_that_imports_it_later() -> None:
    code = """
import asyncio, trio
from trio_asyncio_io.adapters import from_asyncio
async def main():
    adapter = from_asyncio(asyncio.sleep)
    await adapter.open()
    await adapter.close()
trio.run(main)
import trio_asyncio
async def loop():
    await trio_asyncio.trio_as_aio(trio.sleep)(0)
    assert asyncio.get_running_loop() is trio_asyncio.current_loop.get()
trio_asyncio.run(trio_asyncio.aio_as_trio(loop))
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


@pytest.mark.processes
def test_the_other_adapters_do_not_import_it() -> None:
    code = "import sys, trio_asyncio_io.adapters; assert 'trio_asyncio' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


async def test_operators_share_an_asyncio_loop_through_a_policy(autojump_clock: Any) -> None:
    async def double(value: int) -> int:
        return 2 * value

    function = cached(from_asyncio(double))
    async with ordered_wait([1], function, timeout=5.0), ordered_wait([2], function, timeout=5.0) as results:
        assert [result async for result in results] == [4]
