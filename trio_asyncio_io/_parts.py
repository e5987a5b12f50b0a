"""The parts of an operator, and how they are connected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import trio

from ._attempts import Invoker
from ._boundary import interruptible
from ._calls import cover
from ._core.groups import GroupScheduler
from ._core.observation import ledger_for
from ._core.options import Options
from ._core.queue import Entry
from ._core.scheduler import Scheduler
from ._dead_letters import DeadLetters
from ._emitter import Emitter
from ._feeder import ELEMENTS_PER_PASS, Feeder
from ._function import known_of
from ._gates import Gates
from ._group_worker import GroupWorker
from ._results import Results
from ._tasks import Wakeup, read_clocks
from ._worker import Worker, WorkerPool

__all__ = ["Parts"]

R = TypeVar("R")


class Parts(Generic[R]):
    """The parts of one operator.

    Args:
        function: Its function, as an object with `invoke`.
        options: Its options.
        on_failure: Called with the exception that stops the operator.
        on_output_closed: Called when the consumer closes the output.

    Attributes:
        ledger: The state of all elements.
        output: What the consumer reads.
        emitter: Sends completed entries to the output.
        invoker: Carries out the invocations.
        feeder: Accepts elements.
    """

    def __init__(
        self,
        function: Any,
        options: Options,
        *,
        on_failure: Callable[[Exception], None],
        on_output_closed: Callable[[], None],
    ) -> None:
        self.ledger = ledger_for(options, None if options.key is None else interruptible(options.key))
        # Entries in this channel still count towards `buffer`. It holds a few rounds of results, so the emitter rarely
        # waits for the consumer
        self._send, receive = trio.open_memory_channel[Entry](4 * options.capacity)
        has_room = Wakeup()
        dead_letters = DeadLetters(self.ledger, has_room)
        self.output: Results[R] = Results(receive, dead_letters, self.ledger, has_room, on_output_closed)
        self.emitter = Emitter(self.ledger, self._send, dead_letters, has_room)
        self._on_failure = on_failure
        self._gates = self._gates_of(options)
        self.invoker = Invoker(function, options, self.ledger, self._gates)
        self._scheduler = self._scheduler_of(options)
        self._workers = WorkerPool(
            self.ledger,
            self._scheduler,
            self.invoker,
            worker=Worker if options.group is None else GroupWorker,
            capacity=options.capacity,
            emitter=self.emitter,
            has_room=has_room,
            on_failure=on_failure,
            gates=self._gates,
        )
        known = known_of(function)
        self.feeder = Feeder(
            self.ledger,
            self._workers.dispatch,
            self.emitter.emit,
            has_room,
            elements_per_pass=max(ELEMENTS_PER_PASS, 2 * options.capacity),
            known=None if known is None else interruptible(known),
            on_full=None if options.group is None else self._workers.dispatch,  # groups no longer wait for more records
        )

    async def start(self, nursery: trio.Nursery) -> None:
        """Start the tasks, and accept the elements of a restored snapshot."""
        cover(nursery, self.ledger, self._on_failure)
        self._workers.open(nursery)
        nursery.start_soon(self.emitter.run, name="trio_asyncio_io emitter")
        if self.ledger.backlog:
            await nursery.start(self.feeder.restore, name="trio_asyncio_io restore")

    def end_input(self) -> None:
        """Accept no more elements."""
        self.ledger.end_input(trio.current_time())
        self.emitter.emit()
        self._workers.dispatch()  # groups no longer wait for more records

    def close(self) -> None:
        """All tasks have unwound."""
        self._scheduler.close(trio.current_time())
        self.ledger.end_run(read_clocks())
        if self._gates is not None:
            self._gates.close()
        self.output.dead_letters.abandon()
        self.output.close()  # before the sending end: a task that still receives must not see the end of the stream
        self._send.close()

    def _scheduler_of(self, options: Options) -> Scheduler:
        arguments = self.ledger, options.capacity, options.timeout
        if options.group is None:
            return Scheduler(*arguments, gates=self._gates, on_failure=self._fail_gate)
        return GroupScheduler(
            *arguments, gates=self._gates, on_failure=self._fail_gate, size=options.group, wait=options.group_wait
        )

    def _gates_of(self, options: Options) -> Gates | None:
        if not options.gates:
            return None
        counters = self.ledger.counters
        return Gates(options.gates, lambda: counters.running, self.ledger.throttle, self._fail_gate)

    def _fail_gate(self, error: Exception, entry: Entry | None) -> None:
        """A gate is broken, or the `weight` of a gate or the `key` of a `PerKey` has raised."""
        self._on_failure(error if entry is None else self.invoker.named(error, entry))
