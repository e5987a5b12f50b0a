"""The gates of this process: what a gate has learnt survives the task and the micro-batch.

Settings carry gates as configuration. The first task of a process that uses a gate makes an instance, and later tasks
of the same function continue with it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Any, TypeAlias

from pyspark import cloudpickle

from trio_asyncio_io.gates import AdaptiveCapacity, Gate

from .._packed_function import dumped
from .._rate.cluster_lease import ClusterLease
from .._rate.share import ClusterShare
from .._settings import Settings

__all__ = ["gate_classes", "gates_of"]

# The process, the function, the gate's position in its list, and the digest of its configuration. Spark's daemon forks
Key: TypeAlias = tuple[int, str, int, str]
_of_process: dict[Key, Gate] = {}


def gates_of(settings: Settings) -> list[Gate]:
    """The gates of a task: those of its function in this process, and that of a cluster's rate.

    Weights are computed from rows.
    """
    options = settings.options
    gates = list(options.gates)
    if isinstance(options.capacity, tuple):
        gates.append(AdaptiveCapacity(*options.capacity))
    kept = [_instance(settings.function.digest, position, gate) for position, gate in enumerate(gates)]
    return kept if settings.rate_gate is None else [*kept, settings.rate_gate()]


def gate_classes(settings: Settings) -> list[str]:
    """The names of the classes that the gates of a task may have."""
    own = [type(gate).__name__ for gate in settings.options.gates]
    adaptive = [AdaptiveCapacity.__name__] if isinstance(settings.options.capacity, tuple) else []
    of_cluster = [] if settings.rate_gate is None else [ClusterShare.__name__, ClusterLease.__name__]
    return list(dict.fromkeys([*own, *adaptive, *of_cluster]))


def _instance(function: str, position: int, configured: Gate) -> Gate:
    payload = dumped(configured, "gate")
    key = os.getpid(), function, position, hashlib.sha256(payload).hexdigest()
    gate = _of_process.get(key)
    if gate is None:
        gate = _of_process[key] = cloudpickle.loads(payload)
        if gate.weight is not None:
            gate.weight = _of_row(gate.weight)
    return gate


def _of_row(weight: Callable[..., float]) -> Callable[[Any], float]:
    return lambda row: weight(*row.inputs)
