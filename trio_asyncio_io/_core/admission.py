"""Admission: the gates that a call passes, and the records that wait for them. Plain data, without a task or a clock.

A call passes the gates of its key first, and then those of all calls. All of them must admit it at one instant. The
records that wait for the same gates form a line. Only the first record in a line is checked, so no record overtakes an
older one with a larger weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import inf
from operator import sub
from typing import Any, Protocol, TypeAlias

from .checks import check_number, check_weight
from .describe import describe
from .gate import CANCELLED, Gate, Outcome, sum_as_written
from .notes import add_note
from .queue import Entry
from .statistics import combined

__all__ = [
    "SAME_INSTANT",
    "Admission",
    "CallEndedError",
    "Holders",
    "KeyGates",
    "Line",
    "Passage",
    "Rank",
    "Waiting",
    "Weights",
    "check_settled",
    "rank_of",
    "weights_of",
    "weights_of_call",
]

# Instants that differ by less are equal. Otherwise rounding could yield a delay that is below the clock's resolution
SAME_INSTANT = 1e-9

Weights: TypeAlias = tuple[float, ...]  # of a call, in each gate
Rank: TypeAlias = tuple[bool, int, int]  # the lowest one starts first


class GateInUse(Protocol):
    """A gate in the present Trio run. Its own instants are Trio's plus `offset`."""

    gate: Gate
    offset: float

    def notify_others(self) -> None: ...
    def has_calls(self) -> bool: ...


@dataclass(eq=False, slots=True)
class Passage:
    """The gates that a call passes.

    Args:
        given: The gates as given, whose weights and classifiers apply.
        in_use: The same gates, in use.

    Attributes:
        running: The number of admitted calls that have not ended, and of records that wait in the common line.
        unweighted: The weights of a call if no gate has any.
        is_weighted: Whether a gate has weights.
    """

    given: Sequence[Gate]
    in_use: Sequence[GateInUse]
    running: int = 0
    keys: KeyGates | None = None
    unweighted: Weights = field(init=False)
    is_weighted: bool = field(init=False)

    def __post_init__(self) -> None:
        self.unweighted = (1.0,) * len(self.given)
        self.is_weighted = any(gate.weight is not None for gate in self.given)


def weights_of(value: object, passage: Passage, *others: object) -> Weights:
    """The weights of a call with this value, and with these other arguments.

    Raises:
        Exception: The `weight` of a gate raised, or returned something other than a weight.
    """
    if not passage.is_weighted:
        return passage.unweighted
    return tuple(
        1.0 if gate.weight is None else _weight_of(gate, gate.weight, value, *others) for gate in passage.given
    )


def _weight_of(gate: Gate, weight: Callable[..., float], *values: object) -> float:
    try:
        found = weight(*values)
    except Exception as error:
        add_note(error, f"raised by the weight of {describe(gate)}")
        raise
    return check_weight("weight", found, of=gate)


def weights_of_call(records: Sequence[Entry], passage: Passage) -> Weights:
    """The weights of a call for these records: in each gate with weights, the sum of theirs as they are written.

    Raises the same errors as `weights_of`.
    """
    if not passage.is_weighted:
        return passage.unweighted
    weights = [weights_of(entry.value, passage) for entry in records]
    return tuple(
        1.0 if gate.weight is None else sum_as_written(of_gate)
        for gate, of_gate in zip(passage.given, zip(*weights, strict=True), strict=True)
    )


class CallEndedError(RuntimeError):
    """`settle` came after the end of its call, or after the call had lost to another one of `hedged`.

    Nothing changes: the call has cost what it had settled, or its estimate.
    """


def check_settled(actual: float, least: float, *, has_ended: bool) -> None:
    """Check that a call may settle this weight, which has settled `least` before, or infinity.

    Raises:
        CallEndedError: The call has ended.
        ValueError: It has settled less. The difference may be spent already, so a settled weight only falls.
    """
    if has_ended:
        raise CallEndedError(
            f"settle({actual:g}) changes nothing: its call has ended, or has lost to another call of hedged. Call "
            "settle in the function that makes the request, before it returns"
        )
    if actual > least:
        raise ValueError(
            f"settle: actual must be at most {least:g}, which the call has settled before, got {actual:g}: call "
            "settle once, when the actual weight is known"
        )


