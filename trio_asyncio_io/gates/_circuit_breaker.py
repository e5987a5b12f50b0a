"""The gate `CircuitBreaker`: no calls during an outage."""

from __future__ import annotations

from collections import deque
from math import inf
from random import random
from typing import Literal, TypeAlias, get_args

from .._core.gate import Classify, ConfiguredGate, Outcome, RefusedError
from .._core.refusals import Refusals
from .._values.checks import check_int, check_number, check_seconds
from .._values.describe import describe

Mode: TypeAlias = Literal["pause", "fail"]

JITTER = 0.2  # of the time that the circuit is open
FORGOTTEN_AFTER = 600.0  # seconds
ROUNDING = 1e-6  # seconds


class CircuitOpenError(RefusedError):
    """The circuit is open: the service does not answer, so the call was not made.

    Its cause is the service's last error without its traceback; None once the service has answered a probe.
    """


class CircuitBreaker(ConfiguredGate):
    """Makes no calls while a service is down, and finds out with few calls when it is back.

    It opens when at least `share` of at least `calls` calls in `window` seconds were overload: timeouts, connection
    errors, statuses 5xx. It also opens after `calls` overloads in a row, however long they took. An open circuit holds
    back all calls: records keep their place, and no deadline runs. After `open_for` seconds, +- 20 %, one call probes
    the service. If it is answered, `trickle` calls at once are allowed for `open_for` seconds, and then all. If not, or
    if at least `share` of that trickle is overload, the circuit is open for twice as long, up to `max_open`. So the
    operator is back at full speed about 8 s after the service, and during the outage it makes one call per 5 s. The
    pattern is Nygard's ("Release It!", 2007).

    Calls that fail when the circuit opens have used up an attempt, so give the operator a retry strategy.

    Args:
        mode: "pause" (the default) holds back calls. "fail": their elements fail immediately, with a
            `CircuitOpenError`, for streams that must go on.
        share: The share of calls that are overload, above 0.0 and at most 1.0.
        calls: The circuit does not open before this many calls in the window, or in a row, 1 or more.
        window: Seconds, above 0 and finite.
        open_for: Seconds until the first probe, above 0 and finite.
        max_open: Upper limit of the seconds until a later probe, above 0 and finite.
        trickle: Upper limit of calls at once after a probe was answered, 1 or more.
        give_up: Seconds after which the operator fails with the service's own exception, if the service has answered
            no probe meanwhile; above 0. Time in which no call waited for a probe does not count. `math.inf`: never.
            With the mode "fail", the operator never gives up.
        classify: exception -> `Outcome` or its kind. None (the default): the kind that `Outcome` describes.
        name: Gates of one name share their state within a Trio run; see `Gate`. None (the default): it is not shared.

    Raises:
        TypeError, ValueError: An argument is out of its range.

    Example:
        retry = ExponentialBackoff(5, 0.1, 10.0, retry_on=transient)
        ordered_wait(urls, fetch, timeout=10.0, gate=CircuitBreaker(), retry=retry)
    """

    _arguments = ("mode", "share", "calls", "window", "open_for", "max_open", "trickle", "give_up")

    def __init__(
        self,
        mode: Mode = "pause",
        *,
        share: float = 0.5,
        calls: int = 20,
        window: float = 10.0,
        open_for: float = 2.0,
        max_open: float = 5.0,
        trickle: int = 10,
        give_up: float = 300.0,
        classify: Classify | None = None,
        name: str | None = None,
    ) -> None:
        if mode not in get_args(Mode):
            raise ValueError(f'mode must be "pause" or "fail", got {describe(mode)}')
        self.mode = mode
        self.share = check_number("share", share, "above 0.0 and at most 1.0", lambda number: 0 < number <= 1)
        self.calls = check_int("calls", calls, at_least=1)
        self.window = check_seconds("window", window, positive=True, finite=True)
        self.open_for = check_seconds("open_for", open_for, positive=True, finite=True)
        self.max_open = check_seconds("max_open", max_open, positive=True, finite=True)
        self.trickle = check_int("trickle", trickle, at_least=1)
        self.give_up = check_seconds("give_up", give_up, positive=True)
        self._set(classify, name)
        self._ends: deque[tuple[float, bool]] = deque()  # of the window: the instant, and whether it was overload
        self._overloads = 0
        self._in_a_row = 0
        self._refusals = Refusals(self.give_up if mode == "pause" else inf)
        self._seconds_open = 0.0
        self._open_until = -inf
        self._trickle_until = -inf
        self._running = 0  # since the first probe

    @property
    def is_closed(self) -> bool:
        """Whether all calls may start."""
        return self._open_until == -inf

    def delay(self, now: float, weight: float) -> float:  # noqa: ARG002 - all calls are alike
        """0.0 while the circuit is closed; the seconds until the next probe.

        Raises:
            CircuitOpenError: The circuit is open, in the mode "fail".
            Exception: The exception of the last refusal: the service has answered no probe for `give_up` seconds.
        """
        delay = 0.0 if self.is_closed else self._delay(now)
        if delay and self.mode == "fail":
            raise CircuitOpenError("the circuit is open: the service does not answer") from self._refusals.error
        return self._refusals.limited(delay, now)

    def started(self, now: float, weight: float) -> None:  # noqa: ARG002
        """Count the calls of a circuit that is not closed."""
        if self.is_closed:
            return
        if self._is_probe_due(now):  # nothing is known of the time in which no call waited for its probe
            self._refusals.skip(now - self._open_until)
            self._open_until = now
        self._running += 1

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:  # noqa: ARG002
        """Open or close the circuit."""
        if self.is_closed:
            self._record(now, outcome)
        elif now - seconds >= self._open_until - ROUNDING:  # started as a probe, or after one
            self._running = max(0, self._running - 1)
            self._probed(now, outcome)

    def _is_probe_due(self, now: float) -> bool:
        return not self._running and self._trickle_until == -inf and now > self._open_until

    def _delay(self, now: float) -> float:
        if now < self._open_until:
            return self._open_until - now
        limit = 1 if self._trickle_until == -inf else self.trickle
        return inf if self._running >= limit else 0.0

    def _record(self, now: float, outcome: Outcome) -> None:
        if outcome.kind == "overload" or (outcome.kind != "cancelled" and self._ends):
            self._count(now, outcome)
        while self._ends and self._ends[0][0] <= now - self.window:
            self._overloads -= self._ends.popleft()[1]
        if not self._overloads:
            self._ends.clear()
        if self._is_down(self.calls):
            self._refusals.add(now, outcome)
            self._open(now, self.open_for)

    def _probed(self, now: float, outcome: Outcome) -> None:
        if outcome.kind == "cancelled":
            return
        is_probe = self._trickle_until == -inf
        self._count(now, outcome)
        if outcome.kind == "overload":
            self._refusals.add(now, outcome)
            if self._is_down(1):
                self._open(now, min(2 * self._seconds_open, self.max_open))
        elif is_probe:
            self._trickle_until = now + self.open_for
            self._refusals.end()
            self._forget()
        elif now >= self._trickle_until:
            self._close()

    def _count(self, now: float, outcome: Outcome) -> None:
        is_overload = outcome.kind == "overload"
        self._ends.append((now, is_overload))
        self._overloads += is_overload
        self._in_a_row = self._in_a_row + 1 if is_overload else 0

    def _is_down(self, calls: int) -> bool:
        is_share_reached = len(self._ends) >= calls and self._overloads >= self.share * len(self._ends)
        return is_share_reached or self._in_a_row >= self.calls

    def _open(self, now: float, seconds: float) -> None:
        self._seconds_open = seconds
        self._open_until = now + seconds * (1 - JITTER + 2 * JITTER * random())
        self._trickle_until = -inf
        self._running = 0
        self._forget()

    def _forget(self) -> None:
        self._ends.clear()
        self._overloads = self._in_a_row = 0

    def _close(self) -> None:
        self._open_until = -inf
        self._refusals.end()
        self._forget()

    def may_forget(self, now: float) -> bool:
        """Whether no call was overload within the window, or an open circuit was not used for ten minutes."""
        if self.is_closed:
            return not self._ends or now >= self._ends[-1][0] + self.window
        return now >= self._open_until + FORGOTTEN_AFTER
