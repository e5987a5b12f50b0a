"""The public class `ClusterRate`."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from math import inf
from typing import Any

__all__ = ["ClusterRate", "as_cluster_rate"]

WAYS = ("share", "lease")
SCHEMES = ("redis://", "rediss://", "unix://")  # of redis-py


@dataclass(frozen=True, repr=False)
class ClusterRate:
    """A rate of calls over all tasks, and how the tasks share it. Pass it as `cluster_rate=`.

    With a lease, each worker process asks a source for a fifth of a second's worth of calls at a time. So tasks that
    have rows use the whole rate, whoever has them. While the source cannot be reached, each process starts its share;
    it falls back within a second, and returns when the source is back. The logger `udfs` of the worker reports both.

    Queries that use the same object, or objects of the same name, share one limit: in one session, or in all
    applications that use the same Redis.

    Args:
        rate: Calls per second, above 0 and finite.
        by: "share" (the default): each task gets an equal share. "lease": a thread on the driver is the source. It
            needs a classic session, not Spark Connect. The URL of a Redis that the workers reach, such as
            "redis://host:6379/0": that is the source. It needs the extra `redis`, here and in the workers.
        name: The name of the limit, a text. By default, each object has a limit of its own. With "share", each use of
            an object has one.

    Raises:
        TypeError, ValueError: An argument is out of its range.

    Example:
        weather = ClusterRate(500, by="lease")
        unordered_wait(df, forecast, "temp double", timeout=5.0, cluster_rate=weather)
    """

    __module__ = "udfs"

    rate: float
    by: str = "share"
    name: str = field(default_factory=lambda: secrets.token_hex(8), kw_only=True)

    def __post_init__(self) -> None:
        _check_rate(self.rate)
        by: object = self.by
        if not (isinstance(by, str) and (by in WAYS or by.startswith(SCHEMES))):
            raise ValueError(f'by must be "share", "lease" or a URL such as "redis://host:6379/0", got {self._way!r}')
        name: object = self.name
        if not (isinstance(name, str) and name):
            raise TypeError(f"name must be a text that is not empty, got {self.name!r}")

    def __repr__(self) -> str:
        return f"ClusterRate({self.rate:g}, by={self._way!r}, name={self.name!r})"

    @property
    def _way(self) -> object:
        """As given, but without what follows a URL's scheme: it may be a password."""
        by: object = self.by
        return by.partition("://")[0] if isinstance(by, str) else by


def as_cluster_rate(value: Any) -> ClusterRate:
    """The rate itself, or that of a number.

    Raises:
        TypeError, ValueError: It is neither, or out of range.
    """
    return value if isinstance(value, ClusterRate) else ClusterRate(value)


def _check_rate(rate: Any) -> None:
    if isinstance(rate, bool) or not isinstance(rate, int | float):
        raise TypeError(f"cluster_rate must be calls per second as a number, or a ClusterRate, got {rate!r}")
    if not 0 < rate < inf:
        raise ValueError(f"cluster_rate must be calls per second above 0 and finite, got {rate!r}")
