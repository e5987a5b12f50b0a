"""Trips to a thread: one at a time, with all that came meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trio_asyncio_io.policies._trips import Trips

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
    trips = Trips[str, str](work)

    async def ask(item: str) -> None:
        got.append(await trips.ask(item))

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
    trips = Trips[str, str](Work())
    with pytest.raises(ValueError, match="bad"):
        await trips.ask("bad")
    assert await trips.ask("good") == "good!"


async def test_an_exception_of_the_work_is_for_all_who_asked() -> None:
    def broken(items: list[str]) -> list[str]:
        raise OSError("broken")

    trips = Trips[str, str](broken)
    for _ in range(2):
        with pytest.raises(OSError, match="broken"):
            await trips.ask("a")


async def test_who_waits_for_a_trip_to_begin_just_leaves(nothing_left: NothingLeft) -> None:
    work = Work()
    work.is_open.clear()
    trips = Trips[str, str](work)
    with nothing_left():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trips.ask, "a")
            await work.has_begun.wait()
            with trio.CancelScope() as scope:
                scope.cancel()
                await trips.ask("b")
            assert scope.cancelled_caught
            work.is_open.set()
        assert await trips.ask("c") == "c!"
    assert work.trips == [["a"], ["c"]]


async def test_nobody_joins_a_trip_that_all_have_left() -> None:
    """Trio runs what is ready in random order, so this is tried often."""
    for _ in range(30):
        work = Work()
        work.is_open.clear()
        trips = Trips[str, str](work)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trips.ask, "a")
            await work.has_begun.wait()
            async with trio.open_nursery() as leaving:
                leaving.start_soon(trips.ask, "b")
                await wait_all_tasks_blocked()
                leaving.cancel_scope.cancel()
                with trio.CancelScope(shield=True):
                    await trio.lowlevel.checkpoint()
                    nursery.start_soon(trips.ask, "c")
            await wait_all_tasks_blocked()
            work.is_open.set()


async def test_a_trip_under_way_is_waited_for(nothing_left: NothingLeft) -> None:
    work = Work()
    work.is_open.clear()
    trips = Trips[str, str](work)
    with nothing_left():
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with trio.CancelScope() as scope:
                    nursery.start_soon(leave, scope)
                    assert await trips.ask("a") == "a!"

            async def leave(scope: trio.CancelScope) -> None:
                await work.has_begun.wait()
                scope.cancel()
                await wait_all_tasks_blocked()
                work.is_open.set()

            nursery.start_soon(ask)
