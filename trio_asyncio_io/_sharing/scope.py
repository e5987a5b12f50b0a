"""The scope of an operator: what it uses by name stays in use until it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Protocol
from weakref import WeakKeyDictionary

import trio
from trio.lowlevel import Task, current_task

from .._errors import combine, reraise

__all__ = ["Scope", "Used", "follow_creator", "nurseries_of_call", "present_scope"]


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
