"""The public classes `ClusterRate` and `ClusterBudget`, and what a task gets of one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar

from trio_asyncio_io.integration import check_int, check_number

from .._urls import without_user

SCHEMES = ("redis://", "rediss://", "unix://")  # of redis-py
MAX_NAME = 200  # characters
MAX_PORT = 65_535

# What calls wait for while the source of their lease is away, in place of their gate
SOURCE_AWAY = "ClusterRateSourceAway"


@dataclass(frozen=True, repr=False)
class ClusterRate:
    """A rate over all tasks, and how the tasks share it. Pass it as `cluster_rate=`, or a list of several rates.

    With `weight`, the rate is a sum of weights per second, such as tokens. A call heavier than its task's share of one
    second starts when the share is full, and delays later calls. In any second, the weights exceed the rate by at most
    one call per task. `settle` corrects the weight of a call that runs; then the limit holds on average, as with
    `gates.RateLimit`.

    With a lease, each worker process gets its calls from a source, a fifth of a second's worth at a time. So tasks that
    have rows use the whole rate, whichever they are. While the source cannot be reached, calls wait, and `explain`
    names the gate `ClusterRateSourceAway`.

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
        give_up: Seconds for which the source of a lease may be away before the task fails with a `ClusterLimitError`,
            above 0, 300 by default; `math.inf`: calls wait without a limit.

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
        legal, noun = "calls per second above 0 and finite", "calls per second as a number, or a ClusterRate"
        check_number("cluster_rate", self.rate, legal, lambda number: 0 < number < inf, noun=noun)
        _check_common(self, "share", "lease")
        if self.weight is not None and self.by != "share":
            raise ValueError(
                f'weight needs by="share", got by={without_user(self.by)!r}: omit by=, or lease a rate of calls'
            )

    def __repr__(self) -> str:
        port = "" if self.port is None else f", port={self.port}"
        return f"ClusterRate({self.rate:g}, by={without_user(self.by)!r}, name={self.name!r}{port})"


