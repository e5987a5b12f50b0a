"""The runtime: one loop per process, and functions that stay open from task to task."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from errno import EMFILE
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

import udfs._trio_thread.runtime
from tests.support import PATIENCE
from trio_asyncio_io import AsyncFunction
from udfs._spark_thread.bridge import enrich
from udfs._trio_thread.runtime import Runtime


class Counted(AsyncFunction[int, int]):
    """Counts the calls of `open` and `close`."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed = 0
        self.called_while_shut = 0
        self.is_closed = threading.Event()

    async def open(self) -> None:
        await trio.lowlevel.checkpoint()
        self.opened += 1

    async def invoke(self, value: int) -> int:
        self.called_while_shut += self.opened == self.closed
        return value

    async def close(self) -> None:
        await trio.lowlevel.checkpoint()
        self.closed += 1
        self.is_closed.set()


def test_a_loop_that_cannot_start_is_an_error_with_the_cause_and_the_next_task_tries_again(
    run_task: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_many_files(*_: Any, **__: Any) -> None:
        raise OSError(EMFILE, "Too many open files")

    monkeypatch.setattr(Runtime, "_of_process", {})
    monkeypatch.setattr(trio, "run", too_many_files)
    with pytest.raises(RuntimeError, match=r"cannot start the loop that makes the calls .*Too many open files"):
        run_task(settings(Counted()))
    assert not Runtime._of_process


def test_the_loop_runs_in_a_daemon_thread_of_its_own() -> None:
    """Otherwise a process that does not exit by `os._exit`, as Spark's workers do, would never end."""
    Runtime.current()
    [thread] = [thread for thread in threading.enumerate() if thread.name == "udfs-trio"]
    assert thread.daemon
    assert thread is not threading.current_thread()


def test_importing_the_package_starts_no_thread() -> None:
    """Spark's daemon may import the package before it forks, and a fork does not copy threads."""
    program = "import threading, udfs; print(threading.active_count())"
    out = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(udfs.__file__).parents[1],
    )
    assert out.stdout.strip() == "1"


def test_a_function_is_opened_once_for_consecutive_tasks(settings: Any, run_task: Any) -> None:
    function = Counted()
    work = settings(function)
    assert run_task(work) == [1, 2, 3]
    assert run_task(work) == [1, 2, 3]
    assert (function.opened, function.closed, function.called_while_shut) == (1, 0, 0)


def test_a_function_is_opened_once_for_concurrent_tasks(settings: Any, run_task: Any, gate: Any) -> None:
    """The second task starts while the first is still opening."""
    opening = gate()

    class Slow(Counted):
        async def open(self) -> None:
            await opening.wait()
            await super().open()

    function = Slow()
    work = settings(function)
    results: list[Any] = []
    tasks = [threading.Thread(target=lambda: results.append(run_task(work))) for _ in range(3)]
    for task in tasks:
        task.start()
    opening.wait_until_reached()
    opening.open()
    for task in tasks:
        task.join(PATIENCE)
    assert results == [[1, 2, 3]] * 3
    assert (function.opened, function.closed, function.called_while_shut) == (1, 0, 0)


def test_each_function_has_an_instance_of_its_own(settings: Any, run_task: Any) -> None:
    one, other = Counted(), Counted()
    run_task(settings(one))
    run_task(settings(other))
    assert (one.opened, other.opened) == (1, 1)


def test_a_function_is_unpacked_once_per_process(settings: Any, run_task: Any, live: Any) -> None:
    unpacked = []

    class Unpacked(type(live(len))):  # type: ignore[misc]
        def unpack(self) -> Any:
            unpacked.append(self.digest)
            return super().unpack()

    work = settings(Unpacked(Counted(), "counted"))
    run_task(work)
    run_task(work)
    assert len(unpacked) == 1


def test_calls_go_on_while_another_function_imports_its_modules(settings: Any, run_task: Any, live: Any) -> None:
    called = threading.Event()

    class Importing(type(live(len))):  # type: ignore[misc]
        def unpack(self) -> Any:
            task.start()
            assert called.wait(PATIENCE), "the loop makes no calls"
            return super().unpack()

    async def call(number: int) -> int:
        called.set()
        return number

    task = threading.Thread(target=run_task, args=(settings(call),))
    assert run_task(settings(Importing(Counted(), "importing"))) == [1, 2, 3]
    task.join(PATIENCE)


def test_names_are_resolved_while_all_threads_of_trio_are_in_use(settings: Any, run_task: Any) -> None:
    """By functions, or by hosts whose name server does not answer."""
    is_over = threading.Event()

    async def resolve(_: int) -> bool:
        threads = trio.to_thread.current_default_thread_limiter()
        wait = partial(trio.to_thread.run_sync, is_over.wait, abandon_on_cancel=True)
        try:
            async with trio.open_nursery() as nursery:
                for _ in range(int(threads.total_tokens)):
                    nursery.start_soon(wait)
                while threads.available_tokens:
                    await trio.lowlevel.checkpoint()
                found = await trio.socket.getaddrinfo("localhost", 80)
                named = await trio.socket.getnameinfo(("127.0.0.1", 80), 0)
                is_over.set()
            return bool(found and named)
        finally:
            is_over.set()

    assert run_task(settings(resolve), [1]) == [True]


