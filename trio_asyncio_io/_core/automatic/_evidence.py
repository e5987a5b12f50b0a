"""What refusals show: an outage, a cause, or single failures."""

from __future__ import annotations

from math import inf

from ._constants import (
    APART,
    CLEAN,
    FIRST_LOOK,
    LAST_LOOK,
    LATER,
    LATER_LOOKS,
    MOST_DEBT,
    MOST_PASS,
    MOST_SHARE,
    PASSED,
    PRICE,
    SHARE_OF,
    SPACED,
    STRIKES,
)

__all__ = ["Caution", "Failures", "Outage"]


class Outage:
    """Refusals in a row, and the probes of a service that is down.

    Attributes:
        in_a_row: Refusals without an answer to a call that started after the first of them.
        since: The start of the first of them.
        probes: Refusals since the outage was noticed. 0: there is none.
        until: The next probe.
    """

    def __init__(self) -> None:
        self.in_a_row = self.anew = self.probes = 0
        self.noticed = self.since = self.until = self.began = -inf

    def refused(self, now: float) -> None:
        """The service is down, or still is."""
        if not self.probes:
            self.began = now
        self.probes += 1
        self.until = max(self.until if self.probes > 1 else now, now + self._pause(now, self.probes - 1))

    def probe(self, now: float) -> None:
        self.until = now + self._pause(now, self.probes)

    def end(self) -> None:
        self.in_a_row = self.anew = self.probes = 0

    def _pause(self, now: float, number: int) -> float:
        return max(min(LAST_LOOK, FIRST_LOOK * 2.0 ** min(20, number)), LATER_LOOKS * (now - self.began))


class Caution:
    """After a refusal: no call starts until the refusals of earlier calls are known, and then a few start apart."""

    def __init__(self) -> None:
        self.since = self.until = self._apart_until = -inf
        self._apart = 0.0
        self._clean = 0  # starts since the last refusal
        self._needed = CLEAN

    def started(self) -> None:
        self._clean += 1

    def refused(self, now: float, start: float, refusal_seconds: float) -> None:
        """A call was refused, perhaps by chance."""
        clean, self._clean = self._clean, 0
        if start > self.since and clean >= self._needed:
            self._needed *= 4
            self._begin(now, refusal_seconds)

    def cut(self, now: float, refusal_seconds: float) -> None:
        """Refusals had a cause."""
        self._needed = CLEAN
        self._begin(now, refusal_seconds)

    def _begin(self, now: float, refusal_seconds: float) -> None:
        self.since, self.until = now, now + LATER * refusal_seconds
        self._apart = refusal_seconds / APART
        self._apart_until = self.until + SPACED * refusal_seconds

    def delay(self, now: float, started_at: float) -> float:
        if now < self.until:
            return self.until - now
        return max(0.0, started_at + self._apart - now) if now < self._apart_until else 0.0


class Failures:
    """Which refusals have a cause, and the share of calls that fail by chance.

    A leaky bucket: each refusal costs 25 calls. Refusals have a cause if three are not paid. After a cut, nothing grows
    until they are, so however the limit moves, one call in 25 is refused.

    Attributes:
        share: Of the last calls that were refused.
        accepted: The share of refusals that have no cause. 0.0: each has one.
        ended: How often it was too low. Chance then needs more evidence.
        calls, refusals: Those that are known.
        are_paid: Whether there are no more refusals than the price allows.
    """

    def __init__(self) -> None:
        self.share = self.accepted = 0.0
        self.ended = self.calls = self.refusals = 0
        self.are_paid = True
        self._was_refused = False
        self._singles = self._pairs = 0.0
        self._unpaid = 0.0
        self._suspects: list[list[float]] = []  # [start, rank]
        self._first = self._least = inf
        self._passed = 0

    def _forget(self) -> None:
        self._suspects, self._passed = [], 0
        self._first = self._least = inf

    def refused(self) -> None:
        self._unpaid += 1

    def suspect(self, start: float, rank: int) -> None:
        for suspect in self._suspects:  # the refusals come in any order
            suspect[1] -= suspect[0] >= start
        self._suspects.append([start, rank])
        self._first = min(start, self._first)
        self._least = min(rank for _, rank in self._suspects)

    def known(self, start: float, rank: int) -> None:
        """It is known whether a call was admitted (rank -1: it was not). Calls come in the order of their starts."""
        was_refused = rank < 0
        self.calls += 1
        self.refusals += was_refused
        self.share += (was_refused - self.share) * max(SHARE_OF, 1 / self.calls)
        self._unpaid = max(0.0, self._unpaid - 1 / PRICE - self.accepted)
        if not self._unpaid:
            self._forget()
        self.are_paid = self.are_paid or self._unpaid < 1
        self._passed += start > self._first and rank >= self._least
        self._singles += (was_refused - self._singles) * SHARE_OF if not (was_refused and self._was_refused) else 0.0
        self._pairs += ((was_refused and self._was_refused) - self._pairs) * SHARE_OF
        self._was_refused = was_refused

    @property
    def are_independent(self) -> bool:
        """Whether calls fail alone, and not one after the other as at a full service."""
        return self._pairs <= 0.4 * self._singles + 0.002

    def is_no_number(self, kind: str) -> bool:
        """Whether calls of these ranks are admitted; unless they are throttled, most of them."""
        least = 0 if kind == "throttled" else MOST_PASS * len(self._suspects)
        return self._passed >= max(PASSED, least)

    @property
    def has_cause(self) -> bool:
        return self._unpaid >= STRIKES and bool(self._suspects)

    def rank(self) -> int:
        """The rank of the refusals that have one cause: their median, since other processes share the service."""
        return int(sorted(rank for _, rank in self._suspects)[len(self._suspects) // 2])

    def conclude(self, limit: float) -> None:
        """There was a cut. Nothing grows until the refusals are paid."""
        self._unpaid = min(self._unpaid, max(1.0 * STRIKES, MOST_DEBT * limit / PRICE))
        self.are_paid = False
        self._forget()

    def clear(self) -> None:
        self._unpaid = min(self._unpaid, 1.0)
        self._forget()

    def accept(self, share: float) -> None:
        self.accepted = min(MOST_SHARE, 1.3 * share)
        self.share, self.are_paid = share, True
        self.clear()

    def reject(self) -> None:
        self.accepted = 0.0
        self.ended += 1
