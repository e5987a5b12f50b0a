"""One rate for all processes of a cluster: its source, which grants tokens, and a process's lease of them.

A token is for one call at one instant; the docstring of the package tells how no second has more calls than the rate.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import floor, inf
from random import random
from typing import ClassVar

from .lease import POLL_SECONDS, RETRY_SECONDS, Lease

# A token's instant lies at most this far ahead, so tokens of a lost source are gone after it
HORIZON_SECONDS = 0.3

# For this many seconds after its instant, a token may be used
LATENESS_SECONDS = 0.025

# Fraction of each second kept free for late starts and network jitter
RESERVE = LATENESS_SECONDS + 0.005

STALE_SECONDS = 5.0  # seconds without a request after which it is unknown whether the source is away
MAX_LEAD_SECONDS = 0.1  # until the instant of the first token that a request is for
WORTH_SECONDS = 0.2  # a request is for at most this many seconds' worth of the whole rate
MAX_COUNT = 10_000  # tokens of one request

# The source's clock must be known to this many seconds. The rest of LATENESS_SECONDS is for the process to wake up in
MAX_UNCERTAINTY_SECONDS = LATENESS_SECONDS - 0.005

# Two clocks may run at different speeds: seconds per second. NTP changes a speed by up to 5e-4
DRIFT = 1e-3


def pace_of(rate: float) -> float:
    """The tokens per second of a rate: even if some are used late, no second has more calls than the rate."""
    whole = floor(rate) if rate >= 1 else rate
    return whole / (1 + RESERVE)


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """Tokens for calls at the instants `start`, `start + 1 / pace`, and so on.

    Args:
        epoch: Changes when the source may have lost its memory, or has another clock.
        now: The instant of the grant, like all instants in seconds on the source's clock.
        start: The instant of the first token; if there are none, the instant that the next one would have.
        count: The number of tokens.
    """

    epoch: str
    now: float
    start: float
    count: int


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A request for tokens.

    Args:
        name: The name of the rate.
        rate: Calls per second, above 0.
        count: The number of tokens, at least 1.
        lead: How far ahead the first token must be, in seconds, because the grant takes that long to arrive.
    """

    answer: ClassVar = TokenGrant

    name: str
    rate: float
    count: int
    lead: float


class TokenSource:
    """Grants each instant of a rate once, evenly spaced: the generic cell rate algorithm (ITU-T I.371), run ahead.

    Args:
        epoch: A text that no other source has.
        began: When this source started, in seconds on its clock. Others may have granted tokens until then.
    """

    def __init__(self, epoch: str, began: float) -> None:
        self._epoch = epoch
        self._began = began
        self._next: dict[str, float] = {}  # by rate, the instant of the next token

    def grant(self, now: float, request: TokenRequest) -> TokenGrant:
        """Grant up to `request.count` tokens."""
        pace = pace_of(request.rate)
        if request.name not in self._next:
            # A rate whose next token may be for any instant from now on is as good as new
            self._next = {name: instant for name, instant in self._next.items() if instant > now}
        start = max(self._next.get(request.name, self._began + HORIZON_SECONDS + 1 / pace), now + request.lead)
        count = max(0, min(request.count, floor((now + HORIZON_SECONDS - start) * pace) + 1))
        self._next[request.name] = start + count / pace
        return TokenGrant(self._epoch, now, start, count)


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

    def request(self, now: float, weight: float = 1.0) -> TokenRequest | None:  # noqa: ARG002
        """The request to send now, if any. `granted` or `failed` must follow."""
        self._expire(now)
        if self.is_requested or now < self._next_request or 2 * len(self._tokens) > self._granted:
            return None
        if self.outage and now > self.outage.latest + STALE_SECONDS:
            self.outage = None
        if self._expired:
            self._count = max(1, self._granted - self._expired)
        self.is_requested = True
        return TokenRequest(self._name, self._rate, self._count, min(self._round_trip + POLL_SECONDS, MAX_LEAD_SECONDS))

    def granted(self, grant: TokenGrant, sent: float, received: float) -> None:
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
