"""The gate of a cluster's budget in a worker: the lease of its process."""

from __future__ import annotations

import os
import secrets
from functools import lru_cache
from typing import Any

import trio

from trio_asyncio_io.gates import BudgetError, Gate, Outcome

from .._rate.budgets import HEARTBEAT, BudgetLease, BudgetRequest
from .._rate.lease import POLL, TIMEOUT
from .._sent.cluster_budget import LeasedBudget
from .rate_gates import MAX_LEASES, Exchange
from .rate_sources import Source, source_of

__all__ = ["BudgetOfProcess", "ClusterBudgetLease", "budget_gate", "return_lease"]


class BudgetOfProcess(Exchange):
    """The lease that all tasks of this process share which use one budget.

    Args:
        leased: The budget.
        source: Its source, not yet connected.
    """

    idle_seconds = HEARTBEAT

    def __init__(self, leased: LeasedBudget, source: Source) -> None:
        budget = leased.budget
        super().__init__(BudgetLease(str(budget.name), budget.amount, secrets.token_hex(8)), leased, source)

    def delay(self, weight: float) -> float | None:
        """The seconds until a call may start or the gate must be checked again; None: it is beyond the budget.

        Sends a request if one is due.
        """
        now = trio.current_time()
        self.send(self.lease.request(now, weight))
        found: float | None = self.lease.delay(now, weight)
        return found

    def request_when_idle(self) -> BudgetRequest | None:
        """A request that keeps the lease of calls that run, and returns what was not used."""
        request: BudgetRequest | None = self.lease.request(trio.current_time())
        return request

    async def return_unused(self) -> None:
        """Return what is not spent, unless calls run or the source does not answer."""
        with trio.CancelScope(shield=True), trio.move_on_after(TIMEOUT):
            while self.lease.is_held and not self.lease.is_running and self.lease.outage is None:
                self.send(self.lease.return_unused(trio.current_time()))
                await trio.sleep(POLL)


class ClusterBudgetLease(Gate):
    """Admits calls as long as the budget of the cluster has room for them.

    Args:
        lease: That of the process.
        leased: The budget, with the weights of a query.
    """

    must_keep = True

    def __init__(self, lease: BudgetOfProcess, leased: LeasedBudget) -> None:
        self._lease = lease
        self._leased = leased
        self._began: float | None = None
        self.weight = leased.budget.weight
        self.name = leased.budget.name

    @property
    def label(self) -> str:
        """Without the name, which may be a random one."""
        return type(self).__name__

    def delay(self, now: float, weight: float) -> float:  # noqa: ARG002 - Trio's time is that of the leases
        """The seconds until the call may start or must be checked again.

        Raises:
            BudgetError: It is beyond the budget.
            ClusterRateError: The source has been away for too long.
        """
        if self._began is None:
            self._began = trio.current_time()
        delay = self._lease.delay(weight)
        if delay is None:
            budget = self._leased.budget
            digits = ",.2f" if budget.amount >= 1 else ".3g"
            used = f"{self._lease.lease.spent_by_all():{digits}} of {budget.amount:{digits}}"
            raise BudgetError(f"budget {budget.name!r} used up by all tasks: {used}")
        if delay and self._lease.is_away():
            self._lease.check(self._began)
        return delay

    def started(self, now: float, weight: float) -> None:  # noqa: ARG002
        """Reserve the weight."""
        self._lease.lease.started(weight)

    def correct(self, weight: float, actual: float) -> None:
        """Reserve what the call costs."""
        self._lease.lease.corrected(weight, actual)

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:  # noqa: ARG002
        """Spend what is reserved for the call."""
        self._lease.lease.ended(weight)

    def configuration(self) -> dict[str, Any]:
        """The amount, and where the budget is leased."""
        return {"amount": self._leased.budget.amount, "source": self._leased.source}


def budget_gate(leased: LeasedBudget) -> Gate:
    """The gate of a task."""
    return ClusterBudgetLease(_lease_of(os.getpid(), leased), leased)


async def return_lease(leased: LeasedBudget) -> None:
    """A task has ended, and does not spend what it has leased."""
    await _lease_of(os.getpid(), leased).return_unused()


@lru_cache(MAX_LEASES)
def _lease_of(process: int, leased: LeasedBudget) -> BudgetOfProcess:  # noqa: ARG001 - Spark's daemon forks
    return BudgetOfProcess(leased, source_of(leased))
