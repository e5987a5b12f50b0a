"""The scheduler: gives slots to the attempts that may start now. Plain data: it never waits and has no clock.

A job is one attempt, and a slot is a running call. A record that waits occupies neither a slot nor a task:

              accept                     a slot is free, and the gates admit it
    (its key) ──────▶ for a slot ──────────────────────────────────────────────────▶ running ──▶ ended
                       ▲ ▲   │ a gate of its key does not      ┌──── the gate does ────▲ │
                       │ │   ├──────────▶ for its key's gates ─┤                       │ │ it will be retried, and the
                       │ │   │  another gate does not          │                       │ │ next attempt begins before
                       │ └───│─────────────────────────────────┘                       │ │ its deadline
                       │     └──────────▶ for a gate ──────────────────────────────────┘ │
                       └──────────────────────────────────── in a backoff ◀──────────────┘

The first worker that has nothing to do calls `assign`, which gives all free slots: to the calls of ready records, to
new records, and to the first call in the line. The other workers find their attempts in `starts`. So an attempt has its
slot before its worker runs, and it starts in its worker's task, whose context the hooks of an observer may change.

A call that waits for a gate and is retried once takes these steps:

    assign     takes the record from the jobs. `_admit` checks its gates, which hold it back: `_wait_for_gate`
    advance    the timer calls it when the gate opens, and wakes a worker
    assign     `_admit` checks the gates again for the first call in the line. `_give_slot`
    take       a worker starts it
    retry      it has raised. The record waits in a backoff
    advance    the backoff is over: `_wait_for_slot`
    assign     `_first_ready` finds it, `_admit` checks its gates. `_give_slot`
    take       a worker starts it again. Its end needs no step here: the worker takes the next attempt

Retries start before new records, those with few attempts first; new records start in arrival order. A record is passed
over while a gate of its key holds it back, but while a common gate holds back the first record, none starts.

No new record starts while as many records wait for the retry of an attempt that has raised as can run at once.
Otherwise, while a service is down, each record of the buffer would fail and use up its retries. Records whose result is
retried do not count: the service answers. With gates per key there is no such limit: those gates protect each service,
and other keys must not wait for one that is down.

The time of a record runs while it runs and in backoffs, not while it waits for a slot or for gates. A retry that could
not begin before the deadline is refused by `retry`, so no deadline expires while a record waits.

New records that pass no gate take a short cut: while `is_plain`, workers start the first of `ledger.jobs`. With groups,
records wait in the `Grouping` first, and what waits for a slot or a gate is a `Group`: an attempt of several records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any, Protocol

from .admission import Admission, GateLine, Rank, WaitingCall, Weights, rank_of
from .deadlines import RunningCalls
from .gate import NOT_MADE, Outcome, RefusedError
from .groups import Group, Grouping, Half, Pool
from .ledger import Ledger
from .queue import Entry


class Gates(Protocol):
    """The gates of the operator."""

    has_keys: bool
    react_to_ends: bool
    line: GateLine
    admissions: dict[int, Admission]

    def line_of(self, *arguments: object) -> GateLine: ...

    def end(self, call: Entry, end: Outcome, now: float) -> object: ...


@dataclass(eq=False)
class Scheduler:
    """The attempts of one operator that may start.

    Args:
        ledger: Holds the new records, and accounts for each step.
        capacity: Upper limit of running attempts.
        timeout: Seconds, of each record.
        grouping: Forms the groups. By default, each record is a call of its own.
        gates: Those that calls pass, or None.
        on_failure: Called with the exception of a broken gate, and None; or with that of a `weight` or `key`, and the
            record. It must stop the ledger from starting. Records stay unfinished.

    Attributes:
        is_plain: Whether there are neither gates nor groups, and no record waits for a retry, so that workers may start
            the first of `ledger.jobs`.
        must_retry_first: Whether no new record may start, because as many wait for their retry as can run at once.
        running: The calls that have not ended.
        waiting: sequence -> the call that waits for a retry or a gate.
        starts: The attempts that have a slot and that no worker has taken yet: (record or group; its wait, or None if
            it has waited for nothing but the slot; the refusal of a gate, or None).
    """

    ledger: Ledger
    capacity: int
    timeout: InitVar[float]
    _: KW_ONLY
    grouping: Grouping = field(default_factory=Grouping)
    gates: Gates | None
    on_failure: Callable[[Exception, Entry | None], None]

    def __post_init__(self, timeout: float) -> None:
        self._flow = self.ledger.flow
        self._counters = self.ledger.counters
        self._line = GateLine(()) if self.gates is None else self.gates.line
        self.waiting: dict[int, WaitingCall] = {}
        self._backoffs: list[tuple[float, int, WaitingCall]] = []  # a heap
        self._keys_due: list[tuple[float, int, GateLine]] = []  # a heap; invalid if `line.held_until` differs
        self._for_slot: list[tuple[Rank, WaitingCall]] = []  # a heap by rank
        self._changed: set[GateLine] = set()  # lines of keys
        self._held: set[GateLine] = set()  # lines of keys, until a call ends
        self._numbers = count()
        self._failed: set[Entry] = set()  # records that wait for a retry because their attempt has raised
        self.must_retry_first = False
        self._max_failed = self.capacity * (self.grouping.size or 1)
        self.running = RunningCalls(timeout)
        self.is_plain = self._may_be_plain = self.gates is None and not self.grouping.size
        self.starts: deque[tuple[Entry, WaitingCall | None, Exception | None]] = deque()

    @property
    def has_waiting(self) -> bool:
        """Whether records wait for a retry, a gate or their group."""
        return len(self.waiting) > 0 or len(self.grouping.pools) > 0

    @property
    def must_wait_for_reports(self) -> bool:
        """Whether calls that end now should be reported before `assign` is called.

        Otherwise a call could start before the failure is known that closes its gate, or that must be retried first.
        """
        may_close = self.gates is not None and self.gates.react_to_ends
        if not (may_close or self._failed):
            return False
        return self._counters.running > 0 and (self.has_waiting or len(self.ledger.jobs) > 0)

    # What may start

    def assign(self, now: float) -> None:
        """Give a slot to every attempt that may start now. Call this whenever something has changed.

        The call is reported to its gates here, and starts when a worker takes it from `starts`. A call that a gate
        refuses gets a slot, too, and fails in it.
        """
        ledger, line, jobs = self.ledger, self._line, self.ledger.jobs
        if not self._counters.running:  # no end of a call can change a gate: one that still waits for it is broken
            if line.held_until == inf:
                line.held_until = -inf
            self._changed |= self._held
        if self.waiting or self.grouping.size:
            self.advance(now)
        while self._has_slot:
            waiting = self._first_ready(now) if self._for_slot or self.grouping.size else None
            if waiting is not None:
                self._admit(waiting.entry, waiting, now)
            elif jobs and self._has_place:
                self._admit(ledger.take_job(), None, now)
            elif not line.heap or (first := self._first_in_line()) is None or not self._admit(first.entry, first, now):
                break
            elif self.grouping.size and self.starts:
                break  # records that arrive now belong to the next group, which is formed one pass later
        # Only after the end of the input, it matters whether a new record has started
        self._flow.note_free_slots(now, idles=ledger.input_ended and all(call.attempts for call, _, _ in self.starts))

    def take(self, now: float) -> tuple[Entry, WaitingCall | None, Exception | None]:
        """Start the first of the attempts that have their slot, in the task that makes its call."""
        entry, waiting, _ = start = self.starts.popleft()
        if waiting is None:
            self.ledger.start_first(entry, now)
        else:
            waiting.run(self.ledger.start_call, entry, now)
        if self._may_be_plain and not (self.starts or self.waiting):
            self.is_plain = True
        return start

    def advance(self, now: float) -> None:
        """End the backoffs that are over, and the waits for gates of keys. Their records then wait for a slot.

        With groups, they wait for their group before, and so do new records.
        """
        if not self.ledger.may_start:
            return
        while self._backoffs and self._backoffs[0][0] <= now:
            self._wait_for_slot(heappop(self._backoffs)[2])
        while self._keys_due and self._keys_due[0][0] <= now:
            at, _, line_of_key = heappop(self._keys_due)
            if line_of_key.held_until == at:
                self._changed.add(line_of_key)
        while self._changed and self.ledger.may_start:
            self._check_key(self._changed.pop(), now)
        line = self._line
        if line.heap and line.held_until <= now:
            line.held_until = -inf
        if self.grouping.size:
            while self.ledger.jobs:
                entry = self.ledger.take_job(for_group=True)
                self._wait_for_group(entry, entry.since)
            self.grouping.advance(now)

    def wake_at(self) -> float:
        """When to call `assign` again, if nothing else happens before."""
        if not self.ledger.may_start:
            return inf
        at = self._backoffs[0][0] if self._backoffs else inf
        if self._keys_due:
            at = min(at, self._keys_due[0][0])
        if self._counters.running < self.capacity:
            if self.grouping.size:
                at = min(at, self.grouping.due_at())
            if self._line.heap and self._line.held_until > -inf:
                at = min(at, self._line.held_until)
        return at

    def may_assign(self) -> bool:
        """Whether `assign` may start an attempt: true if there is one."""
        if not self._has_slot:
            return False
        if self._changed or self._has_ready or self._first_in_line() is not None:
            return True
        jobs = len(self.ledger.jobs)
        if not self.grouping.size:
            return jobs > 0 and self._has_place
        makes_group = jobs > 0 and not (self.ledger.may_grow() and self.grouping.waits_for_more(jobs, self._line))
        return (makes_group and not self.must_retry_first) or self._complete_pool() is not None

    @property
    def _has_slot(self) -> bool:
        """Whether another call may start at all."""
        return self._counters.running < self.capacity and self.ledger.may_start

    @property
    def _has_place(self) -> bool:
        """Whether a new record may go to the gates: at most as many wait there as slots are free."""
        return not self.must_retry_first and self._counters.running + len(self._line.heap) < self.capacity

    # What happens

    def retry(
        self,
        entry: Entry,
        seconds: float,
        now: float,
        error: Exception | None,
        *,
        context: Any = None,
        half: Half | None = None,
        at_most: float = inf,
    ) -> bool:
        """End an attempt that is followed by another one after these seconds. Frees the slot.

        Args:
            entry: The record.
            seconds: The backoff.
            now: The time.
            error: What the attempt has raised. None: its result is retried.
            context: See `WaitingCall`.
            half: The half of a group in which it is called again. None: it was not in a split call.
            at_most: Upper limit of the backoff, if the next attempt would begin before the deadline without it.

        Returns:
            False if the next attempt could not begin before the deadline. The record must time out now: at one
            instant, the deadline comes before the end of the backoff.
        """
        if now + seconds >= entry.since + self.running.timeout:
            return False
        seconds = min(seconds, at_most)
        due = now + seconds
        self.running.scopes.pop(entry, None)
        self.ledger.back_off(entry, seconds, now)
        cause = None if self.gates is None else error  # of a refusal
        waiting = self.waiting[entry.sequence] = WaitingCall(entry, due, context, cause, half)
        self.is_plain = False
        heappush(self._backoffs, (due, entry.sequence, waiting))
        if error is not None and not (self.gates is not None and self.gates.has_keys):
            self._failed.add(entry)
            self._count_failed()
        return True

    def change(self, line: GateLine) -> bool:
        """A gate of this line may admit a call earlier than it said.

        Returns:
            Whether calls wait for it, so `assign` must be called.
        """
        line.held_until = -inf
        if line.common is not None and line.heap:
            self._changed.add(line)
        return len(line.heap) > 0

    def close(self, now: float) -> None:
        """The operator has ended, so nothing starts any more. Retries that waited count as cancelled."""
        starts, self.starts = self.starts, deque()
        for call, waiting, refusal in starts:
            if self.gates is not None and refusal is None:
                self.gates.end(call, NOT_MADE, now)
            self.ledger.release()
            if waiting is not None:
                self.waiting[call.sequence], waiting.since = waiting, now
        for waiting in self.waiting.values():
            if waiting.waits_in is self._line:
                self._leave_line(waiting, now)
            if waiting.entry.attempts:
                if waiting.waits_in is None and waiting.since < now:
                    self.ledger.end_slot_wait(waiting.entry, waiting.since, now)
                waiting.run(self.ledger.cancel_retry, waiting.entry, now)
        self.waiting.clear()
        for records in (self._backoffs, self._for_slot, self._keys_due, self._changed, self._held, self._failed):
            records.clear()
        self._flow.note_free_slots(now)

    # Candidates

    def _first_ready(self, now: float) -> WaitingCall | None:
        """Remove and return the call that goes to the gates next, if it is not that of the next job."""
        jobs, ready = self.ledger.jobs, self._for_slot
        pool = self._complete_pool() if self.grouping.size else None
        if self._has_ready:
            rank, waiting = ready[0]
            if (not jobs or rank < rank_of(jobs[0])) and (pool is None or rank < pool.rank):
                heappop(ready)
                return waiting
        return None if pool is None else self._form(pool, now)

    @property
    def _has_ready(self) -> bool:
        """Whether the first of the calls that wait for a slot may go to the gates."""
        ready = self._for_slot
        return len(ready) > 0 and (ready[0][1].entry.attempts > 0 or self._has_place)

    def _first_in_line(self) -> WaitingCall | None:
        """The first call in the line of all calls, unless its gates hold it back, or retries must start before it."""
        line = self._line
        if not line.heap or line.held_until > -inf:
            return None
        waiting = line.heap[0][1]
        return waiting if waiting.entry.attempts > 0 or not self.must_retry_first else None

    def _wait_for_slot(self, waiting: WaitingCall) -> None:
        entry = waiting.entry
        waiting.run(self.ledger.wait_for_slot, entry)
        if not self.grouping.size or isinstance(entry, Group):
            heappush(self._for_slot, (rank_of(entry), waiting))
        else:
            self._wait_for_group(entry, waiting.since, waiting.half)

    # Groups

    def _wait_for_group(self, entry: Entry, since: float, half: Half | None = None) -> None:
        try:
            line = self._line if self.gates is None else self.gates.line_of(entry.value)
        except Exception as error:  # noqa: BLE001 - the user's key may raise anything
            self.on_failure(error, entry)
            return
        self.grouping.add(entry, since, line, half)

    def _complete_pool(self) -> Pool | None:
        if not self.grouping.pools:
            return None
        may_grow, only_retries = self.ledger.may_grow(), self.must_retry_first
        return self.grouping.complete(self._line, may_grow=may_grow, only_retries=only_retries)

    def _form(self, pool: Pool, now: float) -> WaitingCall:
        group, waits = self.grouping.take(pool, now, self._flow.input_end)
        self.ledger.end_group_wait(group, waits, now)
        waiting = WaitingCall(group, now, line=pool.key.line)
        for entry in group.records:
            self.waiting.pop(entry.sequence, None)
        if group.attempts:
            self.waiting[group.sequence] = waiting
        return waiting

    # Gates

    def _admit(self, entry: Entry, waiting: WaitingCall | None, now: float) -> bool:
        """Check the gates of the next attempt of a record. It gets its slot, or waits for gates.

        Args:
            entry: The record, or the group of records.
            waiting: Its wait for this slot, or None: the first attempt of a record, which needs one only if it waits.
            now: The time.

        Returns:
            False if the first call in the line of all calls stays there, or a gate is broken.
        """
        gates = self.gates
        if gates is None:
            self._give_slot(entry, waiting, now)
            return True
        try:
            line, weights = self._gates_of(entry, waiting, gates)
        except Exception as error:  # noqa: BLE001 - the user's key or weight may raise anything
            self.on_failure(error, entry)
            return False
        admission = refusal = waits_in = None
        try:
            waits_in = line.line_for(weights, now, waiting)
            if waits_in is None:
                admission = Admission(line, now, weights).start()
        except RefusedError as error:
            refusal = error
        except Exception as error:  # noqa: BLE001 - a gate may raise anything
            self.on_failure(error, None)
            return False
        if waiting is not None and waiting.waits_in is not None:
            if waits_in is waiting.waits_in:
                return False
            self._leave_line(waiting, now)
        if admission is None and waiting is None:
            waiting = WaitingCall(entry, entry.since, line=line, weights=weights)
        if waits_in is None or waiting is None:
            self._give_slot(entry, waiting, now, admission, refusal)
            refusal = None  # no cycle of the exception and this frame
        else:
            self._wait_for_gate(waiting, waits_in, now)
        return True

    def _gates_of(self, entry: Entry, waiting: WaitingCall | None, gates: Gates) -> tuple[GateLine, Weights]:
        """The line of a call, and its weights in the gates of this line. They are the same until it starts."""
        if waiting is not None and waiting.weights:
            assert waiting.line is not None
            return waiting.line, waiting.weights
        line = None if waiting is None else waiting.line
        if line is None:
            line = gates.line_of(entry.value) if gates.has_keys else self._line
        weights = line.weights_of_records(entry.records) if line.is_weighted else line.unweighted
        if waiting is not None:
            waiting.line, waiting.weights = line, weights
        return line, weights

    def _wait_for_gate(self, waiting: WaitingCall, line: GateLine, now: float) -> None:
        """Let a call wait in the line of all calls, or in that of its key."""
        entry, of_key = waiting.entry, line is not self._line
        self.ledger.end_slot_wait(entry, waiting.since, now)
        self.waiting[entry.sequence] = waiting
        if not of_key:
            assert waiting.line is not None
            waiting.line.uses += 1
        if of_key and waiting.is_in_line_of_key:  # it was first, and may have been overtaken by a retry
            line.begin_wait(waiting, now)
        else:
            waiting.is_in_line_of_key |= of_key
            line.join(waiting, rank_of(entry), now)
        waiting.run(self.ledger.wait_for_gate, entry, of_key)
        if of_key:
            self._check_key(line, now)

    def _leave_line(self, waiting: WaitingCall, now: float) -> None:
        """A call leaves the line of all calls."""
        assert waiting.line is not None
        waiting.line.uses -= 1
        self._line.leave(waiting)
        self._end_gate_wait(waiting, self._line, now)

    def _end_gate_wait(self, waiting: WaitingCall, line: GateLine, now: float) -> None:
        """A call stops waiting for the gates of this line."""
        waits = line.waits_of(waiting, now)
        self.ledger.end_gate_wait(waiting.entry, waiting.since, now, waits, of_key=line is not self._line)
        waiting.waits_in, waiting.since = None, now

    def _check_key(self, line: GateLine, now: float) -> None:
        """If the gates of a key may admit the first call in its line, the call waits for a slot from now on."""
        self._held.discard(line)
        if not line.heap or line.heap[0][1].waits_in is not line:
            return
        waiting = line.heap[0][1]
        try:
            delay = line.delay(waiting.weights, now)
        except RefusedError:  # the record is refused when it is checked, if it still is
            delay = 0.0
        except Exception as error:  # noqa: BLE001 - a gate may raise anything
            self.on_failure(error, None)
            return
        if not delay:
            self._end_gate_wait(waiting, line, now)
            self._wait_for_slot(waiting)
        elif delay < inf:
            heappush(self._keys_due, (line.held_until, next(self._numbers), line))
        else:
            self._held.add(line)

    # Slots

    def _give_slot(
        self,
        entry: Entry,
        waiting: WaitingCall | None,
        now: float,
        admission: Admission | None = None,
        refusal: Exception | None = None,
    ) -> None:
        """A call has its slot. A worker takes it from `starts`."""
        if admission is not None:
            assert self.gates is not None
            self.gates.admissions[entry.sequence] = admission
        if refusal is not None:
            self.ledger.refuse(refusal)
        self.starts.append((entry, waiting, refusal))
        if waiting is None:
            self.ledger.reserve(now - entry.since)
            return
        self.ledger.reserve(entry.size * (now - waiting.since))
        if self._failed:
            self._failed.difference_update(entry.records)
            self._count_failed()
        self.waiting.pop(entry.sequence, None)
        line = waiting.line
        if line is not None and waiting.is_in_line_of_key:
            line.leave(waiting)
            self.grouping.release(line)
            self._check_key(line, now)  # here, because all workers may be busy afterwards

    def _count_failed(self) -> None:
        self.must_retry_first = self._flow.must_retry_first = len(self._failed) >= self._max_failed
