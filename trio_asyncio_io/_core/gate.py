"""The protocol of gates: a gate holds back the start of a call, and can be copied for each key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from functools import lru_cache, partial, reduce
from math import inf
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from .._values.checks import check_callback, check_optional_name, check_seconds
from .._values.describe import describe

OutcomeKind: TypeAlias = Literal["ok", "throttled", "overload", "error", "cancelled"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended, as far as gates are concerned.

    Args:
        kind: "ok": it returned. "throttled": the service requests fewer calls, with a status 429, a status 503 with a
            `Retry-After`, an attribute `retry_after`, or a throttling code of AWS. "overload": a timeout, a connection
            error, or a status 408 or 5xx. "error": the fault of this one element, such as a status 404. "cancelled":
            the operator stopped it, so nothing is known.
        retry_after: The wait in seconds that the service requests of everybody, or None.
        error: The exception, or None.
        was_made: False: the operator stopped before it called the function, and the kind is "cancelled".

    Raises:
        TypeError, ValueError: `kind` or `retry_after` is something else.
    """

    kind: OutcomeKind
    retry_after: float | None = None
    error: Exception | None = None
    was_made: bool = True

    def __post_init__(self) -> None:
        if self.kind not in get_args(OutcomeKind):
            raise ValueError(f"kind must be one of {', '.join(get_args(OutcomeKind))}, got {describe(self.kind)}")
        if self.retry_after is not None:
            check_seconds("retry_after", self.retry_after)


OK = Outcome("ok")
CANCELLED = Outcome("cancelled")
NOT_MADE = Outcome("cancelled", was_made=False)

# Has a method `settle` while a call runs whose operator has a gate with a `weight`
CURRENT_CALL: ContextVar[Any] = ContextVar("trio_asyncio_io_current_call", default=None)

# For sums of the numbers as they are written: ten weights of 0.1 are exactly 1. The context does not depend on the
# thread's. Sums of any floats are exact with so many digits
DECIMALS = Context(prec=700)

Classify: TypeAlias = Callable[[Exception], Outcome | OutcomeKind]


@lru_cache(maxsize=1024)
def exact(number: float) -> Decimal:
    """The number as it is written, for sums in `DECIMALS`."""
    return Decimal(repr(float(number)))


def sum_as_written(numbers: Iterable[float]) -> float:
    """The sum of the numbers as they are written: ten times 0.1 is exactly 1.0."""
    return float(reduce(DECIMALS.add, map(exact, numbers), Decimal(0)))


def expired() -> Outcome:
    """The outcome of a call that ended because the deadline of its record expired."""
    return Outcome("overload", error=TimeoutError("the deadline of an element expired"))


def as_outcome(value: object, error: Exception) -> Outcome:
    """The outcome that a `classify` callable has returned.

    Raises:
        TypeError: It is neither an outcome nor the name of a kind.
    """
    if isinstance(value, Outcome):
        return value if value.error is not None else replace(value, error=error)
    if value in get_args(OutcomeKind):
        return Outcome(value, error=error)  # type: ignore[arg-type]
    raise TypeError(
        f"classify must return an Outcome or one of {', '.join(get_args(OutcomeKind))}, got {describe(value)}"
    )


class RefusedError(Exception):
    """Raised by a gate: the call is not made. The element fails with this exception, which is never retried."""


