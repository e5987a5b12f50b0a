"""The pool of workers: starts and wakes them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import trio

from ._context import BlockContext
from ._core.ledger import Ledger
from ._deadlines import Deadlines
from ._emitter import Emitter
from ._gated_worker import GatedWorker
from ._gatekeeper import Gatekeeper
from ._invoker import Invoker
from ._slots import HandsOver, HandsOverAlways, Slots
from ._wakeup import Wakeup
from ._worker import Worker

__all__ = ["WorkerPool"]


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
            self.gates.open(nursery, self.dispatch)
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
        self._nursery.start_soon(self._new_worker().run, name="trio_asyncio_io worker")

    def _new_worker(self) -> Worker:
        if self.gates is None:
            return Worker(self) if self.slots is None else _YieldingWorker(self.slots, self)
        if self.slots is None:
            return GatedWorker(self, self.gates)
        kind = _HandingOverGated if self.slots.seconds == inf else _YieldingGated
        return kind(self.slots, self, self.gates)


class _YieldingWorker(HandsOverAlways, Worker):
    """A worker of an operator whose records give their slots back during backoffs."""


class _YieldingGated(HandsOverAlways, GatedWorker):
    """The same, with gates."""


class _HandingOverGated(HandsOver, GatedWorker):
    """A worker of an operator whose records give their slots back only while they wait for gates."""
