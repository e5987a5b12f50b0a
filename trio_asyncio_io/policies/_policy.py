"""The base class of policies, and what they need: opening for several users, Trio runs, and keys of calls.

Policy         a function around an inner function
RunChange      detects another Trio run
OpenCount      the first user opens something, and the last one closes it
distinct_key   a key that differs by type, too
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar

import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from .._operator.function import Invokes, OpenedFunction, Wrapper, as_function, innermost
from .._operator.tasks import awaited
from .._values.checks import check_callback
from .._values.describe import describe

P = ParamSpec("P")
R = TypeVar("R")

Wrapped: TypeAlias = Callable[P, Awaitable[R]] | Invokes[P, R]


class Policy(Wrapper, OpenedFunction, Generic[P, R]):
    """A function around an inner function, which is opened and closed with it.

    Several operators may use one policy at the same time: the first one opens it, and the last one closes it. A pickled
    policy has its function and its options, but not its state.

    An `invoke` is protected from interrupts, so that no step of a policy is left half done. What it calls of the user's
    is not: the inner function, by `_call`, and the key, by `key_of`.

    Args:
        function: An async callable or an `AsyncFunction`, of one or more arguments.
        key: The arguments -> hashable. Calls with equal keys are the same call. None: the arguments themselves.
        options: The other options of the policy, for pickling.
    """

    def __init__(self, function: Any, *, key: Callable[..., Hashable] | None = None, **options: Any) -> None:
        self.function = function
        self._inner = as_function(function)
        # Calls the inner function. Interrupts may reach the user's function; the innermost policy allows them
        self._call = self._inner.invoke if isinstance(self._inner, Policy) else partial(awaited, self._inner.invoke)
        if callable(timeout := getattr(self._inner, "timeout", None)):
            self.timeout = timeout  # the operator checks whether it exists
        self._users = OpenCount()
        self._key = None if key is None else check_callback("key", key)
        self._options = options if key is None else {"key": key, **options}

    def __reduce__(self) -> Any:
        return partial(type(self), self.function, **self._options), ()

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> Coroutine[Any, Any, R]:
        """The same as `invoke`, so that a policy is a callable with the parameters of its function.

        Raises:
            TypeError: The function has parameters that are only for keywords, or keywords do not fit its parameters.
        """
        return self.invoke(*arguments, **keywords)

    @abstractmethod
    async def invoke(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """The result of a call. Values by keyword take the places of their parameters, so that keys do not differ."""

    async def open(self) -> None:
        """Open the inner function, unless another operator has opened it. Waits while another operator does so."""
        await self._users.add(self._open)

    async def close(self) -> None:
        """Close the inner function, unless another operator still uses it."""
        await self._users.remove(self._close)

    async def _open(self) -> None:
        """Open the policy for its first user."""
        if hasattr(self._inner, "open"):
            await awaited(self._inner.open)

    async def _close(self) -> None:
        """Close the policy after its last user."""
        if hasattr(self._inner, "close"):
            await awaited(self._inner.close)

    @disable_ki_protection
    def key_of(self, arguments: tuple[Any, ...]) -> Hashable:
        """The key of a call. Keys of different types differ, such as 1, 1.0 and True.

        Raises:
            TypeError: The arguments are not hashable, and the policy needs a `key`.
        """
        if self._key is None and len(arguments) == 1:  # the most frequent case. No other call has such a key
            value = arguments[0]
            kind = type(value)
            if kind is str or kind is int:
                return value if kind is str else (int, value)
        key = arguments if self._key is None else self._key(*arguments)
        try:
            hash(key)
        except TypeError:
            raise TypeError(
                f"{type(self).__name__} needs a hashable key, got {describe(key)}: give it key=, a function that "
                "returns a string, a number or a tuple of them"
            ) from None
        return distinct_key(key)


def by_position(policy: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
    """The arguments of a call, with those given by keyword in the places of their parameters.

    Raises:
        TypeError: They do not fit the parameters, or the function has some that are only for keywords.
    """
    bound = inspect.signature(as_function(innermost(policy)).invoke).bind(*arguments, **keywords)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"{describe(policy)} calls its function by position, and {', '.join(bound.kwargs)} can be given only by "
            "keyword: use functools.partial inside the policy"
        )
    return bound.args


@dataclass(eq=False, slots=True)
class RunChange:
    """Detects that another Trio run has begun.

    Each run has its own clock with an arbitrary start, so instants of two runs cannot be compared. Tasks, locks and
    events of a run do not survive it.
    """

    _token: trio.lowlevel.TrioToken | None = None

    def has_happened(self) -> bool:
        """Whether this is another run than at the last call. True at the first call."""
        token = trio.lowlevel.current_trio_token()
        if token is self._token:
            return False
        self._token = token
        return True


@dataclass(eq=False, slots=True)
class OpenCount:
    """Counts the users of something that the first one opens and the last one closes.

    While one user opens or closes it, others wait. If opening fails or is cancelled, the next user tries again. Users
    of an earlier Trio run do not count, because whatever they left open ended with it.
    """

    _count: int = 0
    _lock: trio.Lock = field(default_factory=trio.Lock)
    _run_change: RunChange = field(default_factory=RunChange)

    @enable_ki_protection
    async def add(self, open_: Callable[[], Awaitable[None]]) -> None:
        """Add a user. Awaits `open_` for the first one."""
        async with self._lock_of_this_run():
            if not self._count:
                await open_()
            self._count += 1

    @enable_ki_protection
    async def remove(self, close: Callable[[], Awaitable[None]]) -> None:
        """Remove a user. Awaits `close` after the last one.

        Cancellation: the user is removed, and `close` is awaited.
        """
        lock = self._lock_of_this_run()
        with trio.CancelScope(shield=True):  # short, because nobody opens or closes it while this user is counted
            await lock.acquire()
        try:
            self._count = max(self._count - 1, 0)
            if not self._count:
                await close()
        finally:
            lock.release()

    def _lock_of_this_run(self) -> trio.Lock:
        if self._run_change.has_happened():
            self._count = 0
            self._lock = trio.Lock()
        return self._lock


def distinct_key(value: Any) -> Hashable:
    """A key that equals only the keys of equal values of the same type, also inside tuples and mappings.

    In Python 1, 1.0 and True are equal. So are 0.0 and -0.0, Decimal("1") and Decimal("1.0"), and datetimes of two time
    zones for the same instant. NaN does not even equal itself. Their distinct keys differ, and those of NaN are equal.

    Args:
        value: A hashable. Objects of your own classes are equal if their class defines them so.
    """
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return] # no value of another type equals it
    if isinstance(value, tuple):
        return (kind, *map(distinct_key, value))
    return kind, value if kind is int else _content(value)


def _content(value: Any) -> Hashable:
    if isinstance(value, float):
        return value.hex()
    if type(value) is Decimal:
        return str(value)
    if type(value) is datetime:
        return repr(value)  # has the fold and the zone
    if isinstance(value, frozenset):
        return frozenset(map(distinct_key, value))
    if isinstance(value, Mapping):
        return frozenset((distinct_key(key), distinct_key(item)) for key, item in value.items())
    return value  # type: ignore[no-any-return]
