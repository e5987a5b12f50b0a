"""The feeder: the way in, where the buffer's backpressure is felt."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from typing import Any

import trio
from trio.lowlevel import enable_ki_protection

from ._boundary import InterruptibleAsyncIterator, interruptible_enumerate
from ._core.ledger import Ledger
from ._core.queue import Entry
from ._pace import SECONDS_PER_PASS, Pace

__all__ = ["Feeder"]

# For sources that never suspend
ELEMENTS_PER_PASS = 1_000


class Feeder:
    """Accepts elements one after the other: restored ones, a source's, or those that a caller puts.

    Whoever holds the turn feeds; the others wait for it in the order in which they came.

    Args:
        ledger: Where the accepted elements go.
        on_accepted: Called with each new entry.
    """

    def __init__(self, ledger: Ledger, on_accepted: Callable[[Entry], None]) -> None:
        self._ledger = ledger
        self._on_accepted = on_accepted
        self._room = trio.lowlevel.ParkingLot()
        self._is_waiting = False  # to ask the lot costs a call, for each output
        self._turn = trio.StrictFIFOLock()
        self._refusal: type[Exception] | None = None
        self._why = ""
        self._cause: Exception | None = None

    def made_room(self) -> None:
        """The buffer has room again."""
        if self._is_waiting:
            self._is_waiting = False
            self._room.unpark_all()

    def stop(self, refusal: type[Exception], why: str, cause: Exception | None = None) -> None:
        """Take nothing more; whoever puts from now on gets this exception. The first call wins."""
        if self._refusal is None:
            self._refusal, self._why, self._cause = refusal, why, cause
            self.made_room()

    async def put(self, element: Any) -> None:
        """Accept the element as soon as there is room."""
        self._check_open()
        async with self._turn:
            while True:
                self._check_open()
                if self._try_accept(element):
                    return
                await self._wait_for_room()

    def put_nowait(self, element: Any) -> None:
        """Accept the element, or raise `trio.WouldBlock`."""
        self._check_open()
        self._turn.acquire_nowait()
        try:
            if not self._try_accept(element):
                raise trio.WouldBlock
        finally:
            self._turn.release()

    @enable_ki_protection
    async def restore(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Accept the backlog before anything else: the turn is taken when this reports that it has started."""
        async with self._turn:
            task_status.started()
            await self._clear_backlog()

    @enable_ki_protection
    async def feed(self, source: AsyncIterable[Any] | Iterable[Any]) -> None:
        """Accept all that the source gives. It is read one element ahead of the buffer, and never closed."""
        async with self._turn:
            if isinstance(source, AsyncIterable):
                await self._feed_async(source)
            else:
                await self._feed_sync(source)

    async def _feed_async(self, source: AsyncIterable[Any]) -> None:
        pace = Pace(ELEMENTS_PER_PASS)
        async for element in InterruptibleAsyncIterator(source):
            try:
                accepted = self._try_accept(element)
            except BaseException:  # the key's, or an interrupt in it
                self._hold(element)
                raise
            if not accepted:
                self._hold(element)
                await self._clear_backlog()
            if self._refusal is not None:
                return
            await pace.step()

    async def _feed_sync(self, source: Iterable[Any]) -> None:
        accept, on_accepted = self._ledger.accept, self._on_accepted
        current_time = trio.lowlevel.current_clock().current_time  # `trio.current_time` looks for the clock each time
        due = current_time() + SECONDS_PER_PASS
        for count, element in interruptible_enumerate(source):
            now = current_time()
            try:
                entry = accept(element, now)
            except BaseException:  # the key's, or an interrupt in it
                self._hold(element)
                raise
            if entry is not None:
                on_accepted(entry)
            else:
                self._hold(element)
                await self._clear_backlog()
            if self._refusal is not None:
                return
            if now >= due or count % ELEMENTS_PER_PASS == 0:  # `Pace`, less the calls
                await trio.lowlevel.checkpoint()
                due = current_time() + SECONDS_PER_PASS

    def _check_open(self) -> None:
        if self._refusal is not None:
            raise self._refusal(self._why) from self._cause

    def _try_accept(self, element: Any, results: Sequence[Any] | None = None) -> bool:
        entry = self._ledger.accept(element, trio.current_time(), results)
        if entry is None:
            return False
        self._on_accepted(entry)
        return True

    async def _wait_for_room(self) -> None:
        self._is_waiting = True
        await self._room.park()

    def _hold(self, element: Any) -> None:
        """Keep the element in hand, where a snapshot sees it."""
        self._ledger.backlog.append((element, None))

    async def _clear_backlog(self) -> None:
        backlog = self._ledger.backlog
        pace = Pace(ELEMENTS_PER_PASS)
        while backlog:
            if self._try_accept(*backlog[0]):
                backlog.popleft()
                await pace.step()
            else:
                await self._wait_for_room()
