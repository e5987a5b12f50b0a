"""The parts of an operator, and how they are connected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import trio

from ._boundary import interruptible
from ._clocks import read_clocks
from ._core.observed_ledger import ledger_for
from ._core.options import Options
from ._core.queue import Entry
from ._dead_letters import DeadLetters
from ._deadlines import Deadlines
from ._emitter import Emitter
from ._feeder import ELEMENTS_PER_PASS, Feeder
from ._function import known_of
from ._gatekeeper import Gatekeeper
from ._invoker import Invoker
from ._ledgers import cover
from ._results import Results
from ._slots import Slots, slots_for
from ._wakeup import Wakeup
from ._worker_pool import WorkerPool
from .gates import AdaptiveCapacity

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
        self._send, receive = trio.open_memory_channel[Entry](4 * options.slots)
        has_room = Wakeup()
        dead_letters = DeadLetters(self.ledger, has_room)
        self.output: Results[R] = Results(receive, dead_letters, self.ledger, has_room, on_output_closed)
        self.emitter = Emitter(self.ledger, self._send, dead_letters, has_room)
        self._deadlines = Deadlines(options.timeout)
        slots = slots_for(options, self.ledger, self._deadlines)
        self._gates = self._gatekeeper(options, on_failure, slots)
        self.invoker = Invoker(function, options, self.ledger, self._gates, slots)
        self._workers = WorkerPool(
            self.ledger,
            self.invoker,
            capacity=options.slots,
            deadlines=self._deadlines,
            emitter=self.emitter,
            has_room=has_room,
            on_failure=on_failure,
            gates=self._gates,
            slots=slots,
        )
        known = known_of(function)
        self.feeder = Feeder(
            self.ledger,
            self._workers.dispatch,
            self.emitter.emit,
            has_room,
            elements_per_pass=max(ELEMENTS_PER_PASS, 2 * options.slots),
            known=None if known is None else interruptible(known),
        )

    async def start(self, nursery: trio.Nursery) -> None:
        """Start the tasks, and accept the elements of a restored snapshot."""
        cover(nursery, self.ledger)
        self._workers.open(nursery)
        nursery.start_soon(self.emitter.run, name="trio_asyncio_io emitter")
        nursery.start_soon(self._deadlines.run, name="trio_asyncio_io deadlines")
        if self.ledger.backlog:
            await nursery.start(self.feeder.restore, name="trio_asyncio_io restore")

    def close(self) -> None:
        """All tasks have unwound."""
        self.ledger.end(read_clocks())
        if self._gates is not None:
            self._gates.close()
        self.output.dead_letters.abandon()
        self.output.close()  # before the sending end: a task that still receives must not see the end of the stream
        self._send.close()

    def _gatekeeper(
        self, options: Options, on_failure: Callable[[Exception], None], slots: Slots | None
    ) -> Gatekeeper | None:
        gates = options.gates
        if isinstance(options.capacity, tuple):
            gates = (*gates, AdaptiveCapacity(*options.capacity))
        if not gates:
            return None
        has_retries = options.retry is not None
        return Gatekeeper(gates, self.ledger, self._deadlines, on_failure, has_retries=has_retries, slots=slots)
