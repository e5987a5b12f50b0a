"""What calls show: which were admitted, why others were refused, and whether the service is down."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from random import random

DEVIATIONS = 2.0  # a longer freeze costs more than a refusal that comes late (RFC 6298 takes 4)
UNKNOWN = 1.0  # seconds: a refusal takes at most this long, as long as none has come
SPAN = 1.0  # seconds over which a rate is measured: a shorter time measures the burst of a bucket
FEW = 20  # calls, whose rate has an error of a quarter

PRICE = 25.0  # calls that pay for a refusal: 0.04 refusals a call
FORGIVEN_AFTER = 3.0  # seconds without a refusal: one call at once would pay for the refusals of 20 for a minute
STRIKES = 3  # refusals that are not paid have a cause: one or two may be chance
MEMORY = 400  # calls: the share of failures has an error of a quarter if it is 4 %

MOST_FAILING = 0.18  # of the calls fail by chance at most: a full service refuses more
IN_PAIRS = 2.0  # times as many refusals in a row as by chance: a full service has 4 to 8 times as many

IN_A_ROW = 5  # refusals: the probability of a service that takes half of the calls is 1/32
FIRST_LOOK = 0.2  # seconds between probes
LATER_LOOKS = 0.25  # of the time of an outage: probes of a service that stays down become rarer
LONGEST_LOOK = 5.0  # seconds: a service that is full of the calls of other tasks has free places now and then

ROUNDED_UP = 1.0  # seconds: `Retry-After` is in whole seconds (RFC 9110, section 10.2.3), so services round up to 1
JITTER = 0.1  # of a pause, so that processes do not return together
LONGEST_PAUSE = 60.0  # seconds

ROUNDING = 1e-7


@dataclass(slots=True)
class Call:
    """A call that has started. Its rank is the number of calls that ran in the service then."""

    start: float
    rank: int
    was_refused: bool = False


class Calls:
    """The calls that run, and those that are not settled: a refusal may still change what is known of them.

    A refused call was never in the service, so its refusal lowers the ranks of the calls that started after it. A call
    is settled when it was not refused for longer than a refusal takes; then those before it are settled, too.

    Attributes:
        starts: Of the running calls, in order.
        started: The number of calls.
        started_at: When the last one started.
        pending: Refused calls that are not settled.
        refusal_seconds: The mean time of a refusal. 0.0: none has come.
        settling: The seconds from the start of a call until it is settled.
    """

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.started = self.pending = 0
        self.started_at = -inf
        self.refusal_seconds = 0.0
        self.settling = UNKNOWN
        self._deviation = 0.0
        self._unsettled: deque[Call] = deque()
        self._admitted: deque[float] = deque()  # the starts of the last second, and of the last few calls

    def start(self, now: float) -> None:
        self._unsettled.append(Call(now, len(self.starts)))
        self.starts.append(now)
        self.started, self.started_at = self.started + 1, now
        self._admitted.append(now)
        while len(self._admitted) > FEW and self._admitted[0] < now - SPAN:
            self._admitted.popleft()

    def end(self, start: float) -> None:
        """A call that started at this instant has ended, and was not refused."""
        del self.starts[bisect_left(self.starts, start - ROUNDING)]

    def refuse(self, now: float, start: float) -> int:
        """A call that started at this instant was refused. Returns its rank, the highest of those with this start."""
        self._measure(min(now - start, UNKNOWN))
        del self.starts[bisect_right(self.starts, start + ROUNDING) - 1]
        for call in reversed(self._unsettled):
            if not call.was_refused and call.start <= start + ROUNDING:
                call.was_refused = True
                self.pending += 1
                with suppress(ValueError):  # more calls have started since
                    self._admitted.remove(call.start)
                return call.rank
            call.rank -= 1
        return 0  # it took so long that it was taken for admitted

    def _measure(self, seconds: float) -> None:
        """The time of a refusal, and its deviation, as TCP estimates round trips (RFC 6298, section 2)."""
        if not self.refusal_seconds:
            self.refusal_seconds, self._deviation = seconds, seconds / 2
        else:
            self._deviation += (abs(seconds - self.refusal_seconds) - self._deviation) / 4
            self.refusal_seconds += (seconds - self.refusal_seconds) / 8
        self.settling = self.refusal_seconds + DEVIATIONS * self._deviation + ROUNDING

    def settle(self, until: float) -> Iterator[Call]:
        """Each call that started until then, once."""
        while self._unsettled and self._unsettled[0].start <= until:
            call = self._unsettled.popleft()
            self.pending -= call.was_refused
            yield call

    def is_one_settled(self, since: float, now: float) -> bool:
        """Whether a call runs that started after `since` and is settled: it was admitted."""
        first = bisect_right(self.starts, since)
        return first < len(self.starts) and self.starts[first] < now - self.settling

    def rate(self, now: float) -> float:
        """The calls a second that were admitted in the last second, or of the last calls if these were few."""
        since = self._admitted[0] if self._admitted else now
        return max(1.0, len(self._admitted)) / max(SPAN, now - since)


class Evidence:
    """Settled calls: whether their refusals have a cause, and which.

    Attributes:
        credit: Refusals that are paid. Each call pays a part of one, and at most one is saved.
        accepted: The share of the calls that fail by chance, whose refusals cost nothing.
    """

    def __init__(self) -> None:
        self.credit = self.accepted = 0.0
        self._calls: deque[Call] = deque(maxlen=MEMORY)
        self._since = inf  # the start of the first call whose refusal is not paid
        self._refused_at = -inf  # the start of the last refused call

    def add(self, call: Call) -> None:
        """A call is settled. Calls come in the order of their starts."""
        self._calls.append(call)
        if call.was_refused:
            self._refused_at = call.start
        elif self.credit < 0 and call.start > self._refused_at + FORGIVEN_AFTER:
            self.credit = 0.0
        self.credit = min(1.0, self.credit) + 1 / PRICE + self.accepted - call.was_refused
        if self.credit >= 0:
            self._since = inf
        elif call.was_refused:
            self._since = min(self._since, call.start)

    def pays(self, refusals: int) -> bool:
        """Whether so many refusals that are not settled are paid."""
        return self.accepted > 0 or min(1.0, self.credit) >= refusals

    @property
    def share(self) -> float:
        """The share of the last calls that was refused."""
        return sum(call.was_refused for call in self._calls) / max(1, len(self._calls))

    @property
    def highest_rank(self) -> int:
        """The highest rank of an admitted call; -1: none is known."""
        return max((call.rank for call in self._calls if not call.was_refused), default=-1)

    @property
    def unpaid(self) -> tuple[list[int], int]:
        """The ranks of three or more refusals that are not paid, and how many calls of these ranks passed."""
        calls = [call for call in self._calls if call.start >= self._since]
        ranks = sorted(call.rank for call in calls if call.was_refused)
        if self.credit > -STRIKES or not ranks:
            return [], 0
        return ranks, sum(not call.was_refused and call.rank >= ranks[0] for call in calls)

    @property
    def is_chance(self) -> bool:
        """Whether refusals are independent of each other. A full service also refuses the calls after a refused one."""
        refused = [call.was_refused for call in self._calls]
        pairs = sum(before and after for before, after in pairwise(refused))
        return self.share <= MOST_FAILING and pairs <= 1 + IN_PAIRS * self.share * sum(refused)

    def clear(self) -> None:
        """The refusals have led to a cut, or to another hypothesis."""
        self.credit, self._since = 0.0, inf


class Pause:
    """The time for which a service asks everybody to wait (`Retry-After`).

    Attributes:
        until: No call starts until then.
        longest: The longest pause in seconds.
    """

    def __init__(self) -> None:
        self.until, self.longest = -inf, 0.0

    def add(self, now: float, seconds: float) -> bool:
        """The service asks to wait. Returns whether it means everybody."""
        pause = min(seconds, LONGEST_PAUSE)
        if pause <= ROUNDED_UP:
            return False
        self.until = max(self.until, now + pause * (1 + JITTER * random()))
        self.longest = max(self.longest, pause)
        return True


class Outage:
    """Refusals in a row, and the probes of a service that is down.

    Attributes:
        since: The start of the first refused call after which none was admitted. inf: there is none.
        in_a_row: Refusals of calls that started when the first refusal was known.
        is_on: Whether the service is down.
        until: The next probe.
    """

    def __init__(self) -> None:
        self.since = inf
        self.in_a_row = 0
        self.until = self._known = self._began = -inf
        self.is_on = False

    def refused(self, now: float, start: float) -> None:
        """A call was refused."""
        if self.since == inf:
            self.since, self._known = start, now
        self.in_a_row += start >= self._known

    def begin(self, now: float) -> None:
        self.is_on, self._began = True, now
        self.probe(now)

    def probe(self, now: float) -> None:
        """No other probe starts for some time."""
        self.until = now + min(LONGEST_LOOK, max(FIRST_LOOK, LATER_LOOKS * (now - self._began)))

    def end(self) -> None:
        """A call was admitted."""
        self.since, self.in_a_row, self.is_on, self.until = inf, 0, False, -inf
