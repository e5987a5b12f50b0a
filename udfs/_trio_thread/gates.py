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

from trio_asyncio_io.gates import AdaptiveCapacity, Gate, PerKey

from .._sent.packed_function import dumped
from .._sent.settings import Settings

__all__ = ["gates_of"]

# The process, the function, the gate's position in its list, and the digest of its configuration. Spark's daemon forks
Key: TypeAlias = tuple[int, str, int, str]
_of_process: dict[Key, Gate | PerKey] = {}


def gates_of(settings: Settings) -> list[Gate | PerKey]:
    """The gates of a task: those of its function in this process, and that of a cluster's rate.

    Weights and keys are computed from rows.
    """
    options = settings.options
    gates: list[Gate | PerKey] = list(options.gates)
    if isinstance(options.capacity, tuple):
        gates.append(AdaptiveCapacity(*options.capacity))
    kept = [_instance(settings.function.digest, position, gate) for position, gate in enumerate(gates)]
    return kept if settings.rate_gate is None else [*kept, settings.rate_gate()]


def _instance(function: str, position: int, configured: Gate | PerKey) -> Gate | PerKey:
    payload = dumped(configured, "gate")
    key = os.getpid(), function, position, hashlib.sha256(payload).hexdigest()
    gate = _of_process.get(key)
    if gate is None:
        gate = _of_process[key] = _for_rows(cloudpickle.loads(payload))
    return gate


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
