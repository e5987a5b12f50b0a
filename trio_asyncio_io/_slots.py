"""Slots: a record gives its slot back during a long wait, and takes one again before its next attempt.

The wait is a backoff, or one for the gates of its key. Its worker sleeps on without a slot, so the record keeps its
task, its context and its place in the buffer. The pool starts another worker if there is a job. To get a slot again,
the record becomes a job, ordered by age as all jobs are. A worker that takes such a job hands its slot over, and ends.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from typing import Any, Protocol, TypeAlias

import trio
from trio.lowlevel import enable_ki_protection

from ._core.ledger import Ledger
from ._core.options import Options
from ._core.per_key import PerKey
from ._core.queue import Entry
from ._deadlines import Deadlines

__all__ = ["HandedOverError", "HandsOver", "HandsOverAlways", "Slots", "slots_for"]

Call: TypeAlias = Callable[[Entry], Awaitable[Any]]


class _Pool(Protocol):
    """The pool of workers that have slots."""

    def shrink(self) -> None: ...
    def try_grow(self) -> bool: ...
    def dispatch(self) -> None: ...


class HandedOverError(Exception):
    """Ends a worker that has handed its slot over."""


class Slots:
    """The slots of one operator whose records give theirs back.

    Args:
        ledger: Counts.
        deadlines: While a record waits for a slot, its time stands still.
        seconds: A backoff at least this long gives the slot back; `math.inf`: none does.
    """

    def __init__(self, ledger: Ledger, deadlines: Deadlines, seconds: float) -> None:
        self._ledger = ledger
        self._deadlines = deadlines
        self._waiting: dict[int, trio.Event] = {}  # by sequence
        self.seconds = seconds

    def open(self, pool: _Pool) -> None:
        """The operator starts."""
        self._pool = pool

    def around(self, call: Call) -> Call:
        """The same calls for an element. After the last one, its time without a slot is complete."""

        @enable_ki_protection
        async def whole(entry: Entry) -> Any:
            try:
                return await call(entry)
            finally:
                self._ledger.flow.yields.finish(entry.sequence)

        return whole

    @enable_ki_protection
    async def sleep(self, entry: Entry, seconds: float) -> None:
        """Sleep without the slot, and then wait for one. The wait does not count towards the timeout.

        Cancellation: the operator stops, and the record has no slot.
        """
        if seconds < self.seconds or (paused := self._deadlines.pause()) is None:
            await trio.sleep(seconds)
            return
        _, deadline = paused
        now = trio.current_time()
        self._ledger.yield_slot(entry, now)
        self._pool.shrink()
        try:
            await trio.sleep_until(min(now + seconds, deadline))
            since = trio.current_time()
            await self._wait_for_slot(entry)
        except BaseException:
            self._ledger.cancel_without_slot(entry, trio.current_time())
            raise
        waited = trio.current_time() - since
        self._ledger.regain_slot(entry, waited, since)
        self._deadlines.resume(paused, waited)
        if since >= deadline:
            await trio.sleep_forever()  # the deadline expires now

    @enable_ki_protection
    async def wait(self, entry: Entry, event: trio.Event) -> None:
        """Wait for an event without the slot, and then for one. The time of the record must not run meanwhile.

        Cancellation: the operator stops, and the record has no slot.
        """
        began = trio.current_time()
        self._ledger.yield_slot(entry, began)
        self._pool.shrink()
        try:
            await event.wait()
            since = trio.current_time()
            await self._wait_for_slot(entry)
        except BaseException:
            self._ledger.cancel_without_slot(entry, trio.current_time())
            raise
        self._ledger.regain_slot(entry, trio.current_time() - since, began)

    @enable_ki_protection
    def hand_over(self) -> None:
        """Give the slot of the calling worker to the record that is the next job, if it waits for one.

        Raises:
            HandedOverError: The worker has no slot any more.
        """
        entry = self._ledger.take_request_for_slot()
        if entry is not None:
            self._waiting.pop(entry.sequence).set()
            raise HandedOverError

    async def _wait_for_slot(self, entry: Entry) -> None:
        if self._pool.try_grow():
            return
        is_free = self._waiting[entry.sequence] = trio.Event()
        self._ledger.request_slot(entry)
        self._pool.dispatch()
        await is_free.wait()


def slots_for(options: Options, ledger: Ledger, deadlines: Deadlines) -> Slots | None:
    """The slots, if records may give theirs back: during backoffs, or when their retries wait for gates of a key."""
    if options.yield_slot_after is not None:
        return Slots(ledger, deadlines, options.yield_slot_after)
    has_keys = any(isinstance(gate, PerKey) for gate in options.gates)
    return Slots(ledger, deadlines, inf) if has_keys and options.retry is not None else None


class HandsOver:
    """What a worker does in addition if records give their slots back while they wait for gates.

    Args:
        slots: The operator's.
        arguments: Those of the worker.
    """

    def __init__(self, slots: Slots, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._slots = slots

    @enable_ki_protection
    async def run(self) -> None:
        with suppress(HandedOverError):
            await super().run()  # type: ignore[misc]

    def _take(self, now: float) -> Entry:
        self._slots.hand_over()
        return super()._take(now)  # type: ignore[misc, no-any-return]


class HandsOverAlways(HandsOver):
    """The same, if they give them back also while the gates are idle, or without gates."""

    def _start(self, now: float) -> Entry:
        self._slots.hand_over()
        return super()._start(now)  # type: ignore[misc, no-any-return]
