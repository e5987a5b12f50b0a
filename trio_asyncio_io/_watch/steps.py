"""The steps of the records and watermarks of a trace, and which of them are recorded.

Instants are seconds on Trio's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Generic, Literal, TypeAlias, TypeVar

T = TypeVar("T")

Kind: TypeAlias = Literal["attempt", "handler", "backoff", "wait for its key", "wait for a slot", "wait for a gate"]

# The kinds of spans that are parts of a stay
IN_SLOT = frozenset({"attempt", "handler"})

# The limit of spans per record: a record with a thousand retries must not fill the memory
MAX_SPANS = 40


@dataclass(frozen=True, eq=False, slots=True)
class GroupCall:
    """A call that several records share, with their slot.

    Attributes:
        records: The number of these records.
    """

    records: int


@dataclass(eq=False, slots=True)
class Stay:
    """The time of a record in a slot.

    Attributes:
        end: inf while it lasts.
        call: The call of several records that has the slot; None: the record has it alone.
    """

    start: float
    end: float = inf
    call: GroupCall | None = None


@dataclass(slots=True)
class Span:
    """A part of a record's time: an attempt or a handler in a slot, or a wait without one.

    Attributes:
        stay: The stay of which it is a part; None: it is a wait.
        end: inf while it lasts.
        outcome: How an attempt ended, such as "failed". Empty if it gave a result.
        error: The name of the exception's type, or "".
    """

    kind: Kind
    name: str
    start: float
    stay: Stay | None
    end: float = inf
    outcome: str = ""
    error: str = ""


@dataclass(slots=True)
class RecordSteps:
    """The steps of a record. An instant is inf if the record has not reached it.

    Attributes:
        value: A description of the value, or None if values are not recorded.
        attempts: The number of calls.
        stays: Its stays in slots.
        outcome: How the invocation ended.
        received: The instant at which the consumer received the latest output.
        outputs: The number of outputs received.
        spans: The parts of its time, from its acceptance to the end of its invocation, one after another.
    """

    sequence: int
    value: str | None
    accepted: float
    attempts: int = 0
    stays: list[Stay] = field(default_factory=list)
    outcome: str = ""
    freed: float = inf
    dequeued: float = inf
    received: float = inf
    outputs: int = 0
    spans: list[Span] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.begin("wait for a slot", self.accepted)

    def wait_for_slot(self, now: float) -> None:
        """The record waits for a slot from now on. A recorded wait that has not ended was a wait for its key."""
        if self.spans and self.spans[-1].kind == "wait for a slot" and self.spans[-1].end == inf:
            self.spans[-1].kind = self.spans[-1].name = "wait for its key"
        self.begin("wait for a slot", now)

    def begin(self, kind: Kind, now: float, name: str = "") -> None:
        """End the present span, and start another one. Its name is its kind, unless it has another one."""
        self.end(now)
        if self.spans and self.spans[-1].kind.startswith("wait for") and self.spans[-1].start == now:
            self.spans.pop()  # there was no wait
        if len(self.spans) < MAX_SPANS:
            self.spans.append(Span(kind, name or kind, now, self.stays[-1] if kind in IN_SLOT else None))

    @property
    def is_in_slot(self) -> bool:
        """Whether the record is in a slot now."""
        return bool(self.stays) and self.stays[-1].end == inf

    def enter_slot(self, now: float, call: GroupCall | None) -> None:
        """The record gets a slot for an attempt."""
        self.attempts += 1
        if len(self.spans) < MAX_SPANS:
            self.stays.append(Stay(now, call=call))
        self.begin("attempt", now, f"attempt {self.attempts}")

    def back_off(self, now: float) -> None:
        """The record leaves its slot until its next attempt. An attempt that has not failed gave a result."""
        self.end(now, "gave a result that is retried")
        self._leave_slot(now)
        self.begin("backoff", now)

    def finish(self, now: float, outcome: str, attempts: int, error: str = "") -> None:
        """The invocation ends, after this number of attempts."""
        if attempts < self.attempts:
            self._refuse()
        self.end(now, "" if outcome == "completed" else outcome, error)
        self.outcome = outcome
        if outcome == "timed out":
            self.begin("handler", now, "on_timeout")

    def fail(self, now: float, attempts: int, error: str, call: GroupCall | None) -> None:
        """The invocation fails, or `on_timeout` has raised."""
        if not self.is_in_slot:  # a gate has refused its retry, so the slot is for its handler
            self.enter_slot(now, call)
        if self.outcome != "timed out":
            self.finish(now, "failed", attempts, error)
        self.end(now, "failed", error)
        self.begin("handler", now, "on_error")

    def free_slot(self, now: float) -> None:
        """The invocation and its handlers have ended."""
        self._leave_slot(now)
        self.freed = now

    def dequeue(self, now: float) -> None:
        """The record leaves the output order."""
        self.dequeued = now

    def emit(self, now: float) -> None:
        """The consumer receives an output."""
        self.received = now
        self.outputs += 1

    def _refuse(self) -> None:
        """A gate has refused the call for which the record has its slot, so there is no attempt."""
        self.attempts -= 1
        if self.spans[-1].kind == "attempt":
            self.spans.pop()

    def _leave_slot(self, now: float) -> None:
        self.end(now)
        if self.is_in_slot:
            self.stays[-1].end = now

    def end(self, now: float, outcome: str = "", error: str = "") -> None:
        """End the present span, if there is one."""
        if self.spans and self.spans[-1].end == inf:
            span = self.spans[-1]
            span.end, span.outcome, span.error = now, outcome, error


@dataclass(slots=True)
class WatermarkSteps:
    """The steps of a watermark. `timestamp` is a description, or None if values are not recorded."""

    sequence: int
    timestamp: str | None
    accepted: float
    received: float = inf


class SystematicSample(Generic[T]):
    """Every n-th of the items that are offered.

    n is 1 at first. When the sample is full, n doubles, and the items that are no longer due are dropped. So a sample
    covers the whole sequence evenly, and the same sequence always has the same sample.

    Args:
        limit: Upper limit of the items, at least 1.

    Attributes:
        limit: As given.
        every: The present n.
        offered: The number of items offered.
    """

    def __init__(self, limit: int) -> None:
        self.every = 1
        self.offered = 0
        self.limit = limit
        self._items: dict[int, tuple[int, T]] = {}  # key -> (its number among those offered, the item)

    def __len__(self) -> int:
        return len(self._items)

    def offer(self, key: int, create: Callable[[], T]) -> None:
        """Add an item under this key if it is due."""
        number = self.offered
        self.offered += 1
        if number % self.every == 0 and len(self._items) == self.limit:
            self._thin_out()
        if number % self.every == 0:
            self._items[key] = number, create()

    def get(self, key: int) -> T | None:
        """The item with this key. None if it is not in the sample."""
        found = self._items.get(key)
        return None if found is None else found[1]

    def items(self) -> Iterable[T]:
        """The items, in the order in which they were offered."""
        return [item for _, item in self._items.values()]

    def _thin_out(self) -> None:
        self.every *= 2
        self._items = {key: each for key, each in self._items.items() if each[0] % self.every == 0}
