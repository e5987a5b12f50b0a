"""The reply: a response of httpx that reads and decodes its body in bounded steps."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from time import perf_counter
from typing import Final

import httpx
import trio

from ._charset import charset_of
from ._connection import Connection
from ._decoding import STEP_BYTES, Decoder, decoder_for

__all__ = ["Body", "BodyTooLargeError", "Reply"]

_COOKIES: Final = frozenset({b"set-cookie", b"set-cookie2"})

# A coding can make a body larger, by this and its own size at most
_SMALL_BYTES: Final = 64 * 1024


class BodyTooLargeError(Exception):
    """The body of an answer is larger than `max_body_bytes`, and was not read on."""


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
    """A response as httpx's own; only its body is read and decoded in another way.

    Coded bodies are decoded in bounded steps, and only if they are complete. Only charsets that are decoded in linear
    time are recognized.

    Args:
        request: What was asked.
        connection: Where the head of the answer has arrived.
        closed: As for `Body`.

    Attributes:
        has_cookies: Whether the server has set any.
        asked_at: When the request was sent, by `time.perf_counter`; None: httpx itself sees to `elapsed`.
        is_result: Whether httpx must return a redirect without a look at its Location. Set it in a hook.
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
        self.is_result = False

    @property
    def has_redirect_location(self) -> bool:
        """Whether httpx makes a request of the Location; see `httpx.Response.has_redirect_location`."""
        return not self.is_result and super().has_redirect_location

    @property
    def charset_encoding(self) -> str | None:
        """The charset that the Content-Type names; None also for one that `response.text` does not decode."""
        return charset_of(self.headers.get("Content-Type"))

    async def aread(self) -> bytes:
        """Read and return the response content."""
        body = self.stream
        if not isinstance(body, Body) or self.is_closed or self.is_stream_consumed:
            return await super().aread()
        return await self.aread_within(math.inf)

    async def aread_within(self, limit: float) -> bytes:
        """Read and return the response content, if it is small enough. Not for a response that was read before.

        Args:
            limit: `max_body_bytes`, for the decoded body. The bytes that arrive may be twice as many, and 64 KiB.

        Raises:
            BodyTooLargeError: The body is larger. The connection was closed.
            httpx.DecodingError: The body is not valid in its coding, or it was cut off.
        """
        body = self.stream
        assert isinstance(body, Body)
        with self._reading(body):
            self._content = await self._read(body, limit)
        await self.aclose()
        return self._content

    def aiter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        """A byte-iterator over the decoded response content."""
        body = self.stream
        if isinstance(body, Body) and not self.is_closed and not self.is_stream_consumed:
            decoder = _decoder(self.headers)
            if decoder is not None:
                return self._aiter_decoded(body, decoder, chunk_size)
        return super().aiter_bytes(chunk_size)

    @contextmanager
    def _reading(self, body: Body) -> Iterator[None]:
        """Closes the body after an error. httpx's `request_context` names the request in it, and so does this."""
        self.is_stream_consumed = True
        self._num_bytes_downloaded = 0
        try:
            yield
        except BaseException as error:
            if isinstance(error, httpx.DecodingError):
                error.request = self.request
            body.close()
            raise

    async def _read(self, body: Body, limit: float) -> bytes:
        decoder = _decoder(self.headers)
        content = bytearray()
        while raw := await body.read():
            self._num_bytes_downloaded += len(raw)
            if decoder is None:
                content += raw
            else:
                await _decode(decoder, raw, content, limit)
            if len(content) > limit or self._num_bytes_downloaded > 2 * limit + _SMALL_BYTES:
                message = f"the body is larger than the {limit:,} bytes (max_body_bytes) that are allowed"
                raise BodyTooLargeError(message)
            if body.has_ended:
                break
        if decoder is not None:
            decoder.finish()
        return bytes(content)

    async def _aiter_decoded(self, body: Body, decoder: Decoder, chunk_size: int | None) -> AsyncIterator[bytes]:
        held = bytearray()
        with self._reading(body):
            while raw := await body.read():
                self._num_bytes_downloaded += len(raw)
                for part in decoder.decode(raw):
                    held += part
                    while len(held) >= (size := chunk_size or len(part)):
                        yield bytes(held[:size])
                        del held[:size]
                    await _rest_after(part)
            decoder.finish()
        if held:
            yield bytes(held)
        await self.aclose()

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


def _decoder(headers: httpx.Headers) -> Decoder | None:
    # Most bodies are not coded, and `get_list` would decode all headers to find that out
    if b"content-encoding" not in [name for _, name, _ in headers._list]:  # noqa: SLF001 - as above
        return None
    return decoder_for(headers.get_list("content-encoding", split_commas=True))


async def _decode(decoder: Decoder, raw: bytes, content: bytearray, limit: float) -> None:
    """Append what the data decodes to, until there is more than allowed."""
    for part in decoder.decode(raw):
        content += part
        if len(content) > limit:
            return
        await _rest_after(part)


async def _rest_after(part: bytes) -> None:
    """Let other tasks run, if this part can be one of many that the same data decodes to."""
    if len(part) >= STEP_BYTES:
        await trio.lowlevel.checkpoint()
