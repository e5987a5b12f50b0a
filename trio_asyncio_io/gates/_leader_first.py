"""The gate `LeaderFirst`: one call fills the cache of a service, then the others use it."""

from __future__ import annotations

from math import inf

from .._core.gate import ConfiguredGate, Outcome
from .._values.checks import check_seconds

ROUNDING = 1e-6  # seconds by which the start of a call may differ from its end minus its duration


class LeaderFirst(ConfiguredGate):
    """Lets one call run alone, the leader. Once it has returned, all others may start.

    For services that keep what a call has prepared, such as the prompt caches of LLM providers: calls for one prefix
    that start together all pay for it, but calls that start after the first one has returned pay a fraction. So give
    each prefix a gate of its own with a `PerKey`, and sort the rows by prefix. Otherwise the buffer fills with rows of
    many prefixes, each of which waits for its leader.

    Each call that returns renews the cache for `ttl` seconds. If none returns within that time, the next call leads
    again. It also does if the leader fails or is cancelled.

    Args:
        ttl: The time for which the service keeps an entry that is not used, in seconds, above 0. The default, 300.0, is
            the shortest time that OpenAI and Anthropic name for their prompt caches. `math.inf`: it never expires.
        name: Gates of one name share their state within a Trio run; see `Gate`. None (the default): it is not shared.

    Raises:
        TypeError, ValueError: An argument is out of its range.

    Example:
        gate = PerKey(LeaderFirst(), key=lambda document, question: document)
        unordered_wait(rows, ask, timeout=60.0, capacity=20, gate=gate)
    """

    _arguments = ("ttl",)
    _callback = None

    def __init__(self, ttl: float = 300.0, *, name: str | None = None) -> None:
        self.ttl = check_seconds("ttl", ttl, positive=True)
        self._set(None, name)
        self._filled_until = -inf
        self._leader_started: float | None = None  # while a leader runs

    def delay(self, now: float, weight: float) -> float:  # noqa: ARG002 - all calls are alike
        """0.0; while a leader runs, `math.inf`."""
        return 0.0 if self._leader_started is None else inf

    def started(self, now: float, weight: float) -> None:  # noqa: ARG002
        """The call leads, unless the cache is filled."""
        if now >= self._filled_until:
            self._leader_started = now

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:  # noqa: ARG002
        """A call that returned has filled the cache, and a leader that failed lets the next call lead."""
        if outcome.kind == "ok":
            self._filled_until = now + self.ttl
            self._leader_started = None
        elif self._leader_started is not None and abs(now - seconds - self._leader_started) < ROUNDING:
            self._leader_started = None

    def may_forget(self, now: float) -> bool:
        """Whether no leader runs and the cache is no longer filled."""
        return self._leader_started is None and now >= self._filled_until
