"""BoundedResponse: an `httpx.Response` that reads and decodes its body in bounded steps."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, suppress
from datetime import timedelta
from time import perf_counter
from typing import Any

import httpx
import trio

from ._connection import Connection
from ._decoding import (
    STEP_BYTES,
    Decoder,
    body_too_large,
    charset_of,
    decoder_for,
    received_limit,
)
from ._pool import ConnectionPool
from ._response_parser import BODILESS, ResponseHead


class ResponseBody(httpx.AsyncByteStream):
    """The body of a response, still in its content coding.

    **Cancellation** of a read closes the connection.

    Args:
        request: The request that is answered, of httpx or httpx2.
        connection: Receives the body. After an error or a cancellation it can only be released.
        pool: The connection is released to it at `close`, or after an error.
    """

    def __init__(self, request: Any, connection: Connection, pool: ConnectionPool) -> None:
        self._request = request
        self._seconds: float | None = request.extensions.get("timeout", {}).get("read")
        self._connection = connection
        self._pool = pool
        self._is_released = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        part = await self.read()
        if not part:
            raise StopAsyncIteration
        return part

    async def read(self) -> bytes:
        """Return the next part, `b""` at the end. After an error the connection is closed.

        Raises:
            httpx.StreamClosed: The connection is released.
            httpx.RequestError: The server was too slow or broke off, or its response is not valid.
        """
        if self._is_released:
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
        """Release the connection. It is closed if the response has not arrived completely. Idempotent."""
        if not self._is_released:
            self._is_released = True
            self._pool.release(self._connection)

    async def aclose(self) -> None:
        """`close`, by the name that httpx calls."""
        self.close()


class BoundedResponse(httpx.Response):
    """Reads and decodes its body in another way than `httpx.Response`; all else is httpx's.

    Coded bodies are decoded in bounded steps, and an incomplete one is an error. Only charsets that are decoded in
    linear time are recognized.

    **Cancellation** of a read closes the connection.

    Attributes:
        has_cookies: Whether the server may have set a cookie.
        max_body_bytes: Upper limit of the decoded body. For a coded one, twice the limit and 64 KiB may arrive. A body
            whose Content-Length is larger is not read.
        sent_at: When the request was sent, by `time.perf_counter`. None: httpx sets `elapsed`.
    """

    has_cookies = True
    max_body_bytes: float = math.inf
    sent_at: float | None = None
    _source: Any = None
    _received = 0

    @property
    def stream(self) -> Any:
        """The stream of the body, which a transport or a hook may replace by one around it."""
        return vars(self)["stream"]

    @stream.setter
    def stream(self, stream: Any) -> None:
        # httpx's client puts a generator around the stream, and would leave one inside it to the garbage collector
        if self._source is None or type(stream).__module__.partition(".")[0] != "httpx":
            self._source = stream
        vars(self)["stream"] = stream

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_source"}

    @classmethod
    def received(cls, head: ResponseHead, body: ResponseBody) -> BoundedResponse:
        """Return the response whose head a connection has received."""
        extensions = {"http_version": head.version, "reason_phrase": head.reason}
        response = cls(head.status, headers=head.headers, stream=body, extensions=extensions)
        response.has_cookies = head.sets_cookies
        return response

    @classmethod
    def of(cls, response: httpx.Response) -> BoundedResponse:
        """Return the response of another transport as one that reads its body in this way.

        If the transport has read or closed the response, this one counts as read or closed. A body in memory is read
        once more.
        """
        source, extensions = response.stream, response.extensions
        made = cls(response.status_code, headers=response.headers, stream=source, extensions=extensions)
        if not isinstance(source, httpx.ByteStream):
            vars(made).update(response.__getstate__(), is_closed=response.is_closed)
        return made

    def check_content(self) -> None:
        """Check the body if it was already read.

        Raises:
            BodyTooLargeError: It is larger than `max_body_bytes`.
        """
        with suppress(httpx.ResponseNotRead):
            if len(self.content) > self.max_body_bytes:
                raise body_too_large(self.max_body_bytes)

    @property
    def charset_encoding(self) -> str | None:
        """The charset that the Content-Type names; None if it names none, or one that `response.text` cannot decode."""
        return charset_of(self.headers.get("Content-Type"))

    @property
    def num_bytes_downloaded(self) -> int:
        """The bytes of the body that have arrived, as they were sent."""
        return self._received or super().num_bytes_downloaded

    def aiter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        """A byte-iterator over the decoded response content.

        Args:
            chunk_size: Bytes of each part but the last, at least 1. None: the parts are as they arrive.

        Raises:
            BodyTooLargeError: The body is larger than `max_body_bytes`. The connection is closed, unless all of
                the body has arrived.
            httpx.DecodingError: The body is not valid in its coding, or it was cut off.
            ValueError: The chunk size is below 1.
        """
        if self.is_closed or self.is_stream_consumed:
            return super().aiter_bytes(chunk_size)
        return self._parts() if chunk_size is None else self._chunks(chunk_size)

    async def aclose(self) -> None:
        """Close the response and release the connection."""
        if not self.is_closed:
            self.is_closed = True
            await self.stream.aclose()
            if self.sent_at is not None:
                self.elapsed = timedelta(seconds=perf_counter() - self.sent_at)

    async def _parts(self) -> AsyncIterator[bytes]:
        assert isinstance(self.stream, httpx.AsyncByteStream)
        self.is_stream_consumed = True
        decoder = decoder_for(self.headers.get_list("content-encoding", split_commas=True))
        size = 0
        raw_parts = aiter(self._source)
        try:
            self._check_declared(self.max_body_bytes if decoder is None else received_limit(self.max_body_bytes))
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
                self._name_request(error)
            if isinstance(raw_parts, AsyncGenerator):  # the garbage collector would be too late, and Trio warns of that
                await raw_parts.aclose()
            await self.aclose()
            raise
        await self.aclose()

    async def _chunks(self, size: int) -> AsyncIterator[bytes]:
        if size < 1:
            raise ValueError(f"chunk_size must be at least 1, got {size}")
        held = bytearray()
        async with aclosing(self._parts()) as parts:  # type: ignore[type-var]
            async for part in parts:
                held += part
                while len(held) >= size:
                    yield bytes(held[:size])
                    del held[:size]
        if held:
            yield bytes(held)

    def _check_declared(self, limit: float) -> None:
        """Check the Content-Length before the body is read."""
        if limit == math.inf or self.request.method == "HEAD" or self.status_code in BODILESS:
            return
        length = self.headers.get("Content-Length", "")
        if length.isdecimal() and int(length) > limit:
            raise body_too_large(self.max_body_bytes)

    def _check_size(self, size: int) -> None:
        if size > self.max_body_bytes or self._received > received_limit(self.max_body_bytes):
            raise body_too_large(self.max_body_bytes)

    def _name_request(self, error: httpx.RequestError) -> None:
        with suppress(RuntimeError):  # a transport that reads the response does so before the client sets its request
            error.request = self.request


def _decoded(decoder: Decoder | None, raw: bytes) -> Iterable[bytes]:
    if decoder is not None:
        return decoder.decode(raw)
    return (raw,) if raw else ()
