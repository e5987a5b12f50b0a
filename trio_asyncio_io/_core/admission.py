"""Admission: the gates that a call passes, and the calls that wait for them. Plain data, without a task or a clock.

A call passes the gates of its key first, and then those of all calls. All of them must admit it at one instant. Calls
that wait for the same gates form a line. Only the first one in a line is checked, so no call overtakes an older one
with a larger weight.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from heapq import heapify, heappop, heappush
from itertools import repeat
from math import inf, isnan
from typing import Any, TypeAlias

from .._values.checks import check_number, check_weight
from .._values.describe import describe
from .._values.exceptions import add_note
from .gate import NOT_MADE, Gate, Outcome, sum_as_written
from .queue import Entry

# Instants that differ by less are equal. Otherwise rounding could yield a delay that is below the clock's resolution
SAME_INSTANT = 1e-9

Weights: TypeAlias = tuple[float, ...]  # of a call, in each gate
Rank: TypeAlias = tuple[bool, int, int]  # the lowest one starts first


@dataclass(eq=False, slots=True)
class SharedGate:
    """A gate in use, by the lines of one or more operators.

    Args:
        gate: The gate.
        offset: The gate's own time minus that of the lines, in seconds.

    Attributes:
        lines: The lines whose calls pass it.
    """

    gate: Gate
    offset: float = 0.0
    lines: set[GateLine] = field(default_factory=set, init=False)

    def notify(self) -> None:
        """The gate has changed. If only one line uses it, this is not needed: that line is asked again anyway."""
        for line in self.lines:
            line.change(line)


@dataclass(eq=False, frozen=True, slots=True)
class Holder:
    """The gate that holds back a line.

    Args:
        gate: Its label.
        since: Since when.
        earlier: Gate -> the seconds for which it had held back the line before.
    """

    gate: str
    since: float
    earlier: Mapping[str, float]

    def seconds(self, now: float) -> dict[str, float]:
        """Gate -> the seconds for which it has held back the line."""
        return {**self.earlier, self.gate: self.earlier.get(self.gate, 0.0) + now - self.since}


@dataclass(eq=False)
class GateLine:
    """Gates, and the calls that wait for them, by rank.

    Args:
        given: All gates that its calls pass, as given to the operator: their weights and classifiers apply.
        common: The line of all calls, whose gates the calls of this one pass as well. None: it is that line itself.
        key: The key of its calls, if `common` is given.
        change: Called with this line when a gate may admit a call earlier than it said.
        count_running: Returns the number of the operator's running calls.

    Attributes:
        gates: The gates in use that hold back this line.
        passed: The gates in use that its calls pass, in the order of `given`.
        uses: The number of reasons to keep its gates in use: admitted calls that have not ended, calls that wait in
            the common line, and groups that are being formed.
        held_until: When the first call may be admitted, if nothing changes before. -inf: unknown.
        heap: The waiting calls, with their ranks. The first call in the line of a key stays until it has started.
        is_weighted: Whether a gate has weights.
        unweighted: The weights of a call if no gate has any.
    """

    given: Sequence[Gate]
    common: GateLine | None = None
    _: KW_ONLY
    key: Hashable = None
    change: Callable[[GateLine], object] = lambda _: None
    count_running: Callable[[], int] = lambda: 0

    def __post_init__(self) -> None:
        self.gates: Sequence[SharedGate] = ()
        self.passed: Sequence[SharedGate] = ()
        self.uses = 0
        self.held_until = -inf
        self.heap: list[tuple[Rank, WaitingCall]] = []
        self.is_weighted = any(gate.weight is not None for gate in self.given)
        self.unweighted = (1.0,) * len(self.given)
        self._first = 0  # position of the first of the line's own gates
        self._holder = Holder("", 0.0, {})

    def open(self, gates: Sequence[SharedGate]) -> None:
        """Use these gates."""
        earlier: Sequence[SharedGate] = () if self.common is None else self.common.gates
        self.gates, self.passed, self._first = gates, (*earlier, *gates), len(earlier)
        for each in gates:
            each.lines.add(self)

    # Calls

    def weights_of(self, value: object, *others: object) -> Weights:
        """The weights of a call with these arguments.

        Raises:
            Exception: The `weight` of a gate raised, or returned something other than a weight.
        """
        return tuple(
            1.0 if gate.weight is None else _weight_of(gate, gate.weight, value, *others) for gate in self.given
        )

    def weights_of_records(self, records: Sequence[Entry]) -> Weights:
        """The weights of a call for these records: in each gate with weights, the sum of theirs as they are written.

        Raises the same errors as `weights_of`.
        """
        if len(records) == 1:
            return self.weights_of(records[0].value)
        weights = zip(*(self.weights_of(entry.value) for entry in records), strict=True)
        return tuple(
            1.0 if gate.weight is None else sum_as_written(of_gate)
            for gate, of_gate in zip(self.given, weights, strict=True)
        )

    def delay(self, weights: Weights, now: float) -> float:
        """The longest delay of this line's own gates for a call with these weights.

        If it is above 0, the gate with that delay holds back the line until `held_until`.

        Raises:
            RefusedError: A gate refuses the call.
            Exception: A gate is broken.
        """
        longest, holder = 0.0, None
        # Not strict: the weights of a call with a key go on with those in the gates of its key
        for each, weight in zip(self.gates, weights[self._first :], strict=False):
            delay = each.gate.delay(now + each.offset, weight)
            if delay != 0.0:
                if delay.__class__ is not float or not 0 < delay < inf:
                    _check_delay(delay, each)
                if delay > max(longest, SAME_INSTANT):
                    longest, holder = delay, each.gate
        if holder is not None and holder.label != self._holder.gate:
            self._holder = Holder(holder.label, now, self._holder.seconds(now))
        self.held_until = now + longest if longest else -inf
        return longest

    def line_for(self, weights: Weights, now: float, waiting: WaitingCall | None = None) -> GateLine | None:
        """The line in which a call has to wait: this one, or that of all calls. None: all of its gates admit it.

        `waiting`: the call, if it waits in one of them already. Raises the same errors as `delay`.
        """
        for line in (self, self.common):
            if line is not None and ((line.heap and line.heap[0][1] is not waiting) or line.delay(weights, now) > 0):
                return line
        return None

    # Waits

    def join(self, waiting: WaitingCall, rank: Rank, now: float) -> None:
        """A call starts to wait. If it is alone, `delay` has just been called for it."""
        self.begin_wait(waiting, now)
        if self.heap and rank < self.heap[0][0]:
            self.held_until = -inf
        heappush(self.heap, (rank, waiting))

    def begin_wait(self, waiting: WaitingCall, now: float) -> None:
        """A call waits for the gates of this line from now on."""
        waiting.waits_in, waiting.since, waiting.holder = self, now, self._holder

    def leave(self, waiting: WaitingCall) -> None:
        """A call leaves the line."""
        if self.heap[0][1] is waiting:
            heappop(self.heap)
            self.held_until = -inf
        else:
            self.heap = [item for item in self.heap if item[1] is not waiting]
            heapify(self.heap)

    def waits_of(self, waiting: WaitingCall, now: float) -> dict[str, float]:
        """Gate -> the seconds for which it has held back this call, above 0.

        All calls in a line wait for the gate that holds back the first one.
        """
        since, joined, holder = waiting.since, waiting.holder, self._holder
        if joined is holder or joined is None:  # one gate has held back the line all the time
            return {holder.gate: now - since} if now > since else {}
        before = joined.seconds(since)
        waits = {gate: seconds - before.get(gate, 0.0) for gate, seconds in holder.seconds(now).items()}
        return {gate: seconds for gate, seconds in waits.items() if seconds > 0}


def _weight_of(gate: Gate, weight: Callable[..., float], *values: object) -> float:
    try:
        found = weight(*values)
    except Exception as error:
        add_note(error, f"raised by the weight of {describe(gate)}")
        raise
    return check_weight("weight", found, of=gate)


def _check_delay(delay: float, shared: SharedGate) -> None:
    if type(delay) is not float or isnan(delay):
        legal = "seconds, not NaN (0.0 admits the call)"
        check_number("delay", delay, legal, lambda seconds: seconds >= -inf, noun="seconds as a number", of=shared.gate)
    if delay == inf and not any(line.count_running() for line in shared.lines):
        raise RuntimeError(
            f"the gate {describe(shared.gate)} holds calls back for ever: its delay is inf, and no call runs whose end "
            "could change that. Return a finite delay"
        )


@dataclass(eq=False, slots=True)
class WaitingCall:
    """A call that waits for something other than the first slot of its record: in a backoff, or for gates.

    Attributes:
        entry: The record, or the group of records.
        since: When its present wait for a slot or a gate began. In a backoff: when the wait for a slot will begin.
        context: The context variables of its earlier attempts: opaque here. None: those of the operator's block.
        cause: The error of its last attempt, which becomes the cause of a gate's refusal, or None.
        half: The half of a split call in which it is called again, or None.
        line: The gates of its next attempt. None: not yet known.
        weights: What the call weighs in them.
        waits_in: The line for whose gates it waits now, or None.
        is_in_line_of_key: Whether it is in the line of its key. It stays there until its attempt has started.
        holder: That of the line when it joined.
    """

    entry: Entry
    since: float
    context: Any = None
    cause: Exception | None = None
    half: Any = None
    line: GateLine | None = None
    weights: Weights = ()
    waits_in: GateLine | None = None
    is_in_line_of_key: bool = False
    holder: Holder | None = None

    def run(self, step: Callable[..., None], *arguments: Any) -> None:
        """Take a step in the context of the record, in which observers have set their variables."""
        if self.context is None:
            step(*arguments)
        else:
            self.context.run(step, *arguments)


def rank_of(entry: Entry) -> Rank:
    """The rank of a record's next attempt. The lowest one starts first.

    Retries are before new records, those with few attempts first, so that not one record makes all the probes of a
    circuit breaker; then comes the oldest record.
    """
    return not entry.attempts, entry.attempts, entry.sequence


class CallEndedError(RuntimeError):
    """`settle` came after the end of its call, or after the call had lost to another one of `hedged`.

    Nothing changes: the call has cost what it had settled, or its estimate.
    """


@dataclass(slots=True)
class Admission:
    """A call in its gates, from its start to its only end. Afterwards `settle` is an error.

    Args:
        line: The gates that it has passed.
        since: When the call started.
        weights: What it was estimated to weigh in each gate.

    Attributes:
        settled: position of a gate -> the weight that `settle` has set.
        extras: The calls that `hedged` has made for the same element while this one ran.
        has_ended: Whether the call has ended.
    """

    line: GateLine
    since: float
    weights: Weights
    settled: dict[int, float] | None = field(default=None, init=False)
    extras: tuple[Admission, ...] = field(default=(), init=False)
    has_ended: bool = field(default=False, init=False)

    def start(self) -> Admission:
        """Report the start of the call to its gates.

        Raises:
            Exception: A gate is broken. The call has not started for any of the gates.
        """
        since, started = self.since, 0
        self.line.uses += 1
        try:
            for each, weight in zip(self.line.passed, self.weights, strict=True):
                each.gate.started(since + each.offset, weight)
                started += 1
        except Exception:
            self.end(repeat(NOT_MADE, started), since)
            raise
        return self

    def end(self, outcomes: Iterable[Outcome], now: float) -> None:
        """Report the end of the call, with an outcome for each gate.

        Every gate gets the report, even if another one raises.

        Raises:
            Exception: The first exception of a gate.
        """
        self.has_ended = True
        self.line.uses -= 1
        problem: Exception | None = None
        seconds, weights = now - self.since, self.weights
        if self.settled:
            weights = tuple(map(self.weight_at, range(len(weights))))
        for each, weight, outcome in zip(self.line.passed, weights, outcomes, strict=False):
            try:
                each.gate.ended(now + each.offset, seconds, outcome, weight)
            except Exception as error:  # noqa: BLE001 - a gate may raise anything
                problem = error if problem is None else problem
            if len(each.lines) > 1:
                each.notify()
        if problem is not None:
            raise problem

    def check_settle(self, actual: float, name: str | None) -> None:
        """Check that `settle` may set this weight.

        Raises:
            CallEndedError: The call has ended.
            ValueError: It has settled less. The difference may be spent already, so a settled weight only falls.
        """
        if self.has_ended:
            raise CallEndedError(
                f"settle({actual:g}) changes nothing: its call has ended, or has lost to another call of hedged. Call "
                "settle in the function that makes the request, before it returns"
            )
        settled = self.settled or {}
        least = min((settled.get(position, inf) for position in self._weighted(name)), default=inf)
        if actual > least:
            raise ValueError(
                f"settle: actual must be at most {least:g}, which the call has settled before, got {actual:g}: call "
                "settle once, when the actual weight is known"
            )

    def settle(self, actual: float, name: str | None) -> None:
        """Correct the weight in each gate that has one, or in those of this name. Call `check_settle` before."""
        for position in self._weighted(name):
            each = self.line.passed[position]
            each.gate.correct(self.weight_at(position), actual)
            self.settled = {**(self.settled or {}), position: actual}
            if len(each.lines) > 1:
                each.notify()

    def usage(self, name: str | None) -> tuple[float, float] | None:
        """Estimated and current weight, with those of the extra calls, in the first gate that `settle` would correct.

        None: there is no such gate.
        """
        position = next(self._weighted(name), None)
        if position is None:
            return None
        calls = (self, *self.extras)
        estimates = (call.weights[position] for call in calls)
        return sum_as_written(estimates), sum_as_written(call.weight_at(position) for call in calls)

    def weight_at(self, position: int) -> float:
        """What the call weighs now in the gate at this position."""
        return (self.settled or {}).get(position, self.weights[position])

    def _weighted(self, name: str | None) -> Iterator[int]:
        """The positions of the gates with a weight, or of those of this name."""
        for position, gate in enumerate(self.line.given):
            if gate.weight is not None and name in {None, gate.name}:
                yield position
