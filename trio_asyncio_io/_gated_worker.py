"""A worker of an operator with gates."""

from __future__ import annotations

from typing import Any

import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from ._core.queue import Entry
from ._gatekeeper import Gatekeeper, SetAsideError
from ._pace import Pace
from ._worker import JOBS_PER_PASS, Pool, Worker

__all__ = ["GatedWorker"]


class GatedWorker(Worker):
    """A worker that asks the gates before it starts a job. While they are idle, it is a plain worker."""

    def __init__(self, pool: Pool, gates: Gatekeeper) -> None:
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
                try:
                    now = self._complete_admitted(await call(await self._admitted(self._take(now))))
                except SetAsideError:
                    now = self._current_time()

    @enable_ki_protection
    def _take(self, now: float) -> Entry:
        """Take the next job to the gates."""
        return self._ledger.take(now)

    @enable_ki_protection
    async def _admitted(self, entry: Entry) -> Entry:
        """Wait for the gates, and start the invocation."""
        try:
            await self._keeper.admit(entry)
        except SetAsideError:
            raise
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
