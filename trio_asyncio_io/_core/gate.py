"""The protocol of gates: a gate holds back the start of a call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from .describe import describe

__all__ = [
    "CANCELLED",
    "CURRENT_CALL",
    "OK",
    "Classify",
    "Gate",
    "Outcome",
    "OutcomeKind",
    "RefusedError",
    "as_outcome",
]

OutcomeKind: TypeAlias = Literal["ok", "throttled", "overload", "error", "cancelled"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended, as far as gates are concerned.

    Args:
        kind: "ok": it returned. "throttled": the service asks for fewer calls. "overload": a timeout, a connection
            error, or a status 5xx. "error": the fault of this one element, such as a status 404. "cancelled": the
            operator stopped it, so nothing is known.
        retry_after: The seconds that the service asks everybody to wait, or None.
        error: The exception, or None.
    """

    kind: OutcomeKind
    retry_after: float | None = None
    error: Exception | None = None


OK = Outcome("ok")
CANCELLED = Outcome("cancelled")

# Has a method `settle` while a call runs whose operator has a gate with a `weight`
CURRENT_CALL: ContextVar[Any] = ContextVar("trio_asyncio_io_current_call", default=None)

Classify: TypeAlias = Callable[[Exception], Outcome | OutcomeKind]


def as_outcome(value: object, error: Exception) -> Outcome:
    """What a `classify` callable has returned, as an outcome.

    Raises:
        TypeError: It is neither an outcome nor the name of a kind.
    """
    if isinstance(value, Outcome):
        return value
    if value in get_args(OutcomeKind):
        return Outcome(value, error=error)  # type: ignore[arg-type]
    raise TypeError(
        f"classify must return an Outcome or one of {', '.join(get_args(OutcomeKind))}, got {describe(value)}"
    )


class RefusedError(Exception):
    """Raised by a gate: the call is not made. The element fails with this exception, which is never retried."""


class Gate(ABC):
    """Decides when a call may start. Subclass it to write your own.

    A gate is plain data: it never waits and has no clock. The operator asks it before the deadline of a call starts,
    for retries as well, and does the waiting. Instants are seconds on a clock that never goes back, not even from one
    Trio run to the next.

    One gate can serve several operators of one thread. What it has learnt stays with the object. In one Trio run, and
    so in one Python worker of Spark, gates of one class and one name are one gate.

    Attributes:
        is_idle: While it is True, the gate holds back no call and needs no report of one that returned. The operator
            then neither calls `delay` and `started`, nor `ended` for calls that returned.
        classify: exception -> `Outcome`, or the name of its kind. None: `outcome_of`.
        weight: The arguments of a call -> what it weighs, such as its tokens. None: each call weighs 1.0.
        most_at_once: The most calls that it ever admits at once, or None. The capacity of an operator must be at least
            as high.
        name: What it shares its state by, or None. `classify` and `weight` are not shared: those of the gate that an
            operator was given apply to its calls.
    """

    is_idle: bool = False
    classify: Classify | None = None
    weight: Callable[..., float] | None = None
    most_at_once: int | None = None
    name: str | None = None

    @abstractmethod
    def delay(self, now: float, weight: float) -> float:
        """The seconds until a call of this weight may start; 0.0: now. `math.inf`: not before another call has ended.

        Raises:
            RefusedError: The call must not be made, so its element fails.
            Exception: The operator stops with this exception.
        """

    def started(self, now: float, weight: float) -> None:  # noqa: B027 - most gates need only some of these
        """A call starts. `delay` has returned 0.0 for it."""

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:  # noqa: B027
        """A call has ended, `seconds` after its start."""

    def correct(self, weight: float, actual: float) -> None:  # noqa: B027
        """A call that started with this weight actually weighs `actual`; see `settle`."""

    def may_forget(self, now: float) -> bool:  # noqa: ARG002 - some gates need it
        """Whether a new gate may take the place of this one, while no call waits or runs; see `PerKey`.

        By default, a gate may be forgotten while it is idle.
        """
        return self.is_idle

    def configuration(self) -> dict[str, Any]:
        """The arguments in which gates of one name must be equal. `repr` shows them."""
        return {}

    def __repr__(self) -> str:
        name = {} if self.name is None else {"name": self.name}
        shown = {**self.configuration(), **name}
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in shown.items())})"
