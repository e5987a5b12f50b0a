"""The options of an operator, checked and frozen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, TypeAlias, TypedDict

from .._values.checks import check_bool, check_callback, check_int, check_seconds
from .._values.describe import describe
from .automatic import Auto
from .gate import Gate, PerKey, as_gates
from .observer import Observer
from .retry import RetryStrategy
from .snapshot import Snapshot, SnapshotError, problem_of

Mode: TypeAlias = Literal["ordered", "unordered", "keyed"]
OnTimeout: TypeAlias = Callable[[Any], Awaitable[Any]]
OnError: TypeAlias = Literal["raise", "skip", "dead_letter"] | Callable[[Any, Exception], Awaitable[Any]]

ERROR_POLICIES = ("raise", "skip", "dead_letter")
MODES = ("ordered", "unordered", "keyed")
DEFAULT_CAPACITY = 100
MAX_CAPACITY = 1_000_000_000  # more than any process can run
GROUP_WAIT = 0.05


class OptionsArguments(TypedDict, total=False):
    """The keyword arguments that all operators have in common, except those on which the types of others depend."""

    capacity: int | Auto | Literal["auto"]
    buffer: int | None
    retry: RetryStrategy | None
    on_timeout: OnTimeout | None
    on_error: OnError
    observer: Observer | None
    gate: Gate | PerKey | Sequence[Gate | PerKey] | None
    group_wait: float
    group_split: bool


class AllArguments(OptionsArguments, total=False):
    """The same, and those on which the types of others depend."""

    group: int | None
    flatten: bool
    restore: Snapshot | None


def default_buffer(running: int) -> int:
    """A hundred times the records that run at once, at least 1,000 and at most 100,000, but never below their number.

    By Little's law, a call that takes a hundred times as long as the others then leaves all slots busy while the
    results after it wait for it. The upper limit protects memory.

    Args:
        running: The capacity, times the size of a group.
    """
    return max(running, min(max(100 * running, 1_000), 100_000))


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an operator. Frozen, and picklable if the callables are.

    Args:
        timeout: Seconds from the start of an invocation to its result, with all attempts and backoffs; at least 0.
            Waiting for a slot does not count. 0 allows only calls that never wait, `math.inf` disables the timeout.
            Required.
        capacity: Upper limit of invocations that run at once, from 1 to 1,000,000,000. It protects the service. 1 makes
            one call at a time. "auto": the gate `gates.Auto()` finds how many calls at once, or a second, the service
            takes, up to 800 at once. Give `gates.Auto(start, most)` if you know about how many.
        buffer: Upper limit of records that are accepted and not yet received, at least `capacity` and `group`. It
            protects memory. None (the default) is a hundred times the capacity (times `group`), but at least 1,000 and
            at most 100,000, and never less than the capacity (times `group`). With `buffer == capacity`, the operator
            behaves like Flink's.
        retry: A retry strategy. None (the default) makes one call per element. A record holds no slot during a backoff.
            If the backoff would end after the deadline, the element times out immediately. No new record starts while
            `capacity` records (times `group`) whose attempt has raised wait for their retry.
        on_timeout: Async callable, value -> result, that replaces the result of an element that has timed out. It is
            called when the attempt has unwound. None (the default): an `ElementTimeoutError` goes to `on_error`.
        on_error: "raise" (the default) stops the operator with the exception. "skip" leaves the element out.
            "dead_letter" sends it, with its error, to the channel `dead_letters`. An async callable,
            (value, exception) -> result, replaces the result.
        flatten: Whether a result is an iterable of 0 to n outputs, which are emitted side by side.
        restore: A snapshot, whose elements are accepted before all others. None (the default) starts empty.
        observer: An `Observer`, whose hooks are called at each step of a record. None (the default) costs nothing.
        gate: A `Gate` that holds back the start of calls, such as `gates.RateLimit`, or a list of gates that must all
            admit a call. With a `gates.PerKey`, each key has its own gates. A record that waits for a gate holds no
            slot, and its `timeout` does not run. None (the default) costs nothing.
        group: Upper limit of records in one call, at least 1 (Flink's `AsyncBatchFunction`). The function gets a list
            of values, and returns a list of as many results. A result that is an exception is the failure of that one
            record. `capacity` then counts calls. None (the default): the function gets single values.
        group_wait: Seconds for which the first record of a group waits for more, at least 0; 0.05 by default. 0: a
            group has only records that wait already. At the end of the input, no group waits. Used with `group`.
        group_split: Whether the records of a call are called again in halves when the call has failed for the last time
            and one of them may be the cause: with an `attempt_timeout`, or with an error that is neither `transient`
            nor a refusal. A record fails only when it is alone (AWS Lambda: `BisectBatchOnFunctionError`). Halves count
            as retries everywhere but in `max_retries`. False (the default): all of these records fail. True needs
            `group`.
        mode: The output order: "ordered" (the default), "unordered" or "keyed".
        key: value -> hashable. Required for mode "keyed", refused for the others.

    Raises:
        TypeError, ValueError: An argument is invalid. The message names it and its value.
        SnapshotError: `restore` is not a snapshot that this release can read.
    """

    timeout: float
    _: KW_ONLY
    capacity: int = DEFAULT_CAPACITY
    buffer: int | None = None
    retry: RetryStrategy | None = None
    on_timeout: OnTimeout | None = None
    on_error: OnError = "raise"
    flatten: bool = False
    restore: Snapshot | None = None
    observer: Observer | None = None
    gate: Gate | PerKey | Sequence[Gate | PerKey] | None = None
    group: int | None = None
    group_wait: float = GROUP_WAIT
    group_split: bool = False
    mode: Mode = "ordered"
    key: Callable[[Any], Hashable] | None = None

    @classmethod
    def of(cls, timeout: float, arguments: Mapping[str, Any], **own: Any) -> Options:
        """The options that a user gives. A gate in the place of the capacity becomes one of the gates.

        Args:
            timeout: As in the class.
            arguments: As in `AllArguments`.
            own: The other options.
        """
        return cls(timeout, **{**arguments, **_limits(arguments)}, **own)

    def __post_init__(self) -> None:
        set_field = object.__setattr__  # the class is frozen
        set_field(self, "timeout", check_seconds("timeout", self.timeout, hint=" (math.inf for none)"))
        set_field(self, "capacity", check_int("capacity", self.capacity, at_least=1, at_most=MAX_CAPACITY))
        if self.group is not None:
            set_field(self, "group", check_int("group", self.group, at_least=1))
        set_field(self, "group_wait", check_seconds("group_wait", self.group_wait))
        for name in ("group_split", "flatten"):
            check_bool(name, getattr(self, name))
        if self.group_split and self.group is None:
            raise ValueError("group_split=True needs group=: give the upper limit of records in one call")
        self._set_buffer()
        self._check_callbacks()
        self._check_mode()
        if self.restore is not None and (problem := problem_of(self.restore)):
            raise SnapshotError(problem)

    @property
    def bound(self) -> int:
        """The buffer as a number."""
        assert self.buffer is not None
        return self.buffer

    @property
    def gates(self) -> tuple[Gate | PerKey, ...]:
        """The gates, none or more."""
        return () if self.gate is None else as_gates(self.gate)

    def _set_buffer(self) -> None:
        if self.buffer is None:
            buffer = default_buffer(self.capacity * (self.group or 1))
        else:
            buffer = check_int("buffer", self.buffer, at_least=self.capacity, limit_name="the capacity")
            check_int("buffer", buffer, at_least=self.group or 1, limit_name="the size of a group")
        object.__setattr__(self, "buffer", buffer)

    def _check_callbacks(self) -> None:
        if self.retry is not None and not isinstance(self.retry, RetryStrategy):
            raise TypeError(f"retry must be a RetryStrategy such as FixedDelay(3, 1.0), got {describe(self.retry)}")
        if self.on_timeout is not None and not callable(self.on_timeout):
            raise TypeError(f"on_timeout must be an async callable or None, got {describe(self.on_timeout)}")
        problem = 'on_error must be "raise", "skip", "dead_letter" or an async callable'
        if isinstance(self.on_error, str):
            if self.on_error not in ERROR_POLICIES:
                raise ValueError(f"{problem}, got {self.on_error!r}")
        elif not callable(self.on_error):
            raise TypeError(f"{problem}, got {describe(self.on_error)}")
        if self.observer is not None and not isinstance(self.observer, Observer):
            raise TypeError(f"observer must be an Observer or None, got {describe(self.observer)}")
        self._check_capacity_of_gates()

    def _check_capacity_of_gates(self) -> None:
        """A gate that may admit more calls than there are slots would never find out that it could."""
        for given in self.gates:
            for gate in given.gates if isinstance(given, PerKey) else (given,):
                if gate.most_at_once is not None and gate.most_at_once > self.capacity:
                    raise ValueError(
                        f"capacity must be at least the maximum of {describe(gate)}, {gate.most_at_once}, "
                        f"got {self.capacity}: raise the capacity, or lower the maximum"
                    )

    def _check_mode(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}, got {describe(self.mode)}")
        if isinstance(self.key, str):  # in Spark, it is the name of a column
            name = describe(self.key)
            raise TypeError(f"key must be a function of an element, such as attrgetter({name}), got {name}")
        if self.key is not None:
            check_callback("key", self.key)
        if (self.mode == "keyed") != (self.key is not None):
            raise TypeError(f'mode "keyed" takes key=, a callable, and no other mode does; got {describe(self.key)}')


def _limits(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The capacity as a number, and the gates, if a gate is to find the capacity."""
    capacity: object = arguments.get("capacity", DEFAULT_CAPACITY)
    if isinstance(capacity, str) and capacity == "auto":
        capacity = Auto()
    if not isinstance(capacity, Auto):
        noun = 'a whole number, "auto" or a gates.Auto'
        return {"capacity": check_int("capacity", capacity, at_least=1, at_most=MAX_CAPACITY, noun=noun)}
    gate = arguments.get("gate")
    return {"capacity": capacity.most, "gate": (capacity, *(() if gate is None else as_gates(gate)))}
