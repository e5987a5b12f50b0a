"""A worker's connection to the source of a leased rate or budget: the driver or a Redis."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, TypeAlias

import trio

from .budgets import BudgetRequest
from .cluster_limits import LeasedLimit, ServerAddress
from .redis_source import RedisSource
from .signed_lines import SignedLines
from .tokens import Refusal, Request

__all__ = ["DriverSource", "GrantRefusedError", "Source", "source_of"]


class GrantRefusedError(Exception):
    """The source cannot grant a request now.

    Args:
        refusal: Its answer.
    """

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.refused)
        self.advice = refusal.advice


def source_of(leased: LeasedLimit) -> Source:
    """The source, not yet connected.

    Raises:
        ModuleNotFoundError: It is a Redis, and the extra `redis` is not installed.
    """
    return RedisSource(leased.limit.by) if leased.driver is None else DriverSource(leased.driver)


class DriverSource:
    """The thread on the driver, and the connection to it. `open` comes first, and after any exception `aclose`.

    Both ends prove that they know the secret.

    Args:
        address: Where it listens.
    """

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._stream: trio.SocketStream | None = None

    async def open(self) -> None:
        """Connect.

        Raises:
            Exception: The source cannot be reached.
        """
        self._stream = await trio.open_tcp_stream(self._address.host, self._address.port)
        self._lines = SignedLines(self._stream, self._address.secret)
        await self._lines.connect()

    async def grant(self, request: Request | BudgetRequest) -> Any:
        """Return the source's answer: a `request.answer`.

        Raises:
            Exception: There is none.
        """
        await self._lines.send(asdict(request))
        answer = await self._lines.receive()
        if "refused" in answer:
            raise GrantRefusedError(Refusal(**answer))
        return request.answer(**answer)

    async def aclose(self) -> None:
        """Close the connection, if there is one, without waiting for the other end."""
        if self._stream is not None:
            await trio.aclose_forcefully(self._stream)


Source: TypeAlias = DriverSource | RedisSource
