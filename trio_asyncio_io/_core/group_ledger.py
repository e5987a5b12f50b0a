"""The ledger of an operator whose calls are made for groups: a call has the slot, and each record has its own account.

A record that waits for its call waits for its group first, until the group is full, the first record has waited long
enough, or no more can come; and then for a slot and for gates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .group import Group, records_of
from .ledger import Ledger
from .queue import Entry

__all__ = ["GroupLedger"]


class GroupLedger(Ledger):
    """A ledger whose steps before and at the start of a call take a `Group`. `end_call` frees its slot.

    Attributes:
        grows_until: When the input ended, so that groups no longer wait for more records.
        free_since: By sequence, when a record could start that had waited for its key.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.flow.count_calls()
        self.grows_until = float("inf")
        self.free_since: dict[int, float] = {}
        self._ungrouped = 0  # new records that wait for their groups

    def may_grow(self) -> bool:
        """Whether more records may come before a call is made."""
        if self.input_ended and not self.backlog:
            return False
        is_full = self.flow.room.is_on or not self.has_room()
        return not is_full or self.counters.running > 0 or len(self.leaving) > 0 or self.queue.has_completed()

    def refill_in_bursts(self) -> None:
        """A group may wait for the next record, so each free place is filled at once."""

    def end_input(self, now: float) -> None:
        self.grows_until = min(self.grows_until, now)
        super().end_input(now)

    def count_jobs(self) -> int:
        return len(self.jobs) + self._ungrouped

    def take(self) -> Entry:
        self._ungrouped += 1
        return super().take()

    # Waits

    def form(self, group: Group) -> None:
        """Record that records no longer wait for their group."""
        if not group.attempts:
            self._ungrouped -= len(group.records)

    def end_slot_wait(self, entry: Entry, since: float, now: float) -> None:
        assert isinstance(entry, Group)
        for position, (record, waited_since) in enumerate(zip(entry.records, entry.waits, strict=True)):
            seconds = now - max(since, waited_since) - entry.group_waits[position]
            self.counters.group_wait_seconds += entry.group_waits[position]
            entry.slot_waits[position] += seconds
            super().end_slot_wait(record, now - seconds, now)
        entry.group_waits = [0.0] * len(entry.records)

    def wait_for_gate(self, entry: Entry, now: float) -> None:
        for record in records_of(entry):
            super().wait_for_gate(record, now)

    def end_gate_wait(self, entry: Entry, since: float, now: float, by_gate: Mapping[str, float]) -> None:
        for record in records_of(entry):
            super().end_gate_wait(record, since, now, by_gate)

    def wait_for_gate_of_key(self, entry: Entry, now: float) -> None:
        for record in records_of(entry):
            super().wait_for_gate_of_key(record, now)

    def end_wait_for_gate_of_key(self, entry: Entry, since: float, now: float, by_gate: Mapping[str, float]) -> None:
        for record in records_of(entry):
            super().end_wait_for_gate_of_key(record, since, now, by_gate)

    # Calls

    def start_after_wait(self, entry: Entry, slot_wait: float, now: float) -> None:  # noqa: ARG002 - each has its own
        assert isinstance(entry, Group)
        running = self.counters.running
        for record, seconds in zip(entry.records, entry.slot_waits, strict=True):
            self.counters.running = running
            super().start_after_wait(record, seconds, now)
        entry.since = min(record.since for record in entry.records)
        self.counters.groups += 1
        self.counters.grouped += len(entry.records)
        self.flow.change_calls(1, now)

    def retry(self, entry: Entry) -> None:
        for record in records_of(entry):
            super().retry(record)

    def end_call(self, now: float) -> None:
        """Free the slot of a call. Each of its records has ended, or waits for its retry."""
        self.counters.running -= 1
        self.flow.change_calls(-1, now)

    # The ends of records, which free no slot

    def back_off(self, entry: Entry, seconds: float, now: float) -> None:
        with self._in_call():
            super().back_off(entry, seconds, now)

    def complete(self, entry: Entry, results: Sequence[Any], now: float) -> None:
        with self._in_call():
            super().complete(entry, results, now)

    def finish(self, entry: Entry, results: Sequence[Any], now: float) -> None:
        with self._in_call():
            super().finish(entry, results, now)

    def cancel(self, entry: Entry, now: float) -> None:
        with self._in_call():
            super().cancel(entry, now)

    def cancel_retry(self, entry: Entry, now: float) -> None:
        for record in records_of(entry):
            super().cancel_retry(record, now)

    def abandon(self, entry: Entry) -> None:
        with self._in_call():
            super().abandon(entry)

    @contextmanager
    def _in_call(self) -> Iterator[None]:
        running = self.counters.running
        yield
        self.counters.running = running

    def _start_successor(self, entry: Entry, now: float) -> None:
        super()._start_successor(entry, now)
        successor = self.queue.successor(entry)
        if successor is not None and self.may_start:
            self.free_since[successor.sequence] = now
