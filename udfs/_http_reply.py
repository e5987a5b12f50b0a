"""The reply: a response of httpx that reads its body in one go where nothing speaks against it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from time import perf_counter
from typing import Final

import httpx

from ._http_connection import Connection

__all__ = ["Body", "Reply"]

_COOKIES: Final = frozenset({b"set-cookie", b"set-cookie2"})


class Body(httpx.AsyncByteStream):
    """The body of a response, as it arrives.

    Args:
        request: What was asked.
        connection: Where the answer comes from.
        closed: Called once, when the body is done with, read to its end or not.
    """

    def __init__(self, request: httpx.Request, connection: Connection, closed: Callable[[Connection], None]) -> None:
        self._request = request
        self._connection = connection
        self._closed: Callable[[Connection], None] | None = closed
        self._seconds = request.extensions.get("timeout", {}).get("read")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while part := await self.read():
            yield part

    @property
    def has_ended(self) -> bool:
        """Whether nothing more comes than has been read; it may be that nobody knows yet."""
        return self._connection.parser.is_complete

    async def read(self) -> bytes:
        """The next part; `b""` at the end. After an error the connection is closed."""
        if self._closed is None:
            raise httpx.StreamClosed
        try:
            return await self._connection.read(self._seconds)
        except httpx.RequestError as error:
            error.request = self._request
            self.close()
            raise
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the connection back. The second time nothing happens."""
        closed, self._closed = self._closed, None
        if closed is not None:
            closed(self._connection)

    async def aclose(self) -> None:
        """`close`, as httpx calls it."""
        self.close()


class Reply(httpx.Response):
    """A response as httpx's own, and in every use equal to it; only the way to its body is shorter.

    Args:
        request: What was asked.
        connection: Where the head of the answer has arrived.
        closed: As for `Body`.

    Attributes:
        has_cookies: Whether the server has set any.
        asked_at: When the request was sent, by `time.perf_counter`; None: httpx itself sees to `elapsed`.
    """

    def __init__(self, request: httpx.Request, connection: Connection, closed: Callable[[Connection], None]) -> None:
        answer = connection.parser
        headers = httpx.Headers()
        headers._list = answer.headers  # noqa: SLF001 - what `httpx.Headers` would make of the names and values
        super().__init__(
            answer.status,
            headers=headers,
            stream=Body(request, connection, closed),
            extensions={"http_version": answer.version, "reason_phrase": answer.reason},
        )
        self.has_cookies = not answer.names.isdisjoint(_COOKIES)
        self.asked_at: float | None = None

    async def aread(self) -> bytes:
        """Read and return the response content."""
        body = self.stream
        if not isinstance(body, Body) or self.is_closed or self.is_stream_consumed:
            return await super().aread()
        # httpx joins what `aiter_bytes` gives. That is what `aiter_raw` gives, that is the body, through two chunkers,
        # which without a chunk size hand on what they get, and through the decoder between them. At its end `aiter_raw`
        # closes the response. What the generators' `request_context` does, `Body` and the `except` here do.
        self.is_stream_consumed = True
        raw = await body.read()
        if not body.has_ended:
            parts = [raw]
            while part := await body.read():
                parts.append(part)
            raw = b"".join(parts)
        self._num_bytes_downloaded = len(raw)
        is_coded = b"content-encoding" in [name for _, name, _ in self.headers._list]  # noqa: SLF001 - as above
        self._content = self._decoded(raw) if is_coded else raw
        await self.aclose()
        return self._content

    def _decoded(self, raw: bytes) -> bytes:
        decoder = self._get_content_decoder()
        try:
            return b"".join([decoder.decode(raw), decoder.flush()])
        except httpx.DecodingError as error:
            error.request = self.request
            raise

    async def aclose(self) -> None:
        """Close the response and release the connection."""
        if self.asked_at is not None and not self.is_closed:
            self.elapsed = timedelta(seconds=perf_counter() - self.asked_at)
        # httpx's own, less a `request_context`, which would name the request in an error: a `Body` closes without one.
        if isinstance(self.stream, Body):
            self.is_closed = True
            self.stream.close()
        else:
            await super().aclose()
