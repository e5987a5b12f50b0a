"""How a policy finds the gates of the call in which it runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import trio

from ._core.queue import Entry

__all__ = ["GatesOfCall", "gates_of_call", "own_calls"]

# The gates of each task that makes calls
_OWNERS: WeakKeyDictionary[trio.lowlevel.Task, GatesOfCall] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class GatesOfCall:
    """The gates of a task's present call, for policies that make further calls for its element.

    Args:
        present: Returns the record of the call.
        admit: `Gatekeeper.admit_extra`.
        report_lost: `Admissions.lost`.
    """

    present: Callable[[], Entry | None]
    admit: Callable[[Entry], AbstractContextManager[object] | None]
    report_lost: Callable[[Entry, Exception | None], None]

    def admit_extra(self) -> AbstractContextManager[object] | None:
        """See `Gatekeeper.admit_extra`."""
        entry = self.present()
        return None if entry is None else self.admit(entry)

    def lose(self, error: Exception | None) -> None:
        """Report that the call has raised, or was cancelled (None), and that the result is that of a further call."""
        entry = self.present()
        if entry is not None:
            self.report_lost(entry, error)


def gates_of_call() -> GatesOfCall | None:
    """What admits the present task's calls. None: its operator has no gates, or the task is not an operator's."""
    return _OWNERS.get(trio.lowlevel.current_task())


def own_calls(gates: GatesOfCall) -> None:
    """Let these gates admit the calls of the present task."""
    _OWNERS[trio.lowlevel.current_task()] = gates
