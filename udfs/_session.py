"""The session: what the plan needs to know of Spark's configuration, classic and Connect alike."""

from __future__ import annotations

import re
from typing import Any

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

__all__ = ["active_session", "share_of", "task_slots", "time_zone"]


def active_session() -> Any:
    """The session that a column is built in: this thread's, else the one of all threads.

    Raises:
        RuntimeError: There is none; says what to do.
    """
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        raise RuntimeError(
            "no Spark session is active: create one with SparkSession.builder.getOrCreate() first"
        ) from None


def time_zone(session: Any) -> str:
    """The session's time zone, such as "UTC"."""
    return str(session.conf.get("spark.sql.session.timeZone"))


def task_slots(session: Any) -> int:
    """How many tasks can run at once in this session, as far as its configuration says.

    Raises:
        ValueError: It cannot be told.
    """
    master = session.conf.get("spark.master", None) or ""
    per_task = int(session.conf.get("spark.task.cpus", "1"))
    local = re.fullmatch(r"local(?:\[\s*(\d+|\*)\s*(?:,.*)?\])?", master)
    if local:
        return max(1, _local_cores(session, local[1]) // per_task)
    cores = session.conf.get("spark.executor.cores", None)
    most = session.conf.get("spark.cores.max", None)
    if most is not None:
        return max(1, int(most) // per_task)
    executors = _most_executors(session)
    if cores is not None and executors is not None:
        return max(1, executors * (int(cores) // per_task))
    cluster = re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master)
    if cluster:
        return max(1, int(cluster[1]) * (int(cluster[2]) // per_task))
    raise ValueError(
        "cluster_capacity needs to know how many tasks can run at once: set spark.cores.max, or spark.executor.cores "
        "and spark.executor.instances (or spark.dynamicAllocation.maxExecutors), or give capacity= per task instead"
    )


def share_of(cluster_capacity: object, session: Any) -> int:
    """The capacity of one task, so that all that can run at once stay below `cluster_capacity` together.

    Raises:
        TypeError, ValueError: It is no whole number, or too small to be shared.
    """
    if isinstance(cluster_capacity, bool) or not isinstance(cluster_capacity, int):
        raise TypeError(f"cluster_capacity must be a whole number, got {cluster_capacity!r}")
    slots = task_slots(session)
    if cluster_capacity < slots:
        raise ValueError(
            f"cluster_capacity must be at least the number of tasks that can run at once, {slots}, since each makes at "
            f"least one call; got {cluster_capacity}. Give Spark fewer cores, or coalesce(1) and use capacity="
        )
    return cluster_capacity // slots


def _local_cores(session: Any, threads: str | None) -> int:
    """The N of local[N]; `defaultParallelism` may be anything, for it can be set."""
    if threads != "*":
        return int(threads or 1)
    context = getattr(session, "_sc", None)
    if context is None:
        raise ValueError(
            "cluster_capacity needs to know how many tasks can run at once, and a Spark Connect session does not tell "
            "the processors of its server, whose master is local[*]: start that with local[N], or give capacity= per "
            "task instead"
        )
    return int(context._jvm.java.lang.Runtime.getRuntime().availableProcessors())  # noqa: SLF001 - as Spark does


def _most_executors(session: Any) -> int | None:
    if str(session.conf.get("spark.dynamicAllocation.enabled", "false")).lower() == "true":
        found = session.conf.get("spark.dynamicAllocation.maxExecutors", None)
    else:
        found = session.conf.get("spark.executor.instances", None)
    return None if found is None else int(found)
