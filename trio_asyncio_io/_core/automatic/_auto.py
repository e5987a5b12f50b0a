"""The gate `Auto`: as many calls at once, or a second, as the service takes.

A service limits calls in one of four ways, and answers alike in three of them:

    a number    it refuses a call while a number of others run in it
    a rate      it refuses a call when too many others started in the last time: a bucket or a window
    a plateau   it refuses none, but has a fixed number of servers: more calls only wait in it
    chance      some calls fail, whatever the load is

Four words describe a call:

    refused     the service answered 429 or 5xx at once; the call never ran in it
    settled     it has run for longer than a refusal takes, so it was admitted
    rank        the number of calls that ran in the service when it started
    paid        25 calls pay for a refusal; calls save up to one refusal

The gate has one limit at a time, and the next refusals test it:

             refused ranks are seldom admitted
    Growth ──────────────────────────────────▶ Number ◀─ each refusal at this number confirms it
      │    ◀──────────────────────────────────   │
      │         5xx of any rank: chance          │ 429, and the number has fallen
      │                                          ▼
      └────────────────────────────────────────▶ Pace ◀─ each refusal cuts it
       429 of ranks that are admitted, or a pause

    any of them ─ five refused in a row ─▶ down ─ a probe is admitted ─▶ Growth, or a Pace after a 429

Ten rules:

 1. Growth begins with 6 calls. While others wait for the gate, one more starts each 10 ms, up to 128 in all: the first
    answer may take a minute. Then each answer adds two calls, up to the maximum.
 2. Plateau: while most of the last calls take twice the latency of the first ones, no calls are added. After as many
    answers as calls, their throughput says how many calls it needs without a wait. Growth goes on after 8 to 512
    rounds, and compares with the latency that calls have then. The maximum is kept, whatever the latency is.
 3. Credit: a refusal that is paid changes nothing. What others cost is forgiven after 3 s without a refusal.
 4. Freeze: after another refusal, no call starts until all calls before it are settled, unless it is a 5xx of a rank
    that was admitted. Then calls start apart: for a moment after a 429, and until one is answered after a 5xx.
 5. Ranks: if three refusals are not paid by then, the calls that had at least the lowest refused rank tell the cause.
 6. Number: if no more of these calls were admitted than refused, the limit is the median of the refused ranks. When a
    refusal is saved, a probe tests one call more: after 8 answers at first, and up to 512 while it is refused. After a
    probe that was admitted, the next one has four calls if 429 was the answer: a bucket refuses several.
 7. Rate: if more were admitted, or the number has fallen, a 429 is a rate. Starts are paced, from half of the rate that
    was admitted, since the rest may be the burst of a bucket. The pace doubles until a refusal. Then, and after a
    pause, it follows the rate as TCP does (CUBIC, RFC 9438): a refusal cuts it to what was admitted in the last second.
 8. Chance: if more were admitted, a 5xx is chance, unless calls are often refused in a row, as by a full service. Then
    others use the service, too, and 3/4 of the limit are taken for a number. Chance of up to 18 % of the calls costs
    nothing. A service that has answered 429 states its limit so: its 5xx are chance.
 9. Down: if five calls in a row that started after the first refusal are refused, single calls probe the service. Then
    growth begins anew, by time up to as many calls as were admitted before. After a 429, a rate begins.
10. Sharing: other tasks may use the service. So a number is one call less for 0.2 s in 2 s; if the call after that is
    refused, another task has taken the place.

A `Retry-After` above a second is a pause: no call starts until then, and half of what was admitted before is the rate.
Calls that time out cost credit, too, and halve the limit.

Refusals cost time, and not more refusals: a freeze lasts as long as a refusal, and each probe needs 25 calls before it,
however many tasks share the service. Thresholds are near the geometric mean of the outcomes that they separate, so an
error of 25 % decides nothing.
"""

from __future__ import annotations

import logging
from math import inf

from ..._values.checks import check_int, check_seconds
from ..._values.describe import in_words, plural
from ..gate import Classify, ConfiguredGate, Outcome
from ..refusals import Refusals
from ._evidence import IN_A_ROW, LONGEST_PAUSE, ROUNDING, STRIKES, Calls, Evidence, Outage, Pause
from ._limits import BURST, FIRST_CALLS, Growth, Number, Pace

