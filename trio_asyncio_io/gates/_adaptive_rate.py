"""The gate `AdaptiveRate`: as many calls per second as the service admits.

The model. A service admits up to some rate and refuses the calls above it ("too many requests"). The rate is unknown,
may change, and may be shared with other processes. It may be counted in a bucket, a fixed window or a sliding one. A
refusal is cheap for both sides, but it is the only signal, so the rate must reach the limit again and again to find
out where it is: TCP's problem, with refusals in the place of lost packets.

The state. The gate is in one of four phases:

    idle         no call was ever refused: nothing is held back
    searching    the limit is unknown: the rate doubles each second (TCP's slow start)
    following    w is known, the rate at which calls were last refused: the rate is a cubic around w (RFC 9438)
    probing      the service refuses every call, which is not a rate: single calls find out when that has ended

The rules are the methods below, in this order: what the rate is, what a call pays, what a refusal and a success do.
"""

from __future__ import annotations

import logging
from math import cbrt, inf
from random import random

from .._core.gate import Classify, ConfiguredGate, Outcome
from .._core.refusals import Refusals
from .._values.checks import check_number, check_seconds
from .._values.describe import in_words

__all__ = ["AdaptiveRate"]

# Following. CUBIC's time to return to w, K, grows with w**(1/3): at 6 calls per second it is 10 calls, and each of them
# costs a refusal. A refusal per 20 calls is 5 %; at 1 per second, 6 s still find a limit that has risen.
LEAST_CALLS, MOST_SECONDS = 20.0, 6.0  # K is at least the time of so many calls, but no longer than this because of it
BEYOND = 1.6  # times K: the cubic is 6 % above w, so the limit is not where it was, and the search begins again
CALLS_PER_DOUBLING = 3.0  # or a second, if that is longer
SLOWEST, FASTEST = 0.05, 1e9  # calls per second

# A refusal. Those of half a second are one event: they belong to calls at one rate, or to one window of the service
EVENT = 0.5  # seconds from one cut to the next, and over which the rate is averaged that a cut takes for w
LEAST_ADMITTED = 0.5  # w falls to half at most, since the service may have refused everything for a moment
FEW = 10.0  # calls, below which the share of the refused ones is not yet a share
EARLIER, SOONEST = 0.3, 0.2  # the next call after a refusal: part of an interval, +-50 %, and at least these seconds

# Probing. Three refusals in a row have a probability of 1/8 at twice the limit
IN_A_ROW = 3
FIRST_PROBE, LAST_PROBE = 0.1, 1.0  # seconds; the time between probes doubles

# Pauses. `Retry-After` is in whole seconds (RFC 9110, section 10.2.3), so services round up to 1
ROUNDED_UP = 1.0  # seconds
JITTER = 0.1  # of a pause, so that processes do not return together

LATE = 0.05  # seconds by which a start may be late without delaying the next ones
FORGOTTEN_AFTER = 600.0  # seconds

_log = logging.getLogger("trio_asyncio_io")


