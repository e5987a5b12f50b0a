"""A group: records whose attempts are one call (Flink's `AsyncBatchFunction`, FLINK-38825)."""

from __future__ import annotations

from collections.abc import Sequence

from .queue import Entry

__all__ = ["Group", "first_of", "records_of"]


class Group(Entry):
    """The records of one call. It lasts for one attempt, and whatever sees calls takes it for a record.

    The scheduler, the gates, the deadlines and a worker see the group. The queue, the retries, the observer and the
    account of time see its records.

    Args:
        records: One or more, by rank.
        waits: By record, since when it has waited, in seconds on Trio's clock.
        group_waits: By record, the part of its wait in which the group was not complete, in seconds.

    Attributes:
        value: The argument of the function: the list of the records' values.
        since: The earliest start of a record's first attempt, as soon as the group has started.
        slot_waits: By record, how long it has waited for a slot.
    """

    __slots__ = ("group_waits", "records", "slot_waits", "waits")

    def __init__(self, records: Sequence[Entry], waits: Sequence[float], group_waits: Sequence[float]) -> None:
        first = records[0]
        super().__init__(first.element, first.sequence)
        self.value = [entry.value for entry in records]
        self.attempts = first.attempts
        self.since = min(waits)
        self.records = records
        self.waits = waits
        self.group_waits = group_waits
        self.slot_waits = [0.0] * len(records)


def records_of(entry: Entry) -> Sequence[Entry]:
    """The records of a call."""
    return entry.records if isinstance(entry, Group) else (entry,)


def first_of(entry: Entry) -> Entry:
    """The record whose key is that of the call."""
    return entry.records[0] if isinstance(entry, Group) else entry
