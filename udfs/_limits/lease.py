"""A process's side of a limit: when to send a request, and when a call may start."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf
from random import random
from typing import Any, ClassVar

from .tokens import HORIZON_SECONDS, LATENESS_SECONDS, Grant, Request, pace_of

OPEN_SECONDS = 5.0  # for a connection to open
GRANT_SECONDS = 1.0  # seconds for a grant to arrive
FIRST_RETRY_SECONDS = 0.03  # seconds until the next request after the first failure
RETRY_SECONDS = 0.25  # seconds until the next request after later failures, and at most after a grant without tokens
AWAY_SECONDS = 1.5  # seconds without a grant after which the source counts as away: more than one lost message
STALE_SECONDS = 5.0  # seconds without a request after which it is unknown whether the source is away

POLL_SECONDS = 0.01  # seconds until a waiting call checks for the grant
MAX_LEAD_SECONDS = 0.1  # until the instant of the first token that a request is for
WORTH_SECONDS = 0.2  # a request is for at most this many seconds' worth of the whole rate
MAX_COUNT = 10_000  # tokens of one request

# The source's clock must be known to this many seconds. The rest of LATENESS_SECONDS is for the process to wake up in
MAX_UNCERTAINTY_SECONDS = LATENESS_SECONDS - 0.005

# Two clocks may run at different speeds: seconds per second. NTP changes a speed by up to 5e-4
DRIFT = 1e-3


class ClockOffset:
    """Bounds of the local clock minus the source's clock, from the instants of requests and grants, as in NTP.

    All bounds hold together, so the fastest grant of the last seconds decides.

    Attributes:
        lowest, highest: The bounds, in seconds. Infinite before the first grant.
    """

    def __init__(self) -> None:
        self.lowest = -inf
        self.highest = inf
        self._at = 0.0

    @property
    def uncertainty(self) -> float:
        """The distance of the bounds, in seconds."""
        return self.highest - self.lowest

    def narrow(self, sent: float, there: float, received: float) -> None:
        """Use a grant.

        Args:
            sent, received: Local instants of the request and of the grant's arrival.
            there: The source's instant between them.
        """
        drift = DRIFT * (received - self._at)
        self._at = received
        lowest, highest = sent - there, received - there
        self.lowest, self.highest = max(lowest, self.lowest - drift), min(highest, self.highest + drift)
        if self.lowest > self.highest:  # one of the clocks was set
            self.lowest, self.highest = lowest, highest


@dataclass(frozen=True, slots=True)
class Outage:
    """The source does not answer.

    Args:
        since: The local instant of the first request that failed.
        latest: The local instant of the latest failure.
        reason: Why the latest request failed.
    """

    since: float
    latest: float
    reason: str


class Lease:
    """Decides when the calls of one process may start. Plain data: it neither waits nor sends anything.

    While no grant arrives, calls wait, and requests are repeated. All instants are seconds on the process's clock.

    Attributes:
        idle_seconds: After this many seconds without a request, `heartbeat` has the next one.
        outage: Whether requests fail, since when, and why. None: the latest one was granted, or none was sent lately.
        is_requested: Whether a request is on its way.
    """

    idle_seconds: ClassVar[float]

    def __init__(self) -> None:
        self.outage: Outage | None = None
        self.is_requested = False
        self._next_request = -inf

    def corrected(self, weight: float, actual: float) -> None:
        """A call that runs costs `actual`, and not `weight`."""

    def ended(self, weight: float) -> None:
        """A call has ended and has cost this much."""

    def spent_by_all(self) -> float:
        """What all processes have spent and leased, as far as this one knows, for messages. 0.0 for a rate."""
        return 0.0

    @property
    def must_return(self) -> bool:
        """Whether no call is running and something is left to return."""
        return False

    def heartbeat(self, now: float) -> Any:  # noqa: ARG002
        """The request to send when no call waits. None: the connection can be closed."""
        return None

    def return_unused(self, now: float) -> Any:  # noqa: ARG002
        """The request that returns what is not used. None: there is nothing to return, or a request is on its way."""
        return None

    def failed(self, sent: float, now: float, reason: str) -> None:
        """No grant has arrived for the request that was sent at the instant `sent`.

        Args:
            sent: The instant of the request.
            now: The instant at which it counts as failed.
            reason: Why, for messages.
        """
        self.is_requested = False
        self._next_request = now + (RETRY_SECONDS if self.outage else FIRST_RETRY_SECONDS)
        self.outage = Outage(self.outage.since if self.outage else sent, now, reason)

    def is_away(self, now: float) -> bool:
        """Whether the source has been away for more than a moment. Nothing that it granted before is left by then."""
        return self.outage is not None and now >= self.outage.since + AWAY_SECONDS


class RateLease(Lease):
    """A lease of tokens. A call starts only with a token, at the token's instant or a little later.

    Args:
        name: The name of the rate.
        rate: Calls per second of all processes together.
    """

    idle_seconds = 5.0  # far below the 30 s after which the driver closes a connection

    def __init__(self, name: str, rate: float) -> None:
        super().__init__()
        self._name = name
        self._rate = rate
        self._spacing = 1 / pace_of(rate)
        self._max_count = max(1, min(MAX_COUNT, int(WORTH_SECONDS * pace_of(rate))))
        self._count = 1
        self._epoch: str | None = None
        self._tokens: deque[float] = deque()  # instants on the source's clock
        self._granted = 0
        self._expired = 0
        self._is_awaited = False  # by a call, since the last one has started
        self._round_trip = 0.0
        self._offset = ClockOffset()

    def request(self, now: float, weight: float = 1.0) -> Request | None:  # noqa: ARG002
        """The request to send now, if any. `granted` or `failed` must follow."""
        self._expire(now)
        if self.is_requested or now < self._next_request or 2 * len(self._tokens) > self._granted:
            return None
        if self.outage and now > self.outage.latest + STALE_SECONDS:
            self.outage = None
        if self._expired:
            self._count = max(1, self._granted - self._expired)
        self.is_requested = True
        return Request(self._name, self._rate, self._count, min(self._round_trip + POLL_SECONDS, MAX_LEAD_SECONDS))

    def granted(self, grant: Grant, sent: float, received: float) -> None:
        """A grant has arrived for the request that was sent at the instant `sent`.

        Args:
            grant: Its tokens.
            sent, received: The instants of the request and of the grant.
        """
        if grant.epoch != self._epoch:
            self._epoch = grant.epoch
            self._tokens.clear()
            self._offset = ClockOffset()
        self._offset.narrow(sent, grant.now, received)
        self._round_trip = max(received - sent, 0.8 * self._round_trip)
        if self._offset.uncertainty > MAX_UNCERTAINTY_SECONDS:
            taken, most = 1e3 * self._offset.uncertainty, 1e3 * MAX_UNCERTAINTY_SECONDS
            slow = f"its answers take {taken:.0f} ms, and at most {most:.0f} ms are allowed"
            self.failed(sent, received, slow)
            return
        self.is_requested = False
        self.outage = None
        self._adapt(grant.start - grant.now)
        self._tokens.extend(grant.start + number * self._spacing for number in range(grant.count))
        self._granted, self._expired = len(self._tokens), 0
        later = grant.start - HORIZON_SECONDS - grant.now + POLL_SECONDS * (1 + 4 * random())
        self._next_request = received if grant.count else received + min(RETRY_SECONDS, later)

    def delay(self, now: float, weight: float = 1.0) -> float:  # noqa: ARG002 - a token is for a call
        """The seconds until a call may start, or until there may be another request to send."""
        self._expire(now)
        self._is_awaited = True
        if self._tokens:
            return max(0.0, self._tokens[0] + self._offset.highest - now)
        return POLL_SECONDS if self.is_requested else max(POLL_SECONDS, self._next_request - now)

    def started(self, weight: float = 1.0) -> None:  # noqa: ARG002
        """A call starts. `delay` has returned 0.0 for it."""
        self._is_awaited = False
        self._tokens.popleft()

    def _expire(self, now: float) -> None:
        while self._tokens and self._tokens[0] + self._offset.lowest + LATENESS_SECONDS < now:
            self._tokens.popleft()
            self._expired += not self._is_awaited  # otherwise the call is late

    def _adapt(self, wait: float) -> None:
        """Request fewer tokens if they are far ahead, because there are many processes; more if they are near."""
        if wait > WORTH_SECONDS:
            self._count = max(1, int(0.7 * self._count))
        elif wait < WORTH_SECONDS / 4 and not self._expired:
            self._count = min(2 * self._count, self._max_count)
