"""The gates of this process: what a gate has learnt survives the task and the micro-batch.

Settings carry gates as configuration. The first task of a process that uses a gate makes an instance, and later tasks
of the same function continue with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pyspark import cloudpickle

from trio_asyncio_io.gates import AdaptiveCapacity, Gate, PerKey

from .._packed_function import dumped
from .._rate.cluster_rate import TaskShare
from .._settings import Settings
from .rate_gates import ClusterLease, ClusterRateSourceAway, ClusterShare, rate_gates

__all__ = ["gate_classes", "gates_of"]

# A query that builds its function for each micro-batch leaves gates behind each time
MAX_GATES = 64


def gates_of(settings: Settings) -> list[Gate | PerKey]:
    """The gates of a task: those of its function in this process, and that of a cluster's rate.

    Weights and keys are computed from rows.
    """
    options = settings.options
    gates: list[Gate | PerKey] = list(options.gates)
    if isinstance(options.capacity, tuple):
        gates.append(AdaptiveCapacity(*options.capacity))
    kept = [_instance(settings.function.digest, position, gate) for position, gate in enumerate(gates)]
    return kept if settings.rate is None else [*kept, *rate_gates(settings.rate)]


def gate_classes(settings: Settings) -> list[str]:
    """The names of the classes that the gates of a task may have."""
    given = [each for gate in settings.options.gates for each in (gate.gates if isinstance(gate, PerKey) else [gate])]
    own = [type(gate).__name__ for gate in given]
    adaptive = [AdaptiveCapacity.__name__] if isinstance(settings.options.capacity, tuple) else []
    return list(dict.fromkeys([*own, *adaptive, *_rate_gate_classes(settings)]))


def _rate_gate_classes(settings: Settings) -> list[str]:
    if settings.rate is None:
        return []
    leased = [ClusterLease.__name__, ClusterRateSourceAway.__name__]
    return [ClusterShare.__name__] if isinstance(settings.rate, TaskShare) else leased


def _instance(function: str, position: int, configured: Gate | PerKey) -> Gate | PerKey:
    return _of_process(os.getpid(), function, position, dumped(configured, "gate"))


@lru_cache(MAX_GATES)
def _of_process(process: int, function: str, position: int, payload: bytes) -> Gate | PerKey:  # noqa: ARG001 - the key
    """The gate that the tasks of one function share in this process. Spark's daemon forks."""
    gate: Gate | PerKey = cloudpickle.loads(payload)
    return _for_rows(gate)


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
