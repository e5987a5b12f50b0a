"""Connection: one HTTP/1.1 connection, for one request at a time."""

from __future__ import annotations

import httpx
import trio

from ._dial import Dialler, Stream
from ._request import RequestWriter
from ._response_parser import ResponseParser
from ._url import Origin

_BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError)
_REFUSED = 300  # the first status with which a server refuses the rest of a request's body


class Connection:
    """One connection to one origin. It connects at its first request.

    After an error or a cancellation it can only be closed. Its errors are httpx's, without their request.

    Args:
        dialler: Makes the stream.

    Attributes:
        parser: Has the part of the response that has arrived.
        was_idle: Whether it has been idle, so that the server may have closed it meanwhile. The pool sets it.
    """

    def __init__(self, dialler: Dialler) -> None:
        self.parser = ResponseParser()
        self.was_idle = False
        self._dialler = dialler
        self._stream: Stream | None = None
        self._was_written = self._closes_after_request = False

    @property
    def origin(self) -> Origin:
        """The origin of its URLs."""
        return self._dialler.origin

    @property
    def has_died_idle(self) -> bool:
        """After an error of `send`: whether the connection was reused, and nothing of a response has arrived.

        Usually the server closed it just as the request was sent.
        """
        return self.was_idle and not self.parser.has_begun

    async def send(self, writer: RequestWriter) -> None:
        """Send a request and wait for the head of its response. The head is in the parser afterwards.

        Raises:
            httpx.RequestError: The server was unreachable, too slow or broke off; or the length of the request's body
                differs from its Content-Length.
        """
        self._was_written, self._closes_after_request = False, writer.closes_connection
        if self._stream is None:
            self._stream = await self._dialler.connect(writer.timeouts.get("connect"))
        self.parser.start(writer.method)
        if writer.may_block:
            await self._write_and_watch(writer, self._stream)
        else:
            self._was_written = await writer.write(self._stream)
        while not self.parser.has_head:
            await self._receive(writer.timeouts.get("read"))

    async def read(self, seconds: float | None) -> bytes:
        """Return the next part of the body, `b""` at its end.

        Args:
            seconds: The read timeout; None for no limit.

        Raises:
            httpx.ReadTimeout, httpx.ReadError, httpx.RemoteProtocolError: The body is not complete.
        """
        while not (part := self.parser.take_body()) and not self.parser.is_complete:
            await self._receive(seconds)
        return part

    def is_reusable(self) -> bool:
        """Whether request and response are complete, and both sides allow another request."""
        return self._was_written and self.parser.allows_reuse and not self._closes_after_request

    def is_silent(self) -> bool:
        """Whether it is open, and nothing has arrived since the last response."""
        return self._stream is not None and self._stream.is_silent()

    def close(self) -> None:
        """Close the stream, without waiting. A task that waits for it gets an error."""
        self._dialler.close()

    async def _write_and_watch(self, writer: RequestWriter, stream: Stream) -> None:
        """Write until the server refuses the request: it may respond early and stop reading."""
        failures: list[Exception] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, nursery.cancel_scope, failures)
            try:
                self._was_written = await writer.write(stream)
            except Exception as error:  # noqa: BLE001 - raised below, outside the nursery's exception group
                failures.append(error)
            nursery.cancel_scope.cancel()
        if failures:
            raise failures[0]

    async def _watch(self, writing: trio.CancelScope, failures: list[Exception]) -> None:
        try:
            while not self.parser.has_head:
                await self._receive(None)
        except httpx.RequestError as error:
            failures.append(error)
        if failures or (self.parser.has_head and self.parser.head.status >= _REFUSED):
            writing.cancel()

    async def _receive(self, seconds: float | None) -> None:
        assert self._stream is not None
        try:
            data = await self._receive_in_time(self._stream, seconds)
        except _BROKEN as error:
            raise httpx.ReadError(f"{error} ({self._place_and_phase()})") from error
        if data:
            return self.parser.feed(data)
        if not (self.parser.has_begun or self.was_idle or self.origin.is_secure):
            raise httpx.RemoteProtocolError(
                "Server disconnected without sending a response: "
                "if the port is one for https://, write https:// in the URL"
            )
        return self.parser.feed_end(is_clean=self._stream.has_clean_end)

    async def _receive_in_time(self, stream: Stream, seconds: float | None) -> bytes:
        if seconds is None:  # as by default: a cancel scope would be the largest cost of a request
            return await stream.receive_some()
        with trio.move_on_after(max(0.0, seconds)):
            return await stream.receive_some()
        raise httpx.ReadTimeout(f"read timeout of {seconds} s ({self._place_and_phase()})")

    def _place_and_phase(self) -> str:
        """For errors: host and port, and how much of the response has arrived."""
        if not self.parser.has_begun:
            phase = "before the response"
        else:
            phase = "in the body of the response" if self.parser.has_head else "in the head of the response"
        return f"{self.origin.place}, {phase}"
