"""Exchanger and Exchange: a request, and its response. Everything below httpx's objects starts here."""

from __future__ import annotations

from collections.abc import Awaitable

import httpx

from ._connection import Connection
from ._origin import Origin, SslContext
from ._pool import ConnectionPool
from ._request import RequestWriter

__all__ = ["Exchange", "Exchanger"]


class Exchanger:
    """Sends requests on the connections of a pool.

    It has no redirects, cookies, authentication or URLs. Its errors are httpx's, without their
    request.

    Args:
        ssl_context: For origins with TLS.
        pool: The connections. This object closes them.
    """

    def __init__(self, ssl_context: SslContext, pool: ConnectionPool) -> None:
        self._ssl_context = ssl_context
        self._pool = pool

    async def begin(self, origin: Origin, writer: RequestWriter) -> Exchange:
        """Send a request, and return when the head of the response has arrived. The caller releases the exchange.

        **Cancellation** closes the connection.

        Raises:
            httpx.RequestError: The server was unreachable, too slow or broke off, or its response is not valid.
            RuntimeError: The pool is closed.
        """
        ssl_context = self._ssl_context.get() if origin.is_secure else None
        connection = await self._pool.acquire(origin, ssl_context, writer.timeouts.get("pool"))
        try:
            try:
                await connection.send(writer)
            except (httpx.ReadError, httpx.RemoteProtocolError):
                if self._pool.is_closed or not (connection.has_died_idle and writer.is_repeatable):
                    raise
                connection = self._pool.replace(connection, ssl_context)
                await connection.send(writer)
        except BaseException:
            self._pool.release(connection)
            raise
        return Exchange(connection, self._pool, writer.timeouts.get("read"))

    def close(self) -> None:
        """Close every connection, idle or busy. Requests in flight fail."""
        self._pool.close()


class Exchange:
    """A request that was sent, and a response whose head has arrived. `Exchanger.begin` creates it.

    After an error or a cancellation it can only be released.

    Args:
        connection: Receives the body.
        pool: Takes the connection back.
        seconds: The read timeout of each part; None for no limit.

    Attributes:
        head: The head of the response. Other responses may share it.
    """

    __slots__ = ("_connection", "_is_released", "_pool", "_seconds", "head")

    def __init__(self, connection: Connection, pool: ConnectionPool, seconds: float | None) -> None:
        self.head = connection.parser.head
        self._connection = connection
        self._pool = pool
        self._seconds = seconds
        self._is_released = False

    @property
    def is_complete(self) -> bool:
        """Whether the whole response has arrived."""
        return self._connection.parser.is_complete

    def read(self) -> Awaitable[bytes]:
        """Return the next part of the body, still in its content coding; `b""` at its end.

        Raises:
            httpx.StreamClosed: The exchange is released.
            httpx.RequestError: The server was too slow or broke off, or its response is not valid.
        """
        if self._is_released:
            raise httpx.StreamClosed
        return self._connection.read(self._seconds)

    def release(self) -> None:
        """Give the connection back. It is closed if the response has not arrived completely. Idempotent."""
        if not self._is_released:
            self._is_released = True
            self._pool.release(self._connection)
