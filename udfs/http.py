"""An httpx client for Trio that stays fast with a hundred requests in flight.

httpx's own pool looks at every connection for every request, so its cost grows with their number: at a
hundred connections it takes most of the time of a request. Here idle connections lie on a stack per origin
instead, and to give one out or take one back costs the same whatever their number.

Errors are httpx's own: `httpx.ConnectError`, `httpx.ReadTimeout`, `httpx.RemoteProtocolError` and so on.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Callable
from typing import Any, Final

import httpx
import trio

from ._http_client import StackClient
from ._http_connection import Connection
from ._http_deadlines import Deadlines
from ._http_dial import Dialler
from ._http_idle import IdleStacks, Origin
from ._http_reply import Reply

__all__ = ["StackTransport", "client"]

Verify = ssl.SSLContext | str | bool
Certificate = str | tuple[str, str] | tuple[str, str, str]

_PORTS: Final = {b"http": 80, b"ws": 80, b"https": 443, b"wss": 443}

_REFUSED: Final = {
    "proxy": "it speaks to the origin itself; for a proxy use httpx.AsyncClient(proxy=...)",
    "mounts": "it has one transport; for several use httpx.AsyncClient(mounts=...)",
    "transport": "it brings its own; for another use httpx.AsyncClient(transport=...)",
    "limits": "say max_connections=, max_idle= and keepalive_expiry= instead",
    "http2": "it speaks HTTP/1.1; for HTTP/2 use httpx.AsyncClient(http2=True)",
}


def client(
    *,
    verify: Verify = True,
    cert: Certificate | None = None,
    trust_env: bool = False,
    max_connections: int | None = None,
    max_idle: int = 100,
    keepalive_expiry: float = 5.0,
    retries: int = 0,
    **options: Any,
) -> httpx.AsyncClient:
    """An `httpx.AsyncClient` on a `StackTransport`: the client to open once per Python worker.

    It belongs to the Trio run that uses it, and cannot be pickled: make it in `open`.

    Args:
        verify, cert, trust_env, max_connections, max_idle, keepalive_expiry, retries: As for
            `StackTransport`. With `trust_env=True` httpx reads `.netrc` too; a proxy that the environment
            names is never used.
        options: Any other option of `httpx.AsyncClient`: `base_url`, `headers`, `timeout`, `auth`, ...

    Returns:
        A client, which the caller closes: `async with client() as http`, or `await http.aclose()`.

    Raises:
        ValueError: `proxy`, `mounts`, `transport`, `limits` or `http2` is asked for; or a limit is bad.
        TypeError: httpx knows no such option.

    Example:
        >>> class Weather(AsyncFunction):
        ...     async def open(self):
        ...         self.http = client(base_url="http://127.0.0.1:8000")
        ...     async def invoke(self, origin):
        ...         return (await self.http.get(f"/weather/{origin}")).raise_for_status().json()
        ...     async def close(self):
        ...         await self.http.aclose()
    """
    for name, why in _REFUSED.items():
        if options.pop(name, None):
            raise ValueError(f"{name}= does not fit this client: {why}")
    transport = StackTransport(
        verify=verify,
        cert=cert,
        trust_env=trust_env,
        max_connections=max_connections,
        max_idle=max_idle,
        keepalive_expiry=keepalive_expiry,
        retries=retries,
    )
    return StackClient(transport=transport, trust_env=trust_env, **options)


class StackTransport(httpx.AsyncBaseTransport):
    """An HTTP/1.1 transport that keeps idle connections on a last-in-first-out stack per origin.

    The freshest connection goes out first, so in a lull the surplus grows old, and the old are closed. A
    connection comes back only when its response was read to the end; after an error, a cancellation or an
    unread rest it is closed and never used again. One that the server has closed in the meantime is not
    given out, as in httpx's own pool.

    **Cancellation** closes the connection of the cancelled request and touches no other.

    Args:
        verify: True (certifi's authorities), False, or an `ssl.SSLContext`. Making the context takes about
            100 ms, so it is made at the first HTTPS request, once.
        cert: A client certificate, as httpx takes it.
        trust_env: Whether `SSL_CERT_FILE` and `SSL_CERT_DIR` are read.
        max_connections: Most connections open at once, idle ones included, at least 1; a request beyond them
            waits, for as long as httpx's pool timeout allows. None: the operator's capacity is the limit.
        max_idle: Most idle connections kept, over all origins. 0: no connection is used twice.
        keepalive_expiry: Seconds after which an idle connection is not used again. `math.inf`: never.
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
        self._slots = None if max_connections is None else trio.Semaphore(max_connections)
        self._max_idle = max_idle
        self._keepalive_expiry = keepalive_expiry
        self._retries = retries
        self._idle: IdleStacks[Connection] = IdleStacks()
        self._busy: set[Connection] = set()
        self._deadlines = Deadlines()
        self._closed = False

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
        origin = _origin(request)
        ssl_context = self._ssl_context_for(origin)
        if self._slots is not None:
            await self._wait_for_slot(self._slots, request)
        connection = self._take(origin, ssl_context)
        try:
            await connection.ask(request)
        except httpx.RequestError as error:
            self._give_back(connection)
            error.request = request
            raise
        except BaseException:
            self._give_back(connection)
            raise
        return Reply(request, connection, self._give_back)

    async def aclose(self) -> None:
        """Close every connection, idle or busy. A request that is still in flight fails."""
        self._closed = True
        self._deadlines.close()
        for connection in [*self._idle.drain(), *self._busy]:
            connection.close()

    def _ssl_context_for(self, origin: Origin) -> ssl.SSLContext | None:
        if origin[0] not in (b"https", b"wss"):
            return None
        if self._ssl_context is None:
            verify, cert, trust_env = self._tls
            self._ssl_context = httpx.create_ssl_context(verify=verify, cert=cert, trust_env=trust_env)
            self._ssl_context.set_alpn_protocols(["http/1.1"])
        return self._ssl_context

    async def _wait_for_slot(self, slots: trio.Semaphore, request: httpx.Request) -> None:
        try:
            slots.acquire_nowait()
        except trio.WouldBlock:
            seconds = request.extensions.get("timeout", {}).get("pool")
            with trio.move_on_after(math.inf if seconds is None else seconds):
                await slots.acquire()
                return
            raise httpx.PoolTimeout(f"no connection came free in {seconds} s", request=request) from None

    def _take(self, origin: Origin, ssl_context: ssl.SSLContext | None) -> Connection:
        if self._closed:
            self._release()
            raise RuntimeError("the transport is closed: it was left, or its client was")
        while (connection := self._idle.pop(origin)) is not None:
            if connection.is_fresh():
                self._busy.add(connection)
                return connection
            connection.close()
        connection = Connection(Dialler(origin, ssl_context, self._retries), self._keepalive_expiry, self._deadlines)
        self._busy.add(connection)
        self._trim(Connection.is_fresh)
        return connection

    def _give_back(self, connection: Connection) -> None:
        self._busy.discard(connection)
        if not self._closed and connection.is_reusable():
            connection.rest()
            self._idle.push(connection)
        else:
            connection.close()
        self._release()
        self._trim(Connection.is_young)

    def _release(self) -> None:
        if self._slots is not None:
            self._slots.release()

    def _trim(self, is_worth_keeping: Callable[[Connection], bool]) -> None:
        while (oldest := self._idle.oldest()) is not None:
            are_too_many = len(self._idle) + len(self._busy) > self._max_connections or len(self._idle) > self._max_idle
            if not are_too_many and is_worth_keeping(oldest):
                return
            self._idle.pop_oldest().close()


def _origin(request: httpx.Request) -> Origin:
    scheme, host = request.url.raw_scheme, request.url.raw_host
    if scheme not in _PORTS or not host:
        message = "the URL must start with http:// or https:// and name a host"
        raise httpx.UnsupportedProtocol(message, request=request)
    return scheme, host, request.url.port or _PORTS[scheme]


def _at_least(least: int, **limits: float) -> None:
    for name, value in limits.items():
        if not value >= least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
