"""The workers: tasks that make attempts.

A worker takes the next attempt from the scheduler, makes it, and reports its end. It never waits in the middle of a
record's invocation: a record whose attempt is followed by another one goes back to the scheduler, with its context.

A worker lives as long as the operator and reuses one cancel scope, which is replaced after a deadline has cancelled it.
That costs several times less than a scope or a task per attempt, with the same effect: each invocation has its own
deadline and its own context.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from math import inf
from typing import Any

import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from ._attempts import Invoker
from ._calls import register_worker
from ._core.admission import KeyGates
from ._core.ledger import Ledger
from ._core.queue import Entry
from ._core.scheduler import Scheduler
from ._errors import is_cancelled, split
from ._gates import Gates
from ._results import Emitter
from ._tasks import SECONDS_PER_PASS, BlockContext, Timer, Wakeup

__all__ = ["JOBS_PER_PASS", "Worker", "WorkerPool"]

# Attempts between two checkpoints, of functions that never suspend
JOBS_PER_PASS = 100
_NOT_SUSPENDED = object()


class WorkerPool:
    """At most `capacity` workers. Each is started when there may be an attempt for it.

    Args:
        ledger: The state of the records.
        scheduler: Decides which attempt may start.
        invoker: Carries out the attempts.
        worker: The class of the workers.
        capacity: Upper limit of workers.
        emitter: Called when an entry has its results.
        has_room: Woken when a worker waits for an attempt and the buffer has room.
        on_failure: Called with the exception that stops the operator.
        gates: Those that calls pass, or None.
    """

    def __init__(
        self,
        ledger: Ledger,
        scheduler: Scheduler,
        invoker: Invoker,
        *,
        worker: type[Worker],
        capacity: int,
        emitter: Emitter,
        has_room: Wakeup,
        on_failure: Callable[[Exception], None],
        gates: Gates | None = None,
    ) -> None:
        self.ledger = ledger
        self.scheduler = scheduler
        self.invoker = invoker
        self.emitter = emitter
        self.on_failure = on_failure
        self.gates = gates
        self.timer = Timer(self._next_instant, self._on_instant)
        self.is_reporting = False  # whether a worker reports an end to the gates. It asks the scheduler afterwards
        self._has_room = has_room
        self._has_attempt = Wakeup()
        self._capacity = capacity
        self._workers = 0
        self._worker = worker

    def open(self, nursery: trio.Nursery) -> None:
        """Let the nursery own the workers and the timer. Workers run in the context of the calling task."""
        self._nursery = nursery
        self.context = BlockContext()
        if self.gates is not None:
            self.gates.open(self._refresh, self._change)
        has_retries_or_gates = self.gates is not None or self.invoker.retries is not None
        if has_retries_or_gates or self.scheduler.deadlines.timeout < inf or not self.scheduler.is_plain:
            nursery.start_soon(self.timer.run, name="trio_asyncio_io timer")

    def dispatch(self) -> None:
        """Wake or start workers for the attempts that may start, unless all are busy."""
        if not self._has_attempt.is_awaited and self._workers == self._capacity:  # all are busy, or will ask
            return
        if not self.scheduler.is_plain:
            self._call_workers(self.scheduler.candidates())
            return
        free = self._workers - self.ledger.counters.running
        if len(self.ledger.jobs) <= free:
            self._has_attempt.wake()
        elif self._workers < self._capacity:
            self._start_worker()

    async def wait_for_attempt(self) -> None:
        """Wait until an attempt may start. A feeder that waits for more room continues now."""
        if self.ledger.has_unreported_room():
            self._has_room.wake()
        await self._has_attempt.wait()

    def _call_workers(self, number: int) -> None:
        """Let so many workers ask the scheduler, with those that will ask anyway."""
        will_ask = self._workers - self.ledger.counters.running - len(self._has_attempt)
        for _ in range(number - will_ask):
            if self._has_attempt.is_awaited:
                self._has_attempt.wake()
            elif self._workers < self._capacity:
                self._start_worker()

    def _start_worker(self) -> None:
        self._workers += 1
        self.context.run(self._spawn)

    def _spawn(self) -> None:
        self._nursery.start_soon(self._worker(self).run, name="trio_asyncio_io worker")

    def _next_instant(self) -> float:
        return min(self.scheduler.deadlines.first(), self.scheduler.wake_at())

    def _on_instant(self, now: float) -> None:
        for scope in self.scheduler.deadlines.expire(now):
            scope.cancel()
        if not self.scheduler.is_plain:
            self.scheduler.advance(now)
            self.dispatch()

    def _refresh(self) -> None:
        self.scheduler.refresh()
        if not self.scheduler.is_plain:
            self.dispatch()

    def _change(self, keys: KeyGates | None) -> None:
        if self.scheduler.change(keys) and not self.is_reporting:
            self.dispatch()


class Worker:
    """One worker: makes one attempt after another.

    Its methods are protected from interrupts. The loop that calls them is not, because user code runs in it.
    """

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self._ledger = pool.ledger
        self._scheduler = pool.scheduler
        self._invoker = pool.invoker
        self._retries = pool.invoker.retries
        self._flatten = pool.invoker.flatten
        self._gates = pool.gates
        self._timer = pool.timer
        self._timeout = pool.scheduler.deadlines.timeout
        self._running = pool.scheduler.deadlines.running
        self._emitter = pool.emitter
        self._has_work = pool.emitter.has_work
        self._current_time = trio.lowlevel.current_clock().current_time  # `trio.current_time` looks it up each time
        self._entry: Entry | None = None  # the running record
        self._error: Exception | None = None  # why it has failed
        self._cause: Exception | None = None  # why it times out: see `Invoker.rescue`
        self._is_late = False  # whether it does
        self._context: Any = None  # that of its earlier attempts, if they have changed a variable
        self._admissions = {} if pool.gates is None else pool.gates.admissions
        self._has_reported = False  # whether this worker has reported an end, and has not asked the scheduler since
        self._must_pause = False
        self._paused_until = -inf
        self.has_gates = pool.gates is not None
        self._from_cache: tuple[int, int] | None = None  # the record and the attempt that a cache has answered

    @enable_ki_protection
    async def run(self) -> None:
        """Make attempts until cancelled, or until a record stops the operator."""
        register_worker(self)
        may_continue = True
        while may_continue:
            self._scope = trio.CancelScope()
            try:
                with self._scope:
                    await self._make_attempts()
            except BaseException as error:
                if not self._was_raised_in_unwinding(error):
                    self._cancel()
                    raise
            if self._entry is not None:  # it has failed or timed out
                may_continue = await self._rescue(self._entry)

    @disable_ki_protection
    async def _make_attempts(self) -> None:
        """Make attempts until a record has failed or timed out."""
        block, retries = self._pool.context, self._retries
        start, fail, current_time = self._start, self._fail, self._current_time
        call = self._invoker.call if retries is None else self._call_again
        complete = self._complete if retries is None or not retries.checks_results else self._complete_attempt
        task, is_changed_in = trio.lowlevel.current_task(), block.is_changed_in
        now: float | None = current_time()
        due, jobs_left = inf, 0
        while now is not None:
            while now is not None:
                if task.custom_sleep_data is not _NOT_SUSPENDED:  # Trio clears it whenever the task has been suspended
                    task.custom_sleep_data = _NOT_SUSPENDED
                    due, jobs_left = now + SECONDS_PER_PASS, JOBS_PER_PASS
                if is_changed_in(task.context):
                    block.restore(task)
                    jobs_left = 0
                if now >= due or not jobs_left:
                    self._count_block(due)
                    await trio.lowlevel.checkpoint()
                    now = current_time()
                elif (entry := start(now)) is None:
                    now = await self._wait()
                else:
                    jobs_left -= 1
                    try:
                        now = complete(await call(entry))  # one expression, so no interrupt can lose the result
                    except Exception as error:  # noqa: BLE001 - user code may raise anything
                        now = fail(error)
            if task.custom_sleep_data is _NOT_SUSPENDED:
                self._count_block(due)
            now = await self._pause()

    def _count_block(self, due: float) -> None:
        """Account for calls that have let no other task run, if they took longer than until this instant."""
        late = self._current_time() - due
        if late >= 0:
            self._ledger.flow.block(late + SECONDS_PER_PASS)

    # One attempt

    @enable_ki_protection
    def _start(self, now: float) -> Entry | None:
        """Start the next attempt, with the record's deadline. None: none starts now, or a gate has refused its call."""
        ledger = self._ledger
        if self._scheduler.is_plain:
            if not ledger.jobs:
                ledger.flow.idle(now)
                return None
            self._entry = entry = ledger.start(now)
        else:
            found = self._next(now)
            if found is None:
                return None
            entry = found
            if entry.attempts:
                return entry
        running = self._running
        if not running and now + self._timeout < self._timer.at:  # otherwise the timer wakes for another record before
            self._timer.wake_by(now + self._timeout)
        running[entry] = self._scope
        return entry

    def _next(self, now: float) -> Entry | None:
        """Ask the scheduler. Another worker asks if there may be more, and the timer wakes when there will be."""
        scheduler = self._scheduler
        if self._has_reported:
            self._has_reported = False
            self._must_pause = now >= self._paused_until and scheduler.must_wait_for_reports
            if self._must_pause:
                return None
        entry = scheduler.next(now)
        if scheduler.waiting:
            self._timer.wake_by(scheduler.wake_at())
            if entry is not None:
                self._pool.dispatch()
        if entry is None:
            if self._ledger.counters.running < self._ledger.flow.capacity:
                self._ledger.flow.idle(now)
            return None
        self._entry, self._error = entry, scheduler.refusal
        return entry if scheduler.started is None else self._continue(entry)

    def _continue(self, entry: Entry) -> Entry | None:
        """Continue with a record that has waited. None: a gate has refused its call."""
        scheduler = self._scheduler
        assert scheduler.started is not None
        self._context = scheduler.started.context
        if self._error is not None:
            self._error.__cause__ = self._error.__cause__ or scheduler.started.cause
            return None
        if entry.attempts:
            self._timer.wake_by(scheduler.deadlines.set_retry(entry, self._scope))
            if self._context is None:
                self._ledger.retry(entry)
        return entry

    @enable_ki_protection
    async def _wait(self) -> float | None:
        """Wait until an attempt may start. Returns the time; None: the record of this worker was refused."""
        if self._must_pause:
            return await self._pause()
        if self._entry is not None:
            if self._context is not None:
                await self._enter_context()
            return None
        await self._pool.wait_for_attempt()
        return self._current_time()

    def _call_again(self, entry: Entry) -> Awaitable[Any]:
        return self._invoker.call(entry) if self._context is None else self._call_in_context(entry)

    async def _call_in_context(self, entry: Entry) -> Any:
        await self._enter_context(entry)
        return await self._invoker.call(entry)

    @enable_ki_protection
    async def _enter_context(self, retried: Entry | None = None) -> None:
        """Continue in the context of the record's earlier attempts. A context changes at a checkpoint."""
        trio.lowlevel.current_task().context, self._context = self._context, None
        await trio.lowlevel.checkpoint()
        if retried is not None:
            self._ledger.retry(retried)

    @enable_ki_protection
    def _complete(self, result: Any) -> float | None:
        """Finish the running record. Returns the current time; None: its deadline has expired, or it has failed."""
        if self._admissions:
            self._report_completed()
        if self._flatten is None:
            outputs: Any = (result,)  # not a list: the garbage collector would visit it in each of its passes
        else:
            try:
                outputs = self._flatten(result)
            except Exception as error:  # noqa: BLE001 - the user's iterable may raise anything
                self._error = error
                return None
        entry, current_time = self._entry, self._current_time  # a local name: see `Feeder`
        assert entry is not None
        now = current_time()
        self._entry = None
        self._ledger.complete(entry, outputs, now)
        if self._has_work.is_awaited:
            self._emitter.emit(now)
        return None if self._running.pop(entry, None) is None else now

    @enable_ki_protection
    def _complete_attempt(self, result: Any) -> float | None:
        """An attempt has returned whose result may be retried. Returns as `_complete` does; None also if it is."""
        entry = self._entry
        assert entry is not None
        assert self._retries is not None
        if self._admissions:
            self._report_completed()
        try:
            wait = self._retries.after_result(entry, result)
        except Exception as error:  # noqa: BLE001 - the user's predicate may raise anything
            self._error = error
            return None
        if wait is None:
            return self._complete(result)
        self._retry(entry, wait, None)
        return None

    def _report_completed(self) -> None:
        assert self._gates is not None
        self._report(self._gates.completed, self._entry)

    @enable_ki_protection
    def _fail(self, error: Exception) -> None:
        """An attempt has raised."""
        entry = self._entry
        if entry is None:  # not raised by user code
            raise error
        self._ledger.fail_attempt(entry, error)
        if self._gates is not None:
            error = self._report(self._gates.failed, entry, error)
        wait = None
        if self._retries is not None:
            try:
                wait = self._retries.after_error(entry, error)
            except Exception as raised:  # noqa: BLE001 - the user's predicate may raise anything
                error = raised
        if wait is None:
            self._error = error
        else:
            self._retry(entry, wait, error)

    def _retry(self, entry: Entry, seconds: float, error: Exception | None) -> None:
        """Let another attempt follow, unless it would begin after the deadline: then the record times out now."""
        context, block = trio.lowlevel.current_task().context, self._pool.context
        now = self._current_time()
        changed = context if block.is_changed_in(context) else None
        cause = None if self._gates is None else error
        if self._scheduler.retry(entry, changed, seconds, now, cause, has_raised=error is not None):
            assert self._retries is not None
            self._retries.withdraw()
            self._entry = None
            self._timer.wake_by(now + seconds)
        else:
            self._is_late, self._cause = True, error

    @enable_ki_protection
    async def _pause(self) -> float | None:
        """Let other calls that end now report before this worker asks again. None: the record has no result."""
        if self._entry is not None or self._scope.cancel_called:
            return None
        self._must_pause = False
        task = trio.lowlevel.current_task()
        if self._pool.context.is_changed_in(task.context):
            self._pool.context.restore(task)
        await trio.lowlevel.checkpoint()
        now = self._current_time()
        self._paused_until = now + SECONDS_PER_PASS
        return now

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
            self._cause = rest
            return True
        if cancelled is None:
            return False
        if self._gates is not None:
            self._report(self._gates.cancelled, self._entry)
        self._error = rest
        return True

    def _cancel(self) -> None:
        entry, self._entry = self._entry, None
        if entry is not None:
            if self._gates is not None:
                self._report(self._gates.cancelled, entry)
            self._running.pop(entry, None)
            self._ledger.cancel(entry, trio.current_time())

    async def _rescue(self, entry: Entry) -> bool:
        """Settle a failed or timed-out record in its slot. Returns whether the worker may continue."""
        error, cause, is_late = self._error, self._cause, self._is_late
        self._entry, self._error, self._cause, self._is_late = None, None, None, False
        self._running.pop(entry, None)
        if self._gates is not None:
            if error is None and not is_late:
                self._report(self._gates.expired, entry)
            if not self._scheduler.is_plain:
                self._pool.dispatch()  # a gate may have changed, and this worker is busy
        if error is not None and trio.current_effective_deadline() == -inf:
            self._fail_while_stopping(entry, error)
            return False
        try:
            results = await self._invoker.rescue(entry, error, cause)
        except Exception as final:  # noqa: BLE001 - user code may raise anything
            self._ledger.abandon(entry)
            self._pool.on_failure(final)
            return False
        except BaseException:
            self._ledger.abandon(entry)  # already counted as failed or timed out
            raise
        self._ledger.finish(entry, results, trio.current_time())
        self._emitter.emit()
        return True

    def _fail_while_stopping(self, entry: Entry, error: Exception) -> None:
        """Record a failure for which there is no consumer any more, so that no exception is lost."""
        fatal = self._invoker.fail_while_stopping(entry, error)
        self._ledger.abandon(entry)
        if fatal is not None:
            self._pool.on_failure(fatal)

    def _report(self, end: Callable[..., Any], *arguments: Any) -> Any:
        """Report the end of a call to the gates. No worker needs to be woken: this one asks the scheduler next."""
        self._pool.is_reporting = self._has_reported = True
        try:
            return end(*arguments)
        finally:
            self._pool.is_reporting = False

    # For policies, about the present call

    def deadline(self) -> float:
        """The deadline of the running record."""
        entry = self._entry
        return inf if entry is None or entry not in self._running else entry.since + self._timeout

    def is_from_cache(self) -> bool:
        """Whether a cache has answered the present attempt, or a part of it."""
        entry = self._entry
        return entry is not None and self._from_cache == (entry.sequence, entry.attempts)

    def set_from_cache(self, answered: bool) -> None:  # noqa: FBT001 - as of a context variable
        """See `FromCache`."""
        entry = self._entry
        self._from_cache = None
        if answered and entry is not None:
            self._from_cache = entry.sequence, entry.attempts
            self._ledger.answer_from_cache(entry)

    def admit_extra(self) -> AbstractContextManager[object] | None:
        """See `GatesOfCall`."""
        if self._entry is None or self._gates is None:
            return None
        admission = self._scheduler.start_extra(self._entry, self._gates.weights_of_call, trio.current_time())
        return None if admission is None else self._gates.around(admission)

    def lose(self, error: Exception | None) -> None:
        """See `GatesOfCall`."""
        if self._entry is not None and self._gates is not None:
            self._gates.lost(self._entry, error)
