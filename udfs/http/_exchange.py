"""Exchanger: one request, one whole response. Everything below httpx's objects starts here."""

from __future__ import annotations

from dataclasses import dataclass

import httpx
import trio

from ._connection import Connection
from ._decoding import STEP_BYTES, Decoder, body_too_large, decoder_for, received_limit
from ._origin import Origin, SslContext
from ._pool import ConnectionPool
from ._request import RequestWriter
from ._response_parser import ResponseHead

__all__ = ["Exchanger", "WholeResponse"]


@dataclass(eq=False, slots=True)
class WholeResponse:
    """A response that was read to its end.

    Attributes:
        head: Its head. Other responses may share it.
        content: Its body, decoded.
        received: Bytes of the body as they arrived.
    """

    head: ResponseHead
    content: bytes
    received: int


class Exchanger:
    """Sends requests on the connections of a pool.

    It neither follows redirects nor knows cookies, authentication and URLs. Its errors are httpx's, without their
    request.

    Args:
        ssl_context: For origins with TLS.
        pool: The connections. This object closes them.
    """

    def __init__(self, ssl_context: SslContext, pool: ConnectionPool) -> None:
        self._ssl_context = ssl_context
        self._pool = pool
        self.release = pool.release  # gives back a connection of `begin`

    async def begin(self, origin: Origin, writer: RequestWriter) -> Connection:
        """Send a request, and return the connection when it has the head of the response.

        The caller gives the connection to `finish` or `release`.

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
        return connection

    async def finish(self, connection: Connection, writer: RequestWriter, max_body_bytes: float) -> WholeResponse:
        """Read the rest of a response whose head `begin` has received, and release its connection.

        Args:
            connection: The result of `begin`.
            writer: The request.
            max_body_bytes: Upper limit of the decoded body; `math.inf` for none.

        Raises:
            httpx.RequestError: The server was too slow or broke off, or its response is not valid.
            BodyTooLargeError: The body is larger than the limit. The connection is closed, unless all of
                the body has arrived.
            httpx.DecodingError: The body is not valid in its coding.
        """
        try:
            head = connection.parser.head
            decoder = decoder_for(head.codings)
            limit = received_limit(max_body_bytes, is_coded=decoder is not None)
            if not connection.parser.is_complete and (head.length or 0) > limit:
                raise body_too_large(max_body_bytes)
            body = await connection.read_all(writer.timeouts.get("read"), limit)
            if len(body) > limit:
                raise body_too_large(max_body_bytes)
        finally:
            self._pool.release(connection)
        content = body if decoder is None else await _decoded(decoder, body, max_body_bytes)
        return WholeResponse(head, content, len(body))

    def close(self) -> None:
        """Close every connection, idle or busy. Requests in flight fail."""
        self._pool.close()


async def _decoded(decoder: Decoder, body: bytes, limit: float) -> bytes:
    parts, size = [], 0
    for start in range(0, len(body), STEP_BYTES):
        for part in decoder.decode(body[start : start + STEP_BYTES]):
            size += len(part)
            if size > limit:
                raise body_too_large(limit)
            parts.append(part)
            if len(part) >= STEP_BYTES:
                await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
    decoder.finish()
    return b"".join(parts)
