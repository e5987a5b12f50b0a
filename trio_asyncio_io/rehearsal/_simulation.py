"""The simulation of a run: the operator's own parts, with a heap of instants in place of Trio and the calls.

The heap has the ends of the calls. Ledger, queue, scheduler, gates and retries are the operator's own. The source has
all elements, the consumer is always ready, and the operator itself takes no time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf
from random import Random
from typing import Any, Protocol

from .._core.admission import GateLine, SharedGate
from .._core.gate import OK, Gate, Outcome, PerKey, expired
from .._core.observation import ledger_for
from .._core.options import Options
from .._core.queue import Entry
from .._core.reading import Reading
from .._core.retry import Retries
from .._core.scheduler import Scheduler
from .._operator.errors import AttemptTimeoutError
from .._operator.gates import Gates
from .._values.describe import describe
from ..gates import Budget
from ._sample import RecordedCall
from ._service import Begin


class Opens(Protocol):
    """A service that calls can be made to."""

    def open(self, random: Random) -> Begin:
        """Begin a run."""
        ...


@dataclass(slots=True)
class SimulatedRun:
    """The numbers of a simulated run.

    Attributes:
        elements: The number of simulated elements.
        seconds: The time from the first start to the last output.
        calls, refused, retried, timed_out, failed: Counts, as in `ForecastRow`.
        weight: The sum of the weights of the calls.
        delays: Seconds from a record's first call to its output, sorted.
        pace: Elements per second in the steady part of the run.
    """

    elements: int
    seconds: float = 0.0
    calls: int = 0
    refused: int = 0
    retried: int = 0
    timed_out: int = 0
    failed: int = 0
    weight: float = 0.0
    delays: list[float] = field(default_factory=list)
    pace: float = inf

    def seconds_for(self, elements: int) -> float:
        """The time for more elements: the others follow at the steady pace."""
        return self.seconds + (elements - self.elements) / self.pace if elements > self.elements else self.seconds

    def delay(self, share: float) -> float:
        """A quantile of the delays."""
        return self.delays[min(len(self.delays) - 1, int(share * len(self.delays)))] if self.delays else 0.0


def simulate(
    service: Opens,
    elements: int,
    options: Options,
    random: Random,
    *,
    weights: Sequence[float] = (1.0,),
) -> SimulatedRun:
    """Run elements against a service.

    Args:
        service: The service. It is opened for this run.
        elements: The number of elements, at least 1. The elements are the numbers from 0.
        options: The options of the operator, ordered or unordered. The observer, the handlers and `restore` have no
            effect, and failures do not end the run.
        random: Draws the calls and the jitter of backoffs.
        weights: The weights from which gates with weights draw those of calls.
    """
    return _Simulation(service.open(random), elements, options, random, weights).run()


def gates_of(options: Options) -> tuple[Gate | PerKey, ...]:
    """The gates of an operator, without budgets, because a simulated run is shorter than the real one."""
    return tuple(gate for gate in options.gates if not isinstance(gate, Budget))


class _Simulation:
    """A run of the operator's parts."""

    def __init__(self, begin: Begin, elements: int, options: Options, random: Random, weights: Sequence[float]) -> None:
        self._begin, self._elements, self._options = begin, elements, options
        self._run = SimulatedRun(elements)
        self._ledger = ledger_for(options, None)
        counters = self._ledger.counters
        self._gates = _Gates(gates_of(options), lambda: counters.running, lambda _: random.choice(weights))
        self._scheduler = Scheduler(
            self._ledger,
            options.capacity,
            options.timeout,
            gates=self._gates if self._gates.line.given else None,
            on_failure=_fail,
        )
        self._gates.open(self._scheduler.change)
        self._retries = Retries(
            options.retry,
            options.capacity,
            guard=lambda function: function,
            on_denied=lambda _: None,
            is_final=lambda _: False,
        )
        self._retries.draw = random.random
        self._attempt_timeout = inf if options.retry is None else options.retry.attempt_timeout
        self._ends: list[tuple[float, int, Entry, Exception | Outcome | None, RecordedCall]] = []  # a heap, by instant
        self._numbers = count()
        self._begun: dict[int, float] = {}  # sequence -> the start of the record's first call
        self._ended: list[float] = []  # the ends of records
        self._accepted = 0

    def run(self) -> SimulatedRun:
        """Run until all records have ended."""
        ends, scheduler, run, now = self._ends, self._scheduler, self._run, 0.0
        while now < inf:
            self._accept(now)
            self._start(now)
            now = min(ends[0][0] if ends else inf, scheduler.wake_at())
            while ends and ends[0][0] <= now:  # all of them before the next start, which gates decide on
                _, _, entry, outcome, call = heappop(ends)
                self._end(entry, outcome, call, now)
            self._emit(now)
        run.seconds = self._ended[-1]
        run.delays.sort()
        counters = self._ledger.counters
        run.retried, run.timed_out, run.failed = counters.retried, counters.timed_out, counters.failed
        first, last = len(self._ended) // 2, 9 * len(self._ended) // 10
        if self._ended[last] > self._ended[first]:
            run.pace = (last - first) / (self._ended[last] - self._ended[first])
        return run

    def _accept(self, now: float) -> None:
        ledger = self._ledger
        while self._accepted < self._elements and ledger.has_room():
            ledger.accept(self._accepted, now)
            self._accepted += 1

    def _start(self, now: float) -> None:
        ledger, scheduler = self._ledger, self._scheduler
        counters, slots = ledger.counters, self._options.capacity
        while True:
            while scheduler.is_plain and ledger.jobs and counters.running < slots:
                self._call(ledger.start(now), now)
            if not scheduler.starts:
                if not scheduler.is_plain:
                    scheduler.assign(now)
                if not scheduler.starts:
                    return
            entry, _, refusal = scheduler.take(now)
            if refusal is None:
                self._call(entry, now)
            else:
                self._fail(entry, refusal, now)
                self._emit(now)
                self._accept(now)

    def _call(self, entry: Entry, now: float) -> None:
        """Start a call. Its end is known."""
        run = self._run
        if entry.attempts:
            self._ledger.retry(entry)
        else:
            self._begun[entry.sequence] = now
        entry.attempts += 1
        run.calls += 1
        deadline = entry.since + self._options.timeout
        seconds, call = self._begin(now, min(deadline, now + self._attempt_timeout))
        outcome: Exception | Outcome | None = call.error
        is_cut = seconds > self._attempt_timeout
        if is_cut:
            seconds = self._attempt_timeout
            outcome = late = AttemptTimeoutError("the attempt was cut", seconds)
            self._retries.mark_timeout(late)
        end = now + seconds
        if end >= deadline:
            end, outcome, is_cut = deadline, expired(), True
        # A call that only the run cuts has not settled yet
        run.weight += call.estimate if is_cut and call.outcome != "cut" else call.weight
        heappush(self._ends, (end, next(self._numbers), entry, outcome, call))

    def _end(self, entry: Entry, outcome: Exception | Outcome | None, call: RecordedCall, now: float) -> None:
        """End a call: complete its record, retry it, or fail it."""
        run, retries = self._run, self._retries
        if self._gates.line.given:
            end = Reading(outcome) if isinstance(outcome, Exception) else outcome or OK
            problem = self._gates.end(entry, end, now)
            if problem is not None:
                raise problem
        if isinstance(outcome, Outcome):
            self._time_out(entry, now)
            return
        wait = None
        if outcome is None:
            if retries.checks_results:
                wait = retries.after_result(entry, call.result)
        else:
            run.refused += outcome is call.error and call.outcome == "refused"
            wait = retries.after_error(entry, outcome, Reading(outcome), retries.draw())
        if wait is not None:
            if self._scheduler.retry(entry, wait, now, outcome):
                retries.account.withdraw()
            else:
                self._time_out(entry, now)
        elif outcome is None:
            self._ledger.complete(entry, (None,), now)
            self._ended.append(now)
        else:
            self._fail(entry, outcome, now)

    def _time_out(self, entry: Entry, now: float) -> None:
        self._ledger.time_out(entry, now)
        self._finish(entry, now)

    def _fail(self, entry: Entry, error: Exception, now: float) -> None:
        self._ledger.fail(entry, error, now)
        self._finish(entry, now)

    def _finish(self, entry: Entry, now: float) -> None:
        self._ledger.finish(entry, (), now)
        self._ended.append(now)

    def _emit(self, now: float) -> None:
        ledger, run = self._ledger, self._run
        for entry in ledger.poll(now, ledger.bound):
            run.delays.append(now - self._begun.pop(entry.sequence, now))
        while ledger.leaving:
            ledger.receive()


class _Gates(Gates):
    """The gates of a simulated operator: copies of the given ones without their state, on its own clock."""

    def __init__(
        self, gates: Sequence[Gate | PerKey], running: Callable[[], int], weight: Callable[[Any], float]
    ) -> None:
        copies: list[Gate] = []
        for gate in gates:
            assert isinstance(gate, Gate)
            copies.append(deepcopy(gate))
            if gate.weight is not None:
                copies[-1].weight = weight
        super().__init__(tuple(copies), running, on_throttled=lambda: None, on_failure=_fail)

    def open(self, change: Callable[[GateLine], object]) -> None:
        """The operator starts. The argument is a method of its scheduler."""
        self.line.change = change
        self.line.open([SharedGate(gate) for gate in self.line.given])


def _fail(error: Exception, _: Entry | None) -> None:
    """A gate has raised, which stops an operator."""
    raise RuntimeError(f"a gate would stop the run: {describe(error)}. Rehearse without it, or repair it") from error