@dataclass(slots=True)
class Admission:
    """A call in its gates, from its start to its end.

    The end is final: afterwards `end` has no effect, and `settle` is an error.

    Args:
        passage: The gates.
        since: When the call started.
        weights: What it was estimated to weigh in each gate.

    Attributes:
        settled: By position of a gate, what `settle` has said.
        further: The calls that `hedged` has made for the same element while this one ran.
        idle: The positions of the gates that were idle when the call started, so its start was not reported to them.
        has_started: Whether the call has started as far as the gates are concerned. A call that starts while all gates
            are idle has not.
        has_ended: Whether the call has ended.
    """

    passage: Passage
    since: float
    weights: Weights
    settled: dict[int, float] | None = field(default=None, init=False)
    further: tuple[Admission, ...] = field(default=(), init=False)
    idle: tuple[int, ...] = field(default=(), init=False)
    has_started: bool = field(default=False, init=False)
    has_ended: bool = field(default=False, init=False)

    def start(self) -> Admission:
        """Report the start of the call to its gates, except those that are idle.

        Raises:
            Exception: A gate is broken. The call has not started for any of the gates.
        """
        since, position = self.since, 0
        try:
            for each, weight in zip(self.passage.in_use, self.weights, strict=True):
                if each.gate.is_idle:
                    self.idle += (position,)
                else:
                    each.gate.started(since + each.offset, weight)
                position += 1
        except Exception:
            for number, earlier in enumerate(self.passage.in_use[:position]):
                if number not in self.idle:
                    earlier.gate.ended(since + earlier.offset, 0.0, CANCELLED, self.weights[number])
            raise
        self.has_started = True
        self.passage.running += 1
        return self

    def end(self, outcomes: Iterable[Outcome], now: float) -> None:
        """Report the end of the call, with an outcome for each gate. Only the first end counts.

        Every gate gets the report, even if another one raises. Those that were idle when the call started get only
        the report of an error.

        Raises:
            Exception: The first exception of a gate.
        """
        if self.has_ended:
            return
        self.has_ended = True
        self.passage.running -= self.has_started
        problem: Exception | None = None
        seconds, weights = now - self.since, self.weights
        if self.settled:
            weights = tuple(map(self._weight, range(len(weights))))
        for position, (each, weight, outcome) in enumerate(zip(self.passage.in_use, weights, outcomes, strict=False)):
            if outcome.error is None and position in self.idle:
                continue
            try:
                each.gate.ended(now + each.offset, seconds, outcome, weight)
            except Exception as error:  # noqa: BLE001 - a gate may raise anything
                problem = error if problem is None else problem
            each.notify_others()
        if problem is not None:
            raise problem

    def check_settle(self, actual: float, name: str | None) -> None:
        """See `check_settled`."""
        settled = self.settled or {}
        least = min((settled.get(position, inf) for position in self._weighted(name)), default=inf)
        check_settled(actual, least, has_ended=self.has_ended)

    def settle(self, actual: float, name: str | None) -> None:
        """Correct the weight in each gate that has one, or in those of this name. Call `check_settle` before."""
        for position in self._weighted(name):
            each = self.passage.in_use[position]
            each.gate.correct(self._weight(position), actual)
            self.settled = {**(self.settled or {}), position: actual}
            each.notify_others()

    def usage(self, name: str | None) -> tuple[float, float] | None:
        """Estimated and current weight, from the first gate that `settle` would correct."""
        position = next(self._weighted(name), None)
        return None if position is None else (self.weights[position], self._weight(position))

    def usage_of_all(self, name: str | None) -> tuple[float, float] | None:
        """The sums of `usage` over this call and its further calls."""
        if self.usage(name) is None:
            return None
        estimated, settled = zip(*(call.usage(name) or (0.0, 0.0) for call in (self, *self.further)), strict=True)
        return sum_as_written(estimated), sum_as_written(settled)

    def _weight(self, position: int) -> float:
        return (self.settled or {}).get(position, self.weights[position])

    def _weighted(self, name: str | None) -> Iterator[int]:
        """The positions of the gates with a weight, or of those of this name. Idle gates have no start to correct."""
        for position, gate in enumerate(self.passage.given):
            if gate.weight is not None and name in {None, gate.name} and position not in self.idle:
                yield position


@dataclass(eq=False, slots=True)
class Waiting:
    """A record that waits for something other than its first slot: in a backoff, or for gates.

    Attributes:
        entry: The record.
        context: The context variables of its earlier attempts: opaque here. None: those of the operator's block.
        cause: The error of its last attempt, which becomes the cause of a gate's refusal, or None.
        state: A state of `scheduler.TRANSITIONS`.
        since: When the present wait began.
        rank: Of its next attempt.
        passage, weights, keys: The gates of its next attempt. None: not yet known; `keys` also if it has no key.
        is_in_line_of_key: Whether it is in the line of its key. It stays there until its attempt has started.
        earlier: The times of the gates of its line when it joined.
        part: That of a group with which it is called, or None.
    """

    entry: Entry
    context: Any
    state: str
    since: float
    cause: Exception | None = None
    rank: Rank = field(init=False)
    passage: Passage | None = None
    weights: Weights = ()
    keys: KeyGates | None = None
    is_in_line_of_key: bool = False
    earlier: Mapping[str, float] = field(default_factory=dict)
    mark: Any = None
    part: Any = None

    def __post_init__(self) -> None:
        self.rank = rank_of(self.entry)


def rank_of(entry: Entry) -> Rank:
    """The rank of a record's next attempt.

    Retries are before new records, those with few attempts first, so that not one record makes all the probes of a
    circuit breaker; then comes the oldest record.
    """
    return not entry.attempts, entry.attempts, entry.sequence


