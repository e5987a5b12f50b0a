"""The gates of a cluster's limits in a worker: a task's share of a rate, and the lease of its process."""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Any

import trio

from trio_asyncio_io.gates import BudgetError, Gate, Outcome, RateLimit

from .budgets import BudgetLease
from .cluster_limits import ClusterBudget, ClusterRate, LeasedLimit
from .lease import GRANT_SECONDS, OPEN_SECONDS, POLL_SECONDS
from .rates import RateLease
from .signed_lines import UnsignedError
from .sources import GrantRefusedError, Source

# For `ClusterShare`: fewer than burst + rate calls start in any second, so 1 % of it is left for calls that take
# different times to reach the service
SHARE_RATE = 0.98
SHARE_LATENESS_SECONDS = 0.01  # seconds by which a call may start late without delaying the next ones

logger = logging.getLogger("udfs")


class ClusterLimitError(Exception):
    """The source of a leased `cluster_rate` or `cluster_budget` was away for `give_up` seconds while calls waited."""

    __module__ = "udfs"


class ClusterShare(RateLimit):
    """Starts at most `calls` calls in any second, evenly: a task begins with an empty bucket.

    So all tasks that run at the same time stay below the cluster's rate, even if one task follows another. With a
    weight, they exceed it by at most one call for each task. Each task has a share of its own, even if several tasks of
    one process run at once: `name` only identifies the weight for `settle`.

    Args:
        calls, weight, name: See `TaskShare`.
    """

    def __init__(self, calls: float, weight: Callable[..., float] | None = None, name: str | None = None) -> None:
        whole_call = 1 if weight is None else 0  # one that is heavier than the burst starts when the bucket is full
        super().__init__(
            SHARE_RATE * calls, burst=whole_call + SHARE_LATENESS_SECONDS * calls, weight=weight, name=name
        )
        self.calls = calls
        self._is_new = True

    @property
    def label(self) -> str:
        """Without the name, which may be a random one."""
        return type(self).__name__

    @property
    def identity(self) -> Hashable:
        """The object itself, whatever its name."""
        return id(self)

    def delay(self, now: float, weight: float) -> float:
        """The seconds until the bucket holds a call."""
        if self._is_new:
            self._is_new = False
            self.started(now, self.burst)
            self.ended(now, 0.0, Outcome("cancelled"), self.burst)
        return super().delay(now, weight)