class Gate(ABC):
    """Decides when a call may start. Subclass it to write your own.

    A gate is plain data: it never waits and has no clock. The operator calls it before each attempt, retries included,
    and does the waiting. Instants are seconds on a clock that never goes back, not even from one Trio run to the next.

    One gate can serve several operators of one thread. Its state stays with the object. In one Trio run, and so in one
    Python worker of Spark, gates of one class and one name are one gate.

    Any exception of a gate other than a `RefusedError` of `delay` stops the operator with this exception, whatever its
    `on_error`: a broken gate protects nothing. So does an exception of `weight`. An exception of `classify` fails the
    element.

    Attributes:
        classify: exception -> `Outcome` or its kind. None: the kind that `Outcome` describes.
        weight: The arguments of a call -> its weight, such as its tokens. None: each call weighs 1.0.
        most_at_once: Upper limit of the calls that it admits at the same time, or None. The capacity of an operator
            must be at least as high.
        longest_wait: Upper limit of the seconds for which a retry waits because the service asks for it. Then the
            record comes to the gate, which may give up.
        name: Gates of one class and name share one state. None: the object has its own. `classify` and `weight` are not
            shared: an operator applies those of the gate that it was given.
        must_keep: Whether a `PerKey` keeps its state for every key, however many there are.
        reacts_to_ends: Whether the end of a call may hold back the next ones. If it may, all
            calls that end at one instant are reported before another call starts.
    """

    classify: Classify | None = None
    weight: Callable[..., float] | None = None
    most_at_once: int | None = None
    longest_wait: float = inf
    name: str | None = None
    must_keep: bool = False
    reacts_to_ends: bool = True

    @abstractmethod
    def delay(self, now: float, weight: float) -> float:
        """The seconds until a call of this weight may start; 0.0: now. `math.inf`: not before another call has ended.

        It may be called again at any time before the call starts. NaN is an error, and so is `math.inf` while no call
        runs whose end could change it.

        Raises:
            RefusedError: The call must not be made, so its element fails.
            Exception: The operator stops with this exception.
        """

    def started(self, now: float, weight: float) -> None:  # noqa: B027 - most gates need only some of these
        """A call starts. `delay` has returned 0.0 for it at this instant."""

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:  # noqa: B027
        """A call has ended, `seconds` after its start. Each start has one end, even if the call is cancelled."""

    def correct(self, weight: float, actual: float) -> None:  # noqa: B027
        """A call that started with this weight actually weighs `actual`; see `settle`."""

    def may_forget(self, now: float) -> bool:  # noqa: ARG002 - some gates need it
        """Whether a new gate may take the place of this one, while no call waits or runs; see `PerKey`.

        By default, it may not.
        """
        return False

    @property
    def finding(self) -> str:
        """What the gate has found about the service, as a sentence without a full stop. "": nothing to report."""
        return ""

    @property
    def label(self) -> str:
        """The gate's name in statistics: its class, and its `name` if it has one."""
        kind = type(self).__name__
        return kind if self.name is None else f"{kind} {self.name!r}"

    @property
    def identity(self) -> Hashable:
        """Gates of one identity share one state: those of one class and name, or the object alone without a name."""
        return id(self) if self.name is None else (type(self), self.name)

    def configuration(self) -> dict[str, Any]:
        """The arguments in which gates of one name must be equal. `repr` shows them."""
        return {}

    def __repr__(self) -> str:
        name = {} if self.name is None else {"name": self.name}
        shown = {**self.configuration(), **name}
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in shown.items())})"


class ConfiguredGate(Gate):
    """A gate whose copies, which include pickled ones, have its arguments and not its state."""

    _arguments: ClassVar[tuple[str, ...]]  # those in `configuration`
    _callback: ClassVar[Literal["classify", "weight"] | None] = "classify"  # another argument: a callable, or None

    def _set(self, callback: Callable[..., Any] | None, name: str | None) -> None:
        """Check and set the arguments beside those in `configuration`."""
        if self._callback is not None and callback is not None:
            setattr(self, self._callback, check_callback(self._callback, callback))
        self.name = check_optional_name("name", name)

    def configuration(self) -> dict[str, Any]:
        """These arguments, as given."""
        return {name: getattr(self, name) for name in self._arguments}

    def __reduce__(self) -> tuple[Callable[..., Gate], tuple[()]]:
        given = {**self.configuration(), "name": self.name}
        if self._callback is not None:
            given[self._callback] = getattr(self, self._callback)
        kind = next(each for each in type(self).__mro__ if "_arguments" in vars(each))  # a subclass may take others
        return partial(kind, **given), ()


