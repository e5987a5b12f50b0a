"""A process's side of a leased rate: tokens of a source, or a share while the source cannot be reached."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf
from random import random

from .clock_offset import ClockOffset
from .share import ClusterShare
from .tokens import HORIZON, LATENESS, Grant, pace_of, settling_of

__all__ = ["TIMEOUT", "Answer", "Lease", "Request"]

TIMEOUT = 0.15  # seconds for an answer of the source
AGAIN = 0.03  # seconds until the next attempt after the first failure
PROBE = 0.25  # seconds until the next attempt after further failures, and at the latest after an answer without tokens
MAX_LEAD = 0.1  # of the first token, in seconds
POLL = 0.01  # seconds until a waiting call looks for the answer
WORTH = 0.2  # a lease is worth so many seconds of the process's own rate
STALE = PROBE + 2 * TIMEOUT  # seconds after a failed attempt in which it is known that the source is away


@dataclass(frozen=True, slots=True)
class Request:
    """A question to the source.

    Args:
        count: The number of tokens.
        lead: How far ahead they must be, in seconds.
        is_back: Whether more than one attempt has failed since the last answer.
    """

    count: int
    lead: float
    is_back: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the source.

    Args:
        grant: The tokens.
        sent, received: Local instants of the question and of the answer.
    """

    grant: Grant
    sent: float
    received: float


class Lease:
    """Decides when calls of one process may start. Plain data: it neither waits nor sends anything.

    Tokens are used at their instants, or a little later. If the source does not answer, no call starts until all tokens
    that it can have granted have expired. From then on the process uses its share, and asks again and again. When the
    source is back, it states from which instant on it grants tokens. The share ends before that.

    So all processes together start at most `rate` calls in any second, if an outage of the source is one for all.

    A source of several applications states with each grant how many slots they have together, and the share is that of
    one slot of all these. It cannot state those of an application that has not asked it before the outage. A process
    that does not know the number yet has no share while the source grants nothing, because others may have one.

    Args:
        rate: Calls per second of all processes together.
        slots: The number of tasks of the process's own application that can run at once.
        settling: That of the source. None (the default): `settling_of` these numbers.
    """

    def __init__(self, rate: float, slots: int, settling: float | None = None) -> None:
        self._rate = rate
        self._slots = slots
        self._calls = int(rate // slots)
        self._knows_slots = False  # of all applications
        self._settling = settling_of(rate, slots) if settling is None else settling
        self._most = max(1, int(WORTH * pace_of(rate)))
        self._count = max(1, int(WORTH * pace_of(rate) / slots))
        self._spacing = 1 / pace_of(rate)
        self._tokens: deque[float] = deque()  # instants on the source's clock
        self._granted = 0
        self._expired = 0
        self._is_awaited = False  # by a call, since the last one has started
        self._travel = 0.0
        self._offset = ClockOffset()
        self._is_asking = False
        self._next_ask = -inf
        self._failures = 0
        self._failed_at = -inf
        self._share: ClusterShare | None = None
        self._share_from = inf
        self._share_until = inf

    def request(self, now: float) -> Request | None:
        """The question to send now, if any. It must be followed by `granted` or `failed` within `TIMEOUT`."""
        self._expire(now)
        if self._is_asking or now < self._next_ask or 2 * len(self._tokens) > self._granted:
            return None
        if self._expired:
            self._count = max(1, self._granted - self._expired)
        self._is_asking = True
        return Request(self._count, min(self._travel + POLL, MAX_LEAD), self.has_outage)

    def granted(self, answer: Answer) -> None:
        """The source has answered."""
        grant, received = answer.grant, answer.received
        self._offset.learn(answer.sent, grant.now, received)
        self._travel = max(received - answer.sent, 0.8 * self._travel)
        if self._offset.uncertainty > LATENESS / 2:
            self.failed(received)
            return
        self._is_asking = False
        self._failures = 0
        self._adapt(grant.start - grant.now)
        self._tokens.extend(grant.start + number * self._spacing for number in range(grant.count))
        self._granted, self._expired = len(self._tokens), 0
        later = grant.start - HORIZON - grant.now + POLL * (1 + 4 * random())
        self._next_ask = received if grant.count else received + min(PROBE, later)
        self._divide(grant)
        self._settle(grant)

    def failed(self, now: float) -> None:
        """The source has not answered, or too late to know the time on its clock."""
        self._is_asking = False
        self._failures += 1
        self._failed_at = now
        self._next_ask = now + (PROBE if self.has_outage else AGAIN)
        if self.has_outage:
            if self._share_from == inf or now > self._share_until - HORIZON:  # there may be tokens
                self._share_after(now)
            self._share_until = inf

    def delay(self, now: float) -> float:
        """The seconds until a call may start, or until it must ask again."""
        self._expire(now)
        self._is_awaited = True
        if self._tokens:
            return max(0.0, self._tokens[0] + self._offset.most - now)
        until_ask = POLL if self._is_asking else max(POLL, self._next_ask - now)
        if not self._may_share(now):
            return until_ask
        if self._share is None:
            self._share = ClusterShare(self._calls)
        return min(self._share.delay(now, 1.0), until_ask)

    def started(self, now: float) -> None:
        """A call starts. `delay` has returned 0.0 for it."""
        self._is_awaited = False
        if self._tokens:
            self._tokens.popleft()
        else:
            assert self._share is not None
            self._share.started(now, 1.0)

    @property
    def has_outage(self) -> bool:
        """Whether the source is away, and not only one message lost or late."""
        return self._failures > 1

    @property
    def has_share(self) -> bool:
        """Whether calls may start while the source is away."""
        return self._calls > 0

    def _divide(self, grant: Grant) -> None:
        """Divide the rate by the slots of all applications. After an outage, the source may have forgotten some."""
        if grant.slots is not None and grant.opens <= grant.now:
            self._calls = int(self._rate // max(grant.slots, self._slots))
            self._knows_slots = True

    def _expire(self, now: float) -> None:
        while self._tokens and self._tokens[0] + self._offset.least + LATENESS < now:
            self._tokens.popleft()
            self._expired += not self._is_awaited  # otherwise the call is late

    def _adapt(self, wait: float) -> None:
        """Ask for less if tokens are far ahead, because many processes ask; for more if they are near."""
        if wait > WORTH:
            self._count = max(1, int(0.7 * self._count))
        elif wait < WORTH / 4 and not self._expired:
            self._count = min(2 * self._count, self._most)

    def _settle(self, grant: Grant) -> None:
        """Use the share until the source grants tokens again, or not at all."""
        is_new = grant.slots is not None and not self._knows_slots
        if grant.opens <= grant.now or not self._calls or is_new:
            self._share_from = inf
            return
        if self._share_from == inf:
            self._share_after(grant.opens - self._settling + self._offset.most)
        self._share_until = grant.opens + self._offset.least - 1 / self._calls - 0.1

    def _share_after(self, outage: float) -> None:
        """Use the share when all tokens have expired that were granted before this instant."""
        self._share = None
        self._share_from = outage + HORIZON + LATENESS

    def _may_share(self, now: float) -> bool:
        if self.has_outage and now > self._failed_at + STALE:
            self._share_from = inf  # others may use tokens by now: the next attempt decides
        return self._calls > 0 and self._share_from <= now < self._share_until
