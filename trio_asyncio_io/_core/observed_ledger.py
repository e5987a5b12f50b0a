"""The observed ledger: a ledger that also calls the user's observer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from .describe import describe
from .keyed import KeyedStreamElementQueue
from .ledger import Ledger
from .observer import Observer
from .options import Options
from .ordered import OrderedStreamElementQueue
from .queue import Entry, StreamElementQueue
from .snapshot import Snapshot
from .unordered import UnorderedStreamElementQueue

__all__ = ["ObservedLedger", "ledger_for"]

_log = logging.getLogger("trio_asyncio_io")


class ObservedLedger(Ledger):
    """A ledger that calls an observer at each step.

    After a hook has raised, only the end of an invocation whose start was observed is still reported, so that the
    observer can release what it holds for that invocation.
    """

    def __init__(
        self,
        queue: StreamElementQueue,
        restored: Snapshot | None = None,
        *,
        capacity: int | None = None,
        counts_dead_letters: bool = True,
        observer: Observer,
        options: Options | None = None,
    ) -> None:
        super().__init__(queue, restored, capacity=capacity, counts_dead_letters=counts_dead_letters)
        self._observer = observer
        self._options = options
        self._has_failed = False
        self._started: set[int] = set()  # sequences of the invocations whose end will be reported

    def begin(self, clocks: tuple[float, float]) -> None:
        super().begin(clocks)
        if self._options is not None:
            self._call("run_started", self._options)

    def end(self, clocks: tuple[float, float]) -> None:
        super().end(clocks)
        if not self._has_failed:
            self._call("run_ended", self.statistics(), self.verdict(lambda: clocks))

    def accept(self, element: Any, now: float, results: Sequence[Any] | None = None) -> Entry | None:
        entry = super().accept(element, now, results)
        if entry is not None:
            self._report("watermark_accepted" if entry.is_watermark else "accepted", entry)
        return entry

    def start(self, now: float) -> Entry:
        entry = super().start(now)
        if not self._has_failed:
            self._started.add(entry.sequence)
            self._report("started", entry)
        return entry

    def hold_back(self, entry: Entry, now: float) -> None:
        super().hold_back(entry, now)
        self._report("held_back", entry)

    def set_aside(self, entry: Entry, now: float) -> None:
        super().set_aside(entry, now)
        self._report("held_back", entry)

    def start_taken(self, entry: Entry, now: float) -> bool:
        may_start = super().start_taken(entry, now)
        if may_start and not self._has_failed:
            self._started.add(entry.sequence)
            self._report("started", entry)
        return may_start

    def attempt_failed(self, entry: Entry, error: Exception) -> None:
        self._report("attempt_failed", entry, entry.attempts, error)

    def back_off(self, entry: Entry, seconds: float) -> None:
        self._report("backing_off", entry, entry.attempts, seconds)

    def yield_slot(self, entry: Entry, now: float) -> None:
        super().yield_slot(entry, now)
        self._report("slot_yielded", entry)

    def regain_slot(self, entry: Entry, waited: float, since: float) -> None:
        super().regain_slot(entry, waited, since)
        self._report("slot_regained", entry)

    def retry(self, entry: Entry) -> None:
        super().retry(entry)
        self._report("retried", entry, entry.attempts + 1)

    def time_out(self, entry: Entry, now: float) -> None:
        super().time_out(entry, now)
        self._report_end("timed_out", entry, entry.attempts, now - entry.since)

    def complete(self, entry: Entry, results: Sequence[Any], now: float) -> None:
        seconds = now - entry.since
        super().complete(entry, results, now)
        self._report_end("completed", entry, entry.attempts, seconds)
        self._report("slot_freed", entry)

    def finish(self, entry: Entry, results: Sequence[Any], now: float) -> None:
        super().finish(entry, results, now)
        self._report("slot_freed", entry)

    def fail(self, entry: Entry, error: Exception, now: float) -> None:
        super().fail(entry, error, now)
        self._report_end("failed", entry, entry.attempts, now - entry.since, error)

    def fail_after_timeout(self, entry: Entry, error: Exception, now: float) -> None:
        super().fail_after_timeout(entry, error, now)
        self._report_end("failed", entry, entry.attempts, now - entry.since, error)

    def cancel(self, entry: Entry, now: float) -> None:
        super().cancel(entry, now)
        self._report_end("cancelled", entry, entry.attempts, now - entry.since)
        self._report("slot_freed", entry)

    def abandon(self, entry: Entry) -> None:
        super().abandon(entry)
        self._report("slot_freed", entry)

    def poll(self, now: float) -> Entry:
        entry = super().poll(now)
        if not entry.is_watermark:
            self._report("dequeued", entry)
        return entry

    def receive(self, entry: Entry) -> bool:
        made_room = super().receive(entry)
        self._report("watermark_emitted" if entry.is_watermark else "emitted", entry)
        return made_room

    def receive_dead_letter(self, entry: Entry) -> None:
        super().receive_dead_letter(entry)
        self._report("emitted", entry)

    def _report_end(self, hook: str, entry: Entry, *details: Any) -> None:
        if not self._has_failed or entry.sequence in self._started:
            self._call(hook, entry.sequence, entry.element, *details)
        self._started.discard(entry.sequence)

    def _report(self, hook: str, entry: Entry, *details: Any) -> None:
        if not self._has_failed:
            self._call(hook, entry.sequence, entry.element, *details)

    def _call(self, hook: str, *arguments: Any) -> None:
        try:
            getattr(self._observer, hook)(*arguments)
        except Exception:  # noqa: BLE001 - the operator does not depend on the user's observer
            if not self._has_failed:
                observer = describe(self._observer)
                _log.exception("%s of the observer %s raised; nothing more is reported to it", hook, observer)
            self._has_failed = True


def ledger_for(options: Options, key: Callable[[Any], Hashable] | None) -> Ledger:
    """A new ledger and its queue. `key` replaces the key of the options."""
    queue = _queue_for(options, key)
    restore, capacity, counts = options.restore, options.slots, options.on_error == "dead_letter"
    if options.observer is None:
        return Ledger(queue, restore, capacity=capacity, counts_dead_letters=counts)
    return ObservedLedger(
        queue, restore, capacity=capacity, counts_dead_letters=counts, observer=options.observer, options=options
    )


def _queue_for(options: Options, key: Callable[[Any], Hashable] | None) -> StreamElementQueue:
    if key is not None:
        return KeyedStreamElementQueue(options.bound, key=key, per_key=options.per_key)
    kind = OrderedStreamElementQueue if options.mode == "ordered" else UnorderedStreamElementQueue
    return kind(options.bound)
