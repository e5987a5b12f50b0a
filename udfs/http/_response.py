"""Response: an `httpx.Response` that reads and decodes its body in bounded steps."""

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
from ._response_body import ResponseBody

__all__ = ["BodyTooLargeError", "Response"]

_COOKIES: Final = frozenset({b"set-cookie", b"set-cookie2"})

# A coding can make a small body larger: at most by its own size and this
_SMALL_BYTES: Final = 64 * 1024


class BodyTooLargeError(Exception):
    """The body of a response is larger than `max_body_bytes`. The rest was not read."""


class Response(httpx.Response):
    """Reads and decodes its body in another way than `httpx.Response`; all else is httpx's.

    Coded bodies are decoded in bounded steps, and an incomplete one is an error. Only charsets that are decoded in
    linear time are recognized.

    **Cancellation** of a read closes the connection.

    Args:
        request: The request that is answered.
        connection: Has received the head of the response.
        release: As for `ResponseBody`.

    Attributes:
        has_cookies: Whether the server has set a cookie.
        sent_at: When the request was sent, by `time.perf_counter`. None: httpx itself sets `elapsed`.
        is_result: Whether httpx must return a redirect without parsing its Location. To be set in a hook.
    """

    def __init__(self, request: httpx.Request, connection: Connection, release: Callable[[Connection], None]) -> None:
        head = connection.parser
        headers = httpx.Headers()
        headers._list = head.headers  # noqa: SLF001 - the list that `httpx.Headers` would make of these headers
        super().__init__(
            head.status,
            headers=headers,
            stream=ResponseBody(request, connection, release),
            extensions={"http_version": head.version, "reason_phrase": head.reason},
        )
        self.has_cookies = not head.names.isdisjoint(_COOKIES)
        self.sent_at: float | None = None
        self.is_result = False

    @property
    def has_redirect_location(self) -> bool:
        """Whether httpx builds a request from the Location; see `httpx.Response.has_redirect_location`."""
        return not self.is_result and super().has_redirect_location

    @property
    def charset_encoding(self) -> str | None:
        """The charset that the Content-Type names; None if it names none, or one that `response.text` cannot decode."""
        return charset_of(self.headers.get("Content-Type"))

    async def aread(self) -> bytes:
        """Read and return the response content."""
        body = self.stream
        if not isinstance(body, ResponseBody) or self.is_closed or self.is_stream_consumed:
            return await super().aread()
        return await self.aread_within(math.inf)

    async def aread_within(self, limit: float) -> bytes:
        """Read and return the response content if it is small enough. The response must not have been read before.

        Args:
            limit: Upper limit of the decoded body, in bytes. Twice the limit and 64 KiB may arrive.

        Raises:
            BodyTooLargeError: The body is larger. The connection is closed.
            httpx.DecodingError: The body is not valid in its coding, or it was cut off.
        """
        body = self.stream
        assert isinstance(body, ResponseBody)
        with self._reading(body):
            self._content = await self._read(body, limit)
        await self.aclose()
        return self._content

    def aiter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        """A byte-iterator over the decoded response content."""
        body = self.stream
        if isinstance(body, ResponseBody) and not self.is_closed and not self.is_stream_consumed:
            decoder = _decoder(self.headers)
            if decoder is not None:
                return self._aiter_decoded(body, decoder, chunk_size)
        return super().aiter_bytes(chunk_size)

    async def aclose(self) -> None:
        """Close the response and release the connection."""
        if self.sent_at is not None and not self.is_closed:
            self.elapsed = timedelta(seconds=perf_counter() - self.sent_at)
        # As httpx's, but without its `request_context`, which adds the request to errors: closing a body raises none
        if isinstance(self.stream, ResponseBody):
            self.is_closed = True
            self.stream.close()
        else:
            await super().aclose()

    @contextmanager
    def _reading(self, body: ResponseBody) -> Iterator[None]:
        """Close the body after an error, and add the request to it as httpx's `request_context` does."""
        self.is_stream_consumed = True
        self._num_bytes_downloaded = 0
        try:
            yield
        except BaseException as error:
            if isinstance(error, httpx.DecodingError):
                error.request = self.request
            body.close()
            raise

    async def _read(self, body: ResponseBody, limit: float) -> bytes:
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

    async def _aiter_decoded(
        self, body: ResponseBody, decoder: Decoder, chunk_size: int | None
    ) -> AsyncIterator[bytes]:
        held = bytearray()
        with self._reading(body):
            while raw := await body.read():
                self._num_bytes_downloaded += len(raw)
                for part in decoder.decode(raw):
                    held += part
                    while len(held) >= (size := chunk_size or len(part)):
                        yield bytes(held[:size])
                        del held[:size]
                    await _checkpoint_after(part)
            decoder.finish()
        if held:
            yield bytes(held)
        await self.aclose()


def _decoder(headers: httpx.Headers) -> Decoder | None:
    # Most bodies are not coded, and `get_list` decodes all headers to find that out
    if b"content-encoding" not in [name for _, name, _ in headers._list]:  # noqa: SLF001 - as above
        return None
    return decoder_for(headers.get_list("content-encoding", split_commas=True))


async def _decode(decoder: Decoder, raw: bytes, content: bytearray, limit: float) -> None:
    """Append the decoded data, and stop once it exceeds the limit."""
    for part in decoder.decode(raw):
        content += part
        if len(content) > limit:
            return
        await _checkpoint_after(part)


async def _checkpoint_after(part: bytes) -> None:
    """Let other tasks run after a full step, because the same data may decode to many more."""
    if len(part) >= STEP_BYTES:
        await trio.lowlevel.checkpoint()
