"""The policy `gated`: gates around a function, in place of gates of an operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Any, ParamSpec, TypeVar

import trio
from trio.lowlevel import ParkingLot, enable_ki_protection

from .._core.admission import Admission, GateLine, WaitingCall
from .._core.gate import Gate, PerKey, RefusedError, as_gates
from .._core.queue import Entry
from .._operator.calls import operator_of_call
from .._operator.gates import CallInGates, Gates
from ._policy import Policy, Wrapped, by_position

P = ParamSpec("P")
R = TypeVar("R")


class gated(Policy[P, R]):  # noqa: N801 - used like a function
    """A function whose calls start when a gate admits them.

    For a limit inside other policies: `cached(gated(fetch, RateLimit(50)))` has a limit for the requests that the cache
    could not answer, and a cached result does not wait. Where no policy makes fewer calls than there are elements, give
    the gate to the operator instead. The differences: here, a wait counts towards the operator's `timeout`, occupies
    its slot, and is part of the call's latency.

    All calls of this object pass the gates, in whatever operator. Calls wait in the order of their arrival; with a
    `gates.PerKey`, a key that is held back does not hold back the others. The outcome of a call is reported to each
    gate, and `settle` corrects its weight in these gates and in those of the operator. If one element makes several
    such calls, settle by the `name` of these gates, because what the element's own call has settled only falls. A gate,
    a `weight` or a `key` that is broken stops the operator, as in a gate of the operator.

    Args:
        function: An async callable or an `AsyncFunction`.
        gate: A `gates.Gate`, a `gates.PerKey`, or a list of them that must all admit a call. A gate that is shared with
            an operator, by object or by name, has one state.

    Attributes:
        wait_seconds: The seconds that calls have waited for the gates, added up.

    Raises:
        TypeError, ValueError: `gate` is something else, or has more than one `PerKey`.
        RefusedError: Raised by a call that a gate refuses. The operator does not retry it.

    Cancellation: a call that waits leaves immediately, and the next one takes its place.

    Example:
        lookup = cached(gated(fetch, RateLimit(50.0, burst=5)))
    """

    def __init__(self, function: Wrapped[P, R], gate: Gate | PerKey | Sequence[Gate | PerKey]) -> None:
        super().__init__(function, gate=gate)
        self.wait_seconds = 0.0
        self._given = as_gates(gate)
        self._gates: Gates | None = None  # None while no call runs or waits
        self._calls = 0
        self._running = 0
        self._numbers = count()

    @enable_ki_protection
    async def invoke(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """The result of a call that starts when all gates admit it."""
        values = by_position(self, arguments, keywords) if keywords else arguments
        gates = self._enter()
        try:
            admission = await self._admitted(gates, values)
            self._running += 1
            try:
                with CallInGates(gates, admission):
                    result: R = await self._call(*values)
            finally:
                self._running -= 1
        finally:
            self._exit(gates)
        return result

    def _enter(self) -> Gates:
        """The gates. They are open only while there are calls, so each Trio run has its own."""
        gates = self._gates
        if gates is None:
            gates = Gates(self._given, lambda: self._running, _count_throttled, _stop)
            try:
                gates.open(_wake)
            except ValueError as error:  # the name of another gate, with another configuration
                gates.close()
                _stop(error, None)
                raise
            self._gates = gates
        self._calls += 1
        return gates

    def _exit(self, gates: Gates) -> None:
        self._calls -= 1
        if not self._calls:
            self._gates = None
            gates.close()

    async def _admitted(self, gates: Gates, arguments: tuple[Any, ...]) -> Admission:
        """Start a call when all gates admit it: first the gates of its key, then the common ones."""
        began = trio.current_time()
        try:
            line = gates.line_of(*arguments)
            call = Entry(arguments, arguments, next(self._numbers), began)
            waiting = _WaitingTask(call, began, line=line, weights=line.weights_of(*arguments))
            return await self._pass(waiting, line)
        except RefusedError:
            raise
        except Exception as error:
            _stop(error, None)
            raise
        finally:
            self.wait_seconds += trio.current_time() - began

    async def _pass(self, waiting: _WaitingTask, line: GateLine) -> Admission:
        """Wait in the line of the key, then in the common line. Only the first call in a line checks the gates."""
        joined: list[GateLine] = []
        line.uses += 1
        try:
            while True:
                now = trio.current_time()
                waits_in = line.line_for(waiting.weights, now, waiting)
                if waits_in is line and line.common in joined:  # other keys need not wait for this one
                    _leave(joined.pop(), waiting)
                if waits_in is None:
                    return Admission(line, now, waiting.weights).start()
                if waits_in not in joined:
                    # A new number for each line: the common one has the order in which calls have passed their own
                    waits_in.join(waiting, (False, 0, next(self._numbers)), now)
                    joined.append(waits_in)
                until = waits_in.held_until if waits_in.heap[0][1] is waiting else inf
                with trio.move_on_at(until):
                    await waiting.place.park()
        finally:
            line.uses -= 1
            for each in joined:
                _leave(each, waiting)


@dataclass(eq=False, slots=True)
class _WaitingTask(WaitingCall):
    """A call that waits in the task that will make it.

    Attributes:
        place: Where the task waits.
    """

    place: ParkingLot = field(default_factory=ParkingLot, init=False)


def _leave(line: GateLine, waiting: WaitingCall) -> None:
    """A call no longer waits in this line. The next one checks the gates."""
    line.leave(waiting)
    _wake(line)


def _wake(line: GateLine) -> None:
    """Let the first call in this line check its gates, which may admit it earlier than they said."""
    if line.heap:
        first = line.heap[0][1]
        assert isinstance(first, _WaitingTask)
        first.place.unpark_all()


def _count_throttled() -> None:
    operator = operator_of_call()
    if operator is not None:
        operator.ledger.throttle()


def _stop(error: Exception, _: Entry | None) -> None:
    """A gate is broken: stop the operator. Without one, the call raises the error."""
    operator = operator_of_call()
    if operator is None:
        raise error
    operator.stop(error)
