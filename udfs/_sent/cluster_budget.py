"""The public class `ClusterBudget`, and what a task gets of one."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .cluster_rate import SCHEMES, Leased, TokenAddress, check_give_up, check_name, check_port, without_password

__all__ = ["ClusterBudget", "LeasedBudget"]


@dataclass(frozen=True, repr=False, kw_only=True)
class ClusterBudget:
    """A sum that the calls of all tasks together may cost. Pass it as `cluster_budget=`.

    It is `gates.Budget` for a whole job: a call reserves its estimated weight, `settle` replaces it by what the call
    cost, and a call that does not fit fails with a `gates.BudgetError`. Each worker process leases a thousandth of the
    budget ahead from a source, and returns what is unused at the end of its task. A call waits while other processes
    hold leases that they may return.

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
            workers. What the Redis forgets can be spent again.
        name: The name of the budget, 1 to 200 characters; `settle` can name it. None (the default): each object has
            a budget of its own. The driver forgets an object that is gone and that nothing has used for an hour, if
            there are more than 1,000.
        path: Only with "lease": a file on a disk of the driver in which the leases outlive it, for a job that is
            started again. Needs a name. None (the default): the budget ends with the application.
        port: Only with "lease": the TCP port of the driver's thread, 1 to 65535. None (the default): any free port.
        give_up: Seconds for which the source may be away before the task fails with a `ClusterRateError`, above 0;
            `math.inf`: calls wait for ever.

    Attributes:
        is_named: Whether a name was given.

    Raises:
        TypeError, ValueError: An argument is out of its range.

    Example:
        budget = ClusterBudget(50.0, weight=price, name="books", path="/data/budgets")
        unordered_wait(df, ask, "answer string", timeout=60.0, cluster_budget=budget)
    """

    __module__ = "udfs"

    amount: float = field(kw_only=False)
    weight: Callable[..., float] | None = field(default=None, compare=False)
    by: str = "lease"
    name: str | None = None
    path: str | os.PathLike[str] | None = None
    port: int | None = None
    give_up: float = 300.0
    is_named: bool = field(init=False, default=True, compare=False)

    def __post_init__(self) -> None:
        _check_amount(self.amount)
        if self.weight is not None and not callable(self.weight):
            raise TypeError(f"weight must be callable, got {self.weight!r}")
        by: object = self.by
        if not (isinstance(by, str) and (by == "lease" or by.startswith(SCHEMES))):
            shown = without_password(by)
            raise ValueError(f'by must be "lease" or a URL such as "redis://host:6379/0", got {shown!r}')
        self._check_path()
        if self.name is None:
            object.__setattr__(self, "name", secrets.token_hex(8))
            object.__setattr__(self, "is_named", False)
        check_name(self.name)
        check_port(self.port, by)
        check_give_up(self.give_up)

    def __repr__(self) -> str:
        return f"ClusterBudget({self.amount:g}, by={without_password(self.by)!r}, name={self.name!r})"

    def _check_path(self) -> None:
        if self.path is not None and not isinstance(self.path, str | os.PathLike):
            raise TypeError(f"path must be the path of a file, got {self.path!r}")
        if self.path is not None and self.by != "lease":
            raise ValueError(f'path={self.path!r} needs by="lease": leave it out, because a Redis outlives the driver')
        if self.name is None and (self.path is not None or self.by != "lease"):
            raise ValueError("a budget that outlives the driver needs a name: give name=")


@dataclass(frozen=True, slots=True)
class LeasedBudget(Leased):
    """A budget whose leases a source grants. Equal if its leases are: weights are those of a query.

    Args:
        budget: The budget.
        driver: See `Leased`.

    Attributes:
        gates: The labels of its gates in a worker.
    """

    gates: ClassVar[tuple[str, ...]] = ("ClusterBudgetLease",)

    budget: ClusterBudget
    driver: TokenAddress | None = None

    @property
    def limit(self) -> ClusterBudget:
        """The budget."""
        return self.budget


def _check_amount(amount: Any) -> None:
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        raise TypeError(f"amount must be a number, got {amount!r}")
    if not 0 <= amount <= sys.float_info.max:
        raise ValueError(f"amount must be finite and not negative, got {amount!r}")
