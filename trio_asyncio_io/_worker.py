"""The workers: the tasks that invoke.

Each is long-lived and reuses one cancel scope, which is cancelled when an invocation's deadline strikes and
renewed after that. That is several times cheaper than a scope or a task per invocation, and it is the same
thing: one invocation, one deadline, and a context of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import trio
from trio.lowlevel import enable_ki_protection

from ._context import BlockContext
from ._core.ledger import Ledger
from ._core.queue import Entry
from ._deadlines import Deadlines
from ._invocation import Invocation
from ._pace import SECONDS_PER_PASS

__all__ = ["WorkerPool"]

# Jobs between two checkpoints, of functions that never suspend
JOBS_PER_PASS = 100
_AWAKE = object()


class WorkerPool:
    """At most `capacity` workers, started when there is work for them.

    Args:
        ledger: Where the jobs stand.
        invocation: What is done for each.
        capacity: Most workers.
        nursery: Owns the workers.
        deadlines: Where each invocation's deadline is set.
        on_done: Called after an entry got its results.
        on_failure: Called with the exception that must stop the operator.
    """

    def __init__(
        self,
        ledger: Ledger,
        invocation: Invocation,
        *,
        capacity: int,
        deadlines: Deadlines,
        nursery: trio.Nursery,
        on_done: Callable[[], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._ledger = ledger
        self._invocation = invocation
        self._capacity = capacity
        self._deadlines = deadlines
        self._nursery = nursery
        self._on_done = on_done
        self._on_failure = on_failure
        self._workers = 0
        self._context = BlockContext()  # not that of whoever puts an element: a worker serves the next one's too
        self._idle = trio.lowlevel.ParkingLot()

    def dispatch(self) -> None:
        """There is one more job: wake a worker for it, or start one, unless all are busy."""
        free = self._workers - self._ledger.counters.running
        if len(self._ledger.jobs) <= free:
            self._idle.unpark()
        elif self._workers < self._capacity:
            self._workers += 1
            self._context.run(self._start_worker)

    def _start_worker(self) -> None:
        self._nursery.start_soon(self._work, name="trio_asyncio_io worker")

    @enable_ki_protection
    async def _work(self) -> None:
        while True:
            entry, error = await self._work_until_trouble()
            if entry is not None and not await self._rescue(entry, error):
                return

    async def _work_until_trouble(self) -> tuple[Entry | None, Exception | None]:
        """Invoke until a deadline strikes or a call raises; the entry that it happened to, and the exception."""
        ledger, jobs, deadlines = self._ledger, self._ledger.jobs, self._deadlines
        call, outputs, on_done, current_time = (
            self._invocation.call,
            self._invocation.outputs,
            self._on_done,
            trio.lowlevel.current_clock().current_time,  # `trio.current_time` looks for the clock each time
        )
        task, block, entry, scope = trio.lowlevel.current_task(), self._context, None, trio.CancelScope()
        try:
            with scope:
                now = due = current_time()
                size, jobs_left = block.size, 0
                while True:
                    if task.custom_sleep_data is not _AWAKE:  # Trio clears it whenever the task sleeps
                        task.custom_sleep_data = _AWAKE
                        due, jobs_left = now + SECONDS_PER_PASS, JOBS_PER_PASS
                    if len(task.context) != size or (size and block.is_changed_in(task.context)):
                        block.renew(task)
                        due = now
                    if now >= due or not jobs_left:
                        await trio.lowlevel.checkpoint()
                        now = current_time()
                        continue
                    if not jobs:
                        await self._idle.park()
                        now = current_time()
                        continue
                    jobs_left -= 1
                    entry = ledger.start(now)
                    deadlines.set(scope, now)
                    results = outputs(await call(entry))
                    now = current_time()
                    ledger.complete(entry, results, now)
                    entry = None
                    on_done()
                    if not deadlines.meet(scope):  # it struck, and the function returned all the same
                        break
        except Exception as error:
            if entry is None:  # not the user's
                raise
            return entry, error
        except BaseException:
            self._abandon(entry)
            raise
        finally:
            deadlines.meet(scope)
        return entry, None

    async def _rescue(self, entry: Entry, error: Exception | None) -> bool:
        """Settle a troubled entry in its slot; whether the worker may go on."""
        if error is not None and trio.current_effective_deadline() == -inf:
            self._failed_while_stopping(entry, error)
            return False
        try:
            results = await self._invocation.rescue(entry, error)
        except Exception as final:  # noqa: BLE001 - the user's, whatever it is
            self._ledger.abandon()
            self._on_failure(final)
            return False
        except BaseException:
            self._ledger.abandon()  # counted as failed or timed out already
            raise
        self._ledger.finish(entry, results, trio.current_time())
        self._on_done()
        return True

    def _failed_while_stopping(self, entry: Entry, error: Exception) -> None:
        """Nobody asks for a result any more, but nobody's error is lost either."""
        self._ledger.abandon()
        fatal = self._invocation.failed_while_stopping(entry, error)
        if fatal is not None:
            self._on_failure(fatal)

    def _abandon(self, entry: Entry | None) -> None:
        if entry is not None:
            self._ledger.cancel(entry, trio.current_time())
