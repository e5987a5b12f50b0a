"""The public class `ClusterRate`, and what a task gets of one."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar
from urllib.parse import urlsplit

__all__ = [
    "SCHEMES",
    "SOURCE_AWAY",
    "ClusterRate",
    "Leased",
    "LeasedRate",
    "TaskShare",
    "TokenAddress",
    "as_cluster_rates",
    "check_give_up",
    "check_name",
    "check_port",
    "without_password",
]

WAYS = ("share", "lease")
SCHEMES = ("redis://", "rediss://", "unix://")  # of redis-py
MAX_NAME = 200  # characters
MAX_PORT = 65_535

# What calls wait for while the source of their lease is away, in place of their gate
SOURCE_AWAY = "ClusterRateSourceAway"


@dataclass(frozen=True, repr=False)
class ClusterRate:
    """A rate over all tasks, and how the tasks share it. Pass it as `cluster_rate=`, or a list of several rates.

    With `weight`, the rate is a sum of weights per second, such as tokens. A call that weighs more than a task's share
    of a second starts when the share is unused, and delays the next ones: in every second, the weights of the calls
    that start are at most the rate and one call for each task. `settle` corrects the weight of a call that runs; then
    the limit holds on average, as that of `gates.RateLimit`.

    With a lease, each worker process gets its calls from a source, a fifth of a second's worth at a time. So tasks that
    have rows use the whole rate, whichever they are. While the source cannot be reached, calls wait: no second ever has
    more calls than the rate. `explain` then names the gate `ClusterRateSourceAway`, and the logger `udfs` of the worker
    warns.

    Queries that use the same object, or objects of the same name, share one limit: in one session, or in all
    applications that use the same Redis.

    Args:
        rate: Calls per second, above 0 and finite. With `weight`: weight per second.
        by: "share" (the default): each task gets an equal share. "lease": a thread on the driver is the source. It
            needs a classic session, not Spark Connect. The URL of a Redis that the workers reach, such as
            "redis://host:6379/0": that is the source. It needs the extra `redis`, here and in the workers.
        name: The name of the limit, 1 to 200 characters. By default, each object has a limit of its own. With "share",
            each use of an object has one. `settle` can name it.
        weight: The input values of a row -> the estimated weight of its call, at least 0 and finite. Needs "share".
            With `group=`, a call weighs as much as its rows together. None (the default): each call weighs 1.
        port: Only with "lease": the TCP port of the driver's thread, 1 to 65535. None (the default): any free port.
        give_up: Seconds for which the source of a lease may be away before the task fails with a `ClusterRateError`,
            above 0; `math.inf`: calls wait for ever.

    Raises:
        TypeError, ValueError: An argument is out of its range.

    Example:
        weather = ClusterRate(500, by="lease")
        unordered_wait(df, forecast, "temp double", timeout=5.0, cluster_rate=weather)

        tokens = ClusterRate(100_000 / 60, weight=lambda prompt: len(prompt) / 4, name="tokens")
        unordered_wait(df, answer, "text string", timeout=60.0, cluster_rate=[weather, tokens])
    """

    __module__ = "udfs"

    rate: float
    by: str = "share"
    name: str = field(default_factory=lambda: secrets.token_hex(8), kw_only=True)
    weight: Callable[..., float] | None = field(default=None, kw_only=True, compare=False)
    port: int | None = field(default=None, kw_only=True)
    give_up: float = field(default=300.0, kw_only=True)

    def __post_init__(self) -> None:
        _check_rate(self.rate)
        by: object = self.by
        if not (isinstance(by, str) and (by in WAYS or by.startswith(SCHEMES))):
            shown = without_password(by)
            raise ValueError(f'by must be "share", "lease" or a URL such as "redis://host:6379/0", got {shown!r}')
        check_name(self.name)
        self._check_weight()
        check_port(self.port, self.by)
        check_give_up(self.give_up)

    def _check_weight(self) -> None:
        if self.weight is None:
            return
        if not callable(self.weight):
            raise TypeError(f"weight must be callable, got {self.weight!r}")
        if self.by != "share":
            raise ValueError(
                f'weight needs by="share", got by={without_password(self.by)!r}: omit by=, or lease a rate of calls'
            )

    def __repr__(self) -> str:
        port = "" if self.port is None else f", port={self.port}"
        return f"ClusterRate({self.rate:g}, by={without_password(self.by)!r}, name={self.name!r}{port})"


@dataclass(frozen=True, slots=True)
class TaskShare:
    """The share of each task.

    Args:
        calls: Calls per second, at least 1. With `weight`: weight per second, above 0.
        weight: See `ClusterRate`.
        name: The name of a rate with a weight, for `settle`.

    Attributes:
        gates: The labels of its gate in a worker.
    """

    gates: ClassVar[tuple[str, ...]] = ("ClusterShare",)

    calls: float
    weight: Callable[..., float] | None = field(default=None, compare=False)
    name: str | None = None


@dataclass(frozen=True, slots=True)
class TokenAddress:
    """Where workers reach the source on the driver.

    Args:
        host, port: Its address.
        secret: What the driver and its workers know.
    """

    host: str
    port: int
    secret: str = field(repr=False)


class Leased(ABC):
    """A rate or a budget of which a source grants parts.

    Attributes:
        driver: The source on the driver. None: the source is the Redis of the URL `by`.
    """

    __slots__ = ()

    driver: TokenAddress | None

    @property
    @abstractmethod
    def limit(self) -> Any:
        """The `ClusterRate` or the `ClusterBudget`."""

    @property
    def by(self) -> str:
        """Where the limit is leased."""
        by: str = self.limit.by
        return by

    @property
    def source(self) -> str:
        """The source for people, without a password."""
        if self.driver is not None:
            return f"the driver at {self.driver.host}:{self.driver.port}"
        url = urlsplit(self.by)
        return f"the Redis at {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"

    @property
    def advice(self) -> str:
        """What to check if it cannot be reached."""
        if self.driver is not None:
            return (
                "Check that the driver is alive and that the workers can connect to this address: spark.driver.host "
                f"sets the host, {type(self.limit).__name__}(..., port=) the port, and no firewall or network policy "
                "may block them"
            )
        return (
            "Check that this Redis is alive and accepts writes, that the workers can connect to it, and the user, the "
            "password and the database in the URL"
        )


@dataclass(frozen=True, slots=True)
class LeasedRate(Leased):
    """A rate whose tokens a source grants.

    Args:
        rate: The rate.
        driver: See `Leased`.

    Attributes:
        gates: The labels of its gate in a worker.
    """

    gates: ClassVar[tuple[str, ...]] = ("ClusterLease", SOURCE_AWAY)

    rate: ClusterRate
    driver: TokenAddress | None = None

    @property
    def limit(self) -> ClusterRate:
        """The rate."""
        return self.rate


def as_cluster_rates(value: Any) -> tuple[ClusterRate, ...]:
    """The rates of a `cluster_rate`: a number, a `ClusterRate`, a list of these, or None.

    Raises:
        TypeError, ValueError: It is none of these, or out of range; or two of them are leased.
    """
    if value is None:
        return ()
    given: Sequence[Any] = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    rates = tuple(each if isinstance(each, ClusterRate) else ClusterRate(each) for each in given)
    leased = [rate for rate in rates if rate.by != "share"]
    if len(leased) > 1:
        raise ValueError(
            f"cluster_rate must have at most one leased rate, got {leased}: a call would need tokens of both at "
            'the same instant. Use by="share" for the others'
        )
    return rates


def _check_rate(rate: Any) -> None:
    if isinstance(rate, bool) or not isinstance(rate, int | float):
        raise TypeError(f"cluster_rate must be calls per second as a number, or a ClusterRate, got {rate!r}")
    if not 0 < rate < inf:
        raise ValueError(f"cluster_rate must be calls per second above 0 and finite, got {rate!r}")


def without_password(by: object) -> object:
    """`by` as given, but without what follows a URL's scheme: it may be a password."""
    return by.partition("://")[0] if isinstance(by, str) else by


