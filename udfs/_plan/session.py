"""Reads the configuration of a Spark session, classic or Connect."""

from __future__ import annotations

import re
from typing import Any

# What to do if the number of task slots is unknown
OF_A_REMOTE_SERVER = "a Spark Connect session does not report the processors of its server: start it with local[N]"
ALL_CORES = (
    "set spark.cores.max (a standalone cluster gives an application all of its cores by default, and ignores "
    "spark.executor.instances)"
)
NO_BOUND = (
    "set spark.executor.cores and spark.executor.instances (or, with dynamic allocation, "
    "spark.dynamicAllocation.maxExecutors), or spark.cores.max on a standalone cluster"
)


def time_zone(session: Any) -> str:
    """The session's time zone, such as "UTC"."""
    return str(session.conf.get("spark.sql.session.timeZone"))


def context_of(session: Any) -> Any:
    """The SparkContext of a classic session; None for a remote one, of Spark Connect."""
    return getattr(session, "_sc", None)


def shuffle_partitions(session: Any) -> int:
    """The number of partitions that Spark plans for a shuffle."""
    return int(str(session.conf.get("spark.sql.shuffle.partitions")))


def default_time_zone(session: Any) -> str | None:
    """The driver's time zone, which applies to sessions that set none. None in a remote session: it is unknown."""
    context = context_of(session)
    if context is None:
        return None
    return str(context._jvm.java.util.TimeZone.getDefault().getID())  # noqa: SLF001 - as Spark does


def task_slots(session: Any, user: str = "cluster_capacity", instead: str = "capacity= per task") -> int:
    """The number of tasks that can run at once in this session, according to its configuration.

    Args:
        session: A classic or a remote session.
        user: The parameter that needs it, for the error.
        instead: What to use if it is unknown, for the error.

    Raises:
        ValueError: The configuration does not limit them.
    """
    master = session.conf.get("spark.master", None) or ""
    per_task = int(session.conf.get("spark.task.cpus", "1"))
    is_standalone = master.startswith(("spark://", "local-cluster"))
    if local := re.fullmatch(r"local(?:\[\s*(\d+|\*)\s*(?:,.*)?\])?", master):
        cores, remedy = _local_cores(session, local[1] or "1"), OF_A_REMOTE_SERVER
        slots = None if cores is None else cores // per_task
    else:
        slots = _slots_of_cluster(session, master, per_task, is_standalone=is_standalone)
        remedy = ALL_CORES if is_standalone else NO_BOUND
    if slots is None:
        raise ValueError(f"{user} needs a limit of the tasks that can run at once: {remedy}, or use {instead} instead")
    return max(1, slots)


def share_of(cluster_capacity: object, session: Any) -> int:
    """The capacity of one task, so that all tasks that can run at once do not exceed `cluster_capacity`.

    Raises:
        TypeError: It is not a whole number.
        ValueError: It is below the number of tasks, or that number is unknown.
    """
    if isinstance(cluster_capacity, bool) or not isinstance(cluster_capacity, int):
        raise TypeError(f"cluster_capacity must be a whole number, got {cluster_capacity!r}")
    slots = task_slots(session)
    if cluster_capacity < slots:
        raise ValueError(
            f"cluster_capacity must be at least the number of tasks that can run at once, {slots}, because each makes "
            f"at least one call; got {cluster_capacity}. Give Spark fewer cores, or coalesce(1) and use capacity="
        )
    return cluster_capacity // slots


def _local_cores(session: Any, threads: str) -> int | None:
    """The N of local[N], or None if unknown. `defaultParallelism` would not do, because users can set it."""
    if threads != "*":
        return int(threads)
    context = context_of(session)
    if context is None:
        return None
    return int(context._jvm.java.lang.Runtime.getRuntime().availableProcessors())  # noqa: SLF001 - as Spark does


def _slots_of_cluster(session: Any, master: str, per_task: int, *, is_standalone: bool) -> int | None:
    """The task slots of a cluster, or None if unknown. The master is "" in Spark Connect, where each setting counts."""
    max_cores = session.conf.get("spark.cores.max", None)
    if max_cores is not None and (is_standalone or not master):  # other clusters ignore this setting
        return int(max_cores) // per_task
    cores = session.conf.get("spark.executor.cores", None)
    executors = None  # a standalone cluster starts executors until all cores are in use
    if str(session.conf.get("spark.dynamicAllocation.enabled", "false")).lower() == "true":
        executors = session.conf.get("spark.dynamicAllocation.maxExecutors", None)
    elif not is_standalone:
        executors = session.conf.get("spark.executor.instances", None)
    if cores is not None and executors is not None:
        return int(executors) * (int(cores) // per_task)
    cluster = re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master)
    return None if cluster is None else int(cluster[1]) * (int(cluster[2]) // per_task)