class AdaptiveRate(ConfiguredGate):
    """Finds the rate that a service admits, from its answers "too many requests". Idle until the first of them.

    The first one starts the gate at `start` calls per second, which doubles each second until the next one. Then the
    rate follows the limit as TCP does (CUBIC, RFC 9438; botocore's adaptive mode): where w is the rate that was
    refused, and t the seconds since then,

        after a throttled call:  rate = cut * w
        from then on:            rate(t) = w * (1 + (1 - cut) * (t / K - 1)**3),  K = ((1 - cut) * w / growth)**(1/3)

    K is at least the time of 20 calls, up to 6 s. After 1.6 K without a refusal the limit has risen, and the rate
    doubles each second. It does not grow while calls do not use it. Throttled calls cut it at most once per 0.5 s, and
    only if they started after the last cut.

    After three refusals without a success, the service refuses everything, whatever the rate. One call probes it after
    0.1 s, 0.2 s, and so on, up to one per second. The first success restores the rate.

    If the service states how long to wait (`Retry-After`), no call starts for that time plus up to 10 %, but at most
    for `max_pause`; a longer one is logged once, as a warning. A second or less applies to the refused call only (its
    retry strategy).

    Calls do not wait without an end: after `give_up` seconds in which the service has accepted no call, the operator
    fails with the service's own exception.

    Each process finds its own rate. Several of them share a service's limit without communication. At less than about
    two calls per second and process, use `RateLimit` with a share of the limit instead; in Spark, `cluster_rate`.

    Args:
        start: Calls per second after the first throttled call, above 0 and finite: your share of the limit, if you
            know it.
        cut: What remains of the rate after a throttled call, above 0 and below 1.
        growth: Coefficient of the cubic, in calls per second per s^3, above 0 and finite. With few processes, 1.0 finds
            a higher limit sooner.
        max_pause: Upper limit of the seconds of a pause, at least 0 and finite.
        give_up: Seconds after which the operator fails with the service's own exception, if the service has accepted no
            call meanwhile; above 0. Time in which no call waited for the gate does not count. `math.inf`: never.
        classify: exception -> `Outcome` or its kind. None (the default): the kind that `Outcome` describes.
        name: Gates of one name share their state within a Trio run; see `Gate`. None (the default): it is not shared.

    Raises:
        TypeError, ValueError: An argument is out of its range.

    Example:
        retry = ExponentialBackoff(5, 0.1, 10.0, retry_on=transient)
        ordered_wait(urls, fetch, timeout=10.0, gate=AdaptiveRate(), retry=retry)
    """

    is_idle = True
    _arguments = ("start", "cut", "growth", "max_pause", "give_up")

    def __init__(
        self,
        start: float = 10.0,
        *,
        cut: float = 0.7,
        growth: float = 0.4,
        max_pause: float = 60.0,
        give_up: float = 300.0,
        classify: Classify | None = None,
        name: str | None = None,
    ) -> None:
        self.start = check_number("start", start, "calls per second above 0, finite", lambda rate: 0 < rate < inf)
        self.cut = check_number("cut", cut, "above 0 and below 1", lambda share: 0 < share < 1)
        self.growth = check_number("growth", growth, "above 0 and finite", lambda number: 0 < number < inf)
        self.max_pause = check_seconds("max_pause", max_pause, finite=True)
        self.give_up = self.longest_wait = check_seconds("give_up", give_up, positive=True)
        self._set(classify, name)
        self._w: float | None = None  # the rate that was refused; None: searching
        self._grows_from = -inf  # t = 0: the cut, later by the time that was paused or not used
        self._cut_at = -inf
        self._average = 0.0  # of the rate, over the last event
        self._calls = self._refused = 0.0  # weights since the cut
        self._in_a_row = 0  # refusals since the last success
        self._has_succeeded = False  # a call since the gate is not idle
        self._started_at = -inf
        self._next_start = -inf
        self._paused_until = -inf
        self._refusals = Refusals(self.give_up)
        self._has_warned = False

    def rate(self, now: float) -> float:
        """Calls per second at this instant; `math.inf` while the gate is idle."""
        if self.is_idle:
            return inf
        seconds = max(0.0, now - self._grows_from)
        if self._w is None:
            return _within(self.start * _doublings(seconds))
        to_reach = max(cbrt((1 - self.cut) * self._w / self.growth), min(LEAST_CALLS / self._w, MOST_SECONDS))
        part = seconds / to_reach - 1
        cubic: float = 1 + (1 - self.cut) * part * part * part  # a power would overflow
        beyond = seconds - BEYOND * to_reach
        search = _doublings(beyond / max(1.0, CALLS_PER_DOUBLING / self._w)) if beyond > 0 else 0.0
        return _within(self._w * max(cubic, search))

    def delay(self, now: float, weight: float) -> float:  # noqa: ARG002 - it is paid by the next call
        """The seconds until the next start, and until the end of a pause.

        Raises:
            Exception: That of the last refusal: the service has accepted no call for `give_up` seconds.
        """
        return 0.0 if self.is_idle else self._refusals.limited(max(0.0, self._free_at - now), now)

    def started(self, now: float, weight: float) -> None:
        """Pay with the time until the next start."""
        if self.is_idle:
            return
        self._refusals.skip(max(0.0, now - self._free_at))
        if now > self._next_start + LATE:  # no call was held back, so the rate was not tested
            self._grows_from += now - max(self._next_start, self._grows_from)
        rate = self.rate(now)
        self._average += (rate - self._average) * min(1.0, (now - self._started_at) / EVENT)
        self._calls += weight
        self._started_at = now
        self._next_start = max(self._next_start, now - LATE) + weight / rate

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        """Cut the rate if the service refused the call, pause if it requests it, and resume after a success."""
        started = now - seconds
        if outcome.kind == "throttled":
            self._throttled(now, started, weight)
            self._refusals.add(now, outcome)
            if outcome.retry_after is not None and outcome.retry_after > ROUNDED_UP:
                self._pause(now, outcome.retry_after)
        elif outcome.kind in {"ok", "error"} and not self.is_idle:
            self._refusals.end()
            self._accepted(now, started)

    @property
    def _free_at(self) -> float:
        return max(self._next_start, self._paused_until)

    def _accepted(self, now: float, started: float) -> None:
        if started >= self._cut_at:
            if self._in_a_row >= IN_A_ROW:  # the probing has ended
                self._grows_from = now
            self._in_a_row = 0
            self._has_succeeded = True

    def _throttled(self, now: float, started: float, weight: float) -> None:
        if self.is_idle:
            self.is_idle = False
            self._next_start = now
            self._cut(now)
        if started < self._cut_at:
            return
        self._in_a_row += 1
        if self._in_a_row == 1:
            self._advance_next_start(now)
        if self._in_a_row < IN_A_ROW and now >= self._cut_at + EVENT:
            self._cut(now)  # the refusal that cuts belongs to the calls before
            return
        self._refused += weight
        if self._in_a_row >= IN_A_ROW:
            self._probe(now)

    def _advance_next_start(self, now: float) -> None:
        """A refused call took nothing from the limit, so a whole interval would be lost: at 1/s, a second."""
        interval = 1 / self.rate(now)
        self._next_start = min(self._next_start, now + max(EARLIER * (0.5 + random()) * interval, SOONEST))

    def _cut(self, now: float) -> None:
        """Set w to what the service admitted: the rate, less the share of the calls that it refused."""
        if self._has_succeeded:
            admitted = 1 - self._refused / max(self._calls, FEW)
            self._w = _within(self._average * max(LEAST_ADMITTED, admitted))
        self._calls = self._refused = 0.0
        self._cut_at = self._grows_from = now
        self._average = self.rate(now)

    def _probe(self, now: float) -> None:
        """Neither cut nor grow: there is no rate that the service would admit."""
        seconds = FIRST_PROBE * _doublings(self._in_a_row - IN_A_ROW)
        self._next_start = max(self._next_start, now + min(seconds, LAST_PROBE))
        self._grows_from = now

    def _pause(self, now: float, retry_after: float) -> None:
        if retry_after > self.max_pause and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "%s: the service asks to wait %s. The next call is made after %s (max_pause), and if the service "
                "accepts none for %s (give_up), the operator stops",
                self.label,
                in_words(retry_after),
                in_words(self.max_pause),
                in_words(self.give_up),
            )
        until = now + min(retry_after, self.max_pause) * (1 + JITTER * random())
        self._paused_until = max(self._paused_until, until)
        self._grows_from = max(self._grows_from, self._paused_until)

    def may_forget(self, now: float) -> bool:
        """Whether the gate is idle, or was not used for ten minutes after its last start or pause."""
        return now >= self._free_at + FORGOTTEN_AFTER


def _within(rate: float) -> float:
    return min(max(rate, SLOWEST), FASTEST)


def _doublings(number: float) -> float:
    return float(2.0 ** min(number, 30.0))