class PerKey:
    """Per-key gates: each key gets its own copy. For services with many hosts, tenants or accounts.

    Give it to an operator as `gate=`, alone or in a list with gates for all calls. A key that is held back does not
    hold back the others: its records are passed over. The buffer limits how many wait; when all of its records wait for
    one key, the operator reads no more elements.

    The first call for a key copies the gates. A key is forgotten when none of its calls waits or runs, and its gates
    may be forgotten; see `Gate.may_forget`. This object keeps the state of the other keys' gates, for about 10,000 keys
    without calls. Beyond that, it forgets those that were not used for the longest time, except with a gate such as
    `Budget` (`Gate.must_keep`).

    Args:
        gate: The gate that is copied for each key, or a list of gates, which must all admit a call.
        key: The arguments of a call -> hashable. It is called for each attempt, and may be called again for a failure,
            so it must be cheap, and always have the same result. None as a result: the call passes none of these gates.
            If it raises, the operator stops with its exception.

    Raises:
        TypeError, ValueError: An argument has another type, or a gate is given twice.

    Example:
        def host(url):
            return urlsplit(url).hostname

        gate = PerKey(Auto(most=100), key=host)
        ordered_wait(urls, fetch, timeout=10.0, gate=gate)
    """

    def __init__(self, gate: Gate | Sequence[Gate], key: Callable[..., Hashable]) -> None:
        gates: object = (gate,) if isinstance(gate, Gate) else gate
        if not (isinstance(gates, Sequence) and gates and all(isinstance(each, Gate) for each in gates)):
            raise TypeError(f"the gate of a PerKey must be a Gate or a list of gates, got {describe(gate)}")
        _check_distinct(gates)
        self.gates: tuple[Gate, ...] = tuple(gates)
        self.key = check_callback("key", key)
        self.copies: tuple[Copies, ...] = tuple(Copies(each) for each in self.gates)

    def __repr__(self) -> str:
        gates = self.gates[0] if len(self.gates) == 1 else list(self.gates)
        return f"PerKey({gates!r}, key={describe(self.key)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return PerKey, (self.gates, self.key)


def as_gates(gate: Gate | PerKey | Sequence[Gate | PerKey]) -> tuple[Gate | PerKey, ...]:
    """The gates of an operator or a policy.

    Raises:
        TypeError, ValueError: `gate` is something else, has more than one `PerKey`, or has a gate twice.
    """
    gates: object = (gate,) if isinstance(gate, Gate | PerKey) else gate
    if not (isinstance(gates, Sequence) and all(isinstance(each, Gate | PerKey) for each in gates)):
        raise TypeError(
            f"gate must be a Gate such as RateLimit(10.0), a PerKey or a list of them, got {describe(gate)}"
        )
    if sum(isinstance(each, PerKey) for each in gates) > 1:
        raise ValueError(f"gate must have at most one PerKey, got {describe(gate)}: give it all of their gates")
    _check_distinct([each for each in gates if isinstance(each, Gate)])
    return tuple(gates)


def _check_distinct(gates: Sequence[Gate]) -> None:
    """Check that no gate would count each call twice."""
    seen: set[Hashable] = set()
    for gate in gates:
        identity = gate.identity
        if identity in seen:
            raise ValueError(
                f"gate must not have the same gate twice, got {describe(gate)} again: give it once, or give each gate "
                "a name of its own"
            )
        seen.add(identity)


class Copies(dict[Hashable, Gate]):
    """The copies of one gate, by key, and what is known of them. They outlive the operators: a policy opens them often.

    Args:
        gate: Is copied for each key that is missing. The gate of the key None, for all calls, is this one itself.

    Attributes:
        gate: As given.
        enough: With fewer keys, a search for those that may be forgotten is not worth its cost.
    """

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self.gate = gate
        self.enough = 0

    def __missing__(self, key: Hashable) -> Gate:
        self[key] = gate = self.gate if key is None else deepcopy(self.gate)
        return gate
