"""Groups: records whose attempts are one call (Flink's `AsyncBatchFunction`, FLINK-38825). Plain data.

A record that may start waits for its group. The group is complete when it is full, when its first record has waited
`group_wait` seconds, or when no more records can come. Then it waits for a slot and for gates, like a single record.

New records and retries form groups of their own: a new record never shares a call with one that has failed, and has
its whole timeout. Retries do not wait for others: those that are due when a slot is free share a call. With gates per
key, a group has records of one key only. While a group waits for gates, no other group is formed for the same gates,
except for retries, which start first: later groups become larger meanwhile. The records of a `Part` share no call with
others.

A call has the slot, and each of its records has its own account: the scheduler, the gates, the deadlines and the
workers see a `Group`, while the queue, the retries, the observer and the sums of the ledger see its records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any, TypeAlias

from .admission import KeyGates, Line, Passage, Rank, Waiting, rank_of, weights_of
from .ledger import Ledger
from .queue import Entry
from .scheduler import FOR_SLOT, TRANSITIONS, Gates, Scheduler

__all__ = ["Group", "GroupLedger", "GroupScheduler", "Grouping", "Part"]


@dataclass(eq=False, frozen=True, slots=True)
class Part:
    """Half of the records of a call that has failed. They are called apart from others, to find which one fails.

    Args:
        splits: How many calls have been split to make this part, 1 or more.
    """

    splits: int


# Whether they are retries, the gates of their key, and their part
Kind: TypeAlias = tuple[bool, KeyGates | None, Part | None]


class Group(Entry):
    """The records of one call. It lasts for one attempt, and whatever sees calls takes it for a record.

    Args:
        records: One or more, by rank.
        waits: By record, since when it has waited, in seconds on Trio's clock.
        group_waits: By record, the part of its wait in which the group was not complete, in seconds.
        part: That of the records. None: the call was not split from another one.

    Attributes:
        value: The argument of the function: the list of the records' values.
        since: The earliest start of a record's first attempt, as soon as the group has started.
        slot_waits: By record, how long it has waited for a slot.
    """

    __slots__ = ("_records", "group_waits", "part", "slot_waits", "waits")

    def __init__(
        self, records: Sequence[Entry], waits: Sequence[float], group_waits: Sequence[float], part: Part | None = None
    ) -> None:
        first = records[0]
        super().__init__(first.element, [entry.value for entry in records], first.sequence, min(waits))
        self.attempts = first.attempts
        self._records = records
        self.waits = waits
        self.group_waits = group_waits
        self.part = part
        self.slot_waits = [0.0] * len(records)

    @property
    def records(self) -> Sequence[Entry]:
        """As given."""
        return self._records


class GroupLedger(Ledger):
    """A ledger whose steps before and at the start of a call take a `Group`. `end_call` frees its slot.

    Attributes:
        grows_until: When the input ended, so that groups no longer wait for more records.
        free_since: By sequence, when a record could start that had waited for its key.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.flow.count_calls()
        self.grows_until = inf
        self.free_since: dict[int, float] = {}
        self._ungrouped = 0  # new records that wait for their groups

    def may_grow(self) -> bool:
        """Whether more records may come before a call is made."""
        if self.input_ended and not self.backlog:
            return False
        is_full = self.flow.room.is_on or not self.has_room()
        return not is_full or self.counters.running > 0 or len(self.leaving) > 0 or self.order.has_completed()

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
        if not isinstance(entry, Group):  # the operator has ended while a retry waited for its group
            super().end_slot_wait(entry, since, now)
            return
        for position, (record, waited_since) in enumerate(zip(entry.records, entry.waits, strict=True)):
            seconds = now - max(since, waited_since) - entry.group_waits[position]
            self.counters.group_wait_seconds += entry.group_waits[position]
            entry.slot_waits[position] += seconds
            super().end_slot_wait(record, now - seconds, now)
        entry.group_waits = [0.0] * len(entry.records)

    def wait_for_gate(self, entry: Entry, now: float) -> None:
        for record in entry.records:
            super().wait_for_gate(record, now)

    def end_gate_wait(self, entry: Entry, since: float, now: float, by_gate: Mapping[str, float]) -> None:
        for record in entry.records:
            super().end_gate_wait(record, since, now, by_gate)

    def wait_for_gate_of_key(self, entry: Entry, now: float) -> None:
        for record in entry.records:
            super().wait_for_gate_of_key(record, now)

    def end_wait_for_gate_of_key(self, entry: Entry, since: float, now: float, by_gate: Mapping[str, float]) -> None:
        for record in entry.records:
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

    def refuse(self, entry: Entry, refusal: Exception) -> None:
        super().refuse(entry, refusal)
        self.counters.groups -= 1  # it starts, but without a call
        self.counters.grouped -= len(entry.records)

    def retry(self, entry: Entry) -> None:
        for record in entry.records:
            super().retry(record)

    def end_call(self, now: float) -> None:
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
        for record in entry.records:
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
        successor = self.order.successor(entry)
        if successor is not None and self.may_start:
            self.free_since[successor.sequence] = now


