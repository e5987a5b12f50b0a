"""Processes that lease tokens from one source, as events on a simulated time: plain data, without a loop."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from math import inf

from udfs._rate.lease import TIMEOUT, Answer, Lease, Request
from udfs._rate.tokens import Grant, TokenSource, settling_of

__all__ = ["Application", "Outage", "Simulation"]


@dataclass
class Outage:
    """The source is away.

    Args:
        start, seconds: When, and for how long.
        forgets: Whether it restarts without memory.
        hangs: Whether it does not answer at all, in contrast to refusing connections.
    """

    start: float
    seconds: float
    forgets: bool = False
    hangs: bool = True

    @property
    def end(self) -> float:
        return self.start + self.seconds


@dataclass(eq=False)
class Application:
    """One of several that share a source. It has a process for each slot.

    Args:
        slots: The tasks that can run at once.
        start: The instant at which it begins.
        idle: From when until when no call of it waits.
    """

    slots: int
    start: float = 0.0
    idle: tuple[float, float] = (inf, inf)


@dataclass
class Process:
    """One lease, and whose it is."""

    lease: Lease
    number: int
    application: Application


@dataclass
class Simulation:
    """Each process always has a call that waits, unless its application is idle.

    Args:
        rate, slots: Of the leases.
        processes: How many there are.
        applications: Those whose processes there are instead.
        seed: Of the delays.
        latency: The longest way of a message, in seconds. Some messages take longer than the source's time limit.
        late: The longest time by which a process looks too late.
        outages: Of the source.
        slow: The share of the messages that take up to half a second.

    Attributes:
        starts: The instants of all calls.
    """

    rate: float
    slots: int = 1
    processes: int = 0
    applications: list[Application] = field(default_factory=list)
    seed: int = 1
    latency: float = 0.002
    late: float = 0.0
    outages: list[Outage] = field(default_factory=list)
    slow: float = 0.0
    starts: list[tuple[float, int]] = field(default_factory=list)

    def run(self, seconds: float) -> list[float]:
        """The instants of the calls that start within this time."""
        self._random = random.Random(self.seed)
        random.seed(self.seed)
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = count()
        self._settling = settling_of(self.rate, None if self.applications else self.slots)
        self._known: list[Application] = []
        self._source = TokenSource(self.rate, self._settling)
        self._skew = self._random.uniform(-1e3, 1e3)  # of the source's clock
        for process in self._processes():
            start = process.application.start + self._random.random() * 0.1
            self._at(start, lambda now, process=process: self._look(now, process))
        for outage in self.outages:
            if outage.forgets:
                self._at(outage.end, self._restart)
        while self._events and self._events[0][0] < seconds:
            now, _, event = heapq.heappop(self._events)
            event(now)
        return sorted(start for start, _ in self.starts)

    def _processes(self) -> list[Process]:
        alone = Application(self.slots)
        owners = [alone] * self.processes + [each for each in self.applications for _ in range(each.slots)]
        return [
            Process(Lease(self.rate, each.slots, self._settling), number, each) for number, each in enumerate(owners)
        ]

    def _at(self, instant: float, event: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (instant, next(self._number), event))

    def _restart(self, now: float) -> None:
        self._source = TokenSource(self.rate, self._settling, opens=now + self._skew + self._settling)
        self._known = []

    def _look(self, now: float, process: Process) -> None:
        first, last = process.application.idle
        if first <= now < last:
            self._at(last, lambda then: self._look(then, process))
            return
        lease = process.lease
        request = lease.request(now)
        if request is not None:
            self._ask(now, process, request)
        while not (delay := lease.delay(now)):
            lease.started(now)
            self.starts.append((now, process.number))
            if (request := lease.request(now)) is not None:
                self._ask(now, process, request)
        late = self._random.random() * self.late
        self._at(now + delay + late, lambda then: self._look(then, process))

    def _ask(self, sent: float, process: Process, request: Request) -> None:
        arrival = sent + self._way()
        outage = next((each for each in self.outages if each.start <= arrival < each.end), None)
        if outage is not None:
            failed = sent + TIMEOUT if outage.hangs else min(arrival, sent + TIMEOUT)
            self._at(failed, process.lease.failed)
        else:
            self._at(arrival, lambda now: self._answer(now, sent, process, request))

    def _answer(self, now: float, sent: float, process: Process, request: Request) -> None:
        lease, grant = process.lease, self._grant(now, process.application, request)
        received = now + self._way()
        if received > sent + TIMEOUT:
            self._at(max(now, sent + TIMEOUT), lease.failed)
        else:
            self._at(received, lambda then: lease.granted(Answer(grant, sent, then)))

    def _grant(self, now: float, application: Application, request: Request) -> Grant:
        """As the source on the driver does. For several applications, it counts slots, as the script in Redis does."""
        grant = self._source.grant(now + self._skew, **asdict(request))
        if not self.applications:
            return grant
        if application not in self._known:
            self._known.append(application)
        return replace(grant, slots=sum(each.slots for each in self._known))

    def _way(self) -> float:
        if self._random.random() < self.slow:
            return self._random.random() * 0.5
        return self._random.random() * self.latency
