"""RequestWriter: one request, checked and written to a stream."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

import httpx
import trio

from ._dial import Stream
from ._request_head import RequestHead, render_head

__all__ = ["IDEMPOTENT", "RequestWriter"]

# RFC 9110, section 9.2.2
IDEMPOTENT: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PUT", "TRACE"})

_SHORT: Final = 64 * 1024  # bytes of a request that the kernel takes even if the server does not read


class RequestWriter:
    """Writes one request, head and body.

    Args:
        method: Of the request.
        start: The head, and the body if it is in memory.
        timeouts: Seconds for each step, by httpx's names of the steps.
        closes_connection: Whether the request asks the server to close the connection after it.
        body: The rest of the body; None if `start` has all of it.
        length: Bytes of `body`; None: it is sent in chunks.

    Attributes:
        method, timeouts, closes_connection: As above.
        may_block: Whether writing can wait for the server, so that the response must be watched meanwhile.
        is_repeatable: Whether the request may be sent twice: it is idempotent, and its body is in memory.
    """

    def __init__(
        self,
        method: str,
        start: bytes,
        timeouts: dict[str, float | None],
        *,
        closes_connection: bool = False,
        body: httpx.SyncByteStream | httpx.AsyncByteStream | None = None,
        length: int | None = 0,
    ) -> None:
        self.method = method
        self._start = start
        self.timeouts = timeouts
        self.closes_connection = closes_connection
        self._body = body
        self._length = length
        self.may_block = body is not None or len(start) > _SHORT
        self.is_repeatable = method in IDEMPOTENT and (body is None or isinstance(body, httpx.ByteStream))

    @classmethod
    def of(cls, request: httpx.Request) -> RequestWriter:
        """Return the writer of a request, after all checks that can be made before sending.

        Raises:
            httpx.LocalProtocolError: The request is not valid in HTTP/1.1, or the length of its body differs from its
                Content-Length.
        """
        head, timeouts = render_head(request), request.extensions.get("timeout", {})
        body = request.stream
        if isinstance(body, httpx.ByteStream):
            return cls.with_content(request.method, head, b"".join(body), timeouts)
        start, length, closes_connection = head
        return cls(request.method, start, timeouts, closes_connection=closes_connection, body=body, length=length)

    @classmethod
    def with_content(
        cls, method: str, head: RequestHead, content: bytes, timeouts: dict[str, float | None]
    ) -> RequestWriter:
        """Return the writer of a request whose body is in memory.

        Raises:
            httpx.LocalProtocolError: The length of the body differs from its Content-Length.
        """
        start, length, closes_connection = head
        if length is None:
            body = httpx.ByteStream(content)
            return cls(method, start, timeouts, closes_connection=closes_connection, body=body, length=None)
        if len(content) != length:
            raise _wrong_length(len(content), length)
        return cls(method, start + content, timeouts, closes_connection=closes_connection)

    async def write(self, stream: Stream) -> bool:
        """Write the request. Returns False if the server closed the connection, maybe after an early response.

        Raises:
            httpx.WriteTimeout: The server did not read a part in time.
            httpx.LocalProtocolError: The length of the body differs from its Content-Length.
        """
        try:
            await self._write(stream, self._start)
            if self._body is not None:
                await self._write_body(stream, self._body)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        return True

    async def _write_body(self, stream: Stream, body: httpx.SyncByteStream | httpx.AsyncByteStream) -> None:
        assert isinstance(body, httpx.AsyncByteStream)
        parts = body.__aiter__()
        try:
            await (self._write_chunks(stream, parts) if self._length is None else self._write_parts(stream, parts))
        finally:
            if isinstance(parts, AsyncGenerator):  # the garbage collector would be too late, and Trio warns of that
                await parts.aclose()

    async def _write_chunks(self, stream: Stream, parts: AsyncIterator[bytes]) -> None:
        async for part in parts:
            if part:  # an empty chunk would be the last one
                await self._write(stream, b"%x\r\n%b\r\n" % (len(part), part))
        await self._write(stream, b"0\r\n\r\n")

    async def _write_parts(self, stream: Stream, parts: AsyncIterator[bytes]) -> None:
        assert self._length is not None
        written = 0
        async for part in parts:
            written += len(part)
            if written > self._length:
                raise _wrong_length(written, self._length)
            await self._write(stream, part)
        if written < self._length:
            raise _wrong_length(written, self._length)

    async def _write(self, stream: Stream, data: bytes) -> None:
        if stream.send_now(data):
            return
        seconds = self.timeouts.get("write")
        with trio.move_on_after(math.inf if seconds is None else seconds):
            await stream.drain()
            return
        raise httpx.WriteTimeout(f"write timeout of {seconds} s")


def _wrong_length(size: int, length: int) -> httpx.LocalProtocolError:
    return httpx.LocalProtocolError(f"the body has {size:,} bytes, and its Content-Length is {length:,}")