class _Pool:
    """Records that may share a call.

    Attributes:
        kind: What they have in common.
        wait: Seconds for which the first of them waits for others.
        opened: Since when the first of them has waited.
        is_due: Whether that is long enough.
        records: A heap of (rank, since when it has waited for its group, record).
    """

    __slots__ = ("is_due", "kind", "opened", "records", "wait")

    def __init__(self, kind: Kind, wait: float) -> None:
        self.kind = kind
        self.wait = wait
        self.opened = inf
        self.is_due = False
        self.records: list[tuple[Rank, float, Entry]] = []

    def __len__(self) -> int:
        return len(self.records)

    @property
    def keys(self) -> KeyGates | None:
        """The gates of their key, if they have any."""
        return self.kind[1]

    @property
    def rank(self) -> Rank:
        """The rank of the first record."""
        return self.records[0][0]


class Grouping:
    """The records that wait for their groups.

    Args:
        size: The largest number of records in a group.
        wait: Seconds for which the first new record of a group waits for others.
    """

    def __init__(self, size: int, wait: float) -> None:
        self.size = size
        self.wait = wait
        self._pools: dict[Kind, _Pool] = {}
        self._due: list[tuple[float, int, _Pool]] = []  # a heap; invalid if the pool was opened later
        self._numbers = count()
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def add(self, entry: Entry, since: float, keys: KeyGates | None, part: Part | None = None) -> None:
        """A record waits for its group since then."""
        kind = is_retry, _, _ = entry.attempts > 0, keys, part
        pool = self._pools.get(kind)
        if pool is None:
            pool = self._pools[kind] = _Pool(kind, 0.0 if is_retry else self.wait)
            if keys is not None:
                keys.passage.running += 1  # the gates stay in use
        heappush(pool.records, (rank_of(entry), since, entry))
        self._number += 1
        if since < pool.opened:
            self._open(pool, since)

    def advance(self, now: float) -> None:
        """Complete the groups whose first records have waited long enough."""
        while self._due and self._due[0][0] <= now:
            due, _, pool = heappop(self._due)
            pool.is_due |= len(pool) > 0 and pool.opened + pool.wait == due

    def due_at(self) -> float:
        """When `advance` completes the next group. It may be too early."""
        return self._due[0][0] if self._due else inf

    def number_of_groups(self, line: Line, *, may_grow: bool, only_retries: bool = False) -> int:
        """How many groups may be formed now."""
        pools = self._candidates(line, may_grow=may_grow, only_retries=only_retries)
        return sum(-(-len(pool) // self.size) for pool in pools)

    def waits_for_more(self, number: int) -> bool:
        """Whether so many new records without a key leave a group incomplete that is not due."""
        pool = self._pools.get((False, None, None))
        return pool is not None and not pool.is_due and len(pool) + number < self.size

    def first(self, line: Line, *, may_grow: bool, only_retries: bool) -> _Pool | None:
        """The pool from which the next group is formed. None: no group is complete."""
        pools = self._candidates(line, may_grow=may_grow, only_retries=only_retries)
        return min(pools, key=lambda pool: pool.rank, default=None)

    def take(self, pool: _Pool, completed_by: float) -> Group:
        """Form a group. It was complete at this instant at the latest."""
        taken = [heappop(pool.records) for _ in range(min(self.size, len(pool)))]
        self._number -= len(taken)
        full = max(since for _, since, _ in taken) if len(taken) == self.size else inf
        complete = min(full, pool.opened + pool.wait, completed_by)
        entries = [entry for _, _, entry in taken]
        starts = [since if entry.attempts else entry.since for _, since, entry in taken]
        waits = [max(0.0, complete - since) for _, since, _ in taken]
        group = Group(entries, starts, waits, pool.kind[2])
        if pool.records:
            self._open(pool, pool.records[0][1])
        else:
            del self._pools[pool.kind]
            if pool.keys is not None:
                pool.keys.passage.running -= 1
        return group

    def _open(self, pool: _Pool, since: float) -> None:
        pool.opened, pool.is_due = since, not pool.wait
        if 0 < pool.wait < inf:
            heappush(self._due, (since + pool.wait, next(self._numbers), pool))

    def _candidates(self, line: Line, *, may_grow: bool, only_retries: bool) -> Iterable[_Pool]:
        for (is_retry, _, _), pool in self._pools.items():
            if only_retries and not is_retry:
                continue
            is_complete = pool.is_due or len(pool) >= self.size or not may_grow
            if is_complete and not _is_behind(pool, line) and not (pool.keys and _is_behind(pool, pool.keys.line)):
                yield pool


def _is_behind(pool: _Pool, line: Line) -> bool:
    """Whether a group waits in the line that starts before one of this pool."""
    return len(line) > 0 and line.first.rank < pool.rank


class GroupScheduler(Scheduler):
    """A scheduler whose attempts are those of groups: `next` returns a `Group`, and `retry` takes a record of one.

    Args:
        arguments, options: See `Scheduler`.
        size: The largest number of records in a group.
        wait: Seconds for which the first record of a group waits for others.
    """

    _ledger: GroupLedger

    def __init__(self, *arguments: Any, size: int, wait: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._most_retries *= size
        self._grouping = Grouping(size, wait)
        self._now = 0.0
        self.is_plain = False

    @property
    def must_wait_for_reports(self) -> bool:
        return super().must_wait_for_reports or (self._counters.running > 0 and len(self._grouping) > 0)

    def advance(self, now: float) -> None:
        """End the waits that are over. New records then wait for their groups."""
        self._now = now
        super().advance(now)
        while self._ledger.may_start and self._ledger.jobs:
            entry = self._ledger.take()
            self._wait_for_group(entry, self._ledger.free_since.pop(entry.sequence, entry.since))
        self._grouping.advance(now)

    def wake_at(self) -> float:
        at = super().wake_at()
        return min(at, self._grouping.due_at()) if self._has_free_slot() else at

    def candidates(self) -> int:
        free = self._capacity - self._counters.running
        if free <= 0 or not self._ledger.may_start:
            return 0
        number = len(self._for_slot) + len(self._changed) + (len(self._line) > 0 and self._line.held_until == -inf)
        if self._must_retry_first:
            return min(free, self._candidates_to_retry())
        may_grow = self._ledger.may_grow()
        number += self._grouping.number_of_groups(self._line, may_grow=may_grow)
        jobs = len(self._ledger.jobs)
        if jobs and not (may_grow and self._grouping.waits_for_more(jobs)):
            number += max(1, jobs // self._grouping.size)
        return min(free, number)

    def _candidates_to_retry(self) -> int:
        return super()._candidates_to_retry() + self._grouping.number_of_groups(
            self._line, may_grow=False, only_retries=True
        )

    def refresh(self) -> None:
        """Nothing changes: as `_start_first`."""

    def _start_first(self, now: float) -> None:
        """Not used: groups take no short cut."""

    def _next_waiting(self) -> Waiting | None:
        ready = self._for_slot  # groups that the gates of their keys have held back
        only_retries = self._must_retry_first
        pool = self._grouping.first(self._line, may_grow=self._ledger.may_grow(), only_retries=only_retries)
        has_place = self._counters.running + len(self._line) < self._capacity
        may_take = has_place and len(ready) > 0 and (not only_retries or ready[0][1].entry.attempts > 0)
        if may_take and (pool is None or ready[0][0] < pool.rank):
            return heappop(ready)[1]
        return None if pool is None else self._formed(pool)

    def _formed(self, pool: _Pool) -> Waiting:
        group = self._grouping.take(pool, min(self._now, self._ledger.grows_until))
        self._grouping.advance(self._now)
        self._ledger.form(group)
        waiting = Waiting(group, None, FOR_SLOT, group.since)
        waiting.keys = pool.keys
        for entry in group.records:
            self.waiting.pop(entry.sequence, None)
        if group.attempts:
            self.waiting[group.sequence] = waiting
        return waiting

    def _find_gates(self, waiting: Waiting, gates: Gates) -> Passage:
        """Set the gates of a group, and the sums of its records' weights."""
        assert isinstance(waiting.entry, Group)
        waiting.passage = gates.passage if waiting.keys is None else waiting.keys.passage
        weights = [weights_of(value, waiting.passage) for value in waiting.entry.value]
        waiting.weights = tuple(
            sum(of_gate) if gate.weight is not None else 1.0
            for gate, of_gate in zip(waiting.passage.given, zip(*weights, strict=True), strict=True)
        )
        return waiting.passage

    def _wait_for_slot(self, waiting: Waiting, since: float) -> None:
        if isinstance(waiting.entry, Group):  # the gates of its key held it back
            super()._wait_for_slot(waiting, since)
            return
        waiting.state, waiting.since = TRANSITIONS[waiting.state]["wait for slot"], since
        self._ledger.wait_for_slot(waiting.entry)
        self._wait_for_group(waiting.entry, since, self._parts.pop(waiting.entry.sequence, None))

    def _wait_for_group(self, entry: Entry, since: float, part: Part | None = None) -> None:
        try:
            keys = None if self._gates is None else self._gates.of_key(entry.value)
        except Exception as error:  # noqa: BLE001 - the user's key may raise anything
            self._fail(error, entry)
            return
        self._grouping.add(entry, since, keys, part)