class Holders:
    """By gate, the time for which it has been the one that holds back a line.

    All records in a line wait for the gate that holds back the first one. The increase of these times while a record
    is in the line is its wait for each gate.
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._holder = ""
        self._since = 0.0

    def change(self, gate: str, now: float) -> None:
        """From now on, this gate holds back the line."""
        if gate != self._holder:
            self._seconds = self.seconds(now)
            self._holder, self._since = gate, now

    def seconds(self, now: float) -> dict[str, float]:
        """By gate, its time so far."""
        return {**self._seconds, self._holder: self._seconds.get(self._holder, 0.0) + now - self._since}

    @property
    def mark(self) -> Mapping[str, float]:
        """The times when the present holder began. It is another object after each change."""
        return self._seconds

    def of_wait(self, waiting: Waiting, now: float) -> dict[str, float]:
        """By gate, its time since this record has joined the line."""
        if waiting.mark is self._seconds:  # one gate has held back the line all the time
            return {self._holder: now - waiting.since} if now > waiting.since else {}
        return self.since(waiting.earlier, now)

    def since(self, earlier: Mapping[str, float], now: float) -> dict[str, float]:
        """By gate, its time since `seconds` returned `earlier`, without gates whose time is 0."""
        grown = combined(sub, self.seconds(now), earlier)
        return {gate: seconds for gate, seconds in grown.items() if seconds > 0}


class Line:
    """The records that wait for some gates, by rank.

    Attributes:
        in_use: The gates.
        holders: By gate, how long it has held back this line.
        held_until: When the first record may be admitted, if nothing changes before. -inf: unknown.
        heap: The records, with their ranks.
        failure: An exception of a gate of a key, which the next check of a record raises.
    """

    def __init__(self, in_use: Iterable[GateInUse] = ()) -> None:
        self.in_use = list(in_use)
        self.holders = Holders()
        self.held_until = -inf
        self.heap: list[tuple[Rank, Waiting]] = []
        self.failure: Exception | None = None

    def __len__(self) -> int:
        return len(self.heap)

    @property
    def first(self) -> Waiting:
        """The record of the lowest rank."""
        return self.heap[0][1]

    def join(self, waiting: Waiting, now: float) -> None:
        """A record starts to wait."""
        waiting.earlier, waiting.mark = self.holders.seconds(now), self.holders.mark
        heappush(self.heap, (waiting.rank, waiting))
        if self.first is waiting:
            self.held_until = -inf

    def leave(self, waiting: Waiting) -> None:
        """A record no longer waits."""
        if self.first is waiting:
            heappop(self.heap)
            self.held_until = -inf
        else:
            self.heap = [item for item in self.heap if item[1] is not waiting]
            heapify(self.heap)

    def delay(self, weights: Sequence[float], now: float) -> float:
        """The longest delay of the gates for a call with these weights. Notes the gate with that delay.

        Raises:
            RefusedError: A gate refuses the call.
            Exception: A gate is broken.
        """
        longest, holder = 0.0, None
        for each, weight in zip(self.in_use, weights, strict=True):
            delay = 0.0 if each.gate.is_idle else each.gate.delay(now + each.offset, weight)
            if delay != 0.0:
                if delay.__class__ is not float or not 0 < delay < inf:
                    _check_delay(delay, each)
                if delay > max(longest, SAME_INSTANT):
                    longest, holder = delay, each.gate
        if holder is not None:
            self.holders.change(holder.label, now)
        return longest


def _check_delay(delay: float, in_use: GateInUse) -> None:
    legal = "seconds, not NaN (0.0 admits the call)"
    check_number("delay", delay, legal, lambda seconds: seconds >= -inf, kind="seconds as a number", of=in_use.gate)
    if delay == inf and not in_use.has_calls():
        raise RuntimeError(
            f"the gate {describe(in_use.gate)} holds calls back for ever: its delay is inf, and no call runs whose end "
            "could change that. Return a finite delay"
        )


class KeyGates:
    """The gates of one key in one operator.

    Args:
        in_use: The gates of the key.
        common: The operator's other gates, which the calls pass as well.
        given: All of these gates as given, the common ones first.
        close: Called when the operator no longer uses the gates.

    Attributes:
        line: The records that wait for the gates of the key. The first one stays until it has started.
        passage: The gates that the calls pass.
    """

    def __init__(
        self,
        in_use: Iterable[GateInUse],
        common: Sequence[GateInUse],
        given: Sequence[Gate],
        close: Callable[[], None],
    ) -> None:
        self.line = Line(in_use)
        self.passage = Passage(given, (*common, *self.line.in_use), keys=self)
        self.close = close
        self._of_key = slice(len(common), None)

    @property
    def is_in_use(self) -> bool:
        """Whether records wait, or calls run."""
        return len(self.line) > 0 or self.passage.running > 0

    def admit(self, waiting: Waiting | None, weights: Weights, now: float) -> bool:
        """Whether the gates admit the next call of this record, the first in line.

        Raises the same errors as `delay`.
        """
        if self.line and self.line.first is not waiting:
            return False
        return not self.delay(weights, now)

    def delay(self, weights: Weights, now: float) -> float:
        """See `Line.delay`."""
        if self.line.failure is not None:
            failure, self.line.failure = self.line.failure, None
            raise failure
        return self.line.delay(weights[self._of_key], now)
