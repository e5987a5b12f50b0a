"""Gates with one plain rule each, for tests that need a gate of some kind."""

from __future__ import annotations

from math import inf
from typing import Any

from trio_asyncio_io._core.gate import Classify, ConfiguredGate, Gate, Outcome
from trio_asyncio_io.gates import RefusedError


class Listener(Gate):
    """Admits each call, and records what is reported to it.

    Args:
        weight: Of a value.

    Attributes:
        heard: ("started", instant, weight), (kind, instant, seconds, weight) and ("settled", weight, actual), in order.
    """

    def __init__(self, weight: Any = None) -> None:
        self.weight = weight
        self.heard: list[tuple[Any, ...]] = []

    @property
    def ends(self) -> list[tuple[Any, ...]]:
        """Those of `heard` that are ends of calls."""
        return [each for each in self.heard if each[0] not in {"started", "settled"}]

    @property
    def settled(self) -> list[tuple[float, float]]:
        """The weights before and after each correction."""
        return [(weight, actual) for what, weight, actual, *_ in self.heard if what == "settled"]

    def delay(self, now: float, weight: float) -> float:
        """0.0."""
        return 0.0

    def started(self, now: float, weight: float) -> None:
        """Note a start."""
        self.heard.append(("started", now, weight))

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        """Note an end."""
        self.heard.append((outcome.kind, now, seconds, weight))

    def correct(self, weight: float, actual: float) -> None:
        """Note a correction."""
        self.heard.append(("settled", weight, actual))


class Refusing(Gate):
    """Refuses each call after an instant.

    Args:
        after: In seconds.
    """

    def __init__(self, after: float = -1.0) -> None:
        self.after = after

    def delay(self, now: float, weight: float) -> float:
        """0.0 until the instant."""
        if now > self.after:
            raise RefusedError("closed")
        return 0.0


class AtMost(ConfiguredGate):
    """Admits `most` calls at once.

    Attributes:
        running: The calls that run.
    """

    _arguments = ("most",)

    def __init__(self, most: int, *, classify: Classify | None = None, name: str | None = None) -> None:
        self.most = self.most_at_once = most
        self.running = 0
        self._set(classify, name)

    def delay(self, now: float, weight: float) -> float:
        """0.0 below the limit; else not before a call ends."""
        return 0.0 if self.running < self.most else inf

    def started(self, now: float, weight: float) -> None:
        """Count a running call."""
        self.running += 1

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        """A call has ended."""
        self.running -= 1


class Throttle(ConfiguredGate):
    """Open until a call is throttled. No call starts for its `retry_after`, and later calls start `apart` seconds."""

    _arguments = ("apart",)

    def __init__(self, apart: float = 0.0, *, classify: Classify | None = None, name: str | None = None) -> None:
        self.apart = apart
        self.is_open = True
        self.next_start = 0.0
        self._set(classify, name)

    def delay(self, now: float, weight: float) -> float:
        """The rest of the pause."""
        return max(0.0, self.next_start - now)

    def started(self, now: float, weight: float) -> None:
        """The next call starts later."""
        if not self.is_open:
            self.next_start = now + self.apart

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        """Pause for as long as the service asks."""
        if outcome.kind == "throttled":
            self.is_open = False
            self.next_start = max(self.next_start, now + (outcome.retry_after or 0.0))

    def may_forget(self, now: float) -> bool:
        """Whether it is open, or the pause has been over for ten minutes."""
        return self.is_open or now >= self.next_start + 600.0
