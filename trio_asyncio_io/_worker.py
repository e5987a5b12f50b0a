"""A worker: a task that invokes the function.

A worker lives as long as the operator and reuses one cancel scope, which is replaced after a deadline has cancelled it.
That costs several times less than a scope or a task per invocation, with the same effect: each invocation has its own
deadline and its own context.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Protocol

import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from ._context import BlockContext
from ._core.ledger import Ledger
from ._core.queue import Entry
from ._deadlines import Deadlines
from ._emitter import Emitter
from ._invoker import Invoker
from ._pace import SECONDS_PER_PASS

__all__ = ["JOBS_PER_PASS", "Pool", "Worker"]

# Jobs between two checkpoints, of functions that never suspend
JOBS_PER_PASS = 100
_NOT_SUSPENDED = object()


class Pool(Protocol):
    """The pool of a worker: see `WorkerPool`."""

    ledger: Ledger
    invoker: Invoker
    deadlines: Deadlines
    emitter: Emitter
    on_failure: Callable[[Exception], None]
    context: BlockContext

    async def wait_for_job(self) -> None: ...


class Worker:
    """One worker: runs one job after another.

    `_start` and `_complete` are protected from interrupts, the loop that calls them is not: user code runs in it.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._ledger = pool.ledger
        self._invoker = pool.invoker
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
