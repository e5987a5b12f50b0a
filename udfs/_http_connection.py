"""Connection: one HTTP/1.1 connection, for one request at a time."""

from __future__ import annotations

import math
import ssl

import httpx
import trio

from ._http_deadlines import Deadlines
from ._http_dial import Dialler
from ._http_head import rendered
from ._http_idle import Origin
from ._http_parser import ResponseParser
from ._http_upload import Upload

__all__ = ["Connection"]

_BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError)
_REFUSED = 300  # the first status that says that the server does not want the rest of a body


class Connection:
    """One connection to one origin. It connects at its first request.

    After an error or a cancellation only `close` is left. Errors are httpx's, and do not know the request yet.

    Args:
        dialler: How to connect.
        keepalive_expiry: Seconds after which the idle connection is not used again.
        deadlines: Where its read timeouts are kept.

    Attributes:
        parser: What has arrived of the response.
    """

    def __init__(self, dialler: Dialler, keepalive_expiry: float, deadlines: Deadlines) -> None:
        self.parser = ResponseParser()
        self._deadlines = deadlines
        self._dialler = dialler
        self._stream: trio.abc.Stream | None = None
        self._keepalive_expiry = keepalive_expiry
        self._expires_at = math.inf
        self._was_sent = self._is_last = False

    @property
    def origin(self) -> Origin:
        """Scheme, host and port."""
        return self._dialler.origin

    async def ask(self, request: httpx.Request) -> None:
        """Send the request, and wait for the head of its response: it is in the parser then.

        Raises:
            httpx.RequestError: The other side could not be reached, was too slow, or broke off; or the request is
                not one that HTTP/1.1 can say.
        """
        self._was_sent = False
        if request.method == "CONNECT":
            raise httpx.LocalProtocolError("CONNECT opens a tunnel, and this client speaks to the origin itself")
        head, length, self._is_last = rendered(request)
        if self._stream is None:
            self._stream = await self._dialler.connect(request)
        self.parser.start(request.method)
        timeouts = request.extensions.get("timeout", {})
        upload = Upload(self._stream, request, length, timeouts.get("write"))
        if upload.is_long:
            await self._send_and_watch(upload, head)
        else:
            self._was_sent = await upload.send(head)
        while not self.parser.has_head:
            await self._receive(timeouts.get("read"))

    async def read(self, seconds: float | None) -> bytes:
        """The next part of the body; `b""` at its end.

        Raises:
            httpx.ReadTimeout, httpx.ReadError, httpx.RemoteProtocolError: There is no end.
        """
        while not (part := self.parser.take_body()) and not self.parser.is_complete:
            await self._receive(seconds)
        return part

    def rest(self) -> None:
        """The response is done with: from now on the connection is idle."""
        self._expires_at = trio.current_time() + self._keepalive_expiry

    def is_reusable(self) -> bool:
        """Whether request and response went through to their ends, and the connection was kept by both sides."""
        return self._was_sent and self.parser.may_go_on and not self._is_last

    def is_young(self) -> bool:
        """Whether it has not been idle for too long."""
        return trio.current_time() < self._expires_at

    def is_fresh(self) -> bool:
        """Whether it is young, and has been silent: what came while nothing was asked is no answer."""
        assert self._dialler.socket is not None
        return self.is_young() and self._dialler.socket.is_silent()

    def close(self) -> None:
        """Close the socket, whatever is going on above it. This waits for nobody."""
        self._dialler.close()

    async def _send_and_watch(self, upload: Upload, head: bytes) -> None:
        """Send, but no longer than until the server refuses: it may answer early, and read no further."""
        failures: list[Exception] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, nursery.cancel_scope, failures)
            try:
                self._was_sent = await upload.send(head)
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
            data = bytes(await self._stream.receive_some())
        except _BROKEN as error:
            failure = error
        finally:
            is_met = self._deadlines.meet(self, seconds)
        if not is_met:
            raise httpx.ReadTimeout(f"read timeout of {seconds} s")
        if failure is not None and not isinstance(failure.__cause__, ssl.SSLEOFError):
            raise httpx.ReadError(str(failure)) from failure
        return self.parser.feed(data) if data else self.parser.feed_end(is_clean=failure is None)
