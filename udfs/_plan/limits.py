"""Divides a cluster's rate over the tasks of a session, or starts the source that leases a limit to them."""

from __future__ import annotations

import threading
from typing import Any, TypeAlias

from .._limits.cluster_limits import ClusterBudget, ClusterRate, LeasedLimit, ServerAddress, TaskShare, as_cluster_rates
from .._limits.limit_server import LimitServer
from .._limits.sources import RedisSource
from .session import context_of, task_slots

Limit: TypeAlias = TaskShare | LeasedLimit

# The servers of this driver, by the identifier of their application
_servers: dict[str, LimitServer] = {}
_starting = threading.Lock()


def limits_for_tasks(cluster_rate: Any, cluster_budget: ClusterBudget | None, session: Any) -> tuple[Limit, ...]:
    """A `cluster_budget` and the rates of a `cluster_rate`, as their tasks need them. They can be pickled.

    Args:
        cluster_rate, cluster_budget: From the user.
        session: The session whose tasks share them.

    Raises:
        TypeError: A rate is neither a number nor a `ClusterRate`.
        ValueError: It is out of range or, for a share, below the number of tasks that can run at once; that number is
            unknown; the session is remote and the driver should be the source; or the URL cannot be read.
        OSError: The driver cannot listen on its port, or use the file of the budget.
    """
    budgets = () if cluster_budget is None else (cluster_budget,)
    return tuple(_for_tasks(given, session) for given in (*budgets, *as_cluster_rates(cluster_rate)))


def _for_tasks(given: ClusterRate | ClusterBudget, session: Any) -> Limit:
    if isinstance(given, ClusterRate) and given.by == "share":
        slots = task_slots(session, "cluster_rate", "gate=RateLimit(...) per process")
        if given.weight is not None:
            return TaskShare(given.rate / slots, given.weight, given.name)
        if given.rate < slots:
            raise ValueError(
                f"cluster_rate must be at least the number of tasks that can run at once, {slots}, because each makes "
                f'at least one call per second; got {given.rate!r}. Use ClusterRate({given.rate!r}, by="lease"), or '
                "give Spark fewer cores"
            )
        return TaskShare(int(given.rate // slots))
    if given.by == "lease":
        return LeasedLimit(given, _address_of_source(given, session))
    RedisSource(given.by)  # checks the URL, and that redis-py is installed
    return LeasedLimit(given)


def _address_of_source(given: ClusterRate | ClusterBudget, session: Any) -> ServerAddress:
    """The address of the driver's thread, which leases this limit from now on.

    Raises:
        OSError, ValueError: As in `limits_for_tasks`.
    """
    context = context_of(session)
    if context is None:
        instead = f"use cluster_rate={given.rate:g}, or" if isinstance(given, ClusterRate) else "use"
        raise ValueError(
            f"{_option(given)}={given} needs a thread on the driver, which a Spark Connect session cannot start: "
            f"{instead} the URL of a Redis as by="
        )
    host = session.conf.get("spark.driver.host")
    bound = session.conf.get("spark.driver.bindAddress", None) or host
    with _starting:
        for ended in [name for name, server in _servers.items() if not server.is_running]:
            if ended != context.applicationId:
                _servers.pop(ended).close()
        server = _servers.get(context.applicationId)
        if server is None:  # Spark has no public name for the end of an application
            server = _servers[context.applicationId] = LimitServer(bound, lambda: context._jsc is None)  # noqa: SLF001
        server.add(given)
        port = _port_of(server, given, bound)
    return ServerAddress(host, port, server.secret)


def _option(given: ClusterRate | ClusterBudget) -> str:
    return "cluster_rate" if isinstance(given, ClusterRate) else "cluster_budget"


def _port_of(server: LimitServer, given: ClusterRate | ClusterBudget, host: str) -> int:
    try:
        return server.listen(given.port)
    except OSError as error:
        port = "a free port" if given.port is None else f"port={given.port}"
        raise OSError(
            f"{_option(given)}={given}: the driver cannot listen on {port} of {host} ({error.strerror or error}). "
            "Choose another port, and check spark.driver.bindAddress"
        ) from error
