"""A worker's connection to the source of a leased rate or budget: the driver or a Redis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from math import inf
from typing import Any, Protocol, TypeVar

import trio

from .budgets import BudgetRequest
from .cluster_limits import Leased, TokenAddress
from .redis_tokens import RedisTokens
from .signed_lines import SignedLines
from .tokens import Refusal, Request

__all__ = ["DriverSource", "GrantRefusedError", "RedisSource", "Source", "source_of"]

T = TypeVar("T")


class GrantRefusedError(Exception):
    """The source cannot grant a request now.

    Args:
        refusal: Its answer.
    """

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.refused)
        self.advice = refusal.advice


class Source(Protocol):
    """A source, and the connection to it. `open` comes first, and after any exception `aclose`."""

    async def open(self) -> None:
        """Connect.

        Raises:
            Exception: The source cannot be reached.
        """
        ...

    async def grant(self, request: Request | BudgetRequest) -> Any:
        """Return the source's answer: a `request.answer`.

        Raises:
            Exception: There is none.
        """
        ...

    async def aclose(self) -> None:
        """Close the connection, if there is one, without waiting for the other end."""
        ...


def source_of(leased: Leased) -> Source:
    """The source, not yet connected.

    Raises:
        ModuleNotFoundError: It is a Redis, and the extra `redis` is not installed.
    """
    return RedisSource(leased.limit.by) if leased.driver is None else DriverSource(leased.driver)


class DriverSource:
    """The thread on the driver. Both ends prove that they know the secret.

    Args:
        address: Where it listens.
    """

    def __init__(self, address: TokenAddress) -> None:
        self._address = address
        self._stream: trio.SocketStream | None = None

    async def open(self) -> None:
        """See `Source`."""
        self._stream = await trio.open_tcp_stream(self._address.host, self._address.port)
        self._lines = SignedLines(self._stream, self._address.secret)
        await self._lines.connect()

    async def grant(self, request: Request | BudgetRequest) -> Any:
        """See `Source`."""
        await self._lines.send(asdict(request))
        answer = await self._lines.receive()
        if "refused" in answer:
            raise GrantRefusedError(Refusal(**answer))
        return request.answer(**answer)

    async def aclose(self) -> None:
        """See `Source`."""
        if self._stream is not None:
            await trio.aclose_forcefully(self._stream)


class RedisSource:
    """A Redis. Requests are sent in a thread of Trio's pool.

    Args:
        url: Of the server, as `redis.Redis.from_url` takes it.

    Raises:
        ModuleNotFoundError: The extra `redis` is not installed.
    """

    # Not the limiter of the user's own threads, which may all be busy. Each of these threads ends after its time limit
    _limiter = trio.CapacityLimiter(inf)

    def __init__(self, url: str) -> None:
        self._tokens = RedisTokens(url)

    async def open(self) -> None:
        """See `Source`."""
        await self._in_thread(self._tokens.connect)

    async def grant(self, request: Request | BudgetRequest) -> Any:
        """See `Source`."""
        if isinstance(request, BudgetRequest):
            return await self._in_thread(self._tokens.grant_budget, request)
        return await self._in_thread(self._tokens.grant, request)

    async def aclose(self) -> None:
        """See `Source`."""
        self._tokens.close()

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call it in a thread, which ends after its time limit even if the call is cancelled before."""
        return await trio.to_thread.run_sync(function, *arguments, abandon_on_cancel=True, limiter=self._limiter)
