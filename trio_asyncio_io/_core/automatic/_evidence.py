"""What refusals show: an outage, a cause, or single failures."""

from __future__ import annotations

from math import inf

from ._constants import (
    APART,
    CALLS_PER_FAILURE,
    CLEAN,
    FIRST_LOOK,
    LAST_LOOK,
    LATER,
    LEAST_SHARE,
    MOST_PASS,
    MOST_SHARE,
    PASSED,
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
        self.until = max(self.until if self.probes > 1 else now, now + self._pause(self.probes - 1))

    def probe(self, now: float) -> None:
        self.until = now + self._pause(self.probes)

    def end(self) -> None:
        self.in_a_row = self.anew = self.probes = 0

    @staticmethod
    def _pause(number: int) -> float:
        return min(LAST_LOOK, FIRST_LOOK * 2.0 ** min(20, number))


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

    Attributes:
        share: Of the last calls that were refused.
        accepted: The share up to which refusals have no cause. 0.0: each has one.
        ended: How often it was too low. Chance then needs twice the evidence.
    """

    def __init__(self) -> None:
        self.share = self.accepted = 0.0
        self.ended = 0
        self._was_refused = False
        self._singles = self._pairs = 0.0
        self._suspicion = 0.0
        self._least = self._first = inf
        self._passed = self._suspects = 0

    def started(self) -> None:
        self.share -= self.share * SHARE_OF
        self._suspicion = max(0.0, self._suspicion - 1 / CALLS_PER_FAILURE)
        if not self._suspicion:
            self._least = self._first = inf
            self._passed = self._suspects = 0

    def refused(self) -> None:
        self.share += (1 - self.share) * SHARE_OF

    def suspect(self, start: float, rank: int) -> None:
        self._suspicion += 1
        self._suspects += 1
        self._least = min(rank, self._least)
        self._first = min(start, self._first)

    def known(self, start: float, rank: int) -> None:
        """It is known whether a call was admitted (rank -1: it was not). Calls come in the order of their starts."""
        was_refused = rank < 0
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
        least = 0 if kind == "throttled" else MOST_PASS * self._suspects
        return self._passed >= max(PASSED, least)

    @property
    def has_cause(self) -> bool:
        return self._suspicion >= STRIKES

    def least_rank(self) -> int:
        """The lowest rank of the refusals that have one cause."""
        return int(self._least)

    def conclude(self) -> None:
        """The cause is known. One more refusal has it as well."""
        self._suspicion = STRIKES - 1.0
        self._least = self._first = inf
        self._passed = self._suspects = 0

    def clear(self) -> None:
        self._suspicion = 0.0
        self._least = self._first = inf
        self._passed = self._suspects = 0

    def accept(self, share: float) -> None:
        self.accepted, self.share = min(MOST_SHARE, LEAST_SHARE + 1.3 * share), share

    def reject(self) -> None:
        self.accepted = 0.0
        self.ended += 1
