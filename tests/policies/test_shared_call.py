"""SharedCall: each waiter gets the outcome, and the call never outlives its waiters."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from functools import partial
from traceback import extract_tb
from typing import Any
from weakref import ref

import pytest
import trio
from trio.lowlevel import current_statistics
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_asyncio_io.policies._single_flight import CallTasks, SharedCall
from trio_asyncio_io.testing import Recorder, Scripted, Step

NothingLeft = Callable[[], AbstractContextManager[None]]


def started(function: Any) -> SharedCall[Any]:
    return CallTasks("shared").start(partial(function, "a"))


async def waited(call: SharedCall[Any], *patiences: float) -> list[Any]:
    """The outcome of each waiter and the instant at which it left. Each is cancelled after its patience."""
    found: list[Any] = [None] * len(patiences)

    async def wait(number: int, patience: float) -> None:
        outcome: Any = "nothing"
        with trio.move_on_after(patience):
            try:
                outcome = await call.wait()
            except Exception as error:  # noqa: BLE001 - the outcome
                outcome = error
        found[number] = (outcome, trio.current_time())

    async with trio.open_nursery() as nursery:
        for number, patience in enumerate(patiences):
            nursery.start_soon(wait, number, patience)
    return found


async def test_a_result_returned_despite_the_cancellation_counts(autojump_clock: MockClock) -> None:
    async def stubborn(value: str) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(3.0)
        return value

    assert await waited(started(stubborn), 1.0) == [("a", 3.0)]


async def test_an_exception_raised_while_the_call_unwinds_counts(autojump_clock: MockClock) -> None:
    async def clumsy(value: str) -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise OSError("broken") from None

    [(error, instant)] = await waited(started(clumsy), 1.0)
    assert (str(error), instant) == ("broken", 1.0)


async def test_each_of_several_waiters_gets_a_copy_of_the_exception(autojump_clock: MockClock) -> None:
    async def failing(value: str) -> None:
        await trio.sleep(1.0)
        busy = OSError(5, "busy")
        busy.add_note("from the service")
        raise busy from KeyError(value)

    got = await waited(started(failing), math.inf, math.inf)
    errors = [error for error, _ in got]
    assert errors[0] is not errors[1]
    for number, error in enumerate(errors):
        error.add_note(f"element {number}")
        assert (type(error), error.args, error.errno) == (OSError, (5, "busy"), 5)
        assert error.__notes__ == ["from the service", f"element {number}"]
        assert isinstance(error.__cause__, KeyError)
        assert [frame.name for frame in extract_tb(error.__traceback__)] == ["wait", "wait", "_outcome", "failing"]


async def test_the_traceback_of_an_exception_that_cannot_be_copied_does_not_grow(autojump_clock: MockClock) -> None:
    class Different(Exception):  # noqa: N818 - a short name
        def __str__(self) -> str:
            return str(id(self))

    got = await waited(started(Scripted(default=Step(1.0, error=Different()))), *[math.inf] * 5)
    assert len({id(error) for error, _ in got}) == 1
    assert len(extract_tb(got[0][0].__traceback__)) <= 5


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
async def test_an_exit_exception_is_raised_by_wait_and_does_not_end_the_run(
    kind: type[BaseException], nothing_left: NothingLeft
) -> None:
    with nothing_left():
        call = started(Scripted(default=Step(error=kind("stop"))))
        with pytest.raises(kind, match="stop"):
            await call.wait()


async def test_a_group_is_raised_without_its_cancelled(autojump_clock: MockClock) -> None:
    async def failing(value: str) -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise OSError(value)

    async def both(value: str) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(failing, value)
            nursery.start_soon(trio.sleep_forever)

    call = started(both)
    with pytest.raises(ExceptionGroup) as caught, trio.move_on_after(1.0):
        await call.wait()
    assert [type(error) for error in caught.value.exceptions] == [OSError]


async def test_the_call_has_the_context_variables_of_its_creator() -> None:
    tenant = ContextVar("tenant", default="nobody")

    async def read(value: str) -> str:
        return tenant.get()

    tenant.set("me")
    call = started(read)
    tenant.set("another")
    assert await call.wait() == "me"


async def test_a_waiter_that_arrives_right_after_the_end_gets_the_outcome() -> None:
    got = []

    async def wait() -> None:
        with pytest.raises(OSError, match="busy") as caught:
            await call.wait()
        got.append(caught.value)

    call = SharedCall(trio.sleep_forever, trio.CancelScope())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        call.end(error=OSError("busy"))
        await wait()
    assert len(got) == 2


def test_the_end_of_the_trio_run_cancels_the_call() -> None:
    """Only a system task can still wait for it then."""
    got = []

    async def waiting() -> None:
        call = started(recorder)
        try:
            await call.wait()
        except BaseException as error:
            got.append(error)
            raise

    async def stubborn() -> None:
        call = started(recorder)
        with trio.CancelScope(shield=True):
            try:
                await call.wait()
            except RuntimeError as error:
                got.append(error)

    async def main() -> None:
        trio.lowlevel.spawn_system_task(waiting)
        trio.lowlevel.spawn_system_task(stubborn)
        await wait_all_tasks_blocked()

    recorder = Recorder(Scripted(default=Step(math.inf)))
    trio.run(main)
    assert {type(error) for error in got} == {trio.Cancelled, RuntimeError}
    assert (recorder.running, recorder.cancelled) == (0, 2)


@pytest.fixture
async def tasks() -> AsyncIterator[CallTasks]:
    """Tasks that are open."""
    tasks = CallTasks("shared")
    tasks.open()
    yield tasks
    await tasks.close()


async def test_open_tasks_make_one_call_after_another(tasks: CallTasks) -> None:
    async def task_of_call() -> trio.lowlevel.Task:
        await trio.lowlevel.checkpoint()
        return trio.lowlevel.current_task()

    first = [tasks.start(task_of_call) for _ in range(3)]
    used = {await call.wait() for call in first}
    assert len(used) == 3
    assert await tasks.start(task_of_call).wait() in used


async def test_each_call_in_a_reused_task_has_the_context_variables_of_its_own_creator(tasks: CallTasks) -> None:
    tenant = ContextVar("tenant", default="nobody")

    async def read() -> str:
        before = tenant.get()
        tenant.set("of the call")
        await trio.lowlevel.checkpoint()
        return before

    got = []
    for each in ("me", "you"):
        tenant.set(each)
        got.append(await tasks.start(read).wait())
    assert got == ["me", "you"]
    assert tenant.get() == "you"


@pytest.mark.parametrize("ends", ["raises", "is cancelled", "returns although it is cancelled"])
async def test_a_call_does_not_disturb_the_next_one(tasks: CallTasks, ends: str, autojump_clock: MockClock) -> None:
    async def first() -> None:
        if ends == "raises":
            raise OSError("busy")
        with trio.CancelScope(shield=ends != "is cancelled"):
            await trio.sleep(2.0)

    async def second() -> str:
        await trio.sleep(2.0)
        return "second"

    with suppress(OSError), trio.move_on_after(1.0):
        await tasks.start(first).wait()
    assert await tasks.start(second).wait() == "second"


async def test_a_waiter_that_is_cancelled_after_the_end_does_not_cancel_the_next_call(
    tasks: CallTasks, autojump_clock: MockClock
) -> None:
    async def call() -> str:
        await trio.sleep(1.0)
        return "result"

    ended = tasks.start(call)
    await ended.wait()
    running = tasks.start(call)
    await wait_all_tasks_blocked()
    with trio.CancelScope() as scope:
        scope.cancel()
        assert await ended.wait() == "result"
    assert await running.wait() == "result"


async def test_an_idle_task_keeps_neither_its_last_call_nor_the_creator(tasks: CallTasks) -> None:
    class Thing:
        """Can be referred to weakly."""

    async def call(thing: Thing) -> Thing:
        return thing

    async def create() -> None:
        thing = Thing()
        seen.extend((ref(thing), ref(trio.lowlevel.current_task())))
        await tasks.start(partial(call, thing)).wait()

    seen: list[ref[Any]] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(create)
    assert [each() for each in seen] == [None, None]


async def test_closing_ends_idle_tasks_at_once_and_others_after_their_calls(nothing_left: NothingLeft) -> None:
    async def call(event: trio.Event) -> None:
        await event.wait()

    async def wait_for(call: SharedCall[None]) -> None:
        await call.wait()

    tasks = CallTasks("shared")
    tasks.open()
    events = [trio.Event() for _ in range(4)]
    with nothing_left():
        async with trio.open_nursery() as nursery:
            for event in events:
                nursery.start_soon(wait_for, tasks.start(partial(call, event)))
            await wait_all_tasks_blocked()
            for event in events[:3]:
                event.set()
            await wait_all_tasks_blocked()
            before = current_statistics().tasks_living
            with trio.CancelScope() as scope:
                scope.cancel()
                await tasks.close()
            assert current_statistics().tasks_living == before - 3
            events[3].set()
        await tasks.start(partial(call, events[0])).wait()


def test_idle_tasks_end_with_their_trio_run() -> None:
    async def call() -> str:
        return "result"

    async def main(*, is_open: bool) -> None:
        if is_open:
            tasks.open()
        assert await tasks.start(call).wait() == "result"

    tasks = CallTasks("shared")
    trio.run(partial(main, is_open=True))
    assert tasks.idle == []
    trio.run(partial(main, is_open=False))
