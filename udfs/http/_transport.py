"""The transport: which connection a request goes out on, and which connections stay open."""

from __future__ import annotations

import math
import os
import ssl
from typing import Final
from weakref import WeakSet

import httpx
import trio

from ._connection import Connection
from ._deadlines import Deadlines
from ._dial import Dialler
from ._idle import IdleStacks, Origin
from ._request_writer import Upload
from ._response import Reply

__all__ = ["Certificate", "StackTransport", "Verify"]

Verify = ssl.SSLContext | str | bool
Certificate = str | tuple[str, str] | tuple[str, str, str]

_PORTS: Final = {b"http": 80, b"ws": 80, b"https": 443, b"wss": 443}
_SECURE: Final = (b"https", b"wss")
_SHOWN: Final = 20


class StackTransport(httpx.AsyncBaseTransport):
    """An HTTP/1.1 transport that stores idle connections on a last-in-first-out stack per origin.

    The connection that became idle last goes out first, so in a lull the others reach `keepalive_expiry` and are
    closed. A connection becomes idle only when its response was read to the end; after an error, a cancellation or an
    unread rest it is closed and never used again. Neither is one that the server has closed in the meantime. If the
    server closes it just as a request is sent, so that nothing comes of a response, an idempotent request (RFC 9110)
    whose body is in memory is sent once more, on a new connection.

    A process that is forked from this one starts without connections, and leaves those of its parent alone.

    **Cancellation** closes the connection of the cancelled request and touches no other.

    Args:
        verify: True (certifi's authorities), False, or an `ssl.SSLContext`. Making the context takes about
            100 ms, so it is made at the first HTTPS request, once.
        cert: A client certificate, as httpx takes it.
        trust_env: Whether `SSL_CERT_FILE` and `SSL_CERT_DIR` are read.
        max_connections: Most connections open at once, idle ones included, at least 1; a request beyond them
            waits, for as long as httpx's pool timeout allows. None: the operator's capacity is the limit.
        max_idle: Most idle connections, over all origins. 0: no connection is used twice.
        keepalive_expiry: Seconds after which an idle connection is closed. `math.inf`: never.
        retries: Attempts to connect after the first. The operator's own retry sees more: leave it at 0.

    Raises:
        ValueError: A limit is out of its range.
    """

    def __init__(
        self,
        *,
        verify: Verify = True,
        cert: Certificate | None = None,
        trust_env: bool = False,
        max_connections: int | None = None,
        max_idle: int = 100,
        keepalive_expiry: float = 5.0,
        retries: int = 0,
    ) -> None:
        _at_least(1, max_connections=1 if max_connections is None else max_connections)
        _at_least(0, max_idle=max_idle, keepalive_expiry=keepalive_expiry, retries=retries)
        self._tls: tuple[Verify, Certificate | None, bool] = (verify, cert, trust_env)
        self._ssl_context: ssl.SSLContext | None = None
        self._max_connections = math.inf if max_connections is None else max_connections
        self._max_idle = max_idle
        self._keepalive_expiry = keepalive_expiry
        self._retries = retries
        self._closed = False
        self._start()
        _transports.add(self)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The response to one request, its body still unread.

        Args:
            request: As httpx sends it; its `timeout` extension holds for each step.

        Returns:
            A response, which the caller closes; httpx's client does so by itself.

        Raises:
            httpx.RequestError: The other side could not be reached, was too slow, or broke off.
            RuntimeError: The transport is closed.
        """
        connection: Connection | None = None
        try:
            origin, upload = _origin(request), Upload(request)
            ssl_context = self._ssl_context_for(origin)
            if self._slots is not None:
                await self._wait_for_slot(self._slots, upload)
            connection = self._take(origin, ssl_context)
            try:
                await connection.ask(upload)
            except (httpx.ReadError, httpx.RemoteProtocolError):
                if self._closed or not (connection.has_died_idle and upload.is_repeatable):
                    raise
                connection.close()
                self._busy.discard(connection)
                connection = self._new(origin, ssl_context)
                await connection.ask(upload)
        except BaseException as error:
            if connection is not None:
                self._give_back(connection)
            if isinstance(error, httpx.RequestError):
                error.request = request
            raise
        return Reply(request, connection, self._give_back)

    async def aclose(self) -> None:
        """Close every connection, idle or busy. A request that is still in flight fails."""
        self._closed = True
        self._deadlines.close()
        for connection in [*self._idle.drain(), *self._busy]:
            connection.close()

    def _start(self) -> None:
        """Begin without connections."""
        self._slots = None if self._max_connections == math.inf else trio.Semaphore(int(self._max_connections))
        self._idle: IdleStacks[Connection] = IdleStacks()
        self._busy: set[Connection] = set()
        self._deadlines = Deadlines()

    def _abandon(self) -> None:
        """In a forked child: leave all connections to the parent, and begin anew.

        Both processes have the same sockets, and may have the same epoll. So each descriptor is closed, and nothing is
        sent, shut down or unregistered.
        """
        self._deadlines.abandon()
        for connection in [*self._idle.drain(), *self._busy]:
            connection.abandon()
        self._start()

    def _ssl_context_for(self, origin: Origin) -> ssl.SSLContext | None:
        if origin[0] not in _SECURE:
            return None
        if self._ssl_context is None:
            verify, cert, trust_env = self._tls
            try:
                self._ssl_context = httpx.create_ssl_context(verify=verify, cert=cert, trust_env=trust_env)
            except OSError as error:
                raise httpx.ConnectError(f"cannot load the certificates for TLS: {error}") from error
        return self._ssl_context

    async def _wait_for_slot(self, slots: trio.Semaphore, upload: Upload) -> None:
        try:
            slots.acquire_nowait()
        except trio.WouldBlock:
            seconds = upload.timeouts.get("pool")
            with trio.move_on_after(math.inf if seconds is None else seconds):
                await slots.acquire()
                return
            raise httpx.PoolTimeout(f"no connection came free in {seconds} s") from None

    def _take(self, origin: Origin, ssl_context: ssl.SSLContext | None) -> Connection:
        if self._closed:
            self._release()
            raise RuntimeError("the transport is closed: it was left, or its client was")
        while (connection := self._idle.pop(origin)) is not None:
            if connection.wake():
                self._busy.add(connection)
                return connection
            connection.close()
        while (oldest := self._idle.oldest()) is not None and not oldest.is_silent():
            self._idle.pop_oldest().discard()
        connection = self._new(origin, ssl_context)
        self._trim()
        return connection

    def _new(self, origin: Origin, ssl_context: ssl.SSLContext | None) -> Connection:
        connection = Connection(Dialler(origin, ssl_context, self._retries), self._keepalive_expiry, self._deadlines)
        self._busy.add(connection)
        return connection

    def _give_back(self, connection: Connection) -> None:
        self._busy.discard(connection)
        if not self._closed and connection.is_reusable():
            connection.rest()
            self._idle.push(connection)
        else:
            connection.close()
        self._release()
        self._trim()

    def _release(self) -> None:
        if self._slots is not None:
            self._slots.release()

    def _trim(self) -> None:
        """Close the connections that have been idle longest, while there are too many."""
        while idle := len(self._idle):
            if idle <= self._max_idle and idle + len(self._busy) <= self._max_connections:
                return
            self._idle.pop_oldest().discard()


_transports: Final[WeakSet[StackTransport]] = WeakSet()


def _abandon_in_child() -> None:
    for transport in list(_transports):
        transport._abandon()  # noqa: SLF001 - the same module


os.register_at_fork(after_in_child=_abandon_in_child)


def _origin(request: httpx.Request) -> Origin:
    scheme, host, port = request.url.raw_scheme, request.url.raw_host, request.url.port
    if scheme not in _PORTS or not host:
        got = scheme[:_SHOWN].decode()  # not the URL, which may contain a secret, and may be a server's
        raise httpx.UnsupportedProtocol(f"the URL must start with http:// or https:// and name a host, got {got!r}")
    server_name = request.extensions.get("sni_hostname") or None if scheme in _SECURE else None
    return scheme, host, _PORTS[scheme] if port is None else port, server_name


def _at_least(least: int, **limits: float) -> None:
    for name, value in limits.items():
        if not value >= least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
