"""Trips to a thread: one at a time, and what is asked for meanwhile goes together with the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import trio

from ._fresh import fresh
from ._shared import SharedCall

__all__ = ["Trips"]

I = TypeVar("I")  # noqa: E741 - an item
O = TypeVar("O")  # noqa: E741 - its outcome


class _Trip(Generic[I, O]):
    """The items that go together, and the call that takes them there."""

    __slots__ = ("call", "items")

    call: SharedCall[Sequence[O | Exception]]

    def __init__(self) -> None:
        self.items: list[I] = []


class Trips(Generic[I, O]):
    """Blocking work for many tasks, in a thread, with as few changes of thread as can be.

    Args:
        work: Items -> as many outcomes. It blocks, is called in a thread, and never twice at a time.
    """

    def __init__(self, work: Callable[[list[I]], Sequence[O | Exception]]) -> None:
        self._work = work
        self._free = trio.Lock()
        self._limiter = trio.CapacityLimiter(1)  # of our own: Trio's default one is for others
        self._next: _Trip[I, O] | None = None

    async def ask(self, item: I) -> O:
        """The item's outcome; raised, if it is an exception.

        Cancellation: before the trip begins the caller just leaves. One under way is waited for, and its outcome
        counts.
        """
        trip = self._next
        if trip is None or trip.call.is_abandoned:
            trip = self._new_trip()
        number = len(trip.items)
        trip.items.append(item)
        outcome = (await trip.call.wait())[number]
        if isinstance(outcome, Exception):
            raise fresh(outcome)
        return outcome

    def _new_trip(self) -> _Trip[I, O]:
        trip = _Trip[I, O]()
        trip.call = SharedCall(lambda: self._travel(trip))
        trip.call.start("trio_asyncio_io trip to a thread")
        self._next = trip
        return trip

    async def _travel(self, trip: _Trip[I, O]) -> Sequence[O | Exception]:
        try:
            await self._free.acquire()
        finally:
            if self._next is trip:
                self._next = None
        try:
            return await trio.to_thread.run_sync(self._work, trip.items, limiter=self._limiter)
        finally:
            self._free.release()
