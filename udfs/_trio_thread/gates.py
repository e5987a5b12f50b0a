"""The gates of this process, whose state lasts from one task or micro-batch to the next.

Settings carry gates, and the limits of a cluster, as configuration. The first task of a process that uses one makes an
instance, which other tasks share, at the same time or later: a gate with the tasks of the same function, a leased limit
with all. Only a task's share of a rate is its own.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any, TypeVar

from trio_asyncio_io.gates import Gate, PerKey

from .._limits.cluster_gates import ClusterShare, LeaseGate
from .._limits.cluster_limits import LeasedLimit, TaskShare
from .._limits.sources import source_of
from .._sent.function import Pickled, dumped, loaded
from .._sent.settings import Settings

# The gates that a process keeps; the least recently used is dropped first. A query that builds its function for each
# micro-batch makes new ones each time.
MAX_GATES = 64
MAX_LEASES = 16  # the same for limits

G = TypeVar("G", bound=Gate)


@asynccontextmanager
async def gate_of(limit: TaskShare | LeasedLimit) -> AsyncIterator[Gate]:
    """The gate of a cluster's limit, which a task uses in the block. The last task of a process returns the rest."""
    if isinstance(limit, TaskShare):
        yield _weighing_rows(ClusterShare(limit.calls, limit.weight, limit.name))
        return
    gate = _lease_gate(os.getpid(), dumped(limit, "limit"))
    async with gate.in_use():
        yield gate


def gates_of(settings: Settings, limits: Sequence[Gate] = ()) -> list[Gate | PerKey]:
    """The gates of a task, whose weights and keys are computed from rows.

    Args:
        settings: Have the configuration of the function's gates, which are shared by the tasks of this process.
        limits: What `gate_of` yields for the cluster's limits.
    """
    gates = settings.options.gates
    process, function = os.getpid(), settings.function.digest  # Spark's daemon forks
    kept = [_instance(process, function, position, dumped(gate, "gate")) for position, gate in enumerate(gates)]
    return [*kept, *limits]


@lru_cache(MAX_LEASES)
def _lease_gate(process: int, pickled: Pickled) -> LeaseGate:  # noqa: ARG001 - the key
    """The gate of a process for this limit, with these weights."""
    leased = loaded(*pickled)
    return _weighing_rows(LeaseGate(leased, source_of(leased)))


@lru_cache(MAX_GATES)
def _instance(process: int, function: str, position: int, pickled: Pickled) -> Gate | PerKey:  # noqa: ARG001 - the key
    """The gate of a process, of the function with this digest, and of this position in its list of gates."""
    gate: Gate | PerKey = loaded(*pickled)
    if isinstance(gate, PerKey):
        return PerKey([_weighing_rows(each) for each in gate.gates], _of_row(gate.key))
    return _weighing_rows(gate)


def _weighing_rows(gate: G) -> G:
    if gate.weight is not None:
        gate.weight = _of_row(gate.weight)
    return gate


def _of_row(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda row: function(*row.inputs)
