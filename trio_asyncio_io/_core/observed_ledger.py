"""The ledger of an operator, as its options want it; observed, if there is an observer."""

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
    """A ledger that tells an observer of each step that it writes down.

    After a hook has raised, the observer is called only for the ends of invocations that it has seen start, so that it
    can release what it holds for them.
    """

    def __init__(self, queue: StreamElementQueue, restored: Snapshot | None, observer: Observer) -> None:
        super().__init__(queue, restored)
        self._observer = observer
        self._has_failed = False
        self._open: set[int] = set()  # the sequences of invocations that have started and not ended

    def accept(self, element: Any, now: float, results: Sequence[Any] | None = None) -> Entry | None:
        entry = super().accept(element, now, results)
        if entry is not None and not entry.is_watermark:
            self._tell("accepted", entry)
        return entry

    def start(self, now: float) -> Entry:
        entry = super().start(now)
        if not self._has_failed:
            self._open.add(entry.sequence)
            self._tell("started", entry)
        return entry

    def attempt_failed(self, entry: Entry, error: Exception) -> None:
        self._tell("attempt_failed", entry, entry.attempts, error)

    def time_out(self, entry: Entry, now: float) -> None:
        super().time_out(entry, now)
        self._tell_end("timed_out", entry, entry.attempts, now - entry.since)

    def complete(self, entry: Entry, results: Sequence[Any], now: float) -> None:
        seconds = now - entry.since
        super().complete(entry, results, now)
        self._tell_end("completed", entry, entry.attempts, seconds)

    def fail(self, entry: Entry, error: Exception, now: float) -> None:
        super().fail(entry, error, now)
        self._tell_end("failed", entry, entry.attempts, now - entry.since, error)

    def cancel(self, entry: Entry, now: float) -> None:
        super().cancel(entry, now)
        self._tell_end("cancelled", entry, entry.attempts, now - entry.since)

    def received(self, entry: Entry) -> bool:
        gone = super().received(entry)
        if not entry.is_watermark:
            self._tell("emitted", entry)
        return gone

    def received_letter(self, entry: Entry) -> None:
        super().received_letter(entry)
        self._tell("emitted", entry)

    def _tell_end(self, hook: str, entry: Entry, *more: Any) -> None:
        if not self._has_failed or entry.sequence in self._open:
            self._call(hook, entry, more)
        self._open.discard(entry.sequence)

    def _tell(self, hook: str, entry: Entry, *more: Any) -> None:
        if not self._has_failed:
            self._call(hook, entry, more)

    def _call(self, hook: str, entry: Entry, more: tuple[Any, ...]) -> None:
        try:
            getattr(self._observer, hook)(entry.sequence, entry.element, *more)
        except Exception:  # noqa: BLE001 - the observer's own; the operator does not depend on it
            if not self._has_failed:
                _log.exception("%s of the observer %s raised; it is told nothing more", hook, describe(self._observer))
            self._has_failed = True


def ledger_for(options: Options, key: Callable[[Any], Hashable] | None) -> Ledger:
    """A new ledger around a queue of the options' mode; `key` is called in place of the options' own."""
    queue = _queue_for(options, key)
    if options.observer is None:
        return Ledger(queue, options.restore)
    return ObservedLedger(queue, options.restore, options.observer)


def _queue_for(options: Options, key: Callable[[Any], Hashable] | None) -> StreamElementQueue:
    if key is not None:
        return KeyedStreamElementQueue(options.bound, key=key)
    kind = OrderedStreamElementQueue if options.mode == "ordered" else UnorderedStreamElementQueue
    return kind(options.bound)