def check_port(port: Any, by: object) -> None:
    """Check the port of a driver's thread.

    Raises:
        TypeError, ValueError: It is none, or `by` is not a driver.
    """
    if port is None:
        return
    if isinstance(port, bool) or not isinstance(port, int):
        raise TypeError(f"port must be a whole number, got {port!r}")
    if not 1 <= port <= MAX_PORT:
        raise ValueError(f"port must be from 1 to {MAX_PORT}, got {port}")
    if by != "lease":
        raise ValueError(
            f'port={port} needs by="lease", got by={without_password(by)!r}: leave it out (a URL has a port of its own)'
        )


def check_name(name: Any) -> None:
    """Check the name of a limit.

    Raises:
        TypeError, ValueError: It is none.
    """
    if not (isinstance(name, str) and name):
        raise TypeError(f"name must be a text that is not empty, got {name!r}")
    if len(name) > MAX_NAME or not name.isprintable():
        raise ValueError(f"name must have at most {MAX_NAME} characters, all of them printable, got {name!r}")


def check_give_up(seconds: Any) -> None:
    """Check the seconds for which a source may be away.

    Raises:
        TypeError, ValueError: They are none.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"give_up must be a number of seconds, got {seconds!r}")
    if not seconds > 0:
        raise ValueError(f"give_up must be above 0 seconds, got {seconds!r}")
