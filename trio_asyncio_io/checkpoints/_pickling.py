"""Pickling of durable checkpoints."""

from __future__ import annotations

import copyreg
import pickle
from collections.abc import Callable, Iterator
from dataclasses import fields
from io import BytesIO
from operator import attrgetter
from typing import Any

from .._core.elements import StreamRecord, value_of
from .._core.snapshot import Snapshot, SnapshotElement
from ._checkpoint import Checkpoint, CheckpointError

__all__ = ["pickled", "unpickled"]


def pickled(checkpoint: Checkpoint) -> bytes:
    """The durable checkpoint as bytes.

    Raises:
        TypeError: It is not a durable checkpoint.
        CheckpointError: Part of it cannot be pickled. The message names the part and its type.
    """
    if not isinstance(checkpoint, Checkpoint):
        raise TypeError(f"commit takes a Checkpoint, got a {type(checkpoint).__qualname__}")
    try:
        return _dumped(checkpoint)
    except Exception as error:
        raise CheckpointError(
            f"{_first_unpicklable(checkpoint)} cannot be pickled: {error}. Nothing was committed. Use plain values "
            "for elements, results and the position"
        ) from error


def unpickled(payload: bytes) -> Checkpoint:
    """The durable checkpoint that was pickled.

    Raises:
        CheckpointError: It cannot be unpickled in this process.
    """
    try:
        checkpoint = pickle.loads(payload)  # noqa: S301 - SQLiteStore's docstring explains whom to trust
    except Exception as error:
        raise CheckpointError(
            f"it cannot be unpickled: {type(error).__name__}: {error}. It remains in the file: make the missing names "
            "importable, as in the process that committed it, and load it again"
        ) from error
    if not isinstance(checkpoint, Checkpoint):
        raise CheckpointError(f"it is not a durable checkpoint, but a {type(checkpoint).__qualname__}")
    return checkpoint


def _reducer(kind: type) -> Callable[[Any], tuple[type, tuple[Any, ...]]]:
    values = attrgetter(*[field.name for field in fields(kind)])  # returns a tuple, since each has two fields or more
    return lambda instance: (kind, values(instance))


# Pickle these as a call of the class, and not as its state. That takes less than half the time, and a field that a
# later release adds gets its default value when it reads an older file.
_REDUCERS: dict[type, Any] = {kind: _reducer(kind) for kind in (Checkpoint, Snapshot, SnapshotElement, StreamRecord)}


def _dumped(value: object) -> bytes:
    file = BytesIO()
    pickler = pickle.Pickler(file, protocol=5)
    pickler.dispatch_table = {**copyreg.dispatch_table, **_REDUCERS}
    pickler.dump(value)
    return file.getvalue()


def _first_unpicklable(checkpoint: Checkpoint) -> str:
    for description, value in _parts(checkpoint):
        try:
            _dumped(value)
        except Exception:  # noqa: BLE001 - pickling runs the user's code
            return f"{description}, a {type(value).__qualname__},"
    return "the durable checkpoint"


def _parts(checkpoint: Checkpoint) -> Iterator[tuple[str, object]]:
    yield "the position", checkpoint.position
    for entry in checkpoint.snapshot.elements:
        yield f"element {entry.sequence}", value_of(entry.element)
        for result in entry.results or ():
            yield f"a result of element {entry.sequence}", result
        yield f"element {entry.sequence}", entry.element
