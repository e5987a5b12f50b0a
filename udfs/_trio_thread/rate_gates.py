"""The gate of a cluster's rate in a worker: a task's share, or the lease of its process."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import trio

from trio_asyncio_io.gates import Gate, Outcome, RateLimit

from .._rate.budgets import BudgetRequest
from .._rate.lease import OPEN_SECONDS, TIMEOUT, Lease
from .._rate.tokens import Request
from .._sent.cluster_rate import SOURCE_AWAY, Leased, LeasedRate, TaskShare
from .rate_sources import GrantRefusedError, Source, source_of

__all__ = [
    "MAX_LEASES",
    "ClusterLease",
    "ClusterRateError",
    "ClusterShare",
    "Exchange",
    "LeaseOfProcess",
    "rate_gate",
]

# Of a share. In less than a second, fewer than burst + rate calls start. So 1 % of a second is left for calls that take
# different times to reach the service
SHARE_RATE = 0.98
SHARE_LATENESS = 0.01  # seconds by which a call may start late without delaying the next ones

# Seconds after the last request after which the connection is closed. The driver closes it a little later
IDLE_SECONDS = 5.0

# A query that builds its rate for each micro-batch leaves one lease behind each time
MAX_LEASES = 16

logger = logging.getLogger("udfs")


class ClusterRateError(Exception):
    """The source of a leased `cluster_rate` or `cluster_budget` was away for `give_up` seconds while calls waited."""

    __module__ = "udfs"


def rate_gate(rate: TaskShare | LeasedRate) -> Gate:
    """The gate of a task."""
    if isinstance(rate, TaskShare):
        return ClusterShare(rate.calls, rate.weight, rate.name)
    return ClusterLease(_lease_of(os.getpid(), rate))


class ClusterShare(RateLimit):
    """Starts at most `calls` calls in any second, evenly: a task begins with an empty bucket.

    So all tasks that run at the same time stay below the cluster's rate, even if one task follows another. With a
    weight, they exceed it by at most one call for each task.

    Args:
        calls, weight, name: See `TaskShare`.
    """

    @property
    def label(self) -> str:
        """Without the name, which may be a random one."""
        return type(self).__name__

    def __init__(self, calls: float, weight: Callable[..., float] | None = None, name: str | None = None) -> None:
        whole_call = 1 if weight is None else 0  # one that is heavier than the burst starts when the bucket is full
        super().__init__(SHARE_RATE * calls, burst=whole_call + SHARE_LATENESS * calls, weight=weight, name=name)
        self.calls = calls
        self._is_new = True

    def delay(self, now: float, weight: float) -> float:
        """The seconds until the bucket holds a call."""
        if self._is_new:
            self._is_new = False
            self.started(now, self.burst)
            self.ended(now, 0.0, Outcome("cancelled"), self.burst)
        return super().delay(now, weight)


class Exchange:
    """The requests of a process's lease, and its connection to the source.

    The connection is opened by the first request, and closed after `idle_seconds` without one.

    Args:
        lease: The lease.
        leased: The rate or the budget.
        source: Its source, not yet connected.
    """

    idle_seconds = IDLE_SECONDS

    def __init__(self, lease: Any, leased: Leased, source: Source) -> None:
        self.lease = lease
        self._leased = leased
        self._advice = leased.advice
        self._source = source
        self._requests: trio.MemorySendChannel[Any] | None = None
        self._warned_since: float | None = None

    def send(self, request: Request | BudgetRequest | None) -> None:
        """Send a request, if one is due."""
        if request is not None:
            if self._requests is None:
                self._requests, requests = trio.open_memory_channel[Any](1)
                trio.lowlevel.spawn_system_task(self._exchange, requests, name="udfs lease")
            self._requests.send_nowait(request)

    def is_away(self) -> bool:
        """Whether calls wait because the source is away. The first time, log a warning."""
        outage = self.lease.outage
        if outage is None or not self.lease.is_away(trio.current_time()):
            return False
        if self._warned_since is None:
            self._warned_since = outage.since
            leased = self._leased
            logger.warning("%s is away, so the calls of %r wait: %s", leased.source, leased.limit, outage.reason)
        return True

    def check(self, began: float) -> None:
        """Fail if the source has been away for too long, and also since a task began.

        Args:
            began: The instant at which the task began.

        Raises:
            ClusterRateError: So it is.
        """
        outage, leased = self.lease.outage, self._leased
        give_up = leased.limit.give_up
        if outage is None or outage.latest < max(outage.since + give_up, began):
            return
        raise ClusterRateError(
            f"{leased.source}, which is the source of {leased.limit!r}, has granted no call for "
            f"{outage.latest - outage.since:,.0f} s, and give_up={give_up:g}. The last attempt failed with "
            f"{outage.reason}. {self._advice}"
        )

    def request_when_idle(self) -> Request | BudgetRequest | None:
        """The request to send after `idle_seconds` without one. None: the connection is closed."""
        return None

    async def _exchange(self, requests: trio.MemoryReceiveChannel[Any]) -> None:
        """Send requests until one fails, or until there is none for a while."""
        sent, reason = trio.current_time(), "the end of the worker"
        try:
            with trio.fail_after(OPEN_SECONDS):
                await self._source.open()
            while True:
                request = None
                with trio.move_on_after(self.idle_seconds):
                    request = await requests.receive()
                if request is None:
                    if self.lease.is_requested:  # sent at the instant at which the wait ended
                        continue
                    request = self.request_when_idle()
                if request is None:
                    break
                sent = trio.current_time()
                with trio.fail_after(TIMEOUT):
                    grant = await self._source.grant(request)
                self.lease.granted(grant, sent, trio.current_time())
                self._log_return()
        except Exception as error:  # noqa: BLE001 - whatever it is, there are no tokens
            reason = _described(error)
            self._advice = error.advice if isinstance(error, GrantRefusedError) else self._leased.advice
        finally:
            self._requests = None
            if self.lease.is_requested:
                self.lease.failed(sent, trio.current_time(), reason)
            await self._source.aclose()

    def _log_return(self) -> None:
        if self._warned_since is not None and self.lease.outage is None:
            away = trio.current_time() - self._warned_since
            logger.warning("%s is back after %.0f s", self._leased.source, away)
            self._warned_since = None


class LeaseOfProcess(Exchange):
    """The lease that all tasks of this process share which use one rate.

    Args:
        rate: The rate.
        source: Its source, not yet connected.
    """

    def __init__(self, rate: LeasedRate, source: Source) -> None:
        super().__init__(Lease(rate.rate.name, rate.rate.rate), rate, source)

    def delay(self) -> float:
        """The seconds until a call may start or the gate must be checked again. Sends a request if one is due."""
        now = trio.current_time()
        self.send(self.lease.request(now))
        return float(self.lease.delay(now))


def _described(error: Exception) -> str:
    if isinstance(error, trio.TooSlowError):
        return "no answer in time"
    if isinstance(error, GrantRefusedError):
        return str(error)
    cause = f" ({error.__cause__})" if isinstance(error, OSError) and error.__cause__ else ""
    return f"{type(error).__name__}: {error}{cause}"


@lru_cache(MAX_LEASES)
def _lease_of(process: int, rate: LeasedRate) -> LeaseOfProcess:  # noqa: ARG001 - Spark's daemon forks
    return LeaseOfProcess(rate, source_of(rate))


class ClusterLease(Gate):
    """Admits a call for each token. Fails if the source is away for `give_up` seconds.

    Args:
        lease: That of the process.
    """

    def __init__(self, lease: LeaseOfProcess) -> None:
        self._lease = lease
        self._began: float | None = None

    @property
    def label(self) -> str:
        """Tells waits for a token from waits for a source that is away."""
        return SOURCE_AWAY if self._lease.is_away() else type(self).__name__

    def delay(self, now: float, weight: float) -> float:  # noqa: ARG002 - Trio's time is that of the grants
        """The seconds until the next token, or until the gate must be checked again.

        Raises:
            ClusterRateError: The source has been away for too long.
        """
        if self._began is None:
            self._began = trio.current_time()
        delay = self._lease.delay()
        if delay:
            self._lease.check(self._began)
        return delay

    def started(self, now: float, weight: float) -> None:  # noqa: ARG002
        """Use a token."""
        self._lease.lease.started()
