"""The gatekeeper: the one place where calls wait for gates.

Calls wait in a line: retries before new records, those with few attempts first, so that not one record makes all the
probes of a circuit breaker, and then the oldest. Only the first in the line asks the gates. It waits for the delay that
they return, and asks again earlier when a call has ended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import trio
from trio.lowlevel import enable_ki_protection

from ._core.checks import check_number
from ._core.gate import CANCELLED, CURRENT_CALL, OK, Gate, Outcome, RefusedError, as_outcome
from ._core.ledger import Ledger
from ._core.queue import Entry
from ._deadlines import Deadlines
from ._gate_in_use import GateInUse, User, use
from ._outcomes import outcome_of

__all__ = ["Gatekeeper", "gatekeeper_of_call"]

# Instants that differ by less are equal. Otherwise rounding could yield a delay that is below the clock's resolution
SAME_INSTANT = 1e-9

Call: TypeAlias = Callable[[Entry], Awaitable[Any]]
Weights: TypeAlias = tuple[float, ...]

# The gatekeeper of each task that makes calls
_OWNERS: WeakKeyDictionary[trio.lowlevel.Task, Gatekeeper] = WeakKeyDictionary()


def gatekeeper_of_call() -> Gatekeeper | None:
    """What admits the present task's calls. None: its operator has no gates, or the task is not an operator's."""
    return _OWNERS.get(trio.lowlevel.current_task())


class Gatekeeper:
    """The gates of one operator.

    Args:
        gates: One or more. All of them must admit a call.
        ledger: Counts the waits.
        deadlines: A record that waits with a retry has its deadline moved by as much.
        on_failure: Called with the exception with which a gate stops the operator.
        has_retries: Whether `failed` is called for each attempt. Otherwise `ended` is the end of the only one.

    Attributes:
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
        self._has_retries = has_retries
        self._unweighted = (1.0,) * len(gates)
        self._is_weighted = any(gate.weight is not None for gate in gates)
        self._in_use: list[GateInUse] = []
        self._user = User(self._refresh, self._ask_again)
        self._line: list[_Place] = []
        self._held_by = gates[0]
        self._admissions: dict[int, _Admission] = {}  # by sequence
        self.is_idle = False

    def open(self) -> None:
        """The operator starts.

        Raises:
            ValueError: A gate has the name of another one, with another configuration.
        """
        for gate in self._gates:
            self._in_use.append(use(gate, self._user))
        self._refresh()

    def close(self) -> None:
        """The operator has ended."""
        for each in self._in_use:
            each.leave(self._user)

    def own(self) -> None:
        """Admit the calls of the present task."""
        _OWNERS[trio.lowlevel.current_task()] = self

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
        self._admissions[entry.sequence] = self._start(weights)

    @enable_ki_protection
    async def admit_again(self, entry: Entry) -> None:
        """Wait until the gates admit a retry. The deadline of the record is later by the time of the wait."""
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
        present = CURRENT_CALL.get()
        weights = present.weights if self._is_weighted and present is not None else self._unweighted
        try:
            if self._line or self._delay(weights):
                return None
        except Exception:  # noqa: BLE001 - refused; a gate that is broken raises again for the next record
            return None
        return self._extra(self._start(weights))

    @contextmanager
    def _extra(self, admission: _Admission) -> Iterator[None]:
        outcomes: Iterable[Outcome] = [CANCELLED] * len(self._gates)
        CURRENT_CALL.set(admission)
        try:
            yield
            outcomes = [OK] * len(self._gates)
        except Exception as error:
            outcomes = self._outcomes_of(error)
            raise
        finally:
            admission.end(outcomes)

    def around(self, once: Call) -> Call:
        """A call in which `settle` works. The same call if no gate has a weight."""

        async def call(entry: Entry) -> Any:
            token = CURRENT_CALL.set(self._admissions.get(entry.sequence))
            try:
                return await once(entry)
            finally:
                CURRENT_CALL.reset(token)

        return call if self._is_weighted else once

    def passed(self, entry: Entry) -> None:
        """A call has returned."""
        admission = self._admissions.pop(entry.sequence, None)
        if admission is not None:
            admission.end([OK] * len(self._gates))

    def failed(self, entry: Entry, error: Exception) -> None:
        """A call has raised."""
        self._end(entry, self._outcomes_of(error))

    def ended(self, entry: Entry, error: Exception | None) -> None:
        """An invocation has failed, or its deadline has expired (None)."""
        if error is None:
            expired = Outcome("overload", error=TimeoutError("the deadline of an element expired"))
            self._end(entry, [expired] * len(self._gates))
        elif not self._has_retries and not isinstance(error, RefusedError):
            self.failed(entry, error)

    def cancelled(self, entry: Entry) -> None:
        """The operator stops. A call that was admitted has unwound, or is not made."""
        if entry.sequence in self._admissions:
            self._end(entry, [CANCELLED] * len(self._gates))

    def _outcomes_of(self, error: Exception) -> list[Outcome]:
        outcomes = [_outcome_of(error, gate) for gate in self._gates]
        if any(outcome.kind == "throttled" for outcome in outcomes):
            self._ledger.throttle()
        return outcomes

    def _start(self, weights: Weights) -> _Admission:
        now = trio.current_time()
        for each, weight in zip(self._in_use, weights, strict=True):
            each.started(now, weight)
        return _Admission(self._gates, self._in_use, now, weights)

    def _end(self, entry: Entry, outcomes: Iterable[Outcome]) -> None:
        """Report the end of a call. It has no admission if the gates were idle when it started."""
        admission = self._admissions.pop(entry.sequence, None)
        (admission or _Admission(self._gates, self._in_use, entry.since, self._unweighted)).end(outcomes)

    async def _wait_in_line(self, entry: Entry, weights: Weights) -> None:
        """Wait until this record is the first in the line and the gates admit its call."""
        place = _Place((not entry.attempts, entry.attempts, entry.sequence))
        heappush(self._line, place)
        since = trio.current_time()
        self._ledger.hold_back(entry, since)
        try:
            while delay := self._delay(weights) if self._line[0] is place else inf:
                with trio.move_on_after(delay):
                    await place.moved.wait()
        finally:
            now = trio.current_time()
            self._ledger.let_go(now - since, now, type(self._held_by).__name__)
            self._leave(place)

    def _leave(self, place: _Place) -> None:
        if self._line[0] is place:
            heappop(self._line)
            self._ask_again()
        else:
            self._line.remove(place)
            heapify(self._line)

    def _delay(self, weights: Weights) -> float:
        """The longest delay of all gates. Remembers which gate it was."""
        now = trio.current_time()
        longest = 0.0
        for each, weight in zip(self._in_use, weights, strict=True):
            delay = each.delay(now, weight)
            if delay > max(longest, SAME_INSTANT):
                longest, self._held_by = delay, each.gate
        return longest

    def _weights(self, entry: Entry) -> Weights:
        if not self._is_weighted:
            return self._unweighted
        return tuple(1.0 if gate.weight is None else _checked(gate.weight(entry.value)) for gate in self._gates)

    def _refresh(self) -> None:
        self.is_idle = all(each.gate.is_idle for each in self._in_use)
        if self.is_idle:
            self._ask_again()

    def _ask_again(self) -> None:
        if self._line:
            self._line[0].move()


