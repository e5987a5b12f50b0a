"""The gatekeeper: the one place where calls wait for gates.

The first call in the line asks the gates. It waits for the delay that they return, and asks again earlier when a call
has ended. A call that waits for gates of its key does so in `_gates_of_key`, without a slot.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from math import inf
from typing import Any, TypeAlias

import trio
from trio.lowlevel import enable_ki_protection

from ._admissions import Admissions, Passage, Weights
from ._core.checks import check_number
from ._core.gate import Gate, RefusedError
from ._core.ledger import Ledger
from ._core.per_key import PerKey
from ._core.queue import Entry
from ._deadlines import Deadlines
from ._gate_group import GateGroup
from ._gate_in_use import User, use
from ._gates_of_call import GatesOfCall, own_calls
from ._gates_of_key import GatesOfKey
from ._keyed_gates import KeyedGates
from ._slots import Slots

__all__ = ["Gatekeeper", "SetAsideError"]


class SetAsideError(Exception):
    """Ends the work on a job whose record waits for the gates of its key, without a worker."""


class Gatekeeper:
    """The gates of one operator.

    A call passes the gates of its key first, and then those of all calls. While it waits for the gates of its key, it
    has no slot.

    Args:
        gates: One or more. All of them must admit a call.
        ledger: Counts the waits.
        deadlines: A record that waits with a retry has its deadline moved by as much.
        on_failure: Called with the exception with which a gate stops the operator.
        has_retries: As in `Admissions`.
        slots: Take back those of retries that wait for the gates of their key. Required for these.

    Attributes:
        admissions: The calls that were admitted. They must report their ends.
        is_idle: Whether calls need not ask.
    """

    def __init__(
        self,
        gates: tuple[Gate | PerKey, ...],
        ledger: Ledger,
        deadlines: Deadlines,
        on_failure: Callable[[Exception], None],
        *,
        has_retries: bool,
        slots: Slots | None = None,
    ) -> None:
        self._gates = [gate for gate in gates if isinstance(gate, Gate)]
        keyed = next((gate for gate in gates if isinstance(gate, PerKey)), None)
        given = self._gates if keyed is None else [*self._gates, *keyed.gates]
        self._ledger = ledger
        self._deadlines = deadlines
        self._on_failure = on_failure
        self._slots = slots
        self._group = GateGroup()
        self._line = self._group.line
        self._user = User(self._refresh, self._line.move_first)
        self._passage = Passage(self._gates, self._group.in_use)
        self._keyed = None if keyed is None else KeyedGates(keyed, self._group, given, self._refresh)
        self.admissions = Admissions(given, ledger, self._passage_of, has_retries=has_retries)
        self.is_idle = False

    def open(self, nursery: trio.Nursery, dispatch: Callable[[], None]) -> None:
        """The operator starts.

        Args:
            nursery: Owns the tasks that the gates of keys need.
            dispatch: Called when a record that was set aside is a job again.

        Raises:
            ValueError: A gate has the name of another one, with another configuration.
        """
        self._dispatch = dispatch
        for gate in self._gates:
            self._group.in_use.append(use(gate, self._user))
        if self._keyed is not None:
            self._keyed.open(nursery)
        self._refresh()

    def close(self) -> None:
        """The operator has ended."""
        for each in self._group.in_use:
            each.leave(self._user)
        if self._keyed is not None:
            self._keyed.close()

    def own(self, present: Callable[[], Entry | None]) -> None:
        """Admit the calls of the present task, which are for the record that `present` returns."""
        own_calls(GatesOfCall(present, self.admit_extra, self.admissions.lost))

    @enable_ki_protection
    async def admit(self, entry: Entry) -> None:
        """Wait until the gates admit a call for this record, and count it as started.

        Raises:
            SetAsideError: The gates of its key do not admit it now. It will be a job again.
            RefusedError: A gate refuses the call.
            Exception: The `weight` of a gate raised, or the `key` of a `PerKey`.

        Cancellation: no call was admitted.
        """
        await self._admit(entry, self._set_aside)

    @enable_ki_protection
    async def admit_again(self, entry: Entry) -> None:
        """Wait until the gates admit a retry. The deadline of the record is later by the time of the wait."""
        if self.is_idle:
            self.admissions.retry(entry)
            return
        paused = self._deadlines.pause()
        if paused is None:
            await trio.sleep_forever()  # the deadline expires now
        self.admissions.retry(entry)
        began, since = trio.current_time(), entry.since
        try:
            await self._admit(entry, self._wait_aside)
        finally:
            seconds = trio.current_time() - began
            entry.since = since + seconds
            self._deadlines.resume(paused, seconds)

    def admit_extra(self, entry: Entry) -> AbstractContextManager[object] | None:
        """Count another call for this record as started, and return what it must run in.

        None: the gates do not admit it at once, or a call waits for them.
        """
        try:
            keyed = self._keyed_for(entry)
            passage = self._passage if keyed is None else keyed.passage
            weights = self.admissions.present_weights(passage)
            if self._must_wait(weights) or not (keyed is None or keyed.admits(entry, weights)):
                return None
        except Exception:  # noqa: BLE001 - refused; a gate that is broken raises again for the next record
            return None
        return self.admissions.start_extra(passage, weights)

    async def _admit(self, entry: Entry, wait_aside: _WaitAside) -> None:
        keyed = self._keyed_for(entry)
        passage = self._passage if keyed is None else keyed.passage
        weights = _weights(entry, passage)
        try:
            await self._pass(entry, passage, weights, keyed, wait_aside)
        except SetAsideError:
            raise
        except BaseException as error:
            if keyed is not None:
                keyed.leave(entry)
            if not isinstance(error, Exception) or isinstance(error, RefusedError):
                raise
            self._on_failure(error)  # a gate may raise anything
            await trio.sleep_forever()
        if keyed is not None:
            keyed.leave(entry)
        self.admissions.start(entry, passage, weights)

    async def _pass(
        self, entry: Entry, passage: Passage, weights: Weights, keyed: GatesOfKey | None, wait_aside: _WaitAside
    ) -> None:
        """Wait until all gates admit the call at the same instant."""
        is_due = False
        while True:
            if keyed is not None and not keyed.admits(entry, weights):
                await wait_aside(entry, keyed, weights)
                is_due = False
            elif is_due or not self._must_wait(weights):
                return
            else:
                await self._wait_in_line(entry, passage, weights)
                is_due = True

    def _must_wait(self, weights: Weights) -> bool:
        """Whether a call has to wait for the gates that are not those of a key."""
        return bool(self._line) or self._delay(weights) > 0

    async def _wait_in_line(self, entry: Entry, passage: Passage, weights: Weights) -> None:
        """Wait until this record is the first in the line and the gates admit its call."""
        place = self._line.join(entry)
        since = trio.current_time()
        earlier = self._line.holders.seconds(since)
        self._ledger.hold_back(entry, since)
        passage.running += 1  # its gates stay in use
        try:
            while delay := self._delay(weights) if self._line.is_first(place) else inf:
                with trio.move_on_after(delay):
                    await place.moved.wait()
        finally:
            passage.running -= 1
            now = trio.current_time()
            self._ledger.let_go(now - since, now, self._line.holders.since(earlier, now))
            self._line.leave(place)

    async def _set_aside(self, entry: Entry, keyed: GatesOfKey, weights: Weights) -> None:
        """Let a record wait for the gates of its key, without a worker. It is a job again when they admit its call."""

        def call() -> None:
            self._ledger.return_job(entry, trio.current_time())
            self._dispatch()

        self._ledger.give_back()
        self._join(entry, keyed, weights, call)
        raise SetAsideError

    async def _wait_aside(self, entry: Entry, keyed: GatesOfKey, weights: Weights) -> None:
        """Wait with a retry for the gates of its key, without its slot, and then for a slot."""
        assert self._slots is not None
        is_called = trio.Event()
        self._join(entry, keyed, weights, is_called.set)
        await self._slots.wait(entry, is_called)

    def _join(self, entry: Entry, keyed: GatesOfKey, weights: Weights, call: Callable[[], None]) -> None:
        """Let a record wait without a slot, until `call` is called."""
        since, holders = trio.current_time(), keyed.group.line.holders
        earlier = holders.seconds(since)

        def counted() -> None:
            now = trio.current_time()
            self._ledger.call_back(now - since, now, holders.since(earlier, now))
            call()

        self._ledger.set_aside(entry, since)
        keyed.join(entry, weights, counted)

    def _delay(self, weights: Weights) -> float:
        return self._group.delay(weights[: len(self._gates)])

    def _keyed_for(self, entry: Entry) -> GatesOfKey | None:
        return None if self._keyed is None else self._keyed.of(entry.value)

    def _passage_of(self, entry: Entry) -> Passage:
        """What a call has passed that has ended, and did not have to ask."""
        try:
            keyed = self._keyed_for(entry)
        except Exception:  # noqa: BLE001 - the user's key; a call that has to ask fails with the exception
            keyed = None
        return self._passage if keyed is None else keyed.passage

    def _refresh(self) -> None:
        self.is_idle = self._group.is_idle and (self._keyed is None or self._keyed.is_idle)
        if self.is_idle:
            self._line.move_first()


_WaitAside: TypeAlias = Callable[[Entry, GatesOfKey, Weights], Awaitable[None]]


def _weights(entry: Entry, passage: Passage) -> Weights:
    if not passage.is_weighted:
        return passage.unweighted
    return tuple(1.0 if gate.weight is None else _checked(gate.weight(entry.value)) for gate in passage.given)


def _checked(weight: Any) -> float:
    return check_number("weight", weight, "finite and not negative", lambda number: 0 <= number < inf)
