"""RequestWriter: one request, checked and written to a stream."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

import httpx
import trio

from ._dial import Stream
from ._request_head import render_head

__all__ = ["IDEMPOTENT", "RequestWriter"]

# RFC 9110, section 9.2.2
IDEMPOTENT: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PUT", "TRACE"})

_SHORT: Final = 64 * 1024  # bytes of a request that the kernel takes even if the server does not read


class RequestWriter:
    """Writes one request, head and body. The constructor checks everything that can be checked before sending.

    Args:
        request: The request to send.

    Attributes:
        method: Of the request.
        timeouts: Seconds for each step, by httpx's names of the steps.
        closes_connection: Whether the request asks the server to close the connection after it.
        may_block: Whether writing can wait for the server, so that the response must be watched meanwhile.
        is_repeatable: Whether the request may be sent twice: it is idempotent, and its body is in memory.

    Raises:
        httpx.LocalProtocolError: The request is not valid in HTTP/1.1, or the length of its body differs from its
            Content-Length.
    """

    def __init__(self, request: httpx.Request) -> None:
        if request.method == "CONNECT":
            raise httpx.LocalProtocolError("CONNECT opens a tunnel, and this client connects to the origin itself")
        self._start, self._length, self.closes_connection = render_head(request)
        self._body: httpx.SyncByteStream | httpx.AsyncByteStream | None = request.stream
        self.method = request.method
        self.timeouts: dict[str, float | None] = request.extensions.get("timeout", {})
        is_in_memory = isinstance(self._body, httpx.ByteStream)
        self.is_repeatable = is_in_memory and self.method in IDEMPOTENT
        if is_in_memory and self._length is not None:
            self._start += _content(request.stream, self._length)
            self._body = None
        self.may_block = not is_in_memory or self._length is None or self._length > _SHORT

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


def _content(body: httpx.SyncByteStream | httpx.AsyncByteStream, length: int) -> bytes:
    assert isinstance(body, httpx.ByteStream)
    content = b"".join(body)
    if len(content) != length:
        raise _wrong_length(len(content), length)
    return content


def _wrong_length(size: int, length: int) -> httpx.LocalProtocolError:
    return httpx.LocalProtocolError(f"the body has {size:,} bytes, and its Content-Length is {length:,}")