@dataclass(eq=False, slots=True)
class _Place:
    """A place in the line. `moved` is set when the gates must be asked again."""

    rank: tuple[bool, int, int]
    moved: trio.Event = field(default_factory=trio.Event)

    def __lt__(self, other: _Place) -> bool:
        return self.rank < other.rank

    def move(self) -> None:
        """Let the call ask again."""
        self.moved.set()
        self.moved = trio.Event()


@dataclass(slots=True)
class _Admission:
    """A call that was admitted: its start, and what it weighs in each gate."""

    given: tuple[Gate, ...]
    gates: Sequence[GateInUse]
    since: float
    weights: Weights

    def end(self, outcomes: Iterable[Outcome]) -> None:
        """Report the end of the call."""
        now = trio.current_time()
        for each, weight, outcome in zip(self.gates, self.weights, outcomes, strict=True):
            each.ended(now, now - self.since, outcome, weight)

    @enable_ki_protection
    def settle(self, actual: float) -> None:
        """Correct the weight in each gate for which calls have one."""
        weights = []
        for gate, each, weight in zip(self.given, self.gates, self.weights, strict=True):
            is_weighted = gate.weight is not None
            weights.append(actual if is_weighted else weight)
            if is_weighted:
                each.gate.correct(weight, actual)
                each.notify()
        self.weights = tuple(weights)


def _outcome_of(error: Exception, gate: Gate) -> Outcome:
    return outcome_of(error) if gate.classify is None else as_outcome(gate.classify(error), error)


def _checked(weight: Any) -> float:
    return check_number("weight", weight, "finite and not negative", lambda number: 0 <= number < inf)
