"""The admissions: the calls that gates have admitted, from their start to their end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import trio
from trio.lowlevel import enable_ki_protection

from ._core.gate import CANCELLED, CURRENT_CALL, OK, Gate, Outcome, RefusedError, as_outcome
from ._core.ledger import Ledger
from ._core.queue import Entry
from ._gate_in_use import GateInUse
from ._outcomes import outcome_of

__all__ = ["Admissions", "Weights"]

Call: TypeAlias = Callable[[Entry], Awaitable[Any]]
Weights: TypeAlias = tuple[float, ...]


@dataclass(slots=True)
class Admission:
    """A call that was admitted: its start, and what it weighs in each gate."""

    given: Sequence[Gate]
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


class Admissions:
    """The calls of one operator that its gates have admitted. Reports their starts and ends to the gates.

    Args:
        gates: One or more.
        ledger: Counts the calls after which the service asked for fewer.
        has_retries: Whether `failed` is called for each attempt. Otherwise `ended` is the end of the only one.

    Attributes:
        unweighted: The weights of a call if no gate has any.
        is_weighted: Whether a gate has weights.
    """

    def __init__(self, gates: tuple[Gate, ...], ledger: Ledger, *, has_retries: bool) -> None:
        self._gates = gates
        self._ledger = ledger
        self._has_retries = has_retries
        self._in_use: Sequence[GateInUse] = ()
        self._by_sequence: dict[int, Admission] = {}
        self._resting: set[int] = set()  # the sequences of the records between two attempts
        self.unweighted: Weights = (1.0,) * len(gates)
        self.is_weighted = any(gate.weight is not None for gate in gates)

    def open(self, in_use: Sequence[GateInUse]) -> None:
        """The operator starts, and uses these gates."""
        self._in_use = in_use

    def start(self, entry: Entry, weights: Weights) -> None:
        """A call for this record starts."""
        self._by_sequence[entry.sequence] = self._started(weights)

    def start_extra(self, weights: Weights) -> AbstractContextManager[None]:
        """Another call of the present element starts. It must run in the context manager, which reports its end."""
        return self._extra(self._started(weights))

    def present_weights(self) -> Weights:
        """The weights of the present task's call."""
        present = CURRENT_CALL.get()
        return present.weights if self.is_weighted and present is not None else self.unweighted

    def around(self, once: Call) -> Call:
        """A call in which `settle` works. The same call if no gate has a weight."""

        async def call(entry: Entry) -> Any:
            token = CURRENT_CALL.set(self._by_sequence.get(entry.sequence))
            try:
                return await once(entry)
            finally:
                CURRENT_CALL.reset(token)

        return call if self.is_weighted else once

    def passed(self, entry: Entry) -> None:
        """A call has returned."""
        admission = self._by_sequence.pop(entry.sequence, None)
        if admission is not None:
            admission.end([OK] * len(self._gates))

    def failed(self, entry: Entry, error: Exception) -> None:
        """A call has raised."""
        self._end(entry, self._outcomes_of(error))

    def lost(self, entry: Entry, error: Exception | None) -> None:
        """A call has raised, or was cancelled (None), and another one has given the element its result."""
        if error is None:
            self.cancelled(entry)
        else:
            self.failed(entry, error)

    def rest(self, entry: Entry) -> None:
        """A backoff begins."""
        self._resting.add(entry.sequence)

    def retry(self, entry: Entry) -> None:
        """The backoff is over, and another call follows."""
        self._resting.remove(entry.sequence)

    def ended(self, entry: Entry, error: Exception | None) -> None:
        """An invocation has failed, or its deadline has expired (None), which during a backoff says nothing."""
        if entry.sequence in self._resting:
            self._resting.remove(entry.sequence)
        elif error is None:
            expired = Outcome("overload", error=TimeoutError("the deadline of an element expired"))
            self._end(entry, [expired] * len(self._gates))
        elif not self._has_retries and not isinstance(error, RefusedError):
            self.failed(entry, error)

    def cancelled(self, entry: Entry) -> None:
        """A call that was admitted was cancelled and has unwound, or is not made."""
        if entry.sequence in self._by_sequence:
            self._end(entry, [CANCELLED] * len(self._gates))

    @contextmanager
    def _extra(self, admission: Admission) -> Iterator[None]:
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

    def _started(self, weights: Weights) -> Admission:
        now = trio.current_time()
        for each, weight in zip(self._in_use, weights, strict=True):
            each.started(now, weight)
        return Admission(self._gates, self._in_use, now, weights)

    def _end(self, entry: Entry, outcomes: Iterable[Outcome]) -> None:
        """Report the end of a call. It has no admission if the gates were idle when it started."""
        admission = self._by_sequence.pop(entry.sequence, None)
        (admission or Admission(self._gates, self._in_use, entry.since, self.unweighted)).end(outcomes)

    def _outcomes_of(self, error: Exception) -> list[Outcome]:
        outcomes = [_outcome_of(error, gate) for gate in self._gates]
        if any(outcome.kind == "throttled" for outcome in outcomes):
            self._ledger.throttle()
        return outcomes


def _outcome_of(error: Exception, gate: Gate) -> Outcome:
    return outcome_of(error) if gate.classify is None else as_outcome(gate.classify(error), error)
