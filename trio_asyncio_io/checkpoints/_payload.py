"""The payload: a durable checkpoint as bytes."""

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

__all__ = ["decoded", "encoded"]


def encoded(checkpoint: Checkpoint) -> bytes:
    """The durable checkpoint as bytes.

    Raises:
        TypeError: It is none.
        CheckpointError: Something in it does not pickle; says what, and of which type.
    """
    if not isinstance(checkpoint, Checkpoint):
        raise TypeError(f"commit takes a Checkpoint, got a {type(checkpoint).__qualname__}")
    try:
        return _pickled(checkpoint)
    except Exception as error:
        raise CheckpointError(
            f"{_culprit(checkpoint)} does not pickle: {error}. Nothing was committed. Let elements, results and "
            "the position be plain values"
        ) from error


def decoded(payload: bytes) -> Checkpoint:
    """The durable checkpoint that was made into these bytes.

    Raises:
        CheckpointError: It does not unpickle here.
    """
    try:
        checkpoint = pickle.loads(payload)  # noqa: S301 - SQLiteStore says whom to trust
    except Exception as error:
        raise CheckpointError(
            f"it does not unpickle: {type(error).__name__}: {error}. It is kept as it is: make what it names "
            "importable, as it was in the process that committed it, and load it again"
        ) from error
    if not isinstance(checkpoint, Checkpoint):
        raise CheckpointError(f"it is no durable checkpoint, but a {type(checkpoint).__qualname__}")
    return checkpoint


def _reducer(kind: type) -> Callable[[Any], tuple[type, tuple[Any, ...]]]:
    values = attrgetter(*[each.name for each in fields(kind)])  # a tuple, for there are at least two
    return lambda each: (kind, values(each))


# By what they are made of, and not by their state: less than half the time, and a field that a later release adds has
# its default in what this one has written.
_REDUCERS: dict[type, Any] = {kind: _reducer(kind) for kind in (Checkpoint, Snapshot, SnapshotElement, StreamRecord)}


def _pickled(value: object) -> bytes:
    file = BytesIO()
    pickler = pickle.Pickler(file, protocol=5)
    pickler.dispatch_table = {**copyreg.dispatch_table, **_REDUCERS}
    pickler.dump(value)
    return file.getvalue()


def _culprit(checkpoint: Checkpoint) -> str:
    for what, value in _parts(checkpoint):
        try:
            _pickled(value)
        except Exception:  # noqa: BLE001 - pickling runs the user's code
            return f"{what}, a {type(value).__qualname__},"
    return "the durable checkpoint"


def _parts(checkpoint: Checkpoint) -> Iterator[tuple[str, object]]:
    yield "the position", checkpoint.position
    for each in checkpoint.snapshot.elements:
        yield f"element {each.sequence}", value_of(each.element)
        for result in each.results or ():
            yield f"a result of element {each.sequence}", result
        yield f"element {each.sequence}", each.element
