"""The present call: its deadline, its gates, its operator, and the scope of what it uses by name.

A worker is registered by its task. A function may make calls in tasks of its own, and elements may share a call: the
operators of such tasks are registered by the nurseries above them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import Context, ContextVar
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakMethod

import trio
from trio.lowlevel import Task, current_task

from ._core.admission import CallEndedError
from ._core.gate import CURRENT_CALL
from ._core.ledger import Ledger
from ._errors import combine, reraise

__all__ = [
    "GatesOfCall",
    "Scope",
    "answer_from_cache",
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
    context.run(CURRENT_CALL.set, _SharedCall(CURRENT_CALL.get()))


@dataclass(frozen=True, slots=True)
class _SharedCall:
    """In the place of the present call, in a call that several elements share.

    It settles what the call of the element weighs that started it, as long as that one has not ended.

    Args:
        creator: The call of that element, or None.
    """

    creator: Any

    def settle(self, actual: float, name: str | None) -> None:
        if self.creator is not None:
            with suppress(CallEndedError):
                self.creator.settle(actual, name)

    def usage(self, name: str | None) -> tuple[float, float] | None:
        return None if self.creator is None else self.creator.usage(name)


class GatesOfCall(Protocol):
    """The gates of a task's present call, for policies that make further calls for its element."""

    def admit_extra(self) -> AbstractContextManager[object] | None:
        """Start another call, and return what it must run in. None: the gates do not admit it now."""

    def lose(self, error: Exception | None) -> None:
        """Report that the call has raised, or was cancelled (None), and that another call has given the result."""


class _Owner(GatesOfCall, Protocol):
    has_gates: bool

    def deadline(self) -> float: ...

    def answer_from_cache(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Operator:
    ledger: Ledger
    stop: WeakMethod[Callable[[Exception], None]]  # its object holds the nursery


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


def answer_from_cache() -> None:
    """Report that the present task's call is answered from a cache."""
    owner = _OWNERS.get(trio.lowlevel.current_task())
    if owner is not None:
        owner.answer_from_cache()


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
