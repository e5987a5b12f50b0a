"""The policy `gated`: gates around a function, in place of those of an operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import trio
from trio.lowlevel import ParkingLot, enable_ki_protection

from .._core.admission import Admission, GateLine, Weights
from .._core.gate import Gate, PerKey, RefusedError, as_gates
from .._core.queue import Entry
from .._operator.calls import ledger_of_call, stop_of_call
from .._operator.gates import Gates
from ._policy import Policy, Wrapped, by_position

__all__ = ["gated"]

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
        self._gates: Gates | None = None  # while there are calls
        self._calls = 0
        self._running = 0
        self._locks: WeakKeyDictionary[GateLine, trio.StrictFIFOLock] = WeakKeyDictionary()
        self._changed = ParkingLot()

    @enable_ki_protection
    async def invoke(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """The result of a call that starts when all gates admit it."""
        values = by_position(self, arguments, keywords) if keywords else arguments
        gates = self._enter()
        try:
            admission = await self._admitted(gates, values)
            self._running += 1
            try:
                with gates.around(admission):
                    result: R = await self._call(*values)
            finally:
                self._running -= 1
        finally:
            self._leave(gates)
        return result

    def _enter(self) -> Gates:
        """The gates, in use while there are calls. So no call of an earlier Trio run uses them."""
        gates = self._gates
        if gates is None:
            gates = Gates(self._given, lambda: self._running, _count_throttled, _stop)
            try:
                gates.open(self._wake, self._wake)
            except ValueError as error:  # the name of another gate, with another configuration
                gates.close()
                _stop(error, None)
                raise
            self._gates = gates
        self._calls += 1
        return gates

    def _leave(self, gates: Gates) -> None:
        self._calls -= 1
        if not self._calls:
            self._gates = None
            gates.close()

    async def _admitted(self, gates: Gates, arguments: tuple[Any, ...]) -> Admission:
        """The call, started. It waits in the line of its key first, and then in that of all calls."""
        began = trio.current_time()
        try:
            line = gates.line_of(*arguments)
            weights = line.weights_of(*arguments)
            line.running += 1  # its gates stay in use
            try:
                async with self._lock_of(line):
                    return await self._pass(line, weights)
            finally:
                line.running -= 1
        except RefusedError:
            raise
        except Exception as error:
            _stop(error, None)
            raise
        finally:
            self.wait_seconds += trio.current_time() - began

    def _lock_of(self, line: GateLine) -> trio.StrictFIFOLock:
        """The first call in the line has this lock."""
        return self._locks.setdefault(line, trio.StrictFIFOLock())

    async def _pass(self, line: GateLine, weights: Weights) -> Admission:
        """The call, started, which is the first one in its line."""
        if line.common is None:
            while not isinstance(outcome := _attempt(line, line, weights), Admission):
                await self._wait(outcome or 0.0)
            return outcome
        while True:
            while delay := line.delay(weights, trio.current_time()):
                await self._wait(delay)
            async with self._lock_of(line.common):
                while (outcome := _attempt(line, line.common, weights)) is not None:
                    if isinstance(outcome, Admission):
                        return outcome
                    await self._wait(outcome)

    async def _wait(self, delay: float) -> None:
        with trio.move_on_after(delay):
            await self._changed.park()

    def _wake(self, _: GateLine | None = None) -> None:
        """A gate may admit a call earlier than it said."""
        self._changed.unpark_all()


def _attempt(line: GateLine, common: GateLine, weights: Weights) -> Admission | float | None:
    """Start the call. Returns the delay of the common gates instead if they do not admit it; None: its key's do not."""
    now = trio.current_time()
    if line is not common and line.delay(weights, now):
        return None
    return common.delay(weights, now) or Admission(line, now, weights).start()


def _count_throttled() -> None:
    ledger = ledger_of_call()
    if ledger is not None:
        ledger.throttle()


def _stop(error: Exception, _: Entry | None) -> None:
    """A gate is broken: stop the operator. Without one, the call raises the error."""
    stop = stop_of_call()
    if stop is None:
        raise error
    stop(error)
