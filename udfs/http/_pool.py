"""ConnectionPool: the busy and idle connections of one transport, and their limits.

`IdleStacks` is the order in which idle connections are reused and closed, as plain data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import trio

from ._connection import Connection
from ._dial import Dialler
from ._request import RequestWriter
from ._tls import SslContext
from ._url import Origin


class IdleStacks:
    """Idle connections, on a last-in-first-out stack per origin. It neither waits nor closes anything.

    Dictionaries stand for the stacks, because they keep the order of arrival and remove any entry at a cost that is
    independent of their number.

    Attributes:
        expires: For each connection, the instant at which its idle time ends. All idle times are equal, so the order
            of arrival is also that of these instants.
    """

    def __init__(self) -> None:
        self.expires: dict[Connection, float] = {}
        self._stacks: dict[Origin, dict[Connection, None]] = {}

    def __len__(self) -> int:
        """The number of idle connections over all origins."""
        return len(self.expires)

    def push(self, connection: Connection, expires: float = math.inf) -> None:
        """Put a connection on top of its origin's stack."""
        self.expires[connection] = expires
        self._stacks.setdefault(connection.origin, {})[connection] = None

    def pop(self, origin: Origin) -> Connection | None:
        """Remove and return the newest connection of an origin; None if it has none."""
        if origin not in self._stacks:
            return None
        connection = next(reversed(self._stacks[origin]))
        self.remove(connection)
        return connection

    def oldest(self) -> Connection | None:
        """Return the connection that has been idle longest over all origins; None if no connection is idle."""
        return next(iter(self.expires), None)

    def remove(self, connection: Connection) -> None:
        """Remove a connection, wherever it is."""
        del self.expires[connection]
        stack = self._stacks[connection.origin]
        del stack[connection]
        if not stack:
            del self._stacks[connection.origin]


class ConnectionPool:
    """Sends requests on connections, one at a time on each. Everything below httpx's objects starts here.

    It has no redirects, cookies, authentication or URLs. Its errors are httpx's, without their request.

    Args:
        ssl_context: For origins with TLS.
        max_idle, keepalive_expiry, only_public: As for `StackTransport`.

    Attributes:
        is_closed: Whether `close` was called.

    Raises:
        ValueError: A limit is out of its range.
    """

    def __init__(self, ssl_context: SslContext, max_idle: int, keepalive_expiry: float, *, only_public: bool) -> None:
        limits: dict[str, Any] = {"max_idle": max_idle, "keepalive_expiry": keepalive_expiry}
        for name, value in limits.items():
            if not (isinstance(value, int | float) and value >= 0):
                raise ValueError(f"{name} must be at least 0, got {value}: math.inf is no limit")
        self._ssl_context = ssl_context
        self._max_idle = max_idle
        self._keepalive_expiry = keepalive_expiry
        self._dialler = partial(Dialler, only_public=only_public)
        self.is_closed = False
        self._idle = IdleStacks()
        self._busy: set[Connection] = set()
        self._expiring: trio.CancelScope | None = None  # of the task that closes idle connections

    async def send(self, origin: Origin, writer: RequestWriter) -> Connection:
        """Send a request, and return its connection when the head of the response has arrived.

        The caller reads the response from the connection, and releases it.

        **Cancellation** closes the connection.

        Raises:
            httpx.RequestError: The server was unreachable, too slow or broke off, or its response is not valid.
            RuntimeError: The pool is closed.
        """
        connection = self._take(origin)
        try:
            try:
                await connection.send(writer)
            except (httpx.ReadError, httpx.RemoteProtocolError):
                if self.is_closed or not (connection.has_died_idle and writer.is_repeatable):
                    raise
                self._busy.discard(connection)
                connection.close()
                connection = self._connect(origin)
                await connection.send(writer)
        except BaseException:
            self.release(connection)
            raise
        return connection

    def release(self, connection: Connection) -> None:
        """Take back a busy connection: store it as idle if it can be reused, close it otherwise."""
        self._busy.discard(connection)
        if not self.is_closed and self._keepalive_expiry > 0 and connection.is_reusable():
            connection.was_idle = True
            self._idle.push(connection, trio.current_time() + self._keepalive_expiry)
            if self._expiring is None and self._keepalive_expiry < math.inf:
                self._expiring = trio.CancelScope()
                trio.lowlevel.spawn_system_task(self._close_expired, self._expiring)
        else:
            connection.close()
        self._close_idle(lambda _: len(self._idle) > self._max_idle)

    def close(self) -> None:
        """Close every connection, idle or busy. Requests in flight fail."""
        self.is_closed = True
        if self._expiring is not None:
            self._expiring.cancel()
        self._close_idle()
        for connection in list(self._busy):
            connection.close()

    def _take(self, origin: Origin) -> Connection:
        """Return an idle connection to the origin, or a new one."""
        if self.is_closed:
            raise RuntimeError("the transport is closed: make a new client, or leave its block later")
        while (connection := self._idle.pop(origin)) is not None:
            if connection.is_silent():
                self._busy.add(connection)
                return connection
            connection.close()
        return self._connect(origin)

    def _connect(self, origin: Origin) -> Connection:
        self._close_idle(lambda oldest: not oldest.is_silent())
        ssl_context = self._ssl_context.made if origin.is_secure else None
        connection = Connection(self._dialler(origin, ssl_context))
        self._busy.add(connection)
        return connection

    async def _close_expired(self, scope: trio.CancelScope) -> None:
        """Close connections at the end of their idle time. A system task, because a transport has no nursery."""
        try:
            with scope:
                while self._idle.expires:
                    await trio.sleep_until(next(iter(self._idle.expires.values())))
                    self._close_idle(lambda oldest: self._idle.expires[oldest] <= trio.current_time())
        except trio.Cancelled:  # the run ends, and the next one has another clock
            self._close_idle()
            raise
        finally:
            self._expiring = None

    def _close_idle(self, is_surplus: Callable[[Connection], bool] = lambda _: True) -> None:
        """Close idle connections, the one that has been idle longest first, until one is not surplus."""
        while (oldest := self._idle.oldest()) is not None and is_surplus(oldest):
            self._idle.remove(oldest)
            oldest.close()
