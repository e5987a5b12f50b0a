"""Divides a cluster's rate over the tasks of a session."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from trio_asyncio_io.gates import Gate

from .._extras import needs_extra
from .._rate.cluster_lease import Tokens, lease_of_process
from .._rate.cluster_rate import ClusterRate, as_cluster_rate
from .._rate.driver_tokens import DriverTokens
from .._rate.share import ClusterShare
from .._rate.token_server import TokenServer
from .._rate.tokens import settling_of
from .session import task_slots

__all__ = ["gate_of_rate"]

# For a Redis. Identifiers of applications are not unique: those of local ones are instants
_driver = secrets.token_hex(8)

# The servers of this driver, by application
_servers: dict[str, TokenServer] = {}
_starting = threading.Lock()


def gate_of_rate(cluster_rate: Any, session: Any) -> Callable[[], Gate]:
    """What makes the gate of a task, in the worker. It can be pickled.

    Raises:
        TypeError: The rate is neither a number nor a `ClusterRate`.
        ValueError: It is out of range or, for a share, below the number of tasks that can run at once; that number is
            unknown; or the session is remote and the driver should grant the tokens.
    """
    given = as_cluster_rate(cluster_rate)
    slots = task_slots(session, "cluster_rate", "gate=RateLimit(...) per process")
    if given.by == "share":
        return partial(ClusterShare, _whole_share(given.rate, slots))
    if given.by == "lease":
        settling, tokens = settling_of(given.rate, slots), _tokens_of_driver(given, slots, session)
    else:
        settling = settling_of(given.rate, None)
        tokens = _tokens_of_redis(given, slots, settling, session)
    return partial(lease_of_process, given.rate, slots, settling, tokens)


def _whole_share(rate: float, slots: int) -> int:
    if rate < slots:
        raise ValueError(
            f"cluster_rate must be at least the number of tasks that can run at once, {slots}, because each makes at "
            f'least one call per second; got {rate!r}. Use ClusterRate({rate!r}, by="lease"), or give Spark fewer cores'
        )
    return int(rate // slots)


def _tokens_of_redis(given: ClusterRate, slots: int, settling: float, session: Any) -> Tokens:
    with needs_extra("ClusterRate with a Redis", "redis"):
        from .._rate.redis_tokens import RedisTokens  # noqa: PLC0415 - an optional package
    application = f"{_driver} {session.conf.get('spark.app.id', None)}"
    return RedisTokens(given.by, given.name, given.rate, settling, application, slots)


def _tokens_of_driver(given: ClusterRate, slots: int, session: Any) -> Tokens:
    context = getattr(session, "_sc", None)
    if context is None:
        raise ValueError(
            f"cluster_rate={given} needs a thread on the driver, which a Spark Connect session cannot start: use "
            f"cluster_rate={given.rate:g}, or the URL of a Redis as by="
        )
    host = session.conf.get("spark.driver.host")
    with _starting:
        server = _servers.get(context.applicationId)
        if server is None or not server.is_running:
            address = session.conf.get("spark.driver.bindAddress", None) or host
            server = _servers[context.applicationId] = TokenServer(address, lambda: context._jsc is None)  # noqa: SLF001
    server.add(given.name, given.rate, settling_of(given.rate, slots))
    return DriverTokens(host, server.port, server.secret, given.name)