def test_an_idle_function_is_closed_and_the_next_task_opens_it_again(
    settings: Any, run_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(udfs._trio_thread.runtime, "IDLE_SECONDS", 0.001)
    function = Counted()
    work = settings(function)
    for times in (1, 2):
        assert run_task(work) == [1, 2, 3]
        assert function.is_closed.wait(PATIENCE)
        function.is_closed.clear()
        assert (function.opened, function.closed, function.called_while_shut) == (times, times, 0)


def test_a_function_in_use_is_not_closed_by_the_end_of_another_task(
    settings: Any, run_task: Any, gate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(udfs._trio_thread.runtime, "IDLE_SECONDS", 0.001)
    closed_in_between = []
    first_task_over = gate()

    class Two(Counted):
        async def invoke(self, value: int) -> int:
            if value == 0:
                await first_task_over.wait()
                await trio.testing.wait_all_tasks_blocked()  # anything that would close it has run
                closed_in_between.append(self.closed)
            return value

    function = Two()
    work = settings(function)
    long = threading.Thread(target=run_task, args=(work, [0]))
    long.start()
    first_task_over.wait_until_reached()
    run_task(work, [1])
    first_task_over.open()
    long.join(PATIENCE)
    assert closed_in_between == [0]
    assert function.is_closed.wait(PATIENCE)
    assert (function.opened, function.closed) == (1, 1)


def test_an_exception_in_close_is_logged(
    settings: Any, run_task: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(udfs._trio_thread.runtime, "IDLE_SECONDS", 0.001)

    class Broken(Counted):
        async def close(self) -> None:
            await super().close()
            raise OSError("it is gone already")

    function = Broken()
    before = Runtime.current()
    run_task(settings(function))
    assert function.is_closed.wait(PATIENCE)
    run_task(settings(Counted()))  # the loop is still running
    assert Runtime.current() is before
    assert re.search(r"'Broken \w+' failed, or could not be closed\n(.*\n)*OSError: it is gone already", caplog.text)


def test_an_open_that_fails_is_reported_and_the_next_task_opens_again(settings: Any, run_task: Any) -> None:
    class Flaky(Counted):
        async def open(self) -> None:
            await super().open()
            if self.opened == 1:
                raise ConnectionError("no route to the service")

    function = Flaky()
    work = settings(function)
    with pytest.raises(ConnectionError, match="no route to the service") as caught:
        run_task(work)
    assert caught.value.__notes__ == ["raised by open() of Flaky, before its first call"]
    assert run_task(work) == [1, 2, 3]
    assert run_task(work) == [1, 2, 3]
    assert function.opened == 2


def test_a_function_that_cannot_be_unpacked_is_reported(settings: Any, run_task: Any, live: Any) -> None:
    class Lost(type(live(len))):  # type: ignore[misc]
        def unpack(self) -> Any:
            raise ModuleNotFoundError("No module named 'lookups'")

    with pytest.raises(ModuleNotFoundError, match="lookups"):
        run_task(settings(Lost(None, "lost")))


def test_a_task_that_is_stopped_while_it_opens_leaves_the_function_to_the_next(
    settings: Any, run_task: Any, rows: Any, gate: Any
) -> None:
    opening = gate()

    class Slow(Counted):
        async def open(self) -> None:
            await opening.wait()
            await super().open()

    function = Slow()
    work = settings(function)

    def batches() -> Any:
        yield rows([1])
        opening.wait_until_reached()
        raise OSError("the input broke")

    with pytest.raises(OSError, match="the input broke"):
        list(enrich(batches(), work))
    opening.open()
    assert run_task(work) == [1, 2, 3]
    assert (function.opened, function.called_while_shut) == (1, 0)


def test_the_switch_interval_is_short(settings: Any, run_task: Any) -> None:
    run_task(settings(Counted()))
    assert sys.getswitchinterval() == pytest.approx(udfs._trio_thread.runtime.SWITCH_SECONDS)


def test_an_open_that_hangs_fails_the_task_and_the_next_task_opens_again(settings: Any, run_task: Any) -> None:
    class Hanging(Counted):
        async def open(self) -> None:
            await super().open()
            if self.opened == 1:
                await trio.sleep_forever()

    function = Hanging()
    with pytest.raises(TimeoutError, match=r"'Hanging \w+' did not open within open_timeout=0\.01 s\. Check"):
        run_task(settings(function, open_timeout=0.01))
    assert run_task(settings(function)) == [1, 2, 3]


def test_open_timeout_applies_to_on_timeout_too(settings: Any, run_task: Any) -> None:
    class Hanging(Counted):
        async def open(self) -> None:
            await trio.sleep_forever()

    with pytest.raises(TimeoutError, match="Hanging"):
        run_task(settings(Counted(), on_timeout=Hanging(), open_timeout=0.01))
