"""ResponseBody: the bytes of a response's body, as they arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx

from ._connection import Connection

__all__ = ["ResponseBody"]


class ResponseBody(httpx.AsyncByteStream):
    """The body of a response, still in its content coding.

    **Cancellation** of a read closes the connection.

    Args:
        request: The request that is answered.
        connection: Receives the body.
        release: Called once with the connection: at `close`, or after an error.
    """

    def __init__(self, request: httpx.Request, connection: Connection, release: Callable[[Connection], None]) -> None:
        self._request = request
        self._connection = connection
        self._release: Callable[[Connection], None] | None = release
        self._seconds = request.extensions.get("timeout", {}).get("read")

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        part = await self.read()
        if not part:
            raise StopAsyncIteration
        return part

    @property
    def has_ended(self) -> bool:
        """Whether the end has arrived, so that the next `read` returns `b""`. False also if that is not known yet."""
        return self._connection.parser.is_complete

    async def read(self) -> bytes:
        """Return the next part, `b""` at the end. After an error the connection is closed."""
        if self._release is None:
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
        """Release the connection. Idempotent."""
        release, self._release = self._release, None
        if release is not None:
            release(self._connection)

    async def aclose(self) -> None:
        """`close`, by the name that httpx calls."""
        self.close()