@dataclass(frozen=True, repr=False)
class ClusterBudget:
    """A sum that the calls of all tasks together may cost. Pass it as `cluster_budget=`.

    It is `gates.Budget` for a whole job: a call that does not fit fails with a `gates.BudgetError`. Each worker process
    leases a thousandth of the budget ahead from a source, for each `weight` that its tasks use, and returns what is
    unused at the end of its task. A call waits while other processes hold leases that they may return.

    The sum is at most the budget, as long as no call costs more than its estimate, whatever is killed. The lease of a
    worker that is killed counts as spent: its calls in flight, and at most the thousandth that it had leased ahead.

    Queries that use the same object, or objects of the same name, share one budget: in one session, or in all
    applications that use the same `path` or the same Redis.

    Args:
        amount: The budget, not negative and finite, in the unit of `weight`. Without `weight`: a number of calls.
        weight: The input values of a row -> the estimated weight of its call, at least 0 and finite. None (the
            default): each call weighs 1.
        by: "lease" (the default): a thread on the driver is the source. It needs a classic session, not Spark Connect.
            The URL of a Redis that the workers reach: that is the source. It needs the extra `redis`, here and in the
            workers. What a Redis loses can be spent again.
        name: The name of the budget, 1 to 200 characters; `settle` can name it. None (the default): each object has
            a budget of its own. The driver forgets an object that is gone and that nothing has used for an hour, if
            there are more than 1,000.
        path: Only with "lease": a file on a disk of the driver in which the leases outlive it, for a job that is
            started again. A `~` at its beginning is the driver's home directory. Needs a name. None (the default): the
            budget ends with the application.
        port: Only with "lease": the TCP port of the driver's thread, 1 to 65535. None (the default): any free port.
        give_up: Seconds for which the source may be away before the task fails with a `ClusterLimitError`, above 0, 300
            by default; `math.inf`: calls wait without a limit.

    Attributes:
        is_named: Whether a name was given.

    Raises:
        TypeError, ValueError: An argument is out of its range.

    Example:
        budget = ClusterBudget(50.0, weight=price, name="books", path="/data/budgets")
        unordered_wait(df, ask, "answer string", timeout=60.0, cluster_budget=budget)
    """

    __module__ = "udfs"

    amount: float
    weight: Callable[..., float] | None = field(default=None, kw_only=True, compare=False)
    by: str = field(default="lease", kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    path: str | os.PathLike[str] | None = field(default=None, kw_only=True)
    port: int | None = field(default=None, kw_only=True)
    give_up: float = field(default=300.0, kw_only=True)
    is_named: bool = field(init=False, default=True, compare=False)

    def __post_init__(self) -> None:
        check_number("amount", self.amount, "finite and not negative", lambda number: 0 <= number < inf)
        if self.name is None:
            object.__setattr__(self, "name", secrets.token_hex(8))
            object.__setattr__(self, "is_named", False)
        _check_common(self, "lease")
        self._check_path()

    def __repr__(self) -> str:
        return f"ClusterBudget({self.amount:g}, by={without_user(self.by)!r}, name={self.name!r})"

    def _check_path(self) -> None:
        if self.path is not None and not isinstance(self.path, str | os.PathLike):
            raise TypeError(f"path must be the path of a file, got {self.path!r}")
        if self.path is not None and self.by != "lease":
            raise ValueError(f'path={self.path!r} needs by="lease": leave it out, because a Redis outlives the driver')
        if not self.is_named and (self.path is not None or self.by != "lease"):
            raise ValueError("a budget that outlives the driver needs a name: give name=")


@dataclass(frozen=True, slots=True)
class TaskShare:
    """The share of each task.

    Args:
        calls: Calls per second, at least 1. With `weight`: weight per second, above 0.
        weight: See `ClusterRate`.
        name: The name of a rate with a weight, for `settle`.
    """

    calls: float
    weight: Callable[..., float] | None = field(default=None, compare=False)
    name: str | None = None

    gate_labels: ClassVar = ("ClusterShare",)  # of its gate in a worker


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where workers reach the source on the driver.

    Args:
        host, port: Its address.
        secret: What the driver and its workers know.
    """

    host: str
    port: int
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class LeasedLimit:
    """A limit whose parts a source grants. Equal limits have equal leases; weights belong to a query.

    Args:
        limit: The rate or the budget.
        driver: The source on the driver. None: the source is the Redis of the URL `by`.
    """

    limit: ClusterRate | ClusterBudget
    driver: ServerAddress | None = None

    @property
    def amount(self) -> float:
        """The budget, or the calls per second."""
        return self.limit.rate if isinstance(self.limit, ClusterRate) else self.limit.amount

    @property
    def gate_labels(self) -> tuple[str, ...]:
        """The labels of its gate in a worker. The last one applies while the source is away."""
        return ("ClusterLease", SOURCE_AWAY) if isinstance(self.limit, ClusterRate) else ("ClusterBudgetLease",)

    @property
    def settled_name(self) -> str | None:
        """The name of a budget, for `settle`. The calls of a leased rate have no weights."""
        return None if isinstance(self.limit, ClusterRate) else self.limit.name

    @property
    def source(self) -> str:
        """The source as messages name it, without a password."""
        if self.driver is not None:
            return f"the driver at {self.driver.host}:{self.driver.port}"
        return f"the Redis at {without_user(self.limit.by)}"

    @property
    def advice(self) -> str:
        """Advice for a source that cannot be reached."""
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


def as_cluster_rates(value: Any) -> tuple[ClusterRate, ...]:
    """The rates of a `cluster_rate`: a number, a `ClusterRate`, a list of these, or None.

    Raises:
        TypeError, ValueError: It is none of these, or out of range; or two of them are leased, or have one name.
    """
    if value is None:
        return ()
    given: Sequence[Any] = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    rates = tuple(each if isinstance(each, ClusterRate) else ClusterRate(each) for each in given)
    names = [rate.name for rate in rates]
    if len(set(names)) < len(names):
        raise ValueError(f"cluster_rate has two rates of one name, {names}: give each once, and a name of its own")
    leased = [rate for rate in rates if rate.by != "share"]
    if len(leased) > 1:
        raise ValueError(
            f"cluster_rate must have at most one leased rate, got {leased}: a call would need tokens of both at "
            'the same instant. Use by="share" for the others'
        )
    return rates


def _check_common(given: ClusterRate | ClusterBudget, *ways: str) -> None:
    """Check the arguments that both classes have. `ways`: what `by` may be besides a URL."""
    by: object = given.by
    if not (isinstance(by, str) and (by in ways or by.startswith(SCHEMES))):
        known = ", ".join(f'"{way}"' for way in ways)
        shown = without_user(by) if isinstance(by, str) else by
        raise ValueError(f'by must be {known} or a URL such as "redis://host:6379/0", got {shown!r}')
    if given.weight is not None and not callable(given.weight):
        raise TypeError(f"weight must be callable, got {given.weight!r}")
    name: Any = given.name
    if not (isinstance(name, str) and name):
        raise TypeError(f"name must be a text that is not empty, got {name!r}")
    if len(name) > MAX_NAME or not name.isprintable():
        raise ValueError(f"name must have at most {MAX_NAME} characters, all of them printable, got {name!r}")
    if given.port is not None:
        check_int("port", given.port, at_least=1, at_most=MAX_PORT)
        if by != "lease":
            raise ValueError(
                f'port={given.port} needs by="lease", got by={without_user(by)!r}: leave it out (a URL has a port of '
                "its own)"
            )
    check_number("give_up", given.give_up, "above 0 seconds", lambda number: number > 0, noun="a number of seconds")
