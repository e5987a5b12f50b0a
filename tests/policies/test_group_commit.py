"""GroupCommit: one thread call at a time, for all requests that have arrived."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.support import PATIENCE
from trio_asyncio_io.policies._persistent import GroupCommit

NothingLeft = Callable[[], AbstractContextManager[None]]


class Executor:
    """Executes requests in a thread, once its gate is open. Records the groups."""

    def __init__(self) -> None:
        self.groups: list[list[Any]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.has_begun = trio.Event()

    def __call__(self, requests: list[Any]) -> list[Any]:
        self.groups.append(list(requests))
        trio.from_thread.run_sync(self.has_begun.set)
        assert self.gate.wait(PATIENCE)
        return [f"{request}!" for request in requests]


@pytest.fixture
async def executor() -> Executor:
    """Its gate is closed."""
    executor = Executor()
    executor.gate.clear()
    return executor


async def test_requests_that_arrive_during_a_call_form_the_next_group(
    executor: Executor, nothing_left: NothingLeft
) -> None:
    outcomes = []
    group_commit: Any = GroupCommit(executor)

    async def submit(request: str) -> None:
        outcomes.append(await group_commit.submit(request))

    with nothing_left():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(submit, "a")
            await executor.has_begun.wait()
            for request in "bcd":
                nursery.start_soon(submit, request)
                await wait_all_tasks_blocked()
            executor.gate.set()
    assert executor.groups == [["a"], ["b", "c", "d"]]
    assert sorted(outcomes) == ["a!", "b!", "c!", "d!"]


async def test_a_request_is_withdrawn_if_it_is_cancelled_before_its_group_is_executed(
    executor: Executor, nothing_left: NothingLeft
) -> None:
    group_commit: Any = GroupCommit(executor)
    with nothing_left():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(group_commit.submit, "a")
            await executor.has_begun.wait()
            with trio.CancelScope() as scope:
                scope.cancel()
                await group_commit.submit("b")
            assert scope.cancelled_caught
            executor.gate.set()
        assert await group_commit.submit("c") == "c!"
    assert executor.groups == [["a"], ["c"]]


async def test_no_request_joins_an_abandoned_group() -> None:
    """Repeated, because Trio runs ready tasks in random order."""
    for _ in range(30):
        executor = Executor()
        executor.gate.clear()
        group_commit: Any = GroupCommit(executor)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(group_commit.submit, "a")
            await executor.has_begun.wait()
            async with trio.open_nursery() as leaving:
                leaving.start_soon(group_commit.submit, "b")
                await wait_all_tasks_blocked()
                leaving.cancel_scope.cancel()
                with trio.CancelScope(shield=True):
                    await trio.lowlevel.checkpoint()
                    nursery.start_soon(group_commit.submit, "c")
            await wait_all_tasks_blocked()
            executor.gate.set()


async def test_a_group_that_is_being_executed_is_waited_for(executor: Executor, nothing_left: NothingLeft) -> None:
    group_commit: Any = GroupCommit(executor)
    with nothing_left():
        async with trio.open_nursery() as nursery:

            async def submit() -> None:
                with trio.CancelScope() as scope:
                    nursery.start_soon(cancel, scope)
                    assert await group_commit.submit("a") == "a!"

            async def cancel(scope: trio.CancelScope) -> None:
                await executor.has_begun.wait()
                scope.cancel()
                await wait_all_tasks_blocked()
                executor.gate.set()

            nursery.start_soon(submit)
