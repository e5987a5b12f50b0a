"""The source's side of a leased rate: which calls may start when."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf

__all__ = ["HORIZON", "LATENESS", "REMEMBERED", "Grant", "TokenSource", "pace_of", "settling_of"]

# Tokens are for instants of at most so many seconds ahead. So all of them have expired soon after an outage begins
HORIZON = 0.3

# For so many seconds after its instant, a token may be used
LATENESS = 0.015

# Of each second, so much is left for late calls, and for calls that take different times to reach the service
RESERVE = 0.02

# Seconds within which each process that is waiting has noticed that the source is back
NOTICED = 1.0

# Seconds for which a source counts an application that has stopped asking, because none of its calls waits
REMEMBERED = 180.0


def pace_of(rate: float) -> float:
    """The tokens per second of a rate. Calls that use them late are still at most as many as the rate in any second."""
    whole = floor(rate) if rate >= 1 else rate
    return whole / (1 + RESERVE)


def settling_of(rate: float, slots: int | None) -> float:
    """For how many seconds a source grants nothing after an outage, or if it has forgotten what it granted.

    Until then, all processes have noticed that the source is back and have stopped to use their shares, and the tokens
    that were granted before have expired. If the number of slots is not known, it is enough for any.
    """
    share = min(1.0, rate // 1) if slots is None else rate // slots
    return NOTICED + 0.1 + 1 / share if share else HORIZON + LATENESS + 1 / pace_of(rate)


@dataclass(frozen=True, slots=True)
class Grant:
    """Tokens for calls. Each is for one call at one instant: start, start + 1 / pace, and so on.

    All instants are seconds on the source's clock.

    Args:
        now: When it was granted.
        start: The instant of the first token; if there are none, the instant that the next token would have.
        count: The number of tokens.
        opens: The source grants tokens only for instants from here on. In the future after an outage.
        slots: The tasks of all applications that can run at once; None if the source has one application.
    """

    now: float
    start: float
    count: int
    opens: float
    slots: int | None = None


class TokenSource:
    """Grants each instant once, evenly spaced: the generic cell rate algorithm (ITU-T I.371), with its time ahead.

    Args:
        rate: Calls per second, above 0.
        settling: See `settling_of`.
        opens: The first instant of a token. A source that has forgotten what it granted begins after `settling`.
    """

    def __init__(self, rate: float, settling: float, opens: float = -inf) -> None:
        self._pace = pace_of(rate)
        self._settling = settling
        self._opens = opens
        self._next = -inf

    def grant(self, now: float, count: int, *, lead: float = 0.0, is_back: bool = False) -> Grant:
        """Grant up to `count` tokens.

        Args:
            now: The present instant.
            count: At least 1.
            lead: How far ahead the first token must be, in seconds, because the answer takes as long.
            is_back: Whether the process has failed to reach the source since its last grant, more than once. It and
                others may use their shares, so no token is granted until all of them have noticed that the source is
                back.
        """
        if is_back and now >= self._opens:
            self._opens = now + self._settling
        start = max(self._next, now + lead, self._opens)
        count = max(0, min(count, floor((now + HORIZON - start) * self._pace) + 1))
        self._next = start + count / self._pace
        return Grant(now, start, count, self._opens)
