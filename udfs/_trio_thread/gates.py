"""The gates of this process, whose state lasts from one task or micro-batch to the next.

Settings carry gates as configuration. The first task of a process that uses a gate makes an instance, which other tasks
of the same function share, at the same time or later.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from trio_asyncio_io.gates import Gate, PerKey

from .._sent.packed_function import Pickled, dumped, loaded
from .._sent.settings import Settings

__all__ = ["gates_of"]

# The gates that a process keeps; the least recently used is dropped first. A query that builds its function for each
# micro-batch makes new ones each time.
MAX_GATES = 64


def gates_of(settings: Settings, limits: Sequence[Gate] = ()) -> list[Gate | PerKey]:
    """The gates of a task, whose weights and keys are computed from rows.

    Args:
        settings: Have the configuration of the function's gates, which are shared by the tasks of this process.
        limits: The task's gates of the cluster's limits.
    """
    gates = settings.options.gates
    process, function = os.getpid(), settings.function.digest  # Spark's daemon forks
    kept = [_instance(process, function, position, dumped(gate, "gate")) for position, gate in enumerate(gates)]
    return [*kept, *map(_for_rows, limits)]


@lru_cache(MAX_GATES)
def _instance(process: int, function: str, position: int, pickled: Pickled) -> Gate | PerKey:  # noqa: ARG001 - the key
    """The gate of a process, of the function with this digest, and of this position in its list of gates."""
    return _for_rows(loaded(*pickled))


def _for_rows(gate: Gate | PerKey) -> Gate | PerKey:
    if isinstance(gate, PerKey):
        return PerKey([_weighing_rows(each) for each in gate.gates], _of_row(gate.key))
    return _weighing_rows(gate)


def _weighing_rows(gate: Gate) -> Gate:
    if gate.weight is not None:
        gate.weight = _of_row(gate.weight)
    return gate


def _of_row(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda row: function(*row.inputs)
