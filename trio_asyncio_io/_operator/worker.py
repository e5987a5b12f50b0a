"""The workers: tasks that make attempts.

A worker takes the next attempt from the scheduler, makes it, and reports its end. It never waits in the middle of a
record's invocation: a record whose attempt is followed by another one goes back to the scheduler, with its context.

A worker lives until no attempt is left, and reuses one cancel scope, which is replaced after a deadline has cancelled
it. That costs several times less than a scope or a task per attempt, with the same effect: each invocation has its own
deadline and its own context.

Each end of a call passes `Worker._end`: a result, an error, the first deadline of its records, the refusal of a gate,
and the cancellation by the operator. It reports to the gates, and then `Ends` ends each record. A record without a
result keeps the slot for its handler, in `_rescue`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from math import inf
from types import CoroutineType
from typing import Any

import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from .._core.admission import GateLine, WaitingCall
from .._core.gate import CANCELLED, OK, Outcome, expired
from .._core.ledger import Ledger
from .._core.queue import Entry
from .._core.reading import Reading
from .._core.scheduler import Scheduler
from .._values.exceptions import set_on
from .attempts import Invoker
from .calls import register_worker, remove_worker
from .ends import End, Ends, Failure
from .errors import is_cancelled, split
from .gates import Gates
from .results import Emitter
from .tasks import SECONDS_PER_PASS, BlockContext, Timer, Wakeup

# Attempts between two checkpoints, of functions that never suspend
JOBS_PER_PASS = 100
_NOT_SUSPENDED = object()


@dataclass(eq=False)
class WorkerPool:
    """At most `capacity` workers. Each is started when there may be an attempt for it.

    Args:
        ledger: The state of the records.
        scheduler: Decides which attempt may start.
        invoker: Carries out the attempts.
        capacity: Upper limit of workers.
        emitter: Called when an entry has its results.
        has_room: Woken when a worker waits for an attempt and the buffer has room.
        on_failure: Called with the exception that stops the operator.
        gates: Those that calls pass, or None.

    Attributes:
        has_attempt: Woken when there may be an attempt for a worker that waits.
        workers: The number of workers.
        has_ended: Whether there are no more attempts.
    """

    ledger: Ledger
    scheduler: Scheduler
    invoker: Invoker
    capacity: int
    emitter: Emitter
    has_room: Wakeup
    on_failure: Callable[[Exception], None]
    gates: Gates | None

    def __post_init__(self) -> None:
        self.has_attempt = Wakeup()
        self.timer = Timer(self._next_instant, self._on_instant)
        self.timeout = self.scheduler.running.timeout
        self.running = self.scheduler.running.scopes
        self.has_work = self.emitter.has_work
        self.retries = self.invoker.retries
        self.call = self.invoker.call  # one bound method for all workers
        self.has_groups = self.scheduler.grouping.size > 0
        self.checks_each_result = self.has_groups or self.invoker.flatten is not None or self.retries.checks_results
        self.has_ended = False
        self.is_reporting = False  # whether a worker reports an end to the gates. It asks the scheduler afterwards
        self.workers = 0

    def open(self, nursery: trio.Nursery) -> None:
        """Let the nursery own the workers and the timer. Workers run in the context of the calling task."""
        self._nursery = nursery
        self.context = BlockContext()
        self.ends = Ends(self.ledger, self.scheduler, self.invoker, self.timer, self.context, self.gates)
        self.is_changed_in = self.context.is_changed_in  # one bound method for all workers
        self.current_time = trio.lowlevel.current_clock().current_time  # `trio.current_time` looks it up each time
        if self.gates is not None:
            self.gates.open(self._change)
        if self.gates is not None or self.retries.are_made or self.timeout < inf or not self.scheduler.is_plain:
            nursery.start_soon(self.timer.run, name="trio_asyncio_io timer")

    def dispatch(self) -> None:
        """Wake or start workers for the attempts that may start, unless all are busy."""
        if not self.has_attempt.is_awaited and self.workers == self.capacity:  # all are busy, or will ask
            return
        ledger, scheduler = self.ledger, self.scheduler
        starts = len(scheduler.starts)
        number = len(ledger.jobs) if scheduler.is_plain else starts + scheduler.may_assign()
        if not number:
            if scheduler.must_retry_first:  # the first new record may have come
                ledger.flow.note_free_slots(self.current_time())
            return
        busy = ledger.counters.running - starts
        will_ask = self.workers - busy - len(self.has_attempt)  # neither busy nor asleep
        for _ in range(min(number, self.capacity) - will_ask):
            if self.has_attempt.is_awaited:
                self.has_attempt.wake()
            elif self.workers < self.capacity:
                self._start_worker()

    def end(self) -> None:
        """Let the workers return: each element has been emitted. Cancelling them would cost several times more."""
        self.has_ended = True
        self.has_attempt.wake_all()

    def _start_worker(self) -> None:
        self.workers += 1
        self.context.run(partial(self._nursery.start_soon, Worker(self).run, name="trio_asyncio_io worker"))

    def _next_instant(self) -> float:
        return min(self.scheduler.running.first(), self.scheduler.wake_at())

    def _on_instant(self, now: float) -> None:
        for scope in self.scheduler.running.expire(now):
            scope.cancel()
        if not self.scheduler.is_plain:
            self.scheduler.advance(now)
            self.dispatch()

    def _change(self, line: GateLine) -> None:
        if self.scheduler.change(line) and not self.is_reporting:
            self.dispatch()


@dataclass(eq=False, slots=True)
class Worker:
    """One worker: makes one attempt after another.

    Its methods are protected from interrupts. The loop that calls them is not, because user code runs in it.
    """

    _pool: WorkerPool  # has all that is the same for every worker: thousands of them start fast
    _entry: Entry | None = None  # the running call: a record, or a `Group` of records
    _failures: list[Failure] = field(default_factory=list)  # its records without a result
    _refusal: Exception | None = None  # why a gate has refused it
    _context: Any = None  # that of its earlier attempts, if they have changed a variable
    _has_reported: bool = False  # an end, since it has asked the scheduler: see `_next`
    _paused_until: float = -inf  # until then, another pause for reports would cost too much
    _from_cache: tuple[int, int] | None = None  # the record and the attempt that a cache has answered
    _scope: trio.CancelScope = field(init=False)  # of the running call, and of those that follow it

    @enable_ki_protection
    async def run(self) -> None:
        """Make attempts until cancelled, or until a record stops the operator."""
        register_worker(self)
        try:
            may_continue = True
            while may_continue:
                self._scope = trio.CancelScope()
                try:
                    with self._scope:
                        await self._make_attempts()
                except BaseException as error:
                    if not self._was_raised_in_unwinding(error):
                        if self._entry is not None:
                            self._failures = []
                            self._end(None, End.CANCELLED)
                        raise
                if self._entry is not None and not self._failures:
                    self._end(None, End.EXPIRED)
                if self._failures:
                    may_continue = await self._rescue()
                else:
                    may_continue = self._scope.cancel_called  # by a deadline; if not, no attempts are left
        finally:
            self._pool.workers -= 1
            remove_worker()

    @disable_ki_protection
    async def _make_attempts(self) -> None:
        """Make attempts until a record has failed or timed out."""
        pool, block, is_changed_in = self._pool, self._pool.context, self._pool.is_changed_in
        current_time = pool.current_time
        call = self._call_again if pool.retries.are_made else pool.call
        task = trio.lowlevel.current_task()
        now: float | None = current_time()
        due, jobs_left = inf, 0
        while now is not None:
            if task.custom_sleep_data is not _NOT_SUSPENDED:  # Trio clears it whenever the task has been suspended
                task.custom_sleep_data = _NOT_SUSPENDED
                due, jobs_left = now + SECONDS_PER_PASS, JOBS_PER_PASS
            # A copy never loses a variable, so an empty context is unchanged
            if task.context and is_changed_in(task.context):
                block.restore(task)
                jobs_left = 0
            if now >= due or not jobs_left:
                self._count_block(due)
                await trio.lowlevel.checkpoint()
                now = current_time()
            elif (entry := self._start(now)) is None:
                now = await self._wait()
            else:
                jobs_left -= 1
                try:
                    now = self._end(await call(entry))  # one expression, so no interrupt can lose the result
                except Exception as error:
                    if self._entry is None:  # not raised by user code
                        raise
                    now = self._end(None, Reading(error))
        if task.custom_sleep_data is _NOT_SUSPENDED:
            self._count_block(due)

    def _count_block(self, due: float) -> None:
        """Account for calls that have let no other task run, if they took longer than until this instant."""
        now = self._pool.current_time()
        if now >= due:
            self._pool.ledger.flow.block(now - due + SECONDS_PER_PASS, now)

    # One attempt

    @enable_ki_protection
    def _start(self, now: float) -> Entry | None:
        """Start the next attempt, with the record's deadline. None: `_wait` has the three reasons."""
        pool = self._pool
        if pool.scheduler.is_plain:
            ledger = pool.ledger
            if not ledger.jobs:
                self._has_reported = False
                ledger.flow.note_free_slots(now, idles=True)
                return None
            self._entry = entry = ledger.start(now)
        else:
            found = self._next(now)
            if found is None:
                return None
            entry = found
            if entry.attempts:
                return entry
        running = pool.running
        if not running and entry.since + pool.timeout < pool.timer.at:  # otherwise the timer wakes for another before
            pool.timer.wake_by(entry.since + pool.timeout)
        running[entry] = self._scope
        return entry

    def _next(self, now: float) -> Entry | None:
        """Take an attempt that has its slot. If there is none, give out all free slots first.

        A worker that has reported an end pauses before that, because the other calls that end now must report, too.
        """
        pool, scheduler = self._pool, self._pool.scheduler
        starts = scheduler.starts
        if not starts:
            if self._has_reported and now >= self._paused_until and scheduler.must_wait_for_reports:
                return None
            self._has_reported = False
            scheduler.assign(now)
            if scheduler.has_waiting:
                pool.timer.wake_by(scheduler.wake_at())
            if len(starts) > 1 or (starts and pool.has_groups):
                pool.dispatch()
            if not starts:
                return None
        if not pool.ledger.may_start:
            self._has_reported = False  # so `_wait` does not pause
            return None
        entry, waiting, self._refusal = scheduler.take(now)
        self._entry = entry
        if self._has_reported:  # the end of its call may allow a start that nobody has seen yet
            self._has_reported = False
            pool.dispatch()
        return entry if waiting is None else self._continue(entry, waiting)

    def _continue(self, entry: Entry, waiting: WaitingCall) -> Entry | None:
        """Continue with a record that has waited. None: a gate has refused its call."""
        self._context = waiting.context
        if self._refusal is not None:
            if self._refusal.__cause__ is None:
                set_on(self._refusal, __cause__=waiting.cause)
            return None
        if entry.attempts:
            self._pool.timer.wake_by(self._pool.scheduler.running.set_retry(entry, self._scope))
            if self._context is None:
                self._pool.ledger.retry(entry)
        return entry

    @enable_ki_protection
    async def _wait(self) -> float | None:
        """`_start` has started nothing: end a call that a gate has refused, pause for reports, or wait for an attempt.

        Returns:
            The time. None: the record has no result, or there are no more attempts.
        """
        pool = self._pool
        if self._entry is not None:
            if self._context is not None:
                await self._enter_context()
            refusal, self._refusal = self._refusal, None
            return self._end(None, End.REFUSED, refusal)
        if self._has_reported:
            self._has_reported = False
            await trio.lowlevel.checkpoint()
            self._paused_until = pool.current_time() + SECONDS_PER_PASS
        else:
            if pool.has_room.is_awaited and pool.ledger.has_room():
                pool.has_room.wake()  # a feeder that waits for more room continues now
            if pool.has_ended or (pool.ledger.input_ended and pool.scheduler.is_plain):
                return None  # only running calls can be followed by another attempt, and their workers are there
            await pool.has_attempt.wait()
        return None if pool.has_ended else pool.current_time()

    def _call_again(self, entry: Entry) -> Awaitable[Any]:
        return self._pool.invoker.call(entry) if self._context is None else self._call_in_context(entry)

    async def _call_in_context(self, entry: Entry) -> Any:
        await self._enter_context(entry)
        return await self._pool.invoker.call(entry)

    @enable_ki_protection
    async def _enter_context(self, retried: Entry | None = None) -> None:
        """Continue in the context of the record's earlier attempts. A context changes at a checkpoint."""
        trio.lowlevel.current_task().context, self._context = self._context, None
        await trio.lowlevel.checkpoint()
        if retried is not None:
            self._pool.ledger.retry(retried)

    @enable_ki_protection
    def _end(self, result: Any, end: End | Reading | None = None, error: Exception | None = None) -> float | None:
        """End the running call, and the attempt of each of its records.

        Args:
            result: What the function has returned.
            end: How the call has ended without a result, or what it has raised.
            error: See `End`.

        Returns:
            The current time. None: the deadline has expired, or records have no result.
        """
        call: Any = self._entry
        pool = self._pool
        current_time = pool.current_time  # a local name: see `Feeder`
        now = current_time()
        if pool.gates is not None and end is not End.REFUSED:
            end = self._report(pool.gates, call, end, now)
        if end is not None or pool.checks_each_result or type(result) is CoroutineType:
            self._end_records(result, end, error, now)
            if self._failures:
                return None
            self._entry = None
        else:
            self._entry = None
            pool.ledger.complete(call, (result,), now)  # not a list: the garbage collector would visit it in each pass
        if pool.has_work.is_awaited:
            pool.emitter.emit(now)
        if pool.running.pop(call, None) is None and self._scope.cancel_called:
            if end is None:
                pool.ledger.count_late(call)
            return None
        return now

    def _report(self, gates: Gates, call: Any, end: End | Reading | None, now: float) -> End | Reading | None:
        """Report the end of a call to the gates. No worker needs to be woken: this one asks the scheduler next.

        Returns:
            The end. If a `classify` raised, its exception takes the place of the error.
        """
        outcome: Outcome | Reading = OK
        if isinstance(end, Reading):
            outcome = end
        elif end is not None:
            outcome = expired() if end is End.EXPIRED else CANCELLED
        self._pool.is_reporting = self._has_reported = True
        try:
            problem = gates.end(call, outcome, now)
        finally:
            self._pool.is_reporting = False
        return end if problem is None else Reading(problem)

    def _end_records(self, result: Any, end: End | Reading | None, error: Exception | None, now: float) -> None:
        """End the attempt of each record of the running call. Those without a result are in `_failures` then."""
        pool, call, waiting = self._pool, self._entry, self._pool.scheduler.waiting
        assert call is not None
        before = len(waiting)
        self._failures = pool.ends.end(call, result, end, error, now)
        self._has_reported |= len(waiting) > before  # a retry: other calls that fail now may hold back new records
        if not self._failures:
            pool.ledger.end_call(now)

    # Records without a result

    def _was_raised_in_unwinding(self, error: BaseException) -> bool:
        """Whether the function raised this while its call was cancelled. Then it concerns the running record alone.

        A nursery of the function raises a group of the cancellation and of such errors. At a deadline, the record
        times out; while the operator stops, it fails.
        """
        cancelled, rest = split(error, is_cancelled)
        if self._entry is None or not isinstance(rest, Exception):
            return False
        if self._scope.cancelled_caught:  # the scope has removed the cancellation from the group
            self._end(None, End.EXPIRED, rest)
        elif cancelled is not None:
            self._end(None, End.CANCELLED, rest)
        else:
            return False
        return True

    async def _rescue(self) -> bool:
        """Settle the records without results, one after another in the slot of their call.

        Returns:
            Whether the worker may continue.
        """
        call, failures = self._entry, self._failures
        assert call is not None
        self._entry, self._failures = None, []
        self._pool.running.pop(call, None)
        self._pool.emitter.emit()  # other records of the call
        if not self._pool.scheduler.is_plain:
            self._pool.dispatch()  # a gate may have changed, and this worker is busy
        try:
            return await self._replace(failures)
        finally:
            self._pool.ledger.end_call(trio.current_time())

    async def _replace(self, failures: Sequence[Failure]) -> bool:
        pool, invoker = self._pool, self._pool.invoker
        for each in failures:
            invoker.end(each.entry, each.error)
        if trio.current_effective_deadline() == -inf and any(each.error is not None for each in failures):
            self._abandon(failures)
            for each in failures:  # nobody receives the results any more, but no exception is lost
                if each.error is not None and invoker.is_fatal(each.error):
                    pool.on_failure(invoker.named(each.error, each.entry))
            return False
        for number, each in enumerate(failures):
            try:
                outcome = await invoker.replace(each.entry, each.error, each.cause)
            except BaseException:
                self._abandon(failures[number:])
                raise
            if isinstance(outcome, Exception):
                self._abandon(failures[number:])
                pool.on_failure(invoker.named(outcome, each.entry))
                del outcome  # no cycle of the exception and this frame
                return False
            pool.ledger.finish(each.entry, outcome, trio.current_time())
            pool.emitter.emit()
        return True

    def _abandon(self, failures: Sequence[Failure]) -> None:
        """Free the slots of records that are already counted as failed or timed out."""
        for each in failures:
            self._pool.ledger.abandon(each.entry)

    # For policies: see `calls.Worker`

    def deadline(self) -> float:
        entry = self._entry
        return inf if entry is None or entry not in self._pool.running else entry.since + self._pool.timeout

    def is_from_cache(self) -> bool:
        entry = self._entry
        return entry is not None and self._from_cache == (entry.sequence, entry.attempts)

    def set_from_cache(self, answered: bool) -> None:  # noqa: FBT001 - as of a context variable
        entry = self._entry
        self._from_cache = None
        if answered and entry is not None:
            self._from_cache = entry.sequence, entry.attempts
            self._pool.ledger.answer_from_cache(entry)

    def admit_extra(self) -> AbstractContextManager[object] | None:
        if self._pool.gates is None:
            return nullcontext()
        return None if self._entry is None else self._pool.gates.start_extra(self._entry)

    def lose(self, error: Exception | None) -> None:
        if self._entry is not None and self._pool.gates is not None:
            self._pool.gates.lose(self._entry, error)
