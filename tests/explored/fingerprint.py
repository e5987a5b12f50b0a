"""The state of a program, written down: everything on which its future depends.

All fields of all objects of the package are followed, so a new field separates states. What may be left out is listed:
too much of it merges states that differ, so an error may be missed; too little costs time. `test_loom` checks both.
"""

from __future__ import annotations

import gc
from collections import deque
from functools import cache
from typing import Any

import trio

# Fields and classes on which no future depends: accounts, and what is the same in the whole run
IGNORED = frozenset(
    {"Counters", "Flow", "Sampling", "Samples", "Invoker", "Options", "Holder", "BlockContext", "Pace", "Context"}
    | {"load", "holder", "_holder", "current_time", "_current_time", "_ready_since", "_free_since", "_pace"}
    | {"identity"}
)
_IGNORED_OF_COMPLETED = frozenset({"since", "attempts"})
_PLAIN = frozenset({type(None), bool, int, float, str, bytes})
_SEQUENCES, _SETS = (tuple, list, deque), (set, frozenset)
_TRIO = frozenset({"ParkingLot", "MemoryReceiveChannel", "MemorySendChannel", "MemoryChannelState", "StrictFIFOLock"})


class Fingerprint:
    """The contents of objects, as a list of plain values. Equal states have equal hashes.

    Args:
        ignored: The names of fields and classes to leave out, besides `IGNORED`.
        numbers: Of the tasks.
    """

    def __init__(
        self, ignored: frozenset[str] = frozenset(), numbers: dict[trio.lowlevel.Task, int] | None = None
    ) -> None:
        self._written: list[object] = []
        self._ignored = IGNORED | ignored
        self._ignored_of_completed = self._ignored | _IGNORED_OF_COMPLETED
        self._numbers = numbers or {}
        # By id: an object that was written before, and its number. The object stays alive, so no other one gets its id
        self._seen: dict[int, tuple[int, object]] = {}

    def __hash__(self) -> int:
        return hash(repr(self._written))

    def add(self, *values: Any) -> None:
        """Add these, and all that they refer to."""
        seen, written = self._seen, self._written
        for value in values:
            kind = type(value)
            if kind in _PLAIN:
                written.append(value)
            elif kind is trio.lowlevel.Task:
                written.append(("task", self._numbers.get(value)))
            elif id(value) in seen:
                written.append(("seen", seen[id(value)][0]))
            elif kind.__name__ in self._ignored:
                written.append(kind.__name__)
            else:
                seen[id(value)] = len(seen), value
                self._add_parts(value, kind)

    def add_ledger(self, ledger: Any) -> None:
        """Add a ledger, with what decides something in its accounts."""
        flow, counters = ledger.flow, ledger.counters
        self.add(ledger, flow.backoffs, flow.spent, flow.at_keys, flow.room.is_on, flow.input_end, counters.running)

    def add_task(self, task: trio.lowlevel.Task, *, is_ready: bool) -> None:
        """Add where a task is, what the package's frames hold there, and what the task will be sent."""
        self.add(task.name, is_ready, task._next_send if is_ready else None)
        coroutine: Any = task.coro
        while coroutine is not None:
            frame = getattr(coroutine, "cr_frame", None)
            if frame is not None:
                self.add(frame.f_lasti)
                if "trio_asyncio_io" in frame.f_code.co_filename:
                    # Not `f_locals`: the frame would keep that dict
                    self.add(*(each for each in gc.get_referents(coroutine) if _is_state(type(each))))
            coroutine = getattr(coroutine, "cr_await", None)

    def _add_parts(self, value: Any, kind: type) -> None:
        if issubclass(kind, _SEQUENCES):
            self.add(len(value), *value)
        elif issubclass(kind, dict):
            self.add(len(value), *value, *value.values())
        elif issubclass(kind, _SETS):
            self.add(len(value), *sorted(value, key=self._place))
        elif kind is trio.CancelScope:
            self.add(value.deadline, value.cancel_called)
        elif kind is trio.Nursery:
            self.add(value.cancel_scope)
        else:
            self._written.append(kind.__name__)
            if _has_state(kind):
                self._add_fields(value, kind)

    def _add_fields(self, value: Any, kind: type) -> None:
        """Add the values of the slots, which are those of the class, and the names and values of the other fields."""
        is_completed = getattr(value, "results", None) is not None
        ignored = self._ignored_of_completed if is_completed else self._ignored
        fields = [getattr(value, name, None) for name in _slots_of(kind, ignored)]
        for name, field in getattr(value, "__dict__", {}).items():
            if name not in ignored:
                fields += name, field
        self.add(*fields)

    def _place(self, value: Any) -> int:
        if isinstance(value, trio.lowlevel.Task):
            return self._numbers.get(value, 0)
        return getattr(value, "sequence", self._seen.get(id(value), (0,))[0])


@cache
def _has_state(kind: type) -> bool:
    """Whether the fields of such an object are written: it is one of the package's, or a channel, lock or outcome."""
    module = kind.__module__
    return (
        (module.startswith("trio_asyncio_io") and not issubclass(kind, BaseException))
        or (module.startswith("trio.") and kind.__name__ in _TRIO)
        or (module.startswith("outcome") and kind.__name__ in {"Value", "Error"})
    )


@cache
def _is_state(kind: type) -> bool:
    return kind in {type(None), bool, list} or _has_state(kind)


@cache
def _slots_of(kind: type, ignored: frozenset[str]) -> tuple[str, ...]:
    slots = (each.__dict__.get("__slots__", ()) for each in kind.__mro__)
    names = (name for each in slots for name in ((each,) if isinstance(each, str) else each))
    return tuple(name for name in names if not name.startswith("__") and name not in ignored)
