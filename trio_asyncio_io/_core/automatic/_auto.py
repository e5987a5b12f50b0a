"""The gate `Auto`: as many calls at once, or a second, as the service takes.

The model. A service limits calls in one of four ways, and answers alike in three of them:

    a number    it refuses a call while so many others run in it
    a rate      it refuses a call when so many others started in the last time: a bucket or a window
    a plateau   it refuses none, but has a fixed number of servers: more calls only wait in it
    chance      some calls fail, whatever the load is

Beside these, a service may be down, or state how long to wait (`Retry-After`). The gate makes one hypothesis at a time
and acts on it, and the next refusals test it. So each cut of a limit has one cause.

The start. The limit doubles by time, not by answers, because with a latency of a minute the first answers come after a
minute. After the start, each answer adds up to two calls: the limit triples with each generation of calls, unless the
time of a refusal is long beside the latency.

The tests. The rank of a call is the number of calls that ran in the service when it started. A call that is refused was
never in the service, so the ranks of the calls that started after it fall by one. A call is known to be admitted when
it was not refused for some refusal times, because only then the refusals of earlier calls are known.

    free -> number      three refusals are not paid, and few calls of these ranks were admitted: their median rank
    free -> rate        otherwise, if they were refused with "too many requests" (429)
    free -> number      otherwise, of half the limit
    number -> free      a call was admitted whose rank is at least the number
    number -> rate      calls below the number are refused with 429
    number -> number    calls below the number are refused, otherwise: half of it, since others use the service, too
    number -> chance    half of it did not help, twice: as large a share of the calls was refused
    rate -> number      the refused calls have higher ranks than all that were admitted, three times
    rate -> chance      calls are refused, other than with 429, before the pace is back where it was cut
    chance -> none      more calls fail than before
    any -> outage       five calls in a row are refused that started after the first refusal, and no admitted call runs
    outage -> number    half the limit, if the last outage is not paid: others fill the service

A number is known exactly at the first refusals. From time to time, one call more tests whether it still holds, at most
once in 512 answers. A rate is half of what was admitted in the last second, because the other half may be a burst, and
doubles until calls are refused. The pace then follows it as TCP does (CUBIC, RFC 9438), because it must reach the rate
again and again to find out where it is.

Manners. Each refusal costs 25 calls: until these are made, nothing grows. After a number, the limit grows by one in a
generation, and twice as fast only after eight generations without a refusal; in the time of a refusal, by a quarter at
most. So one call in 25 is refused, whatever the limit is and however many tasks share it. A first refusal stops all
starts until the refusals of earlier calls have come, and then a few calls start apart. Three refusals stop them until
their cause is known. So a slow refusal costs time, and not more refusals.

A plateau shows in the throughput of whole generations of calls: calls of one latency end in one pattern, so part
of a generation has no throughput of its own. If it does not grow by at least 1.4 x while the limit doubles, or
calls take twice the latency of the first ones, calls wait in the service. Then the limit is what the throughput takes
at the latency of the first calls (Little's law), and a quarter more.

All steps are factors of two or more, and thresholds are near the geometric mean of the outcomes that they separate. So
an error of 25 % decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from random import random
from typing import Any, Literal, TypeAlias

from ..._values.checks import check_callback, check_int, check_optional_name, check_seconds
from ..._values.describe import amount, plural
from ..gate import Classify, Gate, Outcome
from ..refusals import Refusals
from ._calls import Admitted, Running
from ._constants import (
    ADMITTED,
    BY_TIME,
    EVENT,
    FEW,
    FIRST_CALLS,
    FIRST_W,
    FORGOTTEN_AFTER,
    GAIN,
    IN_A_ROW,
    JITTER,
    LONGEST_PAUSE,
    MOST,
    MOST_FAILING,
    PRICE,
    REFUTED,
    ROUNDED_UP,
    ROUNDING,
    SLOWEST,
    SPAN,
    START,
    STRIKES,
    SURE,
    TRIAL,
    UNKNOWN,
    USUAL,
    WARY,
)
from ._evidence import Caution, Failures, Outage
from ._limits import Number, Pace, Plateau, Ramp

__all__ = ["Auto"]

Mode: TypeAlias = Literal["free", "number", "rate"]


class Auto(Gate):
    """Finds how many calls at once, or a second, the service takes. `capacity="auto"` is short for `capacity=Auto()`.

    It starts with 8 calls and doubles them each 0.06 s up to 128. Then each answer adds two calls, up to `most`, unless
    calls wait in the service: the throughput grows by less than 1.4 x while the calls double, or calls take twice the
    latency of the first ones. From time to time it tests whether more calls now gain throughput.

    The service's refusals say what its limit is. If it refuses calls beyond a number, this number stays, and one more
    call tests it after 8 to 512 answers. If it refuses calls by their rate, starts are paced like TCP (CUBIC, RFC
    9438). If single calls fail whatever the load is, they cost nothing. After three refusals no call starts until it is
    known how the calls before them ended: about three times the time of a refusal.

    In an outage, when five calls in a row are refused and none is admitted, single calls probe the service, after 0.1 s
    and up to once a second, and later after a tenth of the time. Then the former limit returns. If the service states
    how long to wait (`Retry-After`), no call starts for that time plus up to 10 %, at most 60 s; a second or less
    applies to the refused call only (its retry strategy). After `give_up` seconds without an accepted call, the
    operator fails with the service's own exception. Give the operator a retry strategy: refused calls are not repeated
    otherwise.

    Several processes share a service by its refusals alone, so each finds its part. Within a process, operators that
    use the same object, or the same name, share one limit. What was found is `statistics().finding`, and a sentence of
    `explain()`.

    Args:
        start: The first limit: about how many calls at once the service takes, 1 or more. None (the default): 8, which
            grow quickly to 128.
        most: Upper limit of calls at once, at least `start`. Each needs a connection.
        give_up: Seconds after which the operator fails with the service's own exception, if the service has accepted no
            call meanwhile; above 0. Time in which no call waited for the gate does not count. `math.inf`: never.
        classify: exception -> `Outcome` or its kind. None (the default): the kind that `Outcome` describes.
        name: Gates of one name share their state within a Trio run; see `Gate`. None (the default): it is not shared.

    Raises:
        TypeError, ValueError: An argument is out of its range.

    Example:
        retry = ExponentialBackoff(5, 0.1, 10.0, retry_on=transient)
        ordered_wait(urls, fetch, timeout=10.0, capacity="auto", retry=retry)
        ordered_wait(urls, fetch, timeout=10.0, capacity=Auto(start=20, most=200), retry=retry)
    """

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
        self.classify = None if classify is None else check_callback("classify", classify)
        self.name = check_optional_name(name)
        first = float(min(self.start or START, self.most))
        self._mode: Mode = "free"
        self._running = Running()
        self._admitted = Admitted()
        self._plateau = Plateau(first, self.most)
        self._ramp: Ramp | None = Ramp(inf, first, float(min(max(BY_TIME, first), self.most)))
        self._number = Number()
        self._pace = Pace()
        self._outage = Outage()
        self._failures = Failures()
        self._caution = Caution()
        self._refusals = Refusals(self.give_up)
        self._refusal_seconds: float | None = None
        self._answers = 0
        self._answered_at = self._started_at = self._cut_at = self._paused_until = self._resumed_at = -inf
        self._trial: tuple[float, int, int] | None = None  # before half the limit: share, calls, refusals
        self._unhelped = 0  # how often half the limit did not help
        self._paid_at = 0  # the answers until which one more outage is a full service
        self._verdict: tuple[float, Outcome] | None = None  # when the cause of refusals can be stated
        self._event = (0.0, 0)  # the last refusals with a cause: the instant, and the calls admitted until then
        self._before_refusals: tuple[float, Mode] = (first, "free")
        self._before_outage: tuple[float, Mode, str] = (first, "free", "")
        self._highest, self._seen = 0, 0  # since the last cut: the highest rank that was answered, and the answers
        self._above = self._early = 0  # refusals that contradict a rate: of the highest rank, and at a low pace

    @property
    def limit(self) -> int:
        """The number of calls that may run at once now."""
        return int(self._plateau.limit + ROUNDING)

    @property
    def finding(self) -> str:
        """The present limit and its cause."""
        if not self._admitted.started:
            return ""
        if self._outage.probes:
            return f"the service is down: {plural(self._outage.in_a_row, 'call')} in a row were refused"
        return self._cause

    @property
    def _cause(self) -> str:
        if self._mode == "rate":
            return f"{amount(self._pace.w)} calls a second: the service refuses more, however few run at once"
        if self._mode == "number":
            times = plural(self._number.times, "time")
            return f"{self._number.known:,} calls at once: the service refused one more {times}"
        if self._failures.accepted:
            return f"{self._failures.share:.0%} of the calls fail at any load, so they hold no other call back"
        return self._plateau.cause or f"{self.limit:,} calls at once: the service has refused none"

    # What may start

    def delay(self, now: float, weight: float) -> float:  # noqa: ARG002 - all calls are alike
        """The seconds until the next call may start.

        Raises:
            Exception: That of the last refusal: the service has accepted no call for `give_up` seconds.
        """
        wait = self._wait(now)
        return wait if wait > ROUNDING else 0.0

    def _wait(self, now: float) -> float:
        if now < self._paused_until - ROUNDING:
            return self._refusals.limited(self._paused_until - now, now)
        if self._outage.probes:
            if not self._has_survivor(now):
                return self._refusals.limited(self._until_probe(now), now)
            self._resume(now)
        if self._verdict is not None:
            at, outcome = self._verdict
            if now < at - ROUNDING:
                return at - now
            self._test(now)
            self._conclude(now, outcome)
        return self._until_allowed(now)

    def _until_allowed(self, now: float) -> float:
        """The seconds until the limit and the pace allow one more call."""
        self._climb(now)
        running = len(self._running)
        if running >= self.limit:
            return inf if self._ramp is None else self._ramp.wait(running, now)
        if self._mode == "rate":
            return self._pace.next_start - now
        wait = self._caution.delay(now, self._started_at)
        if self._mode == "number" and running >= self._number.known and wait <= ROUNDING:
            # Apart from other starts: a burst at a bucket looks like a number
            wait = self._started_at + 0.5 / self._admitted.rate(now) - now
        return wait

    def _climb(self, now: float) -> None:
        if self._ramp is None or not self._admitted.started:
            return
        self._plateau.limit = self._ramp.limit(now)
        if self._plateau.limit >= self._ramp.top:
            self._ramp = None
            self._plateau.open(now)

    def _until_probe(self, now: float) -> float:
        wait = max(0.0, self._outage.until - now)
        wait = wait if wait > ROUNDING else 0.0
        has_probe = self._running.has_survivor(self._cut_at - ROUNDING, inf)
        return inf if wait and has_probe else wait

    def started(self, now: float, weight: float) -> None:  # noqa: ARG002
        """Count a running call."""
        if not self._admitted.started:
            self._begin(now)
        self._refusals.skip(max(0.0, now - max(self._outage.until, self._paused_until)))
        self._running.add(now)
        self._plateau.running = len(self._running)
        self._plateau.peak = max(self._plateau.peak, len(self._running))
        self._admitted.start(now)
        self._caution.started()
        self._started_at = now
        if self._admitted.started == FIRST_CALLS:
            self._plateau.latency.close(now)
        if self._mode == "rate":
            self._pace.start(now)
        if self._outage.probes:
            self._outage.probe(now)

    def _begin(self, now: float) -> None:
        """The first call."""
        self._event = (now, 0)
        self._plateau.open(now)
        if self._ramp is not None:
            self._ramp.since = now

    # What happens

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:  # noqa: ARG002
        """Test the hypothesis, and move the limit."""
        start, was_refused = now - seconds, outcome.kind in {"throttled", "overload"}
        self._test(now)
        if was_refused:
            self._refusals.add(now, outcome)
            self._refused(now, start, self._running.refuse(start), outcome)
            return
        self._running.remove(start)
        self._plateau.running = len(self._running)
        if outcome.kind != "cancelled":
            self._refusals.end()
            self._answered(now, start)

    def _answered(self, now: float, start: float) -> None:
        self._answers += 1
        self._answered_at = now
        if start > self._outage.since:
            if self._outage.probes:
                self._resume(now)
            self._outage.in_a_row = 0
        self._plateau.latency.add(now, start, self._running)
        seconds = self._plateau.latency.recent or now - start
        self._plateau.most_gain = min(GAIN, WARY * seconds / max(self._refusal_seconds or USUAL, 1e-3))
        if self._ramp is not None or self._mode != "free" or self._outage.probes or now <= start:
            return
        if not self._failures.are_paid:
            self._plateau.open(now)
        elif self._plateau.answered(now, len(self._running)):
            self._cut_at = now

    def _test(self, now: float) -> None:
        """Each call that is known to be admitted is evidence."""
        is_refuted = False
        for start, rank in self._running.known(now - self._age):
            self._failures.known(start, rank)
            if start >= self._cut_at and rank >= 0:
                self._highest = max(self._highest, rank)
                self._seen += 1
                is_refuted = is_refuted or rank >= self._number.known
        if self._mode == "number":
            if self._trial:
                self._end_trial(now)
            elif is_refuted:
                self._refute(now)
            elif self._may_probe:
                self._probe_number()

    @property
    def _age(self) -> float:
        """The seconds after which a call that was not refused was admitted."""
        return UNKNOWN if self._refusal_seconds is None else ADMITTED * self._refusal_seconds + 0.02

    @property
    def _may_probe(self) -> bool:
        is_at_number = self.limit == self._number.known < self.most
        return is_at_number and self._failures.are_paid and self._answers >= self._number.probe_at

    def _probe_number(self) -> None:
        self._plateau.limit = self._number.known + 1.0
        self._number.wait_again(self._answers)
        self._number.strikes = 0

    def _refute(self, now: float) -> None:
        self._number.refute()
        self._mode = "free"
        self._plateau.is_first = False
        self._trial = None
        self._plateau.grow(now, 1 / self._plateau.limit)

    @property
    def _is_share_known(self) -> bool:
        return self._failures.calls >= SURE and self._failures.share < MOST_FAILING and self._failures.are_independent

    # Refusals

    def _refused(self, now: float, start: float, rank: int, outcome: Outcome) -> None:
        self._note_refusal(now, start, outcome)
        if start <= self._cut_at:
            return
        outage = self._outage
        if not outage.in_a_row:
            outage.since, outage.noticed, outage.anew = start, now, 0
            self._before_refusals = self._plateau.limit, self._mode
        outage.in_a_row += 1
        outage.anew += start >= outage.noticed
        if self._is_down(now):
            if not outage.probes:
                self._before_outage = (*self._before_refusals, outcome.kind)
            self._cut_at = now
            outage.refused(now)
        elif outage.probes:
            outage.refused(now)
        elif not self._is_chance(now, outcome):
            self._failures.suspect(start, rank)
            if self._mode == "free" or rank < self._number.known:
                self._caution.refused(now, start, self._refusal_seconds or 0.0)
            self._judge(now, rank, outcome)

    def _note_refusal(self, now: float, start: float, outcome: Outcome) -> None:
        seconds = min(now - start, 1.0)
        before = seconds if self._refusal_seconds is None else self._refusal_seconds
        self._refusal_seconds = before + 0.2 * (seconds - before)
        self._ramp = None
        self._failures.refused()
        self._admitted.refused += 1
        if _is_pause(outcome):
            pause = min(outcome.retry_after or 0.0, LONGEST_PAUSE)
            self._paused_until = max(self._paused_until, now + pause * (1 + JITTER * random()))
            self._pace.longest_pause = max(self._pace.longest_pause, pause)

    def _has_survivor(self, now: float) -> bool:
        """Whether a call that started after the refusals has run for so long that it was admitted."""
        return self._running.has_survivor(self._outage.since, now - 2 * (self._refusal_seconds or 0.0) - 0.02)

    def _is_down(self, now: float) -> bool:
        if self._outage.anew < IN_A_ROW or self._has_survivor(now):
            return False
        if not self._running.has_survivor(-inf, now - 2 * (self._refusal_seconds or 0.0) - 0.02):
            return True
        latency = self._plateau.latency.recent or inf
        return now - self._answered_at > max(0.2, 5 * (self._refusal_seconds or 0.0), 3 * latency)

    def _is_alive(self, now: float, silence: float) -> bool:
        return self._outage.in_a_row < IN_A_ROW or now - self._answered_at < silence or self._has_survivor(now)

    def _is_chance(self, now: float, outcome: Outcome) -> bool:
        if not self._failures.accepted or outcome.kind != "overload":
            return False
        if self._failures.share <= self._failures.accepted and self._is_alive(now, 0.2):
            return True
        self._failures.reject()
        self._number.refutations = self._early = 0
        return False

    def _judge(self, now: float, rank: int, outcome: Outcome) -> None:
        """Cut, if the refusals have a cause."""
        failures, is_late = self._failures, isinstance(outcome.error, TimeoutError)
        is_probe = self._mode == "number" and rank >= self._number.known
        if is_late or not (self._mode == "rate" or outcome.retry_after or is_probe):
            if not failures.has_cause:
                return
            if self._mode == "free" and not is_late:
                if self._verdict is None:
                    self._verdict = (now + self._age, outcome)
                return
            rank = rank if is_late else failures.rank()
        if is_late:
            failures.clear()
            self._halve(now, rank)
        else:
            failures.conclude(rank)
            self._cut(now, rank, outcome)

    def _conclude(self, now: float, outcome: Outcome) -> None:
        """The refusals and the admissions of all calls before the refusals are known."""
        self._verdict = None
        if self._mode != "free" or not self._failures.has_cause:
            return
        if self._failures.is_no_number(outcome.kind):
            self._doubt(now, outcome.kind)
        else:
            rank = self._failures.rank()
            self._failures.conclude(rank)
            self._cut(now, rank, outcome)

    def _doubt(self, now: float, kind: str) -> None:
        """Calls are refused at ranks at which others are admitted."""
        self._failures.clear()
        if kind == "throttled":
            self._caution.cut(now, self._refusal_seconds or 0.0)
            self._to_rate(now, FIRST_W * self._admitted.rate(now))
        else:
            self._number.begin(int(self._plateau.limit), kind, self._plateau.limit, self._answers)
            self._mode = "number"
            self._halve_number(now, self._failures.share)

    def _halve_number(self, now: float, share: float) -> None:
        """Calls are refused at ranks at which others are admitted: by chance, or other processes use the service."""
        self._cut_at = now
        self._failures.conclude(self._plateau.limit)
        self._trial = (share, self._failures.calls, self._failures.refusals)
        self._plateau.limit = float(max(1, self.limit // 2))
        self._number.set(self.limit, self._number.kind, self._answers)
        self._plateau.hold(now)

    def _halve(self, now: float, rank: int) -> None:
        """Calls are late: the caller's time limit is shorter than the wait in the service."""
        self._cut_at, self._mode = now, "free"
        self._plateau.limit = max(1.0, min(self._plateau.limit, rank + 1) / 2)
        self._plateau.cause = f"{self.limit:,} calls at once: calls timed out at {rank + 1:,}"
        self._plateau.hold(now)

    def _cut(self, now: float, rank: int, outcome: Outcome) -> None:
        hinted = _is_pause(outcome)
        if hinted:
            self._pace.calm_down()
        if self._mode == "rate":
            if now >= self._cut_at + EVENT:
                self._cut_rate(now, rank, outcome)
            return
        highest_is_probe = self._mode == "number" and rank >= self._number.known < self._plateau.limit
        if not (self._mode == "number" and outcome.kind == "throttled" and not highest_is_probe):
            self._cut_at = now
            self._caution.cut(now, self._refusal_seconds or 0.0)
        resumes = max(now, self._paused_until)
        admitted, seconds = self._since_event(resumes, resumes)
        self._highest, self._seen = 0, 0
        if hinted:
            self._to_rate(now, max(1, admitted) / seconds)
        elif self._mode == "free":
            self._refused_freely(now, rank, outcome.kind)
        elif highest_is_probe:
            self._refused_as_predicted(now, min(rank, self.limit), outcome.kind)
        else:
            self._refused_below(now, rank, outcome.kind)

    def _since_event(self, until: float, next_event: float) -> tuple[int, float]:
        """The calls that were admitted since the last refusals with a cause, and the seconds."""
        at, admitted = self._event
        count = self._admitted.calls - admitted
        if count >= FEW:
            self._event = (next_event, self._admitted.calls)
        return count, max(1e-3, until - at)

    def _refused_freely(self, now: float, rank: int, kind: str) -> None:
        if kind == "throttled" and self._number.refutations >= REFUTED:
            self._to_rate(now, FIRST_W * self._admitted.rate(now))
        else:
            self._to_number(now, rank, kind)

    def _refused_as_predicted(self, now: float, rank: int, kind: str) -> None:
        self._above = self._number.strikes = 0
        if kind == "throttled":
            self._number.refutations = 0
        self._to_number(now, rank, kind)
        self._number.probe_less()

    def _refused_below(self, now: float, rank: int, kind: str) -> None:
        """A number would not have refused this call."""
        number, plateau = self._number, self._plateau
        number.strikes += 1
        is_impossible = number.strikes >= STRIKES
        if is_impossible and kind == "throttled":
            self._to_rate(now, FIRST_W * self._admitted.rate(now))
            return
        if self._trial:
            return
        if kind == "overload" and number.strikes > 1:
            self._halve_number(now, self._failures.share)
            return
        plateau.limit = float(max(1, min(self.limit, rank)))
        number.set(self.limit, number.kind, self._answers)
        plateau.hold(now)

    def _end_trial(self, now: float) -> None:
        """Decide whether fewer calls were refused at half the limit."""
        assert self._trial is not None
        share, calls, refused = self._trial
        calls, refused = self._failures.calls - calls, self._failures.refusals - refused
        expected = share * calls
        if expected < TRIAL and refused < 2 * expected + TRIAL:
            return
        self._trial = None
        if refused < expected / 2:
            self._unhelped = max(0, self._unhelped - 1)
            return
        self._unhelped += 1
        if self._unhelped > 1 + self._failures.ended and self._is_share_known and self._is_alive(now, 0.1):
            self._accept_failures(now)
        else:
            self._halve_number(now, refused / calls)

    def _cut_rate(self, now: float, rank: int, outcome: Outcome) -> None:
        hinted, resumes = _is_pause(outcome), max(now, self._paused_until)
        count, seconds = self._since_event(now, resumes)
        self._cut_at = now
        highest, seen, self._highest, self._seen = self._highest, self._seen, 0, 0
        is_early = outcome.kind == "overload" and self._pace.rate(now) < 0.95 * self._pace.w
        self._early = self._early + 1 if is_early else 0
        if self._early >= STRIKES * 2**self._failures.ended:
            self._accept_failures(now)
            return
        self._above = self._above + 1 if rank > highest and seen >= FEW else 0
        if self._above >= STRIKES and not hinted:
            self._to_number(now, rank, outcome.kind)
            return
        admitted = max(1, count) / seconds if hinted else self._admitted.rate(now)
        self._pace.cut(now, resumes, (admitted * self._pace.rate(now)) ** 0.5, hinted=hinted)

    def _to_number(self, now: float, rank: int, kind: str) -> None:
        number, plateau = self._number, self._plateau
        if self._mode == "number":
            number.set(rank, kind, self._answers)
        else:
            number.begin(rank, kind, plateau.limit, self._answers)
        self._mode, plateau.limit = "number", float(number.known)
        plateau.hold(now)

    def _to_rate(self, now: float, w: float) -> None:
        self._mode, self._above = "rate", 0
        self._plateau.limit = float(self.most)
        self._pace.begin(max(now, self._paused_until), w)
        self._plateau.grow(now)

    def _accept_failures(self, now: float) -> None:
        """Refusals that no cut prevents: single calls fail, whatever the load is."""
        self._failures.accept(self._failures.share)
        self._mode, plateau, self._trial = "free", self._plateau, None
        before = max(self._number.before, 1.0)
        plateau.limit = max(plateau.limit, before) if plateau.limit < self.most else before
        plateau.grow(now)

    # Outages

    def _resume(self, now: float) -> None:
        """The service is back."""
        self._outage.end()
        self._failures.clear()
        self._failures.are_paid = True
        self._cut_at = now
        limit, mode, kind = self._before_outage
        if mode == "rate":
            self._resume_rate(now)
        elif kind == "throttled":
            self._event = (now, self._admitted.calls)
            self._to_rate(now, FIRST_W * self._admitted.rate(now))
        else:
            self._resume_number(now, limit, mode)

    def _resume_rate(self, now: float) -> None:
        if now < self._resumed_at + SPAN:
            self._pace.w = max(SLOWEST, 0.5 * self._pace.w)
        self._resumed_at = self._pace.grows_from = self._pace.next_start = now

    def _resume_number(self, now: float, limit: float, mode: Mode) -> None:
        if self._answers < self._paid_at:  # down again so soon: others fill the service
            limit, mode = float(max(1, int(limit / 2))), "number"
            self._number.set(int(limit), "overload", self._answers)
        self._paid_at = self._answers + STRIKES * int(PRICE)
        self._mode = mode
        self._number.strikes = 0
        self._number.wait_again(self._answers)
        first = min(limit, float(self.start or START))
        self._ramp, self._plateau.limit = Ramp(now, first, limit), first
        self._plateau.hold(now)

    def up_to(self, most: int) -> Auto:
        """A new gate with these arguments, and a maximum of `most` calls."""
        start = None if self.start is None else min(self.start, most)
        return Auto(**{**self.configuration(), "start": start, "most": most}, classify=self.classify, name=self.name)

    def may_forget(self, now: float) -> bool:
        """Whether no call has started for ten minutes."""
        return now >= self._started_at + FORGOTTEN_AFTER

    def configuration(self) -> dict[str, Any]:
        """The numbers, as given."""
        return {"start": self.start, "most": self.most, "give_up": self.give_up}

    def __reduce__(self) -> tuple[Callable[..., Auto], tuple[()]]:
        return partial(Auto, **self.configuration(), classify=self.classify, name=self.name), ()


def _is_pause(outcome: Outcome) -> bool:
    return outcome.retry_after is not None and outcome.retry_after > ROUNDED_UP
