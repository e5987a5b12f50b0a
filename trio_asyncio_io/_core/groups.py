"""Groups: records whose attempts are one call (Flink's `AsyncBatchFunction`, FLINK-38825). Plain data.

A record that may start waits for its group. The group is complete when it is full, when its first record has waited
`group_wait` seconds, or when no more records can come. Then it waits for a slot and for gates, like a single record.

New records and retries form groups of their own: a new record never shares a call with one that has failed, and has
its whole timeout. Retries do not wait for others: those that are due when a slot is free share a call. With gates per
key, a group has records of one key only. While a group waits for gates, no other group is formed for the same gates,
except for retries, which start first: later groups become larger meanwhile. The records of a `Half` share no call with
others.

A call has the slot, and each of its records has its own account: the scheduler, the gates, the deadlines and the
workers see a `Group`, while the queue, the retries, the observer and the sums of the ledger see its records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import NamedTuple

from .admission import GateLine, Rank, rank_of
from .queue import Entry


@dataclass(eq=False, frozen=True, slots=True)
class Half:
    """One half of the records of a call that has failed. They are called apart from others, to find which one fails.

    Args:
        depth: How many calls have been split to make it, 1 or more.
    """

    depth: int


class Group(Entry):
    """The records of one call. It lasts for one attempt, and whatever sees calls takes it for a record.

    Args:
        records: One or more, by rank.
        half: The half to which the records belong. None: the call was not split from another one.

    Attributes:
        value: The argument of the function: the list of the records' values.
        since: The earliest start of a record's first attempt, as soon as the group has started.
    """

    __slots__ = ("_records", "depth", "half", "size")

    def __init__(self, records: Sequence[Entry], half: Half | None) -> None:
        first = records[0]
        super().__init__(first.element, [entry.value for entry in records], first.sequence, first.since)
        self.attempts = first.attempts
        self._records = records
        self.size = len(records)
        self.half = half
        self.depth = 0 if half is None else half.depth

    @property
    def records(self) -> Sequence[Entry]:
        """The records of the group."""
        return self._records


class GroupKey(NamedTuple):
    """The common properties of the records of a group. Their half may be None."""

    is_retry: bool
    line: GateLine
    half: Half | None


@dataclass(eq=False, slots=True)
class Pool:
    """Records that may share a call.

    Attributes:
        key: The properties that they have in common.
        size: The largest number of them that a call has.
        wait: Seconds for which the first of them waits for others.
        opened: Since when the first of them has waited.
        is_due: Whether that is long enough.
        records: A heap of (rank, since when it has waited for its group, record).
    """

    key: GroupKey
    size: int
    wait: float
    opened: float = inf
    is_due: bool = False
    records: list[tuple[Rank, float, Entry]] = field(default_factory=list)

    @property
    def rank(self) -> Rank:
        """The rank of the first record."""
        return self.records[0][0]

    @property
    def is_complete(self) -> bool:
        """Whether its first group does not wait for more records."""
        return self.is_due or len(self.records) >= self.size

    def is_behind(self, line: GateLine) -> bool:
        """Whether a group waits in the line that starts before one of this pool."""
        return bool(line.heap) and line.heap[0][0] < self.rank


class Grouping:
    """Forms groups of the records that may start.

    Args:
        size: The largest number of records in a group. 0: each record is a call of its own, and none waits here.
        wait: Seconds for which the first new record of a group waits for others.
        splits: Whether the records of a call that has failed are called again in halves.

    Attributes:
        size, wait, splits: As given.
        pools: The records that wait for their group.
    """

    def __init__(self, size: int = 0, wait: float = 0.0, *, splits: bool = False) -> None:
        self.size = size
        self.wait = wait
        self.splits = splits
        self.pools: dict[GroupKey, Pool] = {}
        # Heaps. An item is out of date if its pool has another rank, or another instant
        self._due: list[tuple[float, int, Pool]] = []  # by the instant at which the group is complete
        self._complete: list[tuple[Rank, int, Pool]] = []  # pools with a complete group, by rank
        self._all: list[tuple[Rank, int, Pool]] = []  # all pools, by rank
        self._behind: dict[GateLine, list[Pool]] = {}  # pools behind a group in the line of their key
        self._numbers = count()

    def add(self, entry: Entry, since: float, line: GateLine, half: Half | None = None) -> None:
        """A record waits for its group since then."""
        key = GroupKey(entry.attempts > 0, line, half)
        pool = self.pools.get(key)
        if pool is None:
            pool = self.pools[key] = Pool(key, self.size, 0.0 if key.is_retry else self.wait)
            line.uses += 1
        rank = rank_of(entry)
        is_first = not pool.records or rank < pool.rank
        heappush(pool.records, (rank, since, entry))
        if since < pool.opened:
            self._open(pool, since)
        if is_first:
            self._push(pool, self._all)
        if pool.is_complete and (is_first or len(pool.records) == self.size):
            self._push(pool, self._complete)

    def _open(self, pool: Pool, since: float) -> None:
        pool.opened, pool.is_due = since, False
        heappush(self._due, (since + pool.wait, next(self._numbers), pool))

    def _push(self, pool: Pool, *heaps: list[tuple[Rank, int, Pool]]) -> None:
        for heap in heaps:
            heappush(heap, (pool.rank, next(self._numbers), pool))

    def advance(self, now: float) -> None:
        """Complete the groups whose first records have waited long enough."""
        while self._due and self._due[0][0] <= now:
            due, _, pool = heappop(self._due)
            if pool.records and not pool.is_due and pool.opened + pool.wait == due:
                pool.is_due = True
                self._push(pool, self._complete)

    def due_at(self) -> float:
        """When `advance` completes the next group. It may be too early."""
        return self._due[0][0] if self._due else inf

    def release(self, line: GateLine) -> None:
        """A group has left the line of a key."""
        for pool in self._behind.pop(line, ()):
            if pool.records:
                self._push(pool, self._all, self._complete)

    def waits_for_more(self, number: int, line: GateLine) -> bool:
        """Whether this number of new records in front of these gates leaves a group incomplete that is not due."""
        pool = self.pools.get(GroupKey(is_retry=False, line=line, half=None))
        return pool is not None and not pool.is_due and len(pool.records) + number < self.size

    def complete(self, common: GateLine, *, may_grow: bool, only_retries: bool) -> Pool | None:
        """The first pool with a complete group, which no other group in front of the same gates precedes.

        Args:
            common: The line of all calls.
            may_grow: Whether more records may come.
            only_retries: Whether no new record may start.
        """
        heap = self._complete if may_grow else self._all
        while heap:
            rank, _, pool = heap[0]
            is_retry, line, _ = pool.key
            if not pool.records or pool.rank != rank or (may_grow and not pool.is_complete):
                heappop(heap)
            elif (only_retries and not is_retry) or pool.is_behind(common):
                return None  # so are all pools of a higher rank
            elif line is not common and pool.is_behind(line):
                heappop(heap)
                self._behind.setdefault(line, []).append(pool)
            else:
                return pool
        return None

    def take(self, pool: Pool, now: float, input_end: float) -> tuple[Group, list[tuple[float, float]]]:
        """Form a group, which was complete when the input ended, or is complete now.

        Returns:
            The group; and by record, since when it has waited, and for how many seconds of this wait the group was not
            complete.
        """
        taken = [heappop(pool.records) for _ in range(min(self.size, len(pool.records)))]
        full = max(since for _, since, _ in taken) if len(taken) == self.size else inf
        complete = min(full, pool.opened + pool.wait, input_end, now)
        waits = [(since if entry.attempts else entry.since, max(0.0, complete - since)) for _, since, entry in taken]
        if pool.records:
            self._open(pool, pool.records[0][1])
            pool.is_due = pool.opened + pool.wait <= now
            self._push(pool, self._all, *((self._complete,) if pool.is_complete else ()))
        else:
            del self.pools[pool.key]
            pool.key.line.uses -= 1
        return Group([entry for _, _, entry in taken], pool.key.half), waits

    def halves(self, call: Entry, *, may_help: bool = True) -> Sequence[Half | None]:
        """For each record of a call that has failed, the half in which it is called again if it is not retried.

        None: it is not called again. `may_help`: whether a call for fewer records may succeed.
        """
        number = call.size
        if number == 1 or not (self.splits and may_help):
            return (None,) * number
        middle, depth = (number + 1) // 2, call.depth + 1
        return (Half(depth),) * middle + (Half(depth),) * (number - middle)
