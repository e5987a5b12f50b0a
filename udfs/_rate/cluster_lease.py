"""The gate of a leased rate: asks the source while calls wait."""

from __future__ import annotations

import logging
import os
from collections.abc import Hashable
from typing import Protocol

import trio

from trio_asyncio_io.gates import Gate

from .lease import TIMEOUT, Answer, Lease, Request

__all__ = ["ClusterLease", "Tokens", "lease_of_process"]


# A query that builds its rate for each micro-batch leaves one lease behind each time
MAX_LEASES = 16

logger = logging.getLogger("udfs")


class Tokens(Hashable, Protocol):
    """A source of tokens. Equal ones have one limit."""

    async def ask(self, request: Request) -> Answer:
        """Return the answer. Raises any exception if there is none."""
        ...


class ClusterLease(Gate):
    """Admits a call for each token, or at the process's share while the source is away. See `Lease`.

    Args:
        lease: Decides.
        tokens: The source.
    """

    def __init__(self, lease: Lease, tokens: Tokens) -> None:
        self._lease = lease
        self._tokens = tokens
        self._had_outage = False

    def delay(self, now: float, weight: float) -> float:  # noqa: ARG002 - Trio's time, on which the source is asked
        """The seconds until the next token, or until the call must ask again."""
        request = self._lease.request(trio.current_time())
        if request is not None:
            trio.lowlevel.spawn_system_task(self._ask, request)
        return self._lease.delay(trio.current_time())

    def started(self, now: float, weight: float) -> None:  # noqa: ARG002
        """Use a token."""
        self._lease.started(trio.current_time())

    async def _ask(self, request: Request) -> None:
        answer: Answer | None = None
        failure: Exception = TimeoutError()
        try:
            with trio.move_on_after(TIMEOUT):
                answer = await self._tokens.ask(request)
        except Exception as error:  # noqa: BLE001 - the source is away, for whatever reason
            failure = error
        finally:
            if answer is None:
                self._lease.failed(trio.current_time())
            else:
                self._lease.granted(answer)
        self._report(failure)

    def _report(self, failure: Exception) -> None:
        """Log when an outage begins and when it has ended."""
        if self._lease.has_outage == self._had_outage:
            return
        self._had_outage = not self._had_outage
        if self._had_outage:
            instead = "this process uses its share" if self._lease.has_share else "the calls of this process wait"
            logger.warning("the source of the cluster_rate is away, so %s: %r", instead, failure)
        else:
            logger.warning("the source of the cluster_rate is back")


# By the process, because Spark's daemon forks, and the source
_of_process: dict[tuple[int, Tokens], ClusterLease] = {}


def lease_of_process(rate: float, slots: int, settling: float, tokens: Tokens) -> ClusterLease:
    """The lease that all tasks of this process share which use equal tokens. The latest ones are kept."""
    key = os.getpid(), tokens
    lease = _of_process.pop(key, None) or ClusterLease(Lease(rate, slots, settling), tokens)
    _of_process[key] = lease
    if len(_of_process) > MAX_LEASES:
        del _of_process[next(iter(_of_process))]  # with its connection
    return lease
