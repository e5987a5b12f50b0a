"""A simulated source of tokens, on Trio's clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Any, cast

import trio

from trio_asyncio_io.gates import Gate
from udfs import ClusterRate
from udfs._limits.cluster_gates import LeaseGate
from udfs._limits.cluster_limits import LeasedLimit, ServerAddress
from udfs._limits.rates import TokenGrant, TokenRequest, TokenSource

AHEAD = 1e4  # the source's clock minus Trio's


class SimulatedSource:
    """Grants tokens, 2 ms after a request.

    Attributes:
        respond: Called for each connection and each request. It raises, or does not return, while the source is away.
        connections: How many are open.
        requests: Those that were sent.
    """

    def __init__(self) -> None:
        self.respond: Callable[[], Awaitable[Any]] = trio.lowlevel.checkpoint
        self.connections = 0
        self.requests: list[TokenRequest] = []
        self._source = TokenSource("0", AHEAD - 1e3)

    def restart(self) -> None:
        """Forget what was granted, and respond again."""
        self._source = TokenSource("1", trio.current_time() + AHEAD)
        self.respond = trio.lowlevel.checkpoint

    def connection(self) -> SimulatedConnection:
        """A connection of one process, not yet open."""
        return SimulatedConnection(self)

    def grant(self, request: TokenRequest) -> TokenGrant:
        """Grant tokens now."""
        return self._source.grant(trio.current_time() + AHEAD, request)


class SimulatedConnection:
    """A `Source` of one process."""

    def __init__(self, source: SimulatedSource) -> None:
        self._source = source

    async def open(self) -> None:
        """Connect."""
        self._source.connections += 1
        await self._source.respond()

    async def grant(self, request: TokenRequest) -> TokenGrant:
        """Answer a request."""
        self._source.requests.append(request)
        await self._source.respond()
        await trio.sleep(0.001)
        grant = self._source.grant(request)
        await trio.sleep(0.001)
        return grant

    async def aclose(self) -> None:
        """Disconnect."""
        self._source.connections -= 1


def leases(source: SimulatedSource, rate: float, processes: int, give_up: float = inf) -> list[Sequence[Gate]]:
    """The gates of a task in each process, all of which lease from one source."""
    cluster_rate = ClusterRate(rate, by="lease", name="simulated", give_up=give_up)
    leased = LeasedLimit(cluster_rate, ServerAddress("driver", 7077, "secret"))
    return [[LeaseGate(leased, cast(Any, source.connection()))] for _ in range(processes)]
