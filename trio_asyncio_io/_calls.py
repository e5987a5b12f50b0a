"""The call that the present task makes: its deadline, its gates, its operator, and the scope of what it uses by name.

A worker's calls are found by its task. Calls that a function makes in tasks of its own, or that several elements share,
are found by the nurseries above them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass
from math import inf
from typing import Protocol
from weakref import WeakKeyDictionary, WeakMethod

import trio
from trio.lowlevel import Task, current_task

from ._core.ledger import Ledger
from ._errors import combine, reraise

__all__ = [
    "FromCache",
    "GatesOfCall",
    "Scope",
    "cover",
    "deadline_of_call",
    "follow_creator",
    "gates_of_call",
    "ledger_of_call",
    "own_calls",
    "present_scope",
    "stop_of_call",
]


class Used(Protocol):
    """Something that has a name and counts its users."""

    def join(self) -> None:
        """Add a user."""

    async def leave(self) -> None:
        """Remove a user. Cancellation: it is removed."""


class Scope:
    """Uses things on behalf of an operator, from the first time that one of its calls uses them until `end`."""

    def __init__(self) -> None:
        self._used: dict[Used, None] = {}
        self._has_ended = False

    def hold(self, thing: Used) -> None:
        """Use it until the end."""
        if thing not in self._used and not self._has_ended:
            thing.join()
            self._used[thing] = None

    def cover(self, nursery: trio.Nursery) -> None:
        """The tasks of this nursery, and theirs, are in this scope."""
        _SCOPES[nursery] = self

    @contextmanager
    def entered(self) -> Iterator[None]:
        """The present task is in this scope, during the block."""
        token = _ENTERED.set(self)
        try:
            yield
        finally:
            _ENTERED.reset(token)

    async def end(self) -> None:
        """Leave everything, the latest first.

        Raises:
            Exception: Closing a resource raised.
        """
        self._has_ended = True
        errors: list[BaseException] = []
        while self._used:
            thing, _ = self._used.popitem()
            try:
                await thing.leave()
            except Exception as error:  # noqa: BLE001 - a resource may raise anything
                errors.append(error)
        if errors:
            reraise(combine(errors) or errors[0])


_SCOPES: WeakKeyDictionary[trio.Nursery, Scope] = WeakKeyDictionary()

# Not set in the tasks that make calls: a context variable of the operator's would cost each of its elements time
_ENTERED: ContextVar[Scope | None] = ContextVar("trio_asyncio_io_scope", default=None)
_CREATOR: ContextVar[Task | None] = ContextVar("trio_asyncio_io_creator", default=None)


def present_scope() -> Scope | None:
    """The scope of the outermost operator that the present task works for. An inner one may end much earlier."""
    scope = _ENTERED.get()
    for nursery in nurseries_of_call():
        scope = _SCOPES.get(nursery, scope)
    return scope


def nurseries_of_call() -> Iterator[trio.Nursery]:
    """The nurseries that the present task works for, the innermost first.

    Those of a system task that follows its creator are followed by those of the creator.
    """
    task: Task | None = current_task()
    creator = _CREATOR.get()
    while task is not None:
        nursery = task.parent_nursery
        if nursery is not None:
            yield nursery
            task = nursery.parent_task
        else:
            task, creator = creator, None


def follow_creator(context: Context) -> None:
    """A system task with this context works for the same operators as the present task."""
    context.run(_CREATOR.set, current_task())


class GatesOfCall(Protocol):
    """The gates of a task's present call, for policies that make further calls for its element."""

    def admit_extra(self) -> AbstractContextManager[object] | None:
        """Start another call, and return what it must run in. None: the gates do not admit it now."""

    def lose(self, error: Exception | None) -> None:
        """Report that the call has raised, or was cancelled (None), and that another call has given the result."""


class _Owner(GatesOfCall, Protocol):
    has_gates: bool

    def deadline(self) -> float: ...

    def is_from_cache(self) -> bool: ...

    def set_from_cache(self, answered: bool) -> None: ...  # noqa: FBT001 - as of a context variable


@dataclass(frozen=True, slots=True)
class _Operator:
    ledger: Ledger
    stop: WeakMethod[Callable[[Exception], None]]  # its object holds the nursery


# Of calls that no worker makes. In a worker, setting a variable would cost a copy of its context, and a checkpoint
_FROM_CACHE: ContextVar[bool] = ContextVar("trio_asyncio_io_from_cache", default=False)
_OWNERS: WeakKeyDictionary[trio.lowlevel.Task, _Owner] = WeakKeyDictionary()
# By nursery, not as a context variable, which would cost each element time
_OPERATORS: WeakKeyDictionary[trio.Nursery, _Operator] = WeakKeyDictionary()


def own_calls(owner: _Owner) -> None:
    """The present task makes the calls of this worker."""
    _OWNERS[trio.lowlevel.current_task()] = owner


def cover(nursery: trio.Nursery, ledger: Ledger, stop: Callable[[Exception], None]) -> None:
    """The tasks of this nursery make the calls of the operator with this ledger. Its method `stop` stops it."""
    _OPERATORS[nursery] = _Operator(ledger, WeakMethod(stop))


def deadline_of_call() -> float:
    """When the present task's call is cancelled: the deadline of its element, or of a cancel scope around it."""
    owner = _OWNERS.get(trio.lowlevel.current_task())
    return min(inf if owner is None else owner.deadline(), trio.current_effective_deadline())


class FromCache:
    """Whether a cache has answered the present call.

    In an operator's call, this is False at the beginning of each attempt. Elsewhere, set it to False before the call.
    A call that several elements share, and one that the function makes in a task of its own, has its own value.
    """

    def get(self) -> bool:
        """Whether `cached` or `persistent` has answered it, or a part of it."""
        owner = _OWNERS.get(current_task())
        return _FROM_CACHE.get() if owner is None else owner.is_from_cache()

    def set(self, answered: bool) -> None:  # noqa: FBT001 - as of a context variable
        """Change the value of the present call."""
        owner = _OWNERS.get(current_task())
        if owner is None:
            _FROM_CACHE.set(answered)
        else:
            owner.set_from_cache(answered)


def gates_of_call() -> GatesOfCall | None:
    """The gates of the present task's call. None: its operator has no gates, or the task is not an operator's."""
    owner = _OWNERS.get(trio.lowlevel.current_task())
    return owner if owner is not None and owner.has_gates else None


def ledger_of_call() -> Ledger | None:
    """The ledger of the innermost operator that the present task makes a call for; None: there is none.

    A call that several elements share is made for the operator whose element started it.
    """
    operator = _operator_of_call()
    return None if operator is None else operator.ledger


def stop_of_call() -> Callable[[Exception], None] | None:
    """Stops the operator of `ledger_of_call` with an exception."""
    operator = _operator_of_call()
    return None if operator is None else operator.stop()


def _operator_of_call() -> _Operator | None:
    return next((_OPERATORS[nursery] for nursery in nurseries_of_call() if nursery in _OPERATORS), None)
