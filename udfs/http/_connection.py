"""Connection: one HTTP/1.1 connection, for one request at a time."""

from __future__ import annotations

import math

import httpx
import trio

from ._deadlines import Deadlines
from ._dial import Dialler, Stream
from ._idle import Origin
from ._parser import ResponseParser
from ._request_writer import Upload

__all__ = ["Connection"]

_BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError)
_REFUSED = 300  # the first status with which the server refuses the rest of a body


class Connection:
    """One connection to one origin. It connects at its first request.

    After an error or a cancellation only `close` is left. Errors are httpx's, and do not know the request yet.

    Args:
        dialler: How to connect.
        keepalive_expiry: Seconds after which the idle connection is closed.
        deadlines: Where its read timeouts, and those of its idleness, are stored.

    Attributes:
        parser: What has arrived of the response.
    """

    def __init__(self, dialler: Dialler, keepalive_expiry: float, deadlines: Deadlines) -> None:
        self.parser = ResponseParser()
        self._deadlines = deadlines
        self._dialler = dialler
        self._stream: Stream | None = None
        self._keepalive_expiry = None if keepalive_expiry == math.inf else keepalive_expiry
        self._was_idle = self._was_sent = self._is_last = False

    @property
    def origin(self) -> Origin:
        """Scheme, host, port and name in TLS."""
        return self._dialler.origin

    @property
    def has_died_idle(self) -> bool:
        """After an error of `ask`: whether the connection had been idle before, and nothing came of a response.

        Usually the server closed it just as the request was sent.
        """
        return self._was_idle and not self.parser.has_begun

    async def ask(self, upload: Upload) -> None:
        """Send the request, and wait for the head of its response: it is in the parser then.

        Raises:
            httpx.RequestError: The other side could not be reached, was too slow, or broke off; or the body of the
                request is not as long as its Content-Length.
        """
        self._was_sent, self._is_last = False, upload.is_last
        if self._stream is None:
            self._stream = await self._dialler.connect(upload.timeouts.get("connect"))
        self.parser.start(upload.method)
        if upload.is_long:
            await self._send_and_watch(upload, self._stream)
        else:
            self._was_sent = await upload.send(self._stream)
        while not self.parser.has_head:
            await self._receive(upload.timeouts.get("read"))

    async def read(self, seconds: float | None) -> bytes:
        """The next part of the body; `b""` at its end.

        Raises:
            httpx.ReadTimeout, httpx.ReadError, httpx.RemoteProtocolError: There is no end.
        """
        while not (part := self.parser.take_body()) and not self.parser.is_complete:
            await self._receive(seconds)
        return part

    def is_reusable(self) -> bool:
        """Whether request and response went through to their ends, and both sides keep the connection open."""
        return self._was_sent and self.parser.may_go_on and not self._is_last

    def rest(self) -> None:
        """Make it idle, its response being done with. It closes itself when it has been idle for too long."""
        self._was_idle = True
        self._deadlines.set(self, self._keepalive_expiry)

    def wake(self) -> bool:
        """Make it busy again; whether it can be used.

        It cannot if it has closed itself, or has not been silent: what came before the request is not its response.
        """
        is_in_time = self._deadlines.meet(self, self._keepalive_expiry)
        return is_in_time and self.is_silent()

    def discard(self) -> None:
        """Close it while it is idle."""
        self._deadlines.meet(self, self._keepalive_expiry)
        self.close()

    def is_silent(self) -> bool:
        """Whether it is open, and nothing has arrived since the last response."""
        return self._stream is not None and self._stream.is_silent()

    def close(self) -> None:
        """Close the stream, whatever is going on above it. This does not wait."""
        self._dialler.close()

    def abandon(self) -> None:
        """Leave the connection to the process that this one was forked from."""
        if self._dialler.stream is not None:
            self._dialler.stream.abandon()

    async def _send_and_watch(self, upload: Upload, stream: Stream) -> None:
        """Send, but no longer than until the server refuses: it may respond early, and read no further."""
        failures: list[Exception] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, nursery.cancel_scope, failures)
            try:
                self._was_sent = await upload.send(stream)
            except Exception as error:  # noqa: BLE001 - it leaves the nursery as itself, not in a group
                failures.append(error)
            nursery.cancel_scope.cancel()
        if failures:
            raise failures[0]

    async def _watch(self, sending: trio.CancelScope, failures: list[Exception]) -> None:
        try:
            while not self.parser.has_head:
                await self._receive(None)
        except httpx.RequestError as error:
            failures.append(error)
        if failures or self.parser.status >= _REFUSED:
            sending.cancel()

    async def _receive(self, seconds: float | None) -> None:
        assert self._stream is not None
        data, failure = b"", None
        self._deadlines.set(self, seconds)
        try:
            data = await self._stream.receive_some()
        except _BROKEN as error:
            failure = error
        finally:
            is_met = self._deadlines.meet(self, seconds)
        if not is_met:
            raise httpx.ReadTimeout(f"read timeout of {seconds} s")
        if failure is not None:
            raise httpx.ReadError(str(failure)) from failure
        return self.parser.feed(data) if data else self.parser.feed_end(is_clean=self._stream.has_clean_end)
