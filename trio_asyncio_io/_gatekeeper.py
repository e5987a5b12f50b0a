"""The gatekeeper: the one place where calls wait for gates.

The first call in the line asks the gates. It waits for the delay that they return, and asks again earlier when a call
has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import inf
from typing import Any
from weakref import WeakKeyDictionary

import trio
from trio.lowlevel import enable_ki_protection

from ._admissions import Admissions, Weights
from ._core.checks import check_number
from ._core.gate import Gate, RefusedError
from ._core.ledger import Ledger
from ._core.queue import Entry
from ._deadlines import Deadlines
from ._gate_in_use import GateInUse, User, use
from ._line import Line

__all__ = ["Gatekeeper", "GatesOfCall", "gates_of_call"]

# Instants that differ by less are equal. Otherwise rounding could yield a delay that is below the clock's resolution
SAME_INSTANT = 1e-9

# The gates of each task that makes calls
_OWNERS: WeakKeyDictionary[trio.lowlevel.Task, GatesOfCall] = WeakKeyDictionary()


def gates_of_call() -> GatesOfCall | None:
    """What admits the present task's calls. None: its operator has no gates, or the task is not an operator's."""
    return _OWNERS.get(trio.lowlevel.current_task())


@dataclass(frozen=True, slots=True)
class GatesOfCall:
    """The gates of a task's present call, for policies that make further calls for its element.

    Args:
        keeper: Of the operator.
        present: Returns the record of the call.
    """

    keeper: Gatekeeper
    present: Callable[[], Entry | None]

    def admit_extra(self) -> AbstractContextManager[object] | None:
        """See `Gatekeeper.admit_extra`."""
        return self.keeper.admit_extra()

    def lose(self, error: Exception | None) -> None:
        """Report that the call has raised, or was cancelled (None), and that the result is that of a further call."""
        entry = self.present()
        if entry is not None:
            self.keeper.admissions.lost(entry, error)


class Gatekeeper:
    """The gates of one operator.

    Args:
        gates: One or more. All of them must admit a call.
        ledger: Counts the waits.
        deadlines: A record that waits with a retry has its deadline moved by as much.
        on_failure: Called with the exception with which a gate stops the operator.
        has_retries: As in `Admissions`.

    Attributes:
        admissions: The calls that were admitted. They must report their ends.
        is_idle: Whether calls need not ask.
    """

    def __init__(
        self,
        gates: tuple[Gate, ...],
        ledger: Ledger,
        deadlines: Deadlines,
        on_failure: Callable[[Exception], None],
        *,
        has_retries: bool,
    ) -> None:
        self._gates = gates
        self._ledger = ledger
        self._deadlines = deadlines
        self._on_failure = on_failure
        self._in_use: list[GateInUse] = []
        self._line = Line()
        self._user = User(self._refresh, self._line.move_first)
        self.admissions = Admissions(gates, ledger, has_retries=has_retries)
        self.is_idle = False

    def open(self) -> None:
        """The operator starts.

        Raises:
            ValueError: A gate has the name of another one, with another configuration.
        """
        for gate in self._gates:
            self._in_use.append(use(gate, self._user))
        self.admissions.open(self._in_use)
        self._refresh()

    def close(self) -> None:
        """The operator has ended."""
        for each in self._in_use:
            each.leave(self._user)

    def own(self, present: Callable[[], Entry | None]) -> None:
        """Admit the calls of the present task, which are for the record that `present` returns."""
        _OWNERS[trio.lowlevel.current_task()] = GatesOfCall(self, present)

    @enable_ki_protection
    async def admit(self, entry: Entry) -> None:
        """Wait until the gates admit a call for this record, and count it as started.

        Raises:
            RefusedError: A gate refuses the call.
            Exception: The `weight` of a gate raised.

        Cancellation: no call was admitted.
        """
        weights = self._weights(entry)
        try:
            if self._line or self._delay(weights):
                await self._wait_in_line(entry, weights)
        except RefusedError:
            raise
        except Exception as error:  # noqa: BLE001 - a gate may raise anything
            self._on_failure(error)
            await trio.sleep_forever()
        self.admissions.start(entry, weights)

    @enable_ki_protection
    async def admit_again(self, entry: Entry) -> None:
        """Wait until the gates admit a retry. The deadline of the record is later by the time of the wait."""
        self.admissions.retry(entry)
        if self.is_idle:
            return
        paused = self._deadlines.pause()
        since = trio.current_time()
        try:
            await self.admit(entry)
        finally:
            seconds = trio.current_time() - since
            entry.since += seconds
            self._deadlines.resume(paused, seconds)

    def admit_extra(self) -> AbstractContextManager[object] | None:
        """Count another call of the present element as started, and return what it must run in.

        None: the gates do not admit it at once, or a call waits for them.
        """
        weights = self.admissions.present_weights()
        try:
            if self._line or self._delay(weights):
                return None
        except Exception:  # noqa: BLE001 - refused; a gate that is broken raises again for the next record
            return None
        return self.admissions.start_extra(weights)

    async def _wait_in_line(self, entry: Entry, weights: Weights) -> None:
        """Wait until this record is the first in the line and the gates admit its call."""
        place = self._line.join(entry)
        since = trio.current_time()
        earlier = self._line.holders.seconds(since)
        self._ledger.hold_back(entry, since)
        try:
            while delay := self._delay(weights) if self._line.is_first(place) else inf:
                with trio.move_on_after(delay):
                    await place.moved.wait()
        finally:
            now = trio.current_time()
            self._ledger.let_go(now - since, now, self._line.holders.since(earlier, now))
            self._line.leave(place)

    def _delay(self, weights: Weights) -> float:
        """The longest delay of all gates. Remembers which gate it was."""
        now = trio.current_time()
        longest, holder = 0.0, None
        for each, weight in zip(self._in_use, weights, strict=True):
            delay = each.delay(now, weight)
            if delay > max(longest, SAME_INSTANT):
                longest, holder = delay, each.gate
        if holder is not None:
            self._line.holders.change(type(holder).__name__, now)
        return longest

    def _weights(self, entry: Entry) -> Weights:
        if not self.admissions.is_weighted:
            return self.admissions.unweighted
        return tuple(1.0 if gate.weight is None else _checked(gate.weight(entry.value)) for gate in self._gates)

    def _refresh(self) -> None:
        self.is_idle = all(each.gate.is_idle for each in self._in_use)
        if self.is_idle:
            self._line.move_first()


def _checked(weight: Any) -> float:
    return check_number("weight", weight, "finite and not negative", lambda number: 0 <= number < inf)
