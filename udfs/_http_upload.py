"""The upload: a request on its way out."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator

import httpx
import trio

from ._http_socket import Socket

__all__ = ["Upload"]

_SHORT = 64 * 1024  # bytes: what the kernel takes of a request, whether the server reads or not


class Upload:
    """One request, its head and its body.

    Args:
        stream: Where it goes.
        request: What is sent.
        length: Of its body, in bytes; None: it goes in chunks.
        seconds: For each write, or None.

    Attributes:
        is_long: Whether the server can make it wait, so that someone should listen meanwhile.
    """

    def __init__(
        self, stream: trio.abc.SendStream, request: httpx.Request, length: int | None, seconds: float | None
    ) -> None:
        self._stream = stream
        self._body = request.stream
        self._length = length
        self._seconds = seconds
        self.is_long = not isinstance(self._body, httpx.ByteStream) or length is None or length > _SHORT

    async def send(self, head: bytes) -> bool:
        """Send it; False if the server has hung up meanwhile, which may have answered before.

        Raises:
            httpx.WriteTimeout: The server took too long to take a part.
            httpx.LocalProtocolError: The body is not as long as its Content-Length says.
        """
        try:
            if self._length is not None and isinstance(self._body, httpx.ByteStream):
                await self._put(head + self._content(self._body, self._length))
            else:
                await self._put(head)
                await self._put_body(self._body)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        return True

    @staticmethod
    def _content(body: httpx.ByteStream, length: int) -> bytes:
        content = b"".join(body)
        if len(content) != length:
            raise _wrong_length(len(content), length)
        return content

    async def _put_body(self, body: httpx.SyncByteStream | httpx.AsyncByteStream) -> None:
        assert isinstance(body, httpx.AsyncByteStream)
        parts = body.__aiter__()
        try:
            await (self._put_chunks(parts) if self._length is None else self._put_parts(parts, self._length))
        finally:
            if isinstance(parts, AsyncGenerator):  # Python's collector would close it too late, and Trio warns of that
                await parts.aclose()

    async def _put_chunks(self, parts: AsyncIterator[bytes]) -> None:
        async for part in parts:
            if part:  # an empty chunk would be the last
                await self._put(b"%x\r\n%b\r\n" % (len(part), part))
        await self._put(b"0\r\n\r\n")

    async def _put_parts(self, parts: AsyncIterator[bytes], length: int) -> None:
        sent = 0
        async for part in parts:
            sent += len(part)
            if sent > length:
                raise _wrong_length(sent, length)
            await self._put(part)
        if sent < length:
            raise _wrong_length(sent, length)

    async def _put(self, data: bytes) -> None:
        sent = self._stream.send_now(data) if isinstance(self._stream, Socket) else 0
        if sent == len(data):
            return
        with trio.move_on_after(math.inf if self._seconds is None else self._seconds):
            await self._stream.send_all(memoryview(data)[sent:])
            return
        raise httpx.WriteTimeout(f"write timeout of {self._seconds} s")


def _wrong_length(size: int, length: int) -> httpx.LocalProtocolError:
    return httpx.LocalProtocolError(f"the body has {size:,} bytes, and its Content-Length is {length:,}")
