"""The gate `RateLimit`: calls start no faster than a service allows."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from .._core.gate import ConfiguredGate, Outcome
from .._values.checks import check_number

# Seconds: more than the difference of two instants that an operator treats as one. At 1,000 calls per second, it slows
# the rate down by two millionths
ROUNDING = 2e-9

# Seconds that a call takes from the bucket at most, and the largest weight: their sums stay finite
FOREVER, LARGEST = 1e12, 1e300

CALLS = 50.0  # the length of the average, in calls, of the share of their estimates that calls really weigh
FEW = 10  # the estimates count in full until this many calls have ended


class RateLimit(ConfiguredGate):
    """Lets calls start at most `rate` times per second.

    In every span of w seconds, wherever it begins,

        weights of the calls that start <= burst + rate * w

    The limit is a token bucket of `burst` tokens, which is full at the start, stored as one instant: the theoretical
    arrival time of the generic cell rate algorithm (ITU-T I.371). A call that weighs more than the bucket holds starts
    when the bucket is full, and the next ones wait until its weight has been paid back.

    Where `settle` corrects weights, the calls that run count with the share of their estimates that the last 50 calls
    or so weighed, at most all of it; a settled call counts exactly. Then the limit above holds on average over the
    calls that run.

    For several limits, such as requests and tokens per minute, give the operator several gates. Statistics and
    `explain()` tell them apart by their names. A process has one limit for all calls that use this object, or this
    name; in Spark, that is each Python worker.

    Args:
        rate: Weight per second, above 0 and finite. Without `weight`: calls per second.
        burst: The weight that may start together after an idle time, above 0 and finite. With the default, 1.0, calls
            without a weight start evenly spaced.
        weight: The arguments of a call -> what it weighs, such as an estimate of its tokens, at least 0 and finite.
            `settle` corrects it during the call. None (the default): each call weighs 1.
        name: Gates of one name share their state within a Trio run; see `Gate`. None (the default): it is not shared.

    Raises:
        TypeError, ValueError: An argument is out of its range.

    Example:
        requests = RateLimit(500 / 60, burst=10, name="requests")
        tokens = RateLimit(100_000 / 60, burst=10_000, weight=count_tokens, name="tokens")
        ordered_wait(prompts, ask, timeout=60.0, gate=[requests, tokens])
    """

    reacts_to_ends = False
    _arguments = ("rate", "burst")
    _callback = "weight"

    def __init__(
        self,
        rate: float,
        *,
        burst: float = 1.0,
        weight: Callable[..., float] | None = None,
        name: str | None = None,
    ) -> None:
        self.rate = _checked("rate", rate)
        self.burst = _checked("burst", burst)
        self._set(weight, name)
        self._most = min(self.rate * FOREVER, LARGEST)
        self._bucket = min(self.burst, self._most)
        self._theoretical_arrival = -inf  # if all calls that run weigh what was estimated
        self._running = 0.0  # weight
        self._ended = 0  # calls
        self._actual = self._returned = 0.0  # weights of the latest calls, and what was corrected of their estimates

    def delay(self, now: float, weight: float) -> float:
        """The seconds until the bucket holds the weight, or is full."""
        if weight > self._most:
            weight = self._most
        in_bucket = self._bucket - weight
        if self._returned > 0:  # some calls have settled
            share = self._share_returned
            in_bucket = self._running * share + max(0.0, self._bucket - weight * (1 - share))
        elif in_bucket < 0:
            in_bucket = 0.0
        delay = self._theoretical_arrival - in_bucket / self.rate - now
        return max(delay, ROUNDING) if delay > 0 else 0.0

    def started(self, now: float, weight: float) -> None:
        """Take the weight from the bucket."""
        if weight > self._most:
            weight = self._most
        arrival = now
        if self._returned > 0:
            arrival += self._running * self._share_returned / self.rate  # a bucket that is full holds no more
        if arrival < self._theoretical_arrival:
            arrival = self._theoretical_arrival
        self._theoretical_arrival = _arrival_after(arrival, weight, self.rate)
        self._running += weight

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:  # noqa: ARG002
        """Compare the call's weight with its estimate."""
        if weight > self._most:
            weight = self._most
        running = self._running - weight
        self._running = running if running > 0 else 0.0
        if outcome.kind != "cancelled":
            self._ended += 1
            self._actual += weight - self._actual / CALLS
            self._returned -= self._returned / CALLS

    def may_forget(self, now: float) -> bool:
        """Whether the bucket is full."""
        return now >= self._theoretical_arrival

    def correct(self, weight: float, actual: float) -> None:
        """Take the difference from the bucket, or put it back."""
        difference = min(actual, self._most) - min(weight, self._most)
        self._theoretical_arrival += difference / self.rate
        self._running += difference
        self._returned -= difference

    @property
    def _share_returned(self) -> float:
        """The share of an estimate that `settle` will return."""
        if self._returned <= 0 or self._ended < FEW:
            return 0.0
        return self._returned / (self._returned + self._actual)


def _checked(name: str, value: float) -> float:
    return check_number(name, value, "above 0 and finite", lambda number: 0 < number < inf)


def _arrival_after(start: float, weight: float, rate: float) -> float:
    """The instant at which a call of this weight that starts at `start` has been paid back.

    Sums of 0.1 are soon a little too low, and then eleven calls would start in one second. So an instant that had to be
    rounded is later by `ROUNDING`. One that is exact, such as a sum of 0.25, stays exact.
    """
    seconds = weight / rate
    arrival = start + seconds
    is_exact = arrival - start == seconds and seconds * rate == weight
    return arrival if is_exact else arrival + ROUNDING
