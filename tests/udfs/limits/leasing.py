"""Processes that lease tokens from one source, as events on a simulated time: plain data, without a loop."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from udfs._limits.lease import GRANT_SECONDS
from udfs._limits.rates import RateLease, TokenGrant, TokenRequest, TokenSource


@dataclass
class Clock:
    """A clock that differs from the true time.

    Args:
        offset: Seconds ahead at the true time 0.
        drift: How much faster it runs: seconds per second.
    """

    offset: float = 0.0
    drift: float = 0.0

    def read(self, now: float) -> float:
        return self.offset + (1 + self.drift) * now


@dataclass
class Outage:
    """The source is away. With `seconds=0`, it only loses its memory.

    Args:
        start, seconds: When, and for how long.
        forgets: Whether it has lost its memory afterwards.
        hangs: Whether it does not answer at all, in contrast to refusing connections.
        clock: Of the machine that takes over: there is another epoch. None: the same machine and epoch.
    """

    start: float
    seconds: float
    forgets: bool = False
    hangs: bool = True
    clock: Clock | None = None

    @property
    def end(self) -> float:
        return self.start + self.seconds


@dataclass
class Process:
    """A lease and its clock."""

    lease: RateLease
    clock: Clock


@dataclass
class Simulation:
    """Each process always has a call that waits.

    Args:
        rate: Calls per second of all processes.
        processes: How many there are. Their clocks differ from each other and from the source's.
        seed: Of the delays.
        latency: The longest way of a message, in seconds.
        late: The longest time by which a process checks too late, in seconds.
        lost: The share of the requests, and that of the grants, which do not arrive.
        drift: The largest drift of a clock.
        outages: Of the source.

    Attributes:
        starts: The true instants of all calls.
    """

    rate: float
    processes: int = 1
    seed: int = 1
    latency: float = 0.002
    late: float = 0.0
    lost: float = 0.0
    drift: float = 0.0
    outages: list[Outage] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)

    def run(self, seconds: float) -> list[float]:
        """The instants of the calls that start within this time."""
        self._random = random.Random(self.seed)
        random.seed(self.seed)
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = count()
        self._epoch, self._clock = 0, self._make_clock()
        self._source = TokenSource("0", self._clock.read(0.0))
        for _ in range(self.processes):
            process = Process(RateLease("name", self.rate), self._make_clock())
            self._at(self._random.random() * 0.1, lambda now, process=process: self._check(now, process))
        for outage in self.outages:
            self._at(outage.end, lambda now, outage=outage: self._return(now, outage))
        while self._events and self._events[0][0] < seconds:
            now, _, event = heapq.heappop(self._events)
            event(now)
        return self.starts

    def _make_clock(self) -> Clock:
        return Clock(self._random.uniform(-1e3, 1e3), self._random.uniform(-self.drift, self.drift))

    def _at(self, instant: float, event: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (instant, next(self._number), event))

    def _return(self, now: float, outage: Outage) -> None:
        if outage.clock is not None:
            self._clock = outage.clock
            self._epoch += 1
        if outage.forgets or outage.clock is not None:
            self._source = TokenSource(str(self._epoch), self._clock.read(now))

    def _check(self, now: float, process: Process) -> None:
        lease, local = process.lease, process.clock.read(now)
        self._send(now, process)
        while not (delay := lease.delay(local)):
            lease.started()
            self.starts.append(now)
            self._send(now, process)
        late = self._random.random() * self.late
        self._at(now + delay + late, lambda then: self._check(then, process))

    def _send(self, now: float, process: Process) -> None:
        request = process.lease.request(process.clock.read(now))
        if request is None:
            return
        arrival = now + self._way()
        outage = next((each for each in self.outages if each.start <= arrival < each.end), None)
        if outage is not None or self._random.random() < self.lost:
            refused = outage is not None and not outage.hangs
            self._at(arrival if refused else now + GRANT_SECONDS, lambda then: self._fail(now, then, process))
        else:
            self._at(arrival, lambda then: self._grant(then, now, process, request))

    def _grant(self, now: float, sent: float, process: Process, request: TokenRequest) -> None:
        grant = self._source.grant(self._clock.read(now), request)
        received = now + self._way()
        if self._random.random() < self.lost or received > sent + GRANT_SECONDS:
            self._at(sent + GRANT_SECONDS, lambda then: self._fail(sent, then, process))
        else:
            self._at(received, lambda then: self._receive(sent, then, process, grant))

    def _receive(self, sent: float, now: float, process: Process, grant: TokenGrant) -> None:
        process.lease.granted(grant, process.clock.read(sent), process.clock.read(now))

    def _fail(self, sent: float, now: float, process: Process) -> None:
        process.lease.failed(process.clock.read(sent), process.clock.read(now), "refused")

    def _way(self) -> float:
        return self._random.random() * self.latency
