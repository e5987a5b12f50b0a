"""The workers: the tasks that invoke the function.

A worker lives as long as the operator and reuses one cancel scope, which is replaced after a deadline has cancelled it.
That costs several times less than a scope or a task per invocation, with the same effect: each invocation has its own
deadline and its own context.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from ._context import BlockContext
from ._core.ledger import Ledger
from ._core.queue import Entry
from ._deadlines import Deadlines
from ._emitter import Emitter
from ._gatekeeper import Gatekeeper
from ._invoker import Invoker
from ._pace import SECONDS_PER_PASS, Pace
from ._slots import HandsOver, Slots
from ._wakeup import Wakeup

__all__ = ["WorkerPool"]

# Jobs between two checkpoints, of functions that never suspend
JOBS_PER_PASS = 100
_NOT_SUSPENDED = object()


class WorkerPool:
    """At most `capacity` workers. Each is started when there is a job for it.

    Args:
        ledger: Holds the jobs.
        invoker: Carries out the invocations.
        capacity: Upper limit of workers.
        deadlines: Cancels the invocations that time out.
        emitter: Called when an entry has its results.
        has_room: Woken when a worker waits for a job and the buffer has room.
        on_failure: Called with the exception that stops the operator.
        gates: Admits the first call of each record, or None.
        slots: Takes slots back from records during their backoffs, or None.
    """

    def __init__(
        self,
        ledger: Ledger,
        invoker: Invoker,
        *,
        capacity: int,
        deadlines: Deadlines,
        emitter: Emitter,
        has_room: Wakeup,
        on_failure: Callable[[Exception], None],
        gates: Gatekeeper | None = None,
        slots: Slots | None = None,
    ) -> None:
        self.ledger = ledger
        self.invoker = invoker
        self.deadlines = deadlines
        self.emitter = emitter
        self.on_failure = on_failure
        self.gates = gates
        self.slots = slots
        self._has_room = has_room
        self.has_job = Wakeup()
        self._capacity = capacity
        self._workers = 0

    def open(self, nursery: trio.Nursery) -> None:
        """Let the nursery own the workers. They run in the context of the calling task."""
        self._nursery = nursery
        if self.gates is not None:
            self.gates.open()
        if self.slots is not None:
            self.slots.open(self)
        self.context = BlockContext()

    def dispatch(self) -> None:
        """Wake or start a worker for a new job, unless all workers are busy."""
        if not self.has_job.is_awaited and self._workers == self._capacity:  # all are busy, or were woken
            return
        counters = self.ledger.counters
        free = self._workers - counters.running - counters.at_gate
        if len(self.ledger.jobs) <= free:
            self.has_job.wake()
        elif self._workers < self._capacity:
            self._workers += 1
            self.context.run(self._start_worker)

    def shrink(self) -> None:
        """A worker gives its slot back. A new one starts if there is a job."""
        self._workers -= 1
        if self.ledger.jobs:
            self.dispatch()
        else:
            self.ledger.flow.idle(trio.current_time())
            self._wake_feeder()

    def try_grow(self) -> bool:
        """Let a worker without a slot have one. False: all of them have workers."""
        may_grow = self._workers < self._capacity
        self._workers += may_grow
        return may_grow

    async def wait_for_job(self) -> None:
        """Wait until there may be a job. A feeder that waits for more room continues now."""
        self._wake_feeder()
        await self.has_job.wait()

    def _wake_feeder(self) -> None:
        if self.ledger.has_room():
            self._has_room.wake()

    def _start_worker(self) -> None:
        if self.gates is None:
            worker = _Worker(self) if self.slots is None else _YieldingWorker(self)
        else:
            worker = (_GatedWorker if self.slots is None else _YieldingGatedWorker)(self, self.gates)
        self._nursery.start_soon(worker.run, name="trio_asyncio_io worker")


class _Worker:
    """One worker: runs one job after another.

    `_start` and `_complete` are protected from interrupts, the loop that calls them is not: user code runs in it.
    """

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self._ledger = pool.ledger
        self._invoker = pool.invoker
        if pool.slots is not None:
            self._slots = pool.slots
        self._flatten = pool.invoker.flatten
        self._deadlines = pool.deadlines
        self._emitter = pool.emitter
        self._has_work = pool.emitter.has_work
        self._entry: Entry | None = None  # the running record
        self._current_time = trio.lowlevel.current_clock().current_time  # `trio.current_time` looks it up each time
        self._now: Callable[[], float | None] = self._current_time

    @enable_ki_protection
    async def run(self) -> None:
        """Run jobs until cancelled, or until one stops the operator."""
        may_continue = True
        while may_continue:
            self._scope = trio.CancelScope()
            self._deadlines.own(self._scope)
            error: Exception | None = None
            try:
                with self._scope:
                    await self._run_jobs()
            except Exception as raised:
                if self._entry is None:  # not raised by user code
                    raise
                error = raised
            except BaseException:
                self._cancel()
                raise
            finally:
                self._deadlines.clear(self._scope)
            if self._entry is not None:  # its call raised, or its deadline expired
                entry, self._entry = self._entry, None
                may_continue = await self._rescue(entry, error)

    @disable_ki_protection
    async def _run_jobs(self) -> None:
        """Run jobs until a deadline expires, or until `_now` or `_complete` returns None."""
        jobs, block = self._ledger.jobs, self._pool.context
        start, call, complete, current_time = self._start, self._invoker.call, self._complete, self._now
        idle = self._ledger.flow.idle
        task, size = trio.lowlevel.current_task(), block.size
        now: float | None = current_time()
        due, jobs_left = 0.0, 0
        while now is not None:
            if task.custom_sleep_data is not _NOT_SUSPENDED:  # Trio clears it whenever the task has been suspended
                task.custom_sleep_data = _NOT_SUSPENDED
                due, jobs_left = now + SECONDS_PER_PASS, JOBS_PER_PASS
            if len(task.context) != size or (size and block.is_changed_in(task.context)):
                block.restore(task)
                jobs_left = 0
            if not jobs:
                idle(now)
                await self._pool.wait_for_job()
                now = current_time()
            elif now >= due or not jobs_left:
                await trio.lowlevel.checkpoint()
                now = current_time()
            else:
                jobs_left -= 1
                now = complete(await call(start(now)))  # one expression, so no interrupt can lose the result

    @enable_ki_protection
    def _start(self, now: float) -> Entry:
        """Start the next job, with its deadline."""
        self._entry = entry = self._ledger.start(now)
        deadlines = self._deadlines
        deadlines.by_scope[self._scope] = now + deadlines.timeout  # `set` without its call
        if deadlines.has_deadline.is_awaited:
            deadlines.has_deadline.wake()
        return entry

    @enable_ki_protection
    def _complete(self, result: Any) -> float | None:
        """Finish the running job. Returns the current time, or None if its deadline has expired."""
        # Tuples, not lists: thousands of completed entries may wait, and the garbage collector visits every list
        outputs = (result,) if self._flatten is None else self._flatten(result)
        entry, now = self._entry, self._current_time()
        assert entry is not None
        self._entry = None
        self._ledger.complete(entry, outputs, now)
        if self._has_work.is_awaited:
            self._emitter.emit(now)
        return None if self._deadlines.by_scope.pop(self._scope, None) is None else now  # `clear` without its call

    def _cancel(self) -> None:
        if self._entry is not None:
            self._ledger.cancel(self._entry, trio.current_time())

    async def _rescue(self, entry: Entry, error: Exception | None) -> bool:
        """Settle a failed or timed-out entry in its slot. Returns whether the worker may continue."""
        if error is not None and trio.current_effective_deadline() == -inf:
            self._fail_while_stopping(entry, error)
            return False
        try:
            results = await self._invoker.rescue(entry, error)
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


class _GatedWorker(_Worker):
    """A worker that asks the gates before it starts a job. While they are idle, it does what a worker does."""

    def __init__(self, pool: WorkerPool, gates: Gatekeeper) -> None:
        super().__init__(pool)
        self._keeper = gates
        self._now = self._now_while_idle
        self._complete_job = super()._complete  # `super()` in each call would double the cost

    @disable_ki_protection
    async def _run_jobs(self) -> None:
        self._keeper.own(lambda: self._entry)
        while not self._scope.cancel_called:  # by an expired deadline
            await (super()._run_jobs() if self._keeper.is_idle else self._run_gated_jobs())

    def _now_while_idle(self) -> float | None:
        return self._current_time() if self._keeper.is_idle else None

    @enable_ki_protection
    def _complete(self, result: Any) -> float | None:
        """Finish the running job. Returns the current time, or None also if the gates are not idle any more."""
        now = self._complete_job(result)
        return now if self._keeper.is_idle else None

    async def _run_gated_jobs(self) -> None:
        """Run jobs until the gates are idle, or a deadline expires."""
        ledger, call, renew = self._ledger, self._invoker.call, self._pool.context.renew
        task, pace = trio.lowlevel.current_task(), Pace(JOBS_PER_PASS)
        now: float | None = self._current_time()
        while now is not None and not self._keeper.is_idle:
            is_renewed = renew(task)
            if not ledger.jobs:
                ledger.flow.idle(now)
                await self._pool.wait_for_job()
                now = self._current_time()
            elif pace.is_due(now) or is_renewed:
                await pace.checkpoint()
                now = self._current_time()
            else:
                now = self._complete_admitted(await call(await self._admitted(self._take(now))))

    @enable_ki_protection
    def _take(self, now: float) -> Entry:
        """Take the next job to the gates."""
        return self._ledger.take(now)

    @enable_ki_protection
    async def _admitted(self, entry: Entry) -> Entry:
        """Wait for the gates, and start the invocation."""
        try:
            await self._keeper.admit(entry)
        except Exception:  # refused: the record fails in its slot
            await self._begin(entry)
            raise
        except BaseException:
            self._ledger.give_back()
            raise
        await self._begin(entry)
        return entry

    async def _begin(self, entry: Entry) -> None:
        now = self._current_time()
        if not self._ledger.start_taken(entry, now):
            self._keeper.admissions.cancelled(entry)
            await trio.sleep_forever()
        self._entry = entry
        self._deadlines.set(self._scope, now)

    @enable_ki_protection
    def _complete_admitted(self, result: Any) -> float | None:
        assert self._entry is not None
        self._keeper.admissions.passed(self._entry)
        return self._complete_job(result)

    def _cancel(self) -> None:
        if self._entry is not None:
            self._keeper.admissions.cancelled(self._entry)
        super()._cancel()

    async def _rescue(self, entry: Entry, error: Exception | None) -> bool:
        self._keeper.admissions.ended(entry, error)
        return await super()._rescue(entry, error)


class _YieldingWorker(HandsOver, _Worker):
    """A worker of an operator whose records give their slots back."""


class _YieldingGatedWorker(HandsOver, _GatedWorker):
    """The same, with gates."""
