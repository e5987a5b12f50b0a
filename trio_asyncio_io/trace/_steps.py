"""The steps of one record or watermark, as they are recorded. Instants are seconds on Trio's clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

__all__ = ["Kind", "RecordSteps", "Span", "WatermarkSteps"]

Kind: TypeAlias = Literal[
    "attempt", "backoff", "wait for a gate", "handler", "backoff without a slot", "wait for a gate without a slot"
]


# The limit of spans per record: a record with a thousand retries must not fill the memory
MAX_SPANS = 40


@dataclass(slots=True)
class Span:
    """A part of an invocation: an attempt, a backoff, a retry's wait for a gate, or a handler.

    A backoff without a slot, or a wait without one, lasts until the record has one again.

    Attributes:
        end: None while it lasts.
        outcome: How an attempt ended, such as "failed". Empty if it gave a result.
        error: The name of the exception's type, or "".
    """

    kind: Kind
    name: str
    start: float
    end: float | None = None
    outcome: str = ""
    error: str = ""


@dataclass(slots=True)
class RecordSteps:
    """The steps of a record. An instant is None if the record has not got there.

    Attributes:
        value: A description of the value, or None if values are not recorded.
        attempts: The number of calls.
        held_back: When a gate began to hold back the first call.
        yielded, regained: When it gave its slot back, and had one again.
        outcome: How the invocation ended.
        received: The instant at which the consumer received the latest output.
        outputs: The number of outputs received.
        spans: The parts of the invocation, one after another.
    """

    sequence: int
    value: str | None
    accepted: float
    held_back: float | None = None
    started: float | None = None
    attempts: int = 0
    yielded: list[float] = field(default_factory=list)
    regained: list[float] = field(default_factory=list)
    outcome: str = ""
    freed: float | None = None
    dequeued: float | None = None
    received: float | None = None
    outputs: int = 0
    spans: list[Span] = field(default_factory=list)

    def begin(self, kind: Kind, name: str, now: float) -> None:
        """Start a span."""
        if len(self.spans) < MAX_SPANS:
            self.spans.append(Span(kind, name, now))

    @property
    def stays(self) -> list[tuple[float, float | None]]:
        """When the record got a slot, and when it left it."""
        if self.started is None:
            return []
        return list(zip([self.started, *self.regained], [*self.yielded, self.freed], strict=False))

    def give_slot_back(self, now: float) -> None:
        """The present backoff, or wait for a gate, continues without a slot."""
        self.yielded.append(now)
        if self.spans and self.spans[-1].end is None:
            is_backoff = self.spans[-1].kind == "backoff"
            self.spans[-1].kind = "backoff without a slot" if is_backoff else "wait for a gate without a slot"

    def end(self, now: float, outcome: str = "", error: str = "") -> None:
        """End the present span, if there is one."""
        if self.spans and self.spans[-1].end is None:
            span = self.spans[-1]
            span.end, span.outcome, span.error = now, outcome, error


@dataclass(slots=True)
class WatermarkSteps:
    """The steps of a watermark. `timestamp` is a description, or None if values are not recorded."""

    sequence: int
    timestamp: str | None
    accepted: float
    received: float | None = None
