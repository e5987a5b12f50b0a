"""The admissions: the calls that gates have admitted, from their start to their end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import trio
from trio.lowlevel import enable_ki_protection

from ._core.gate import CANCELLED, CURRENT_CALL, OK, Gate, Outcome, RefusedError, as_outcome
from ._core.ledger import Ledger
from ._core.queue import Entry
from ._gate_in_use import GateInUse
from ._outcomes import outcome_of

__all__ = ["Admissions", "Passage", "Weights"]

Call: TypeAlias = Callable[[Entry], Awaitable[Any]]
Weights: TypeAlias = tuple[float, ...]  # of a call, in each gate


@dataclass(eq=False, slots=True)
class Passage:
    """The gates that a call passes.

    Args:
        given: The gates as given, whose weights and classifiers apply.
        in_use: The same ones, in use.

    Attributes:
        running: The number of calls that were admitted and have not ended.
        unweighted: The weights of a call if no gate has any.
        is_weighted: Whether a gate has weights.
    """

    given: Sequence[Gate]
    in_use: Sequence[GateInUse]
    running: int = 0
    unweighted: Weights = field(init=False)
    is_weighted: bool = field(init=False)

    def __post_init__(self) -> None:
        self.unweighted = (1.0,) * len(self.given)
        self.is_weighted = any(gate.weight is not None for gate in self.given)


@dataclass(slots=True)
class Admission:
    """A call that was admitted: its start, and what it weighs in each gate."""

    passage: Passage
    since: float
    weights: Weights

    def start(self) -> None:
        """Report the start of the call."""
        self.passage.running += 1
        for each, weight in zip(self.passage.in_use, self.weights, strict=True):
            each.started(self.since, weight)

    def end(self, outcomes: Iterable[Outcome]) -> None:
        """Report the end of the call."""
        self.passage.running -= 1
        self.report(outcomes)

    def report(self, outcomes: Iterable[Outcome]) -> None:
        """Report the end of a call whose start was not reported, because the gates were idle."""
        now = trio.current_time()
        for each, weight, outcome in zip(self.passage.in_use, self.weights, outcomes, strict=True):
            each.ended(now, now - self.since, outcome, weight)

    @enable_ki_protection
    def settle(self, actual: float) -> None:
        """Correct the weight in each gate for which calls have one."""
        weights = []
        for gate, each, weight in zip(self.passage.given, self.passage.in_use, self.weights, strict=True):
            is_weighted = gate.weight is not None
            weights.append(actual if is_weighted else weight)
            if is_weighted:
                each.gate.correct(weight, actual)
                each.notify()
        self.weights = tuple(weights)


class Admissions:
    """The calls of one operator that its gates have admitted. Reports their starts and ends to the gates.

    Args:
        gates: All that a call may pass, one or more.
        ledger: Counts the calls after which the service asked for fewer.
        passage_of: The gates that a record's calls pass.
        has_retries: Whether `failed` is called for each attempt. Otherwise `ended` is the end of the only one.
    """

    def __init__(
        self,
        gates: Sequence[Gate],
        ledger: Ledger,
        passage_of: Callable[[Entry], Passage],
        *,
        has_retries: bool,
    ) -> None:
        self._is_weighted = any(gate.weight is not None for gate in gates)
        self._ledger = ledger
        self._passage_of = passage_of
        self._has_retries = has_retries
        self._by_sequence: dict[int, Admission] = {}
        self._resting: set[int] = set()  # the sequences of the records between two attempts

    def start(self, entry: Entry, passage: Passage, weights: Weights) -> None:
        """A call for this record starts."""
        self._by_sequence[entry.sequence] = _started(passage, weights)

    def start_extra(self, passage: Passage, weights: Weights) -> AbstractContextManager[None]:
        """Another call of the present element starts. It must run in the context manager, which reports its end."""
        return self._extra(_started(passage, weights))

    def present_weights(self, passage: Passage) -> Weights:
        """The weights of the present task's call."""
        present = CURRENT_CALL.get()
        return present.weights if passage.is_weighted and present is not None else passage.unweighted

    def around(self, once: Call) -> Call:
        """A call in which `settle` works. The same call if no gate has a weight."""

        async def call(entry: Entry) -> Any:
            token = CURRENT_CALL.set(self._by_sequence.get(entry.sequence))
            try:
                return await once(entry)
            finally:
                CURRENT_CALL.reset(token)

        return call if self._is_weighted else once

    def passed(self, entry: Entry) -> None:
        """A call has returned."""
        admission = self._by_sequence.pop(entry.sequence, None)
        if admission is not None:
            admission.end([OK] * len(admission.weights))

    def failed(self, entry: Entry, error: Exception) -> None:
        """A call has raised."""
        self._end(entry, lambda passage: self._outcomes_of(error, passage))

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
            self._end(entry, lambda passage: [expired] * len(passage.given))
        elif not self._has_retries and not isinstance(error, RefusedError):
            self.failed(entry, error)

    def cancelled(self, entry: Entry) -> None:
        """A call that was admitted was cancelled and has unwound, or is not made."""
        if entry.sequence in self._by_sequence:
            self._end(entry, lambda passage: [CANCELLED] * len(passage.given))

    @contextmanager
    def _extra(self, admission: Admission) -> Iterator[None]:
        outcomes: Iterable[Outcome] = [CANCELLED] * len(admission.weights)
        CURRENT_CALL.set(admission)
        try:
            yield
            outcomes = [OK] * len(admission.weights)
        except Exception as error:
            outcomes = self._outcomes_of(error, admission.passage)
            raise
        finally:
            admission.end(outcomes)

    def _end(self, entry: Entry, outcomes_of: Callable[[Passage], Iterable[Outcome]]) -> None:
        """Report the end of a call. It has no admission if the gates were idle when it started."""
        admission = self._by_sequence.pop(entry.sequence, None)
        if admission is not None:
            admission.end(outcomes_of(admission.passage))
        else:
            passage = self._passage_of(entry)
            Admission(passage, entry.since, passage.unweighted).report(outcomes_of(passage))

    def _outcomes_of(self, error: Exception, passage: Passage) -> list[Outcome]:
        outcomes = [_outcome_of(error, gate) for gate in passage.given]
        if any(outcome.kind == "throttled" for outcome in outcomes):
            self._ledger.throttle()
        return outcomes


def _started(passage: Passage, weights: Weights) -> Admission:
    admission = Admission(passage, trio.current_time(), weights)
    admission.start()
    return admission


def _outcome_of(error: Exception, gate: Gate) -> Outcome:
    return outcome_of(error) if gate.classify is None else as_outcome(gate.classify(error), error)
