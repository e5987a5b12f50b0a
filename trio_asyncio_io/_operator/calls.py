"""The present call: its deadline, its weight, and its operator.

A worker is registered by its task. A function may make calls in tasks of its own, and elements may share a call: the
operators of such tasks are registered by the nurseries above them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import trio
from trio.lowlevel import Task, current_task

from .._core.admission import CallEndedError
from .._core.gate import CURRENT_CALL
from .._core.ledger import Ledger

# The tasks that make shared calls -> the tasks that have started them
_CREATORS: dict[Task, Task] = {}


def nurseries_of_call() -> Iterator[trio.Nursery]:
    """The nurseries that the present task works for, the innermost first.

    A task that makes a shared call works for those of the task that has started it.
    """
    task = current_task()
    while True:
        while task in _CREATORS:
            task = _CREATORS[task]
        nursery = task.parent_nursery
        if nursery is None:
            return
        yield nursery
        task = nursery.parent_task


def register_shared_call(task: Task) -> None:
    """The task makes a call for the present one, with a copy of its context, until `remove_shared_call`."""
    _CREATORS[task] = current_task()
    task.context = copy_context()
    call = CURRENT_CALL.get()
    if call is not None:
        task.context.run(CURRENT_CALL.set, _SharedCall(call))


def remove_shared_call() -> None:
    """The shared call of the present task has ended."""
    del _CREATORS[current_task()]


# What the present call weighs: CURRENT_CALL has a `gates.CallInGates`, or a `_SharedCall` around one


@dataclass(eq=False, slots=True)
class _SharedCall:
    """A call that several elements share. It settles for the element that started it, until that one's call ends.

    Args:
        creator: The call of that element.
    """

    creator: Any

    def settle(self, actual: float, name: str | None) -> None:
        settle_if_running(self.creator, actual, name)

    def usage(self, name: str | None) -> tuple[float, float] | None:
        return self.creator.usage(name)  # type: ignore[no-any-return]


def settle_if_running(call: Any, actual: float, name: str | None) -> None:
    """Correct what this call weighs, if there is one and it has not ended."""
    if call is not None:
        with suppress(CallEndedError):
            call.settle(actual, name)


def usage_of_all(name: str | None = None) -> tuple[float, float] | None:
    """The estimated and the settled weight of the present call plus the calls that `hedged` has made beside it.

    Args:
        name: In the gate of this name. None (the default): in the first gate with a `weight`.

    Returns:
        The two sums, or None if the call has no such gate.
    """
    call = CURRENT_CALL.get()
    return None if call is None else call.usage(name)


# What policies need of the present call


class Worker(Protocol):
    """What makes the present task's call, as policies see it: the deadline of the element, and see `FromCache`."""

    def deadline(self) -> float: ...

    def is_from_cache(self) -> bool: ...

    def set_from_cache(self, answered: bool) -> None: ...  # noqa: FBT001 - as of a context variable

    def admit_extra(self) -> AbstractContextManager[object] | None:
        """Start another call for the element, and return what it must run in. None: the gates do not admit it now."""

    def lose(self, error: Exception | None) -> None:
        """Report that the call has raised, or was cancelled (None), and that another call has given the result."""


class Operator(NamedTuple):
    """The operator that a task makes calls for. `stop` stops it with an exception."""

    ledger: Ledger
    stop: Callable[[Exception], None]


# Of calls that no worker makes. In a worker, setting a variable would cost a copy of its context, and a checkpoint
_FROM_CACHE: ContextVar[bool] = ContextVar("trio_asyncio_io_from_cache", default=False)
# Not weak: the traceback of an error leads from a worker to its task, so a weak key would never go
_WORKERS: dict[Task, Worker] = {}
# By nursery, not as a context variable, which would cost each element time
_OPERATORS: dict[trio.Nursery, Operator] = {}


def register_worker(worker: Worker) -> None:
    """The present task makes the calls of this worker, until `remove_worker`."""
    _WORKERS[current_task()] = worker


def remove_worker() -> None:
    """The present task makes no more calls."""
    del _WORKERS[current_task()]


def worker_of_call() -> Worker | None:
    """The worker that makes the present task's call. None: it is not made in the task of a worker."""
    return _WORKERS.get(current_task())


def register_operator(nursery: trio.Nursery, ledger: Ledger, stop: Callable[[Exception], None]) -> None:
    """The tasks of this nursery make the calls of the operator with this ledger, until `remove_operator`."""
    _OPERATORS[nursery] = Operator(ledger, stop)


def remove_operator(nursery: trio.Nursery) -> None:
    """The operator of this nursery has ended."""
    _OPERATORS.pop(nursery, None)


class FromCache:
    """Whether a cache has answered the present call.

    In an operator's call, this is False at the beginning of each attempt. Elsewhere, set it to False before the call.
    A call that several elements share, and one that the function makes in a task of its own, has its own value.
    """

    def get(self) -> bool:
        """Whether `cached` or `persistent` has answered it, or a part of it."""
        worker = worker_of_call()
        return _FROM_CACHE.get() if worker is None else worker.is_from_cache()

    def set(self, answered: bool) -> None:  # noqa: FBT001 - as of a context variable
        """Change the value of the present call."""
        worker = worker_of_call()
        if worker is None:
            _FROM_CACHE.set(answered)
        else:
            worker.set_from_cache(answered)


def operator_of_call() -> Operator | None:
    """The innermost operator that the present task makes a call for; None: there is none.

    A call that several elements share is made for the operator whose element started it.
    """
    return next((_OPERATORS[nursery] for nursery in nurseries_of_call() if nursery in _OPERATORS), None)