START = 6  # calls: few enough for a service of any size
BY_TIME = 128  # calls that the limit reaches by time alone: no longer queue than with the usual 100
MOST = 800  # calls: each needs a connection, and a thousand are the usual limit of open files
SHARED = 0.75  # of the limit is left if others use the service, too: each further refusal that is not paid cuts again
LEAST_RATE = 1.0  # calls a second with which a search begins: it doubles slowly from less
A_FEW = 4  # calls of a probe after one that was admitted: several are refused with 429 if the number is a bucket
APART, APART_FOR = 4, 3.0  # starts in the time of a refusal, until three times that of a freeze after its begin
FORGOTTEN_AFTER = 600.0  # seconds

_log = logging.getLogger("trio_asyncio_io")


class Auto(ConfiguredGate):
    """Finds how many calls at once, or a second, the service takes. `capacity="auto"` is short for `capacity=Auto()`.

    It starts with 6 calls, and while others wait for it, adds one each 10 ms, up to 128. Then each answer adds two
    calls, up to `most`, unless calls wait in the service: more than half of the last calls took twice the latency of
    the first ones. From time to time it tests whether more calls still wait.

    The service's refusals say what its limit is. If it refuses calls beyond a number, this number stays, and one call
    more tests it after 8 to 512 answers. If it refuses calls by their rate, starts are paced like TCP (CUBIC, RFC
    9438). If calls fail whatever the load is, they hold no other call back, nor do 5xx of a service that has answered
    429. Another refusal for which there are not 25 other calls stops all starts until it is known how the calls before
    it ended: for about the time of a refusal.

    In an outage, when five calls in a row are refused and none is admitted, single calls probe the service, after 0.2 s
    at first and later after a quarter of the time for which it has been down, 5 s at most. Then the gate begins again.
    If the service states how long to wait (`Retry-After`), no call starts for that time plus up to 10 %, at most 60 s;
    a longer time is logged once, as a warning. A second or less applies to the refused call only (its retry strategy).
    After `give_up` seconds without an accepted call, the operator fails with the service's own exception. Give the
    operator a retry strategy: refused calls are not repeated otherwise.

    Several processes share a service by its refusals alone, so each finds its part. If it refuses calls beyond a
    number, each leaves a place free for a tenth of the time, so that no process keeps all of them. Within a process,
    operators that use the same object, or the same name, share one limit. What was found is `statistics().finding`, and
    a sentence of `explain()`.

    Args:
        start: The first limit: about how many calls at once the service takes, 1 or more. None (the default): 6, which
            grow to 128 in 1.2 s.
        most: Upper limit of calls at once, at least `start`. Each needs a connection.
        give_up: Seconds after which the operator fails with the service's own exception, if the service has accepted no
            call meanwhile; above 0. Time in which no call waited for the gate does not count. `math.inf`: never.
        classify: exception -> `Outcome` or its kind. None (the default): the kind that `Outcome` describes.
        name: Gates of one name share their state within a Trio run; see `Gate`. None (the default): it is not shared.

    Attributes:
        first: The calls at once with which it begins.
        unanswered: The calls at once that it may reach before the first answer.

    Raises:
        TypeError, ValueError: An argument is out of its range.

    Example:
        retry = ExponentialBackoff(5, 0.1, 10.0, retry_on=transient)
        ordered_wait(urls, fetch, timeout=10.0, capacity="auto", retry=retry)
        ordered_wait(urls, fetch, timeout=10.0, capacity=Auto(start=20, most=200), retry=retry)
    """

    _arguments = ("start", "most", "give_up")

    def __init__(
        self,
        start: int | None = None,
        most: int = MOST,
        *,
        give_up: float = 300.0,
        classify: Classify | None = None,
        name: str | None = None,
    ) -> None:
        self.start = None if start is None else check_int("start", start, at_least=1)
        self.most = check_int("most", most, at_least=self.start or 1, limit_name="start" if start else "")
        self.most_at_once = self.most
        self.give_up = self.longest_wait = check_seconds("give_up", give_up, positive=True)
        self._set(classify, name)
        self.first = min(self.start or START, self.most)
        self.unanswered = min(max(BY_TIME, self.first), self.most)
        self._limit: Growth | Number | Pace
        self._limit = self._growth = Growth(self.first, self.unanswered, self.most)
        self._calls, self._evidence, self._outage, self._pause = Calls(), Evidence(), Outage(), Pause()
        self._refusals = Refusals(self.give_up)
        self._kind, self._hint = "", 0.0  # of the last refusal, and its `Retry-After`
        self._cut_at = -inf  # refusals of calls that started before are known
        self._frozen_at = inf
        self._apart_until = -inf
        self._has_warned = False

    @property
    def limit(self) -> int:
        """The number of calls that may run at once now."""
        return self._limit.calls

    @property
    def finding(self) -> str:
        """The present limit and its cause."""
        if not self._calls.started:
            return ""
        if self._outage.is_on:
            return f"the service is down: {plural(self._outage.in_a_row, 'call')} in a row were refused"
        if self._evidence.accepted and self._limit is self._growth:
            return f"{self._evidence.share:.0%} of the calls fail at any load, so they hold no other call back"
        return self._limit.cause

    # What may start

    def delay(self, now: float, weight: float) -> float:  # noqa: ARG002 - all calls are alike
        """The seconds until the next call may start.

        Raises:
            Exception: That of the last refusal: the service has accepted no call for `give_up` seconds.
        """
        calls, outage, pause = self._calls, self._outage, self._pause
        if outage.is_on and calls.is_one_settled(outage.since, now):
            self._resume(now)
        if now >= self._frozen_at + calls.settling - ROUNDING:
            self._thaw(now)
        if outage.is_on or now < pause.until:
            wait = self._refusals.limited(max(0.0, pause.until - now, outage.until - now), now)
        elif self._frozen_at < inf:
            wait = self._frozen_at + calls.settling - now
        else:
            wait = self._limit.wait(now, len(calls.starts))
            if now < self._apart_until:
                wait = max(wait, calls.started_at + calls.refusal_seconds / APART - now)
        return wait if wait > ROUNDING else 0.0

    def started(self, now: float, weight: float) -> None:  # noqa: ARG002
        """Count a running call."""
        if not self._calls.started:
            self._growth.grow(now, self.first, self.unanswered)
        if self._refusals.error is not None:
            self._refusals.skip(max(0.0, now - max(self._outage.until, self._pause.until)))
        self._calls.start(now)
        if self._calls.started == FIRST_CALLS:
            self._growth.latency.close(now)
        if isinstance(self._limit, Pace):
            self._limit.start(now)
        if self._outage.is_on:
            self._outage.probe(now)

    # Calls that were admitted

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:  # noqa: ARG002
        """Count a call that has ended, and move the limit."""
        start = now - seconds
        if outcome.kind in {"throttled", "overload"}:
            self._refusals.add(now, outcome)
            if self._is_evidence(outcome):
                self._refused(now, start, outcome)
                return
        self._calls.end(start)
        self._settle(now, now - self._calls.settling)
        if outcome.kind == "overload":
            self._is_down(now, start)
        elif outcome.kind != "cancelled":
            self._answered(now, start)

    def _answered(self, now: float, start: float) -> None:
        if self._refusals.error is not None:
            self._refusals.end()
        if self._kind == "overload":  # the service is not down, and nothing says a rate
            self._apart_until = -inf
        if start > self._outage.since:
            if self._outage.is_on:
                self._resume(now)
            self._outage.end()
        self._growth.latency.add(now, start, self._calls.starts)
        if isinstance(self._limit, Number):
            self._limit.answered(now, self._evidence.credit)
        elif self._limit is self._growth and not self._outage.is_on:
            self._growth.answered(now, len(self._calls.starts))

    def _settle(self, now: float, until: float) -> None:
        """Calls that started until then are evidence, and decide about a probe."""
        for call in self._calls.settle(until):
            self._evidence.add(call)
            was_admitted = not call.was_refused and call.start >= self._cut_at
            if was_admitted and isinstance(self._limit, Number) and self._limit.is_probe(call.rank):
                self._limit.admitted()
        if self._evidence.accepted and not isinstance(self._limit, Pace):
            self._judge(now)

    # Calls that were refused

    def _is_evidence(self, outcome: Outcome) -> bool:
        """Whether a refusal may come from a limit. A service that has answered 429 says its limit so."""
        return outcome.kind == "throttled" or self._kind != "throttled" or isinstance(outcome.error, TimeoutError)

    def _refused(self, now: float, start: float, outcome: Outcome) -> None:
        is_late, rank = isinstance(outcome.error, TimeoutError), 0
        if is_late:
            self._calls.end(start)
        else:
            rank = self._calls.refuse(now, start)
            self._kind, self._hint = outcome.kind, outcome.retry_after or 0.0
        self._settle(now, now - self._calls.settling)
        is_pause = self._is_pause(now, outcome.retry_after or 0.0)
        if start <= self._cut_at or self._is_down(now, start):
            return
        if is_late:
            self._time_out(now)
        elif isinstance(self._limit, Pace):
            self._limit.refused(now, self._calls.rate(now))
            self._cut_at = self._limit.cut_at
        elif is_pause:
            self._to_rate(now)
        elif isinstance(self._limit, Number) and self._limit.is_probe(rank):
            self._limit.refused(rank)
            self._cut_at = now
        elif self._frozen_at == inf and not self._evidence.pays(self._calls.pending):
            if outcome.kind == "throttled" or rank >= self._evidence.highest_rank:
                self._frozen_at = now
            else:  # as many calls have been admitted
                self._judge(now)

    def _is_pause(self, now: float, seconds: float) -> bool:
        """Whether the service asks everybody to wait. If it asks for too long, warn once."""
        if seconds > LONGEST_PAUSE and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "%s: the service asks to wait %s. The next call is made after %s, and if the service accepts none for "
                "%s (give_up), the operator stops",
                self.label,
                in_words(seconds),
                in_words(LONGEST_PAUSE),
                in_words(self.give_up),
            )
        return self._pause.add(now, seconds)

    def _thaw(self, now: float) -> None:
        """All calls before the freeze are settled."""
        self._settle(now, self._frozen_at)
        self._apart_until = self._frozen_at + APART_FOR * self._calls.settling
        self._frozen_at = inf
        self._judge(now)

    def _judge(self, now: float) -> None:
        """Find the cause of the refusals that are not paid."""
        evidence = self._evidence
        ranks, passed = evidence.unpaid
        if not ranks:
            return
        number, is_number = ranks[len(ranks) // 2], passed <= len(ranks)
        if self._kind == "throttled" and (not is_number or self._has_fallen(number)):
            self._to_rate(now)
        elif self._kind == "overload" and (not is_number or evidence.accepted) and evidence.is_chance:
            self._accept(now)
        else:
            self._to_number(now, number if is_number else int(SHARED * self.limit))
        evidence.clear()

    def _has_fallen(self, number: int) -> bool:
        """Whether the number is below the known one. Without a hint, one place may be another task's."""
        return isinstance(self._limit, Number) and number < max(1, self._limit.known - (not self._hint))

    def _to_number(self, now: float, number: int) -> None:
        self._evidence.accepted = 0.0
        few = A_FEW if self._kind == "throttled" else 1
        self._limit, self._cut_at = Number(min(number, self.limit), self.most, few), now

    def _accept(self, now: float) -> None:
        """Refusals that no cut prevents: single calls fail, whatever the load is."""
        self._evidence.accepted = self._evidence.share
        if isinstance(self._limit, Number):
            self._growth.grow(now, self._limit.calls)
            self._limit = self._growth

    def _time_out(self, now: float) -> None:
        """Calls time out: the caller's limit is shorter than the wait in the service."""
        self._evidence.credit -= 1
        if self._evidence.credit <= -STRIKES:
            self._evidence.clear()
            self._growth.hold(now, self.limit // 2, f"calls timed out at {self.limit:,}")
            self._limit, self._cut_at = self._growth, now

    def _to_rate(self, now: float) -> None:
        w = max(LEAST_RATE, BURST * self._calls.rate(now))
        self._limit, self._cut_at = Pace(self.most, self._pause, now, w), now

    # Outages

    def _is_down(self, now: float, start: float) -> bool:
        """Whether this refusal is one of an outage."""
        outage = self._outage
        outage.refused(now, start)
        if not outage.is_on and outage.in_a_row >= IN_A_ROW and not self._calls.is_one_settled(outage.since, now):
            self._cut_at, self._frozen_at = now, inf
            outage.begin(now)
        return outage.is_on

    def _resume(self, now: float) -> None:
        """The service is back."""
        self._outage.end()
        self._evidence.clear()
        self._cut_at = now
        if isinstance(self._limit, Pace):
            self._limit.resume(now)
        elif self._kind == "throttled":
            self._to_rate(now)
        else:
            self._growth.grow(now, self.first, max(self.first, self._evidence.highest_rank + 1))
            self._limit = self._growth

    def up_to(self, most: int) -> Auto:
        """A new gate with these arguments, and a maximum of `most` calls."""
        start = None if self.start is None else min(self.start, most)
        return Auto(**{**self.configuration(), "start": start, "most": most}, classify=self.classify, name=self.name)

    def may_forget(self, now: float) -> bool:
        """Whether no call has started for ten minutes."""
        return now >= self._calls.started_at + FORGOTTEN_AFTER
