"""The upload: a request, checked and ready to be sent."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

import httpx
import trio

from ._dial import Stream
from ._head import rendered

__all__ = ["IDEMPOTENT", "Upload"]

# RFC 9110, section 9.2.2
IDEMPOTENT: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PUT", "TRACE"})

_SHORT: Final = 64 * 1024  # bytes: what the kernel takes of a request, whether the server reads or not


class Upload:
    """One request, its head and its body. Making one checks all that can be checked before anything is sent.

    Args:
        request: The request to send.

    Attributes:
        method: Of the request.
        timeouts: The seconds that each step may take, as httpx names the steps.
        is_last: Whether the request asks the server to close the connection after it.
        is_long: Whether the server can make it wait, so that somebody should receive meanwhile.
        is_repeatable: Whether it may be sent a second time: it is idempotent, and its body is in memory.

    Raises:
        httpx.LocalProtocolError: HTTP/1.1 does not allow the request, or its body is not as long as its
            Content-Length.
    """

    def __init__(self, request: httpx.Request) -> None:
        if request.method == "CONNECT":
            raise httpx.LocalProtocolError("CONNECT opens a tunnel, and this client sends to the origin itself")
        self._start, self._length, self.is_last = rendered(request)
        self._body: httpx.SyncByteStream | httpx.AsyncByteStream | None = request.stream
        self.method = request.method
        self.timeouts: dict[str, float | None] = request.extensions.get("timeout", {})
        is_in_memory = isinstance(self._body, httpx.ByteStream)
        self.is_repeatable = is_in_memory and self.method in IDEMPOTENT
        if is_in_memory and self._length is not None:
            self._start += _content(request.stream, self._length)
            self._body = None
        self.is_long = not is_in_memory or self._length is None or self._length > _SHORT

    async def send(self, stream: Stream) -> bool:
        """Send it; False if the server has hung up in between. It may have responded before.

        Raises:
            httpx.WriteTimeout: The server took too long to take a part.
            httpx.LocalProtocolError: The body is not as long as its Content-Length.
        """
        try:
            await self._put(stream, self._start)
            if self._body is not None:
                await self._put_body(stream, self._body)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        return True

    async def _put_body(self, stream: Stream, body: httpx.SyncByteStream | httpx.AsyncByteStream) -> None:
        assert isinstance(body, httpx.AsyncByteStream)
        parts = body.__aiter__()
        try:
            await (self._put_chunks(stream, parts) if self._length is None else self._put_parts(stream, parts))
        finally:
            if isinstance(parts, AsyncGenerator):  # Python's collector would close it too late, and Trio warns of that
                await parts.aclose()

    async def _put_chunks(self, stream: Stream, parts: AsyncIterator[bytes]) -> None:
        async for part in parts:
            if part:  # an empty chunk would be the last
                await self._put(stream, b"%x\r\n%b\r\n" % (len(part), part))
        await self._put(stream, b"0\r\n\r\n")

    async def _put_parts(self, stream: Stream, parts: AsyncIterator[bytes]) -> None:
        assert self._length is not None
        sent = 0
        async for part in parts:
            sent += len(part)
            if sent > self._length:
                raise _wrong_length(sent, self._length)
            await self._put(stream, part)
        if sent < self._length:
            raise _wrong_length(sent, self._length)

    async def _put(self, stream: Stream, data: bytes) -> None:
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
