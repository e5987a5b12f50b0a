"""The feeder: accepts elements, and waits while the buffer is full."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from .._core.elements import Watermark, value_of
from .._core.ledger import Ledger
from .._core.queue import Entry
from .._values.describe import describe
from .._values.exceptions import without_frames
from .tasks import InterruptibleAsyncIterator, Pace, Wakeup

# Elements between two checkpoints, of sources that never suspend
ELEMENTS_PER_PASS = 1_000  # while no call runs
FEW_ELEMENTS = 50  # at least, while calls run


@dataclass(eq=False)
class Feeder:
    """Accepts elements one after another, from a snapshot, from a source, or from a caller's `put`.

    A lock orders the callers: first come, first served.

    Args:
        ledger: Accepts the elements.
        on_job: Called when records were accepted, before another task runs.
        on_completed: Called when a watermark or a restored record with results was accepted.
        has_room: Woken when the buffer has room. Only the holder of the lock waits for it.
        jobs_per_pass: How many jobs to queue before the workers may run. More would only fill the buffer; fewer
            would let workers wait, because each may take two jobs between two checkpoints of the feeder.
        known: value -> the outputs of an element that needs no call, or None. See `KnowsOutputs`.
        on_full: Called when an element starts to wait for room, if calls wait for more elements. None: they do not.
    """

    ledger: Ledger
    on_job: Callable[[], None]
    on_completed: Callable[[], None]
    has_room: Wakeup
    jobs_per_pass: int
    known: Callable[[Any], Sequence[Any] | None] | None
    on_full: Callable[[], None] | None

    def __post_init__(self) -> None:
        self._accept: Callable[..., Entry | None] = self.ledger.accept if self.known is None else self._accept_known
        self._lock = trio.StrictFIFOLock()
        self._refusal: type[Exception] | None = None
        self._reason = ""
        self._cause: Exception | None = None

    def stop(self, refusal: type[Exception], reason: str, cause: Exception | None = None) -> None:
        """Accept nothing more. From now on `put` raises `refusal(reason)`. The first call wins."""
        if self._refusal is None:
            self._refusal, self._reason, self._cause = refusal, reason, cause
            self.has_room.wake()

    def close(self) -> None:
        """The operator has ended. From now on the cause has no frames, because they refer to this feeder."""
        self._cause = self._cause and without_frames(self._cause)

    async def put(self, element: Any) -> None:
        """Accept the element as soon as the buffer has room."""
        self._check_open()
        async with self._lock:
            self._check_open()
            while (entry := self._accept(element, trio.current_time())) is None:
                await self._wait_for_room()
                self._check_open()
            self._accepted(entry)

    def put_nowait(self, element: Any) -> None:
        """Accept the element, or raise `trio.WouldBlock`."""
        self._check_open()
        self._lock.acquire_nowait()
        try:
            entry = self._accept(element, trio.current_time())
            if entry is None:
                raise trio.WouldBlock
            self._accepted(entry)
        finally:
            self._lock.release()

    @enable_ki_protection
    async def restore(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Accept the elements of the snapshot. Reports that it has started when it holds the lock."""
        async with self._lock:
            task_status.started()
            await self._clear_backlog()

    @enable_ki_protection
    async def feed(self, source: AsyncIterable[Any] | Iterable[Any]) -> None:
        """Accept all elements of the source. It is read at most one element beyond the buffer, and never closed.

        After the buffer was full, reading continues when a sixteenth of it is free, or when a worker has no job; and if
        calls wait for more elements, when one place is free.
        """
        async with self._lock:
            if self.on_full is None:
                self.ledger.refill_in_bursts()
            self._pace = Pace(self._steps())
            self._current_time = trio.lowlevel.current_clock().current_time  # `trio.current_time` looks it up each time
            if isinstance(source, AsyncIterable):
                await self._feed_async(source)
            else:
                await self._feed_sync(source)

    async def _feed_async(self, source: AsyncIterable[Any]) -> None:
        async for element in InterruptibleAsyncIterator(source):
            must_pause = self._accept_or_hold(element)
            self.on_job()
            if must_pause and not await self._pause():
                return

    @disable_ki_protection
    async def _feed_sync(self, source: Iterable[Any]) -> None:
        # With `map`, nothing can be interrupted between taking an element from the source and accepting it
        for must_pause in map(self._accept_or_hold, source):
            if must_pause and not await self._pause():
                return

    @enable_ki_protection
    def _accept_or_hold(self, element: Any) -> bool:
        """Accept an element of the source. Returns whether to pause before the next one.

        `on_job` must be called before another task runs.
        """
        # Local names: Python takes longer to call what is not a method of the class
        current_time, accept = self._current_time, self._accept
        now = current_time()
        try:
            entry = accept(element, now)
        except StopIteration as error:  # `map` would take it for the end of the source
            self.ledger.put_back(element)
            raise RuntimeError(f"a function of the operator raised StopIteration for {describe(element)}") from error
        except BaseException:  # raised by the user's key, or an interrupt in it
            self.ledger.put_back(element)
            raise
        if entry is None:
            self.ledger.put_back(element)
            return True
        if entry.results is not None:
            self.on_completed()
        return self._pace.is_due(now) or self._refusal is not None

    @enable_ki_protection
    async def _pause(self) -> bool:
        """Wait until the held element is accepted, or run a checkpoint. Returns whether to continue."""
        self.on_job()
        if self.ledger.backlog:
            await self._clear_backlog()
        elif self._refusal is None:
            await self._pace.checkpoint()
            self._pace.steps_left = self._steps()
        return self._refusal is None

    def _steps(self) -> int:
        """The number of elements until the next checkpoint."""
        if not self.ledger.counters.running:  # at the start, or the calls do not suspend
            return max(ELEMENTS_PER_PASS, self.jobs_per_pass)
        return max(FEW_ELEMENTS, self.jobs_per_pass - len(self.ledger.jobs))

    async def _clear_backlog(self) -> None:
        pace = Pace(ELEMENTS_PER_PASS)
        while self.ledger.backlog:
            entry = self.ledger.accept_held(trio.current_time(), self._accept)
            if entry is None:
                await self._wait_for_room()
            else:
                self._accepted(entry)
                await pace.step()

    async def _wait_for_room(self) -> None:
        self.ledger.wait_for_room(trio.current_time())
        if self.on_full is not None:
            self.on_full()
        try:
            await self.has_room.wait()
        finally:
            self.ledger.have_room(trio.current_time())

    def _check_open(self) -> None:
        if self._refusal is not None:
            raise self._refusal(self._reason) from self._cause

    def _accepted(self, entry: Entry) -> None:
        if entry.results is None:
            self.on_job()
        else:
            self.on_completed()

    def _accept_known(self, element: Any, now: float, results: Sequence[Any] | None = None) -> Entry | None:
        """Accept an element, with its outputs if the function knows them."""
        assert self.known is not None
        if results is None and not isinstance(element, Watermark) and self.ledger.has_room():
            results = self.known(value_of(element))
        return self.ledger.accept(element, now, results)
