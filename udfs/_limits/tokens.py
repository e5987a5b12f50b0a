"""The source of a leased rate: which calls may start when."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import ClassVar

# A token's instant lies at most this far ahead, so tokens of a lost source are gone after it
HORIZON_SECONDS = 0.3

# For this many seconds after its instant, a token may be used
LATENESS_SECONDS = 0.025

# Fraction of each second kept free for late starts and network jitter
RESERVE = LATENESS_SECONDS + 0.005


def pace_of(rate: float) -> float:
    """The tokens per second of a rate: even if some are used late, no second has more calls than the rate."""
    whole = floor(rate) if rate >= 1 else rate
    return whole / (1 + RESERVE)


@dataclass(frozen=True, slots=True)
class Grant:
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
class Request:
    """A request for tokens.

    Args:
        name: The name of the rate.
        rate: Calls per second, above 0.
        count: The number of tokens, at least 1.
        lead: How far ahead the first token must be, in seconds, because the grant takes that long to arrive.
    """

    answer: ClassVar = Grant

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

    def grant(self, now: float, request: Request) -> Grant:
        """Grant up to `request.count` tokens."""
        pace = pace_of(request.rate)
        if request.name not in self._next:
            self._forget_idle(now)
        start = max(self._next.get(request.name, self._began + HORIZON_SECONDS + 1 / pace), now + request.lead)
        count = max(0, min(request.count, floor((now + HORIZON_SECONDS - start) * pace) + 1))
        self._next[request.name] = start + count / pace
        return Grant(self._epoch, now, start, count)

    def _forget_idle(self, now: float) -> None:
        """Forget the rates whose next token may be for any instant from now on, as if they were new."""
        self._next = {name: instant for name, instant in self._next.items() if instant > now}
