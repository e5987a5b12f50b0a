"""Divides a cluster's rate over the tasks of a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

from trio_asyncio_io.gates import Gate

from .._rate.share import ClusterShare
from .session import task_slots

__all__ = ["check_rate", "gate_of_rate"]


def check_rate(cluster_rate: object) -> float:
    """The calls per second.

    Raises:
        TypeError, ValueError: It is not a number above 0.
    """
    if isinstance(cluster_rate, bool) or not isinstance(cluster_rate, int | float):
        raise TypeError(f"cluster_rate must be calls per second as a number, got {cluster_rate!r}")
    if not 0 < cluster_rate < inf:
        raise ValueError(f"cluster_rate must be calls per second above 0 and finite, got {cluster_rate!r}")
    return cluster_rate


def gate_of_rate(cluster_rate: object, session: Any) -> Callable[[], Gate]:
    """What makes the gate of a task, in the worker. It can be pickled.

    Raises:
        TypeError: The rate is not a number.
        ValueError: It is out of range, below the number of tasks that can run at once, or that number is unknown.
    """
    rate = check_rate(cluster_rate)
    slots = task_slots(session, "cluster_rate", "gate=RateLimit(...) per process")
    if rate < slots:
        raise ValueError(
            f"cluster_rate must be at least the number of tasks that can run at once, {slots}, because each makes at "
            f"least one call per second; got {cluster_rate!r}. Give Spark fewer cores, or coalesce(1) and use "
            "gate=RateLimit(...)"
        )
    return partial(ClusterShare, int(rate // slots))
