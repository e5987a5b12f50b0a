"""Reads the configuration of a Spark session, classic or Connect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

__all__ = ["active_session", "default_time_zone", "described_jobs", "share_of", "task_slots", "time_zone"]

JOB_DESCRIPTION = "spark.job.description"

# What to do if the number of task slots is unknown
ALL_CORES = (
    "set spark.cores.max (a standalone cluster gives an application all of its cores by default, and ignores "
    "spark.executor.instances)"
)
NO_BOUND = (
    "set spark.executor.cores and spark.executor.instances (or, with dynamic allocation, "
    "spark.dynamicAllocation.maxExecutors), or spark.cores.max on a standalone cluster"
)


def active_session() -> Any:
    """The active session of this thread, or else the default session.

    Raises:
        RuntimeError: No session is active.
    """
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        raise RuntimeError(
            "no Spark session is active: create one with SparkSession.builder.getOrCreate() first"
        ) from None


@contextmanager
def described_jobs(session: Any, description: str) -> Iterator[None]:
    """Spark's UI shows the description beside the jobs and stages that this thread starts in the block.

    It does nothing if the description is empty, if the thread has one already, or in a remote session, which has none.
    """
    context = getattr(session, "_sc", None)
    if not description or context is None or context.getLocalProperty(JOB_DESCRIPTION) is not None:
        yield
        return
    context.setJobDescription(description)
    try:
        yield
    finally:
        with suppress(Exception):  # the session was stopped in the block
            context.setLocalProperty(JOB_DESCRIPTION, None)


def time_zone(session: Any) -> str:
    """The session's time zone, such as "UTC"."""
    return str(session.conf.get("spark.sql.session.timeZone"))


def default_time_zone(session: Any) -> str | None:
    """The driver's time zone, which applies to sessions that set none. None in a remote session: it is unknown."""
    context = getattr(session, "_sc", None)
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
    local = re.fullmatch(r"local(?:\[\s*(\d+|\*)\s*(?:,.*)?\])?", master)
    if local:
        return max(1, _local_cores(session, local[1], user, instead) // per_task)
    slots = _slots_of_cluster(session, master, per_task)
    if slots is None:
        remedy = ALL_CORES if _is_standalone(master) else NO_BOUND
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


def _local_cores(session: Any, threads: str | None, user: str, instead: str) -> int:
    """The N of local[N]. `defaultParallelism` would not do, because users can set it."""
    if threads != "*":
        return int(threads or 1)
    context = getattr(session, "_sc", None)
    if context is None:
        raise ValueError(
            f"{user} needs a limit of the tasks that can run at once, and a Spark Connect session does not report the "
            f"processors of its server, whose master is local[*]: start the server with local[N], or use {instead} "
            "instead"
        )
    return int(context._jvm.java.lang.Runtime.getRuntime().availableProcessors())  # noqa: SLF001 - as Spark does


def _is_standalone(master: str) -> bool:
    return master.startswith(("spark://", "local-cluster"))


def _slots_of_cluster(session: Any, master: str, per_task: int) -> int | None:
    """The task slots of a cluster, or None if unknown. The master is "" in Spark Connect, where each setting counts."""
    max_cores = session.conf.get("spark.cores.max", None)
    if max_cores is not None and (_is_standalone(master) or not master):  # other clusters ignore this setting
        return int(max_cores) // per_task
    cores = session.conf.get("spark.executor.cores", None)
    executors = _max_executors(session, master)
    if cores is not None and executors is not None:
        return executors * (int(cores) // per_task)
    cluster = re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master)
    return None if cluster is None else int(cluster[1]) * (int(cluster[2]) // per_task)


def _max_executors(session: Any, master: str) -> int | None:
    if str(session.conf.get("spark.dynamicAllocation.enabled", "false")).lower() == "true":
        found = session.conf.get("spark.dynamicAllocation.maxExecutors", None)
    elif _is_standalone(master):
        return None  # it starts executors until all cores are in use
    else:
        found = session.conf.get("spark.executor.instances", None)
    return None if found is None else int(found)
