"""How a policy finds the call in which it runs: its deadline, its gates, and the ledger of its operator."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import inf
from typing import Protocol
from weakref import WeakKeyDictionary, WeakMethod

import trio

from ._core.ledger import Ledger
from ._sharing.scope import nurseries_of_call

__all__ = [
    "GatesOfCall",
    "answer_from_cache",
    "cover",
    "deadline_of_call",
    "gates_of_call",
    "ledger_of_call",
    "own_calls",
    "stop_of_call",
]


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
