"""GroupCommit to a thread: one at a time, with all that came meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trio_asyncio_io.policies._persistent.group_commit import GroupCommit

NothingLeft = Callable[[], AbstractContextManager[None]]


class Work:
    """Blocking work that waits, if it is closed, until it is opened."""

    def __init__(self) -> None:
        self.trips: list[list[Any]] = []
        self.is_open = threading.Event()
        self.is_open.set()
        self.has_begun = trio.Event()

    def __call__(self, items: list[Any]) -> list[Any]:
        self.trips.append(list(items))
        trio.from_thread.run_sync(self.has_begun.set)
        assert self.is_open.wait(20)
        return [ValueError(item) if item == "bad" else f"{item}!" for item in items]


async def test_what_is_asked_for_during_a_trip_goes_together_with_the_next(nothing_left: NothingLeft) -> None:
    work, got = Work(), []
    group_commit = GroupCommit[str, str](work)

    async def ask(item: str) -> None:
        got.append(await group_commit.submit(item))

    work.is_open.clear()
    with nothing_left():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "a")
            await work.has_begun.wait()
            for item in "bcd":
                nursery.start_soon(ask, item)
                await wait_all_tasks_blocked()
            work.is_open.set()
    assert work.trips == [["a"], ["b", "c", "d"]]
    assert sorted(got) == ["a!", "b!", "c!", "d!"]


async def test_an_exception_is_for_who_asked() -> None:
    group_commit = GroupCommit[str, str](Work())
    with pytest.raises(ValueError, match="bad"):
        await group_commit.submit("bad")
    assert await group_commit.submit("good") == "good!"


async def test_an_exception_of_the_work_is_for_all_who_asked() -> None:
    def broken(items: list[str]) -> list[str]:
        raise OSError("broken")

    group_commit = GroupCommit[str, str](broken)
    for _ in range(2):
        with pytest.raises(OSError, match="broken"):
            await group_commit.submit("a")


async def test_who_waits_for_a_trip_to_begin_just_leaves(nothing_left: NothingLeft) -> None:
    work = Work()
    work.is_open.clear()
    group_commit = GroupCommit[str, str](work)
    with nothing_left():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(group_commit.submit, "a")
            await work.has_begun.wait()
            with trio.CancelScope() as scope:
                scope.cancel()
                await group_commit.submit("b")
            assert scope.cancelled_caught
            work.is_open.set()
        assert await group_commit.submit("c") == "c!"
    assert work.trips == [["a"], ["c"]]


async def test_nobody_joins_a_trip_that_all_have_left() -> None:
    """Trio runs what is ready in random order, so this is tried often."""
    for _ in range(30):
        work = Work()
        work.is_open.clear()
        group_commit = GroupCommit[str, str](work)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(group_commit.submit, "a")
            await work.has_begun.wait()
            async with trio.open_nursery() as leaving:
                leaving.start_soon(group_commit.submit, "b")
                await wait_all_tasks_blocked()
                leaving.cancel_scope.cancel()
                with trio.CancelScope(shield=True):
                    await trio.lowlevel.checkpoint()
                    nursery.start_soon(group_commit.submit, "c")
            await wait_all_tasks_blocked()
            work.is_open.set()


async def test_a_trip_under_way_is_waited_for(nothing_left: NothingLeft) -> None:
    work = Work()
    work.is_open.clear()
    group_commit = GroupCommit[str, str](work)
    with nothing_left():
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with trio.CancelScope() as scope:
                    nursery.start_soon(leave, scope)
                    assert await group_commit.submit("a") == "a!"

            async def leave(scope: trio.CancelScope) -> None:
                await work.has_begun.wait()
                scope.cancel()
                await wait_all_tasks_blocked()
                work.is_open.set()

            nursery.start_soon(ask)
