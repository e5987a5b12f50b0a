"""A simulated source of tokens, on Trio's clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

import trio

from trio_asyncio_io.gates import Gate
from udfs._rate.cluster_lease import ClusterLease
from udfs._rate.lease import Answer, Lease, Request
from udfs._rate.tokens import TokenSource, settling_of

__all__ = ["SimulatedSource", "leases"]

AHEAD = 1e4  # the source's clock minus Trio's


class SimulatedSource:
    """Grants tokens of `rate`, 2 ms after a question.

    Args:
        rate, slots: Of the leases.

    Attributes:
        respond: Called for each question. It raises, or does not return, while the source is away.
        asked: The questions.
    """

    def __init__(self, rate: float, slots: int) -> None:
        self.respond: Callable[[], Awaitable[Any]] = trio.lowlevel.checkpoint
        self.asked: list[Request] = []
        self._rate = rate
        self._settling = settling_of(rate, slots)
        self._source = TokenSource(rate, self._settling)

    def restart(self) -> None:
        """Forget what was granted, and respond again."""
        self._source = TokenSource(self._rate, self._settling, opens=trio.current_time() + AHEAD + self._settling)
        self.respond = trio.lowlevel.checkpoint

    async def ask(self, request: Request) -> Answer:
        """Answer a question."""
        self.asked.append(request)
        sent = trio.current_time()
        await self.respond()
        await trio.sleep(0.001)
        grant = self._source.grant(trio.current_time() + AHEAD, **asdict(request))
        await trio.sleep(0.001)
        return Answer(grant, sent, trio.current_time())


def leases(source: SimulatedSource, rate: float, slots: int) -> list[Gate | None]:
    """A gate for each slot, all of which lease from one source."""
    return [ClusterLease(Lease(rate, slots), source) for _ in range(slots)]
