"""ConnectionPool: the busy and idle connections of one transport, and their limits.

`IdleStacks` is the order in which idle connections are reused and closed, as plain data.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Callable
from functools import partial

import httpx
import trio

from ._connection import Connection
from ._dial import Dialler
from ._origin import Origin, SslContext
from ._request import RequestWriter

__all__ = ["ConnectionPool", "IdleStacks"]


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
        max_connections, max_idle, keepalive_expiry, uds, only_public: As for `StackTransport`.

    Attributes:
        is_closed: Whether `close` was called.

    Raises:
        ValueError: A limit is out of its range; or `uds` and `only_public` are both given.
    """

    def __init__(
        self,
        ssl_context: SslContext,
        max_connections: int | None,
        max_idle: int,
        keepalive_expiry: float,
        uds: str | None,
        *,
        only_public: bool,
    ) -> None:
        _check_minimum(1, max_connections=1 if max_connections is None else max_connections)
        _check_minimum(0, max_idle=max_idle, keepalive_expiry=keepalive_expiry)
        if uds is not None and only_public:
            raise ValueError(
                "uds and only_public do not fit together: leave out one, since a Unix socket has no address"
            )
        self._ssl_context = ssl_context
        self._max_connections = math.inf if max_connections is None else max_connections
        self._max_idle = max_idle
        self._keepalive_expiry = keepalive_expiry
        self._dialler = partial(Dialler, uds=uds, only_public=only_public)
        self.is_closed = False
        self._slots = None if max_connections is None else trio.Semaphore(max_connections)
        self._idle = IdleStacks()
        self._busy: set[Connection] = set()
        self._expiring: trio.CancelScope | None = None  # of the task that closes idle connections

    async def send(self, origin: Origin, writer: RequestWriter) -> Connection:
        """Send a request, and return its connection when the head of the response has arrived.

        The caller reads the response from the connection, and releases it.

        **Cancellation** closes the connection.

        Raises:
            httpx.RequestError: The server was unreachable, too slow or broke off, or its response is not valid; or no
                connection became free in time.
            RuntimeError: The pool is closed.
        """
        ssl_context = self._ssl_context.get() if origin.is_secure else None
        connection = await self._acquire(origin, ssl_context, writer.timeouts.get("pool"))
        try:
            try:
                await connection.send(writer)
            except (httpx.ReadError, httpx.RemoteProtocolError):
                if self.is_closed or not (connection.has_died_idle and writer.is_repeatable):
                    raise
                connection = self._replace(connection, ssl_context)
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
        self._release_slot()
        self._trim()

    def close(self) -> None:
        """Close every connection, idle or busy. Requests in flight fail."""
        self.is_closed = True
        if self._expiring is not None:
            self._expiring.cancel()
        self._close_idle()
        for connection in list(self._busy):
            connection.close()

    async def _acquire(self, origin: Origin, ssl_context: ssl.SSLContext | None, seconds: float | None) -> Connection:
        """Return an idle connection to the origin, or a new one."""
        if self._slots is not None:
            await _acquire_slot(self._slots, seconds)
        if self.is_closed:
            self._release_slot()
            raise RuntimeError("the transport is closed: make a new client, or leave its block later")
        return self._reuse(origin) or self._connect(origin, ssl_context)

    def _replace(self, connection: Connection, ssl_context: ssl.SSLContext | None) -> Connection:
        """Close a busy connection and return a new one to its origin, in the same slot."""
        self._busy.discard(connection)
        connection.close()
        return self._new(connection.origin, ssl_context)

    def _reuse(self, origin: Origin) -> Connection | None:
        while (connection := self._idle.pop(origin)) is not None:
            if connection.is_silent():
                self._busy.add(connection)
                return connection
            connection.close()
        return None

    def _connect(self, origin: Origin, ssl_context: ssl.SSLContext | None) -> Connection:
        self._close_idle(lambda oldest: not oldest.is_silent())
        connection = self._new(origin, ssl_context)
        self._trim()
        return connection

    def _new(self, origin: Origin, ssl_context: ssl.SSLContext | None) -> Connection:
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

    def _release_slot(self) -> None:
        if self._slots is not None:
            self._slots.release()

    def _trim(self) -> None:
        """Close the connections that have been idle longest while a limit is exceeded."""
        self._close_idle(
            lambda _: len(self._idle) > self._max_idle or len(self._idle) + len(self._busy) > self._max_connections
        )

    def _close_idle(self, is_surplus: Callable[[Connection], bool] = lambda _: True) -> None:
        """Close idle connections, the one that has been idle longest first, until one is not surplus."""
        while (oldest := self._idle.oldest()) is not None and is_surplus(oldest):
            self._idle.remove(oldest)
            oldest.close()


async def _acquire_slot(slots: trio.Semaphore, seconds: float | None) -> None:
    try:
        slots.acquire_nowait()
    except trio.WouldBlock:
        with trio.move_on_after(math.inf if seconds is None else seconds):
            await slots.acquire()
            return
        raise httpx.PoolTimeout(f"no connection became free within {seconds} s") from None


def _check_minimum(minimum: int, **limits: float) -> None:
    for name, value in limits.items():
        if not value >= minimum:
            raise ValueError(f"{name} must be at least {minimum}, got {value}")