class LeaseGate(Gate):
    """Starts a call when this process has a lease for it. The tasks of the process that use the limit share the gate.

    It fails if the source is away for `give_up` seconds while calls wait. The first request opens the connection, which
    is closed after `idle_seconds` of the lease without a request.

    Args:
        leased: The rate or the budget, with the weights of a query.
        source: Its source, not yet connected.

    Attributes:
        lease: The lease as plain data.
        away_since: The instant since which calls wait for a source that is away. None: they do not.
    """

    reacts_to_ends = False

    def __init__(self, leased: LeasedLimit, source: Source) -> None:
        limit = leased.limit
        self.lease: RateLease | BudgetLease = (
            RateLease(limit.name, limit.rate)
            if isinstance(limit, ClusterRate)
            else BudgetLease(str(limit.name), limit.amount, secrets.token_hex(8))
        )
        self.weight = limit.weight
        self.name = leased.settled_name
        self.away_since: float | None = None
        self._leased = leased
        self._advice = leased.advice
        self._source = source
        self._tasks = 0
        self._called_since: float | None = None  # the first call since the process had no task with this limit
        self._requests: trio.MemorySendChannel[Any] | None = None

    @property
    def label(self) -> str:
        """Without the name, which may be a random one. Tells waits for a rate from waits for its source."""
        return self._leased.gate_labels[0 if self.away_since is None else -1]

    @property
    def identity(self) -> Hashable:
        """The object itself: a limit of the same name has a lease of its own if its weights differ."""
        return id(self)

    def configuration(self) -> dict[str, Any]:
        """The amount, and where it is leased."""
        return {"amount": self._leased.amount, "source": self._leased.source}

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[None]:
        """A task uses the gate in the block. The last one of several tasks returns what is not spent."""
        if not self._tasks:
            self._called_since = None
        self._tasks += 1
        try:
            yield
        finally:
            self._tasks -= 1
            if not self._tasks:
                await self.return_unused()

    def delay(self, now: float, weight: float) -> float:
        """The seconds until the call may start or must be checked again. Sends a request if one is due.

        Raises:
            BudgetError: The call is beyond the budget.
            ClusterLimitError: The source has been unreachable for `give_up` seconds.
        """
        now = trio.current_time()  # as in the lease
        if self._called_since is None:
            self._called_since = now
        self._send(self.lease.request(now, weight))
        delay = self.lease.delay(now, weight)
        if delay is None:
            raise self._budget_error(weight)
        if delay:
            self._check_source(now)
        return delay

    def started(self, now: float, weight: float) -> None:  # noqa: ARG002
        """Use a token, or reserve the weight."""
        self.lease.started(weight)

    def correct(self, weight: float, actual: float) -> None:
        """Reserve what the call costs."""
        self.lease.corrected(weight, actual)

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:  # noqa: ARG002
        """Spend what is reserved for the call. If the call was not made after all, free it."""
        if not outcome.was_made:
            self.lease.corrected(weight, 0.0)
            weight = 0.0
        self.lease.ended(weight)

    async def return_unused(self) -> None:
        """Return what is not spent, unless calls run or the source does not answer."""
        with trio.CancelScope(shield=True), trio.move_on_after(GRANT_SECONDS):
            while self.lease.must_return and self.lease.outage is None:
                self._send(self.lease.return_unused(trio.current_time()))
                await trio.sleep(POLL_SECONDS)

    def _budget_error(self, weight: float) -> BudgetError:
        limit, amount = self._leased.limit, self._leased.amount
        name = f" {limit.name!r}" if isinstance(limit, ClusterBudget) and limit.is_named else ""
        spent, digits = self.lease.spent_by_all(), ",.2f" if amount >= 1 else ".3g"
        needed = f"{weight:,.2f}" if weight >= 1 else f"{weight:.3g}"
        return BudgetError(
            f"budget{name} used up by all tasks: {spent:{digits}} of {amount:{digits}}, and the call needs {needed}"
        )

    def _check_source(self, now: float) -> None:
        """Fail if the source has been unreachable for `give_up` seconds, and log when it becomes unreachable.

        At least one attempt has failed since the process had no task with this limit, such as before Spark tried a task
        again.
        """
        outage, leased = self.lease.outage, self._leased
        if outage is None:
            return
        if self.away_since is None and self.lease.is_away(now):
            self.away_since = outage.since
            logger.warning("%s is away, so the calls of %r wait: %s", leased.source, leased.limit, outage.reason)
        give_up = leased.limit.give_up
        if outage.latest >= max(outage.since + give_up, self._called_since or 0.0):
            raise ClusterLimitError(
                f"{leased.source}, which is the source of {leased.limit!r}, has granted no call for "
                f"{outage.latest - outage.since:,.0f} s, and give_up={give_up:g}. The last attempt failed with "
                f"{outage.reason}. {self._advice}"
            )

    def _send(self, request: Any) -> None:
        if request is not None:
            if self._requests is None:
                self._requests, requests = trio.open_memory_channel[Any](1)
                trio.lowlevel.spawn_system_task(self._exchange, requests, name="udfs lease")
            self._requests.send_nowait(request)

    async def _exchange(self, requests: trio.MemoryReceiveChannel[Any]) -> None:
        """Send requests until one fails, or until there is none for a while."""
        sent, reason = trio.current_time(), "the end of the worker"
        try:
            with trio.fail_after(OPEN_SECONDS):
                await self._source.open()
            while True:
                request = None
                with trio.move_on_after(self.lease.idle_seconds):
                    request = await requests.receive()
                if request is None:
                    if self.lease.is_requested:  # sent at the instant at which the wait ended
                        continue
                    request = self.lease.heartbeat(trio.current_time())
                if request is None:
                    break
                sent = trio.current_time()
                with trio.fail_after(GRANT_SECONDS):
                    grant = await self._source.grant(request)
                self.lease.granted(grant, sent, trio.current_time())
                self._log_return()
        except Exception as error:  # noqa: BLE001 - whatever it is, there are no tokens
            reason = _described(error)
            self._advice = error.advice if isinstance(error, GrantRefusedError | UnsignedError) else self._leased.advice
        finally:
            self._requests = None
            if self.lease.is_requested:
                self.lease.failed(sent, trio.current_time(), reason)
            await self._source.aclose()

    def _log_return(self) -> None:
        if self.away_since is not None and self.lease.outage is None:
            away = trio.current_time() - self.away_since
            logger.warning("%s is back after %.0f s", self._leased.source, away)
            self.away_since = None


def _described(error: Exception) -> str:
    if isinstance(error, trio.TooSlowError):
        return "no answer in time"
    if isinstance(error, GrantRefusedError):
        return str(error)
    # Trio raises a group with an error for each address of the host
    errors = error.__cause__.exceptions if isinstance(error.__cause__, ExceptionGroup) else (error,)
    return ", ".join(f"{type(each).__name__}: {each}".rstrip(".") for each in errors)
