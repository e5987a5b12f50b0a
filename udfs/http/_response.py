"""Response: an `httpx.Response` that reads and decodes its body in bounded steps."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from datetime import timedelta
from time import perf_counter
from typing import Final

import httpx
import trio

from ._body_limit import BodyTooLargeError, body_too_large, received_limit
from ._charset import charset_of
from ._decoding import STEP_BYTES, Decoder, decoder_for
from ._response_body import ResponseBody
from ._response_head import ResponseHead
from ._shortcuts import SETS_CONTENT, headers_of, names_of

__all__ = ["Response"]

_COOKIES: Final = frozenset({b"set-cookie", b"set-cookie2"})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class Response(httpx.Response):
    """Reads and decodes its body in another way than `httpx.Response`; all else is httpx's.

    Coded bodies are decoded in bounded steps, and an incomplete one is an error. Only charsets that are decoded in
    linear time are recognized.

    **Cancellation** of a read closes the connection.

    Attributes:
        has_cookies: Whether the server has set a cookie.
        max_body_bytes: Upper limit of the decoded body. Twice the limit and 64 KiB may arrive.
        sent_at: When the request was sent, by `time.perf_counter`. None: `elapsed` is not set.
        is_result: Whether a redirect is the result, so that its Location is not parsed. To be set in a hook.
    """

    has_cookies: bool
    max_body_bytes: float = math.inf
    sent_at: float | None = None
    is_result = False
    _received = 0

    @classmethod
    def received(cls, head: ResponseHead, body: ResponseBody) -> Response:
        """Return the response whose head a connection has received."""
        extensions = {"http_version": head.version, "reason_phrase": head.reason}
        response = cls(head.status, headers=headers_of(head.fields), stream=body, extensions=extensions)
        response.has_cookies = head.sets_cookies
        return response

    @classmethod
    def of(cls, response: httpx.Response) -> Response:
        """Return the response of another transport as one that reads its body in this way."""
        extensions = response.extensions
        made = cls(response.status_code, headers=response.headers, stream=response.stream, extensions=extensions)
        made.has_cookies = not _COOKIES.isdisjoint(names_of(response.headers))
        return made

    @property
    def has_redirect_location(self) -> bool:
        """Whether a request is built from the Location; see `httpx.Response.has_redirect_location`."""
        return self.status_code in _REDIRECTS and not self.is_result and super().has_redirect_location

    @property
    def charset_encoding(self) -> str | None:
        """The charset that the Content-Type names; None if it names none, or one that `response.text` cannot decode."""
        return charset_of(self.headers.get("Content-Type"))

    @property
    def num_bytes_downloaded(self) -> int:
        """The bytes of the body that have arrived, as they were sent."""
        return self._received or super().num_bytes_downloaded

    async def aread(self) -> bytes:
        """Read and return the response content. Raises as `aiter_bytes`."""
        body = self.stream
        is_plain = isinstance(body, ResponseBody) and not _is_coded(self.headers)
        if not (SETS_CONTENT and is_plain) or self.is_closed or self.is_stream_consumed:
            return await super().aread()
        assert isinstance(body, ResponseBody)
        self._content = await self._read(body)
        await self.aclose()
        return self._content

    def aiter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        """A byte-iterator over the decoded response content.

        Raises:
            BodyTooLargeError: The body is larger than `max_body_bytes`. The connection is closed, unless all of
                the body has arrived.
            httpx.DecodingError: The body is not valid in its coding, or it was cut off.
        """
        if self.is_closed or self.is_stream_consumed:
            return super().aiter_bytes(chunk_size)
        return self._parts() if chunk_size is None else self._chunks(chunk_size)

    async def aclose(self) -> None:
        """Close the response and release the connection."""
        if self.sent_at is not None and not self.is_closed:
            self.elapsed = timedelta(seconds=perf_counter() - self.sent_at)
        if not self.is_closed:  # as httpx's, but without its `request_context`, which adds the request to errors
            assert isinstance(self.stream, httpx.AsyncByteStream)
            self.is_closed = True
            await self.stream.aclose()

    async def _read(self, body: ResponseBody) -> bytes:
        """Return the body, which is not coded: without the generators that `_parts` needs."""
        self.is_stream_consumed = True
        parts = []
        while part := await body.read():
            self._received += len(part)
            if self._received > self.max_body_bytes:
                body.close()
                raise self._too_large()
            parts.append(part)
            if body.has_ended:
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _parts(self) -> AsyncIterator[bytes]:
        assert isinstance(self.stream, httpx.AsyncByteStream)
        self.is_stream_consumed = True
        decoder = _decoder(self.headers)
        size = 0
        raw_parts = aiter(self.stream)
        try:
            async for raw in raw_parts:
                self._received += len(raw)
                self._check_size(size)
                for part in _decoded(decoder, raw):
                    size += len(part)
                    self._check_size(size)
                    yield part
                    if decoder is not None and len(part) >= STEP_BYTES:
                        await trio.lowlevel.checkpoint()  # the same data may decode to many more steps
            if decoder is not None:
                decoder.finish()
        except BaseException as error:
            if isinstance(error, httpx.RequestError):
                error.request = self.request
            if isinstance(raw_parts, AsyncGenerator):  # the garbage collector would be too late, and Trio warns of that
                await raw_parts.aclose()
            await self.stream.aclose()
            raise
        await self.aclose()

    async def _chunks(self, size: int) -> AsyncIterator[bytes]:
        held = bytearray()
        async with aclosing(self._parts()) as parts:  # type: ignore[type-var]
            async for part in parts:
                held += part
                while len(held) >= size:
                    yield bytes(held[:size])
                    del held[:size]
        if held:
            yield bytes(held)

    def _check_size(self, size: int) -> None:
        if size > self.max_body_bytes or self._received > received_limit(self.max_body_bytes, is_coded=True):
            raise self._too_large()

    def _too_large(self) -> BodyTooLargeError:
        error = body_too_large(self.max_body_bytes)
        error.request = self.request
        return error


def _is_coded(headers: httpx.Headers) -> bool:
    return b"content-encoding" in names_of(headers)


def _decoder(headers: httpx.Headers) -> Decoder | None:
    return decoder_for(headers.get_list("content-encoding", split_commas=True)) if _is_coded(headers) else None


def _decoded(decoder: Decoder | None, raw: bytes) -> Iterable[bytes]:
    return (raw,) if decoder is None else decoder.decode(raw)
