"""BodyLimit: a transport of httpx2 whose responses have an upper limit of their decoded bodies."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpx2

from ._body_limit import too_large_text

__all__ = ["BodyLimit", "BodyTooLargeError"]


class BodyTooLargeError(httpx2.RequestError):
    """The body of a response is larger than `max_body_bytes`. The rest was not read."""


class BodyLimit(httpx2.AsyncBaseTransport):
    """Limits the bodies of another transport's responses.

    Args:
        transport: Sends the requests.
        max_body_bytes: Upper limit of a body, decoded.
    """

    def __init__(self, transport: httpx2.AsyncBaseTransport, max_body_bytes: int) -> None:
        self._transport = transport
        self._max_body_bytes = max_body_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. The body of its response is limited as it is read."""
        response = await self._transport.handle_async_request(request)
        limited = _LimitedResponse(
            response.status_code, headers=response.headers, stream=response.stream, extensions=response.extensions
        )
        limited.max_body_bytes = self._max_body_bytes
        return limited

    async def aclose(self) -> None:
        """Close the transport."""
        await self._transport.aclose()


class _LimitedResponse(httpx2.Response):
    """Raises an error when its decoded body exceeds `max_body_bytes`. httpx2 decodes at most 1 MiB at a time."""

    max_body_bytes: int

    async def aiter_bytes(self, chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
        """A byte-iterator over the decoded response content.

        Raises:
            BodyTooLargeError: It is larger than `max_body_bytes`. The connection is closed, unless all of
                the body has arrived.
        """
        limit, size = self.max_body_bytes, 0
        chunk_size = chunk_size and min(chunk_size, limit + 1)  # httpx2 collects a chunk before it can be counted
        async with aclosing(super().aiter_bytes(chunk_size)) as parts:
            async for part in parts:
                size += len(part)
                if size > limit:
                    raise BodyTooLargeError(too_large_text(limit), request=self.request)
                yield part
