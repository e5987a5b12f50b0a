"""Dialler: from an origin to a connected stream, with TLS where the scheme requires it.

It also decides whether an address may be connected to at all, because only here is the address known: a name can have
another address each time it is resolved.
"""

from __future__ import annotations

import ipaddress
import math
import os
import socket
import ssl
from dataclasses import dataclass, field

import httpx
import trio

from ._socket import Socket
from ._tls import TlsStream
from ._url import Origin

Stream = Socket | TlsStream

_PATIENCE = 2.0  # seconds for each checked address of a host but the last

# Networks of IPv6 whose addresses have an address of IPv4 at their end, to which a gateway translates them (RFC 6052)
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")

# Public addresses behind which a cloud's platform serves its own machines, without authentication
_PLATFORMS = (
    ipaddress.IPv4Network("168.63.129.16/32"),  # Azure: DNS, health probes and the agent of each machine
    ipaddress.IPv4Network("161.26.0.0/16"),  # IBM Cloud: DNS, time and package mirrors
    ipaddress.IPv4Network("166.8.0.0/14"),  # IBM Cloud: private endpoints of its services
)

_LAST_PORT = 65_535  # `getaddrinfo` takes a higher one modulo 65,536, which is the port of somebody else

# Codes of OpenSSL for a certificate whose authority is not known, and for one that is for another host
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
_OTHER_HOST = frozenset({62, 64})

# What OpenSSL reports, by version, if the first data is not TLS
_NOT_TLS = frozenset({"RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "WRONG_VERSION_NUMBER"})

_FAILURES = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)
_IMPOSSIBLE = (ValueError, OverflowError)  # a host or a name for TLS that is not valid; a port that is not


class HostRefusedError(httpx.RequestError):
    """Requests to this host are not allowed. No connection was opened."""


@dataclass
class Dialler:
    """Connects to one origin. It owns the stream from the start, so a failed handshake leaves nothing open.

    Attributes:
        origin: What to connect to.
        ssl_context: For TLS, or None.
        only_public: Whether only globally routable addresses are connected to.
        stream: The stream, once its socket is connected.
    """

    origin: Origin
    ssl_context: ssl.SSLContext | None
    only_public: bool = False
    stream: Stream | None = None
    _connecting: trio.CancelScope = field(default_factory=trio.CancelScope, init=False)

    async def connect(self, seconds: float | None) -> Stream:
        """Return a connected stream. Called once.

        **Cancellation** leaves the stream open until `close`.

        Args:
            seconds: Upper limit; None for no limit.

        Raises:
            httpx.ConnectError, httpx.ConnectTimeout: It failed, or `close` was called.
            HostRefusedError: An address of the host is not globally routable, and `only_public` is set.
        """
        with self._connecting:
            stream = await self._open_in_time(seconds)
            if not self._connecting.cancel_called:
                return stream
        self._close_stream()
        raise httpx.ConnectError("the transport was closed before it connected: leave the block of its client later")

    def close(self) -> None:
        """Close the stream, if there is one, without waiting. A task that connects gets an error."""
        self._connecting.cancel()
        self._close_stream()

    def _close_stream(self) -> None:
        if self.stream is not None:
            self.stream.close()

    async def _open_in_time(self, seconds: float | None) -> Stream:
        try:
            with trio.move_on_after(math.inf if seconds is None else max(0.0, seconds)):
                return await self._open()
        except _FAILURES as error:
            self._close_stream()
            raise httpx.ConnectError(_message(error, self.origin)) from _root(error)
        except _IMPOSSIBLE as error:
            self._close_stream()
            unknown = socket.gaierror(socket.EAI_NONAME, str(error))  # so that it is not retried
            raise httpx.ConnectError(
                f"{self.origin.place} cannot be connected to ({error}): correct the host and the port in the URL"
            ) from unknown
        self._close_stream()
        raise httpx.ConnectTimeout(f"connect timeout of {seconds} s ({self.origin.place})")

    async def _open(self) -> Stream:
        host, port = self.origin.host.decode(), self.origin.port
        if port > _LAST_PORT:
            raise ValueError(f"there is no port {port}: the last one is {_LAST_PORT}")
        connect = _connect_public if self.only_public else trio.open_tcp_stream
        plain = self.stream = Socket(await connect(host, port))
        if self.ssl_context is None:
            return plain
        tls = self.stream = TlsStream(plain, self.ssl_context, self.origin.server_name or host)
        await tls.handshake()
        return tls


def is_public(address: str) -> bool:
    """Return whether an IP address is globally routable, and so is each address of IPv4 inside it.

    The public addresses of a cloud's platform do not count, because only machines of the cloud reach them.

    Args:
        address: An address in the text form that the resolver returns, with or without a zone.
    """
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour or (parsed in _TRANSLATED and int(parsed) & 0xFFFF_FFFF)
        if inner:
            return is_public(str(ipaddress.IPv4Address(inner)))
        if parsed.is_site_local or parsed.teredo:
            return False
    elif any(parsed in network for network in _PLATFORMS):
        return False
    return parsed.is_global and not (parsed.is_multicast or parsed.is_reserved)


async def _connect_public(host: str, port: int) -> trio.SocketStream:
    """Connect to a host after checking all its addresses: to one of those that were checked.

    Raises:
        HostRefusedError: An address is not globally routable.
        OSError: No address can be connected to.
    """
    found = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    for address in addresses:
        if not is_public(address):
            raise HostRefusedError(
                f"the host {host} has the address {address}, which is not globally routable, and only_public=True "
                "allows no other: change the URL, or leave out only_public if requests may go inside the network"
            )
    for address in addresses[:-1]:
        with trio.move_on_after(_PATIENCE):
            try:
                return await trio.open_tcp_stream(address, port)
            except OSError:
                continue
    return await trio.open_tcp_stream(addresses[-1], port)


def _root(error: BaseException) -> BaseException:
    """Return the error without those that only say that all addresses failed, if they failed for one reason."""
    failed = error.__cause__
    if not isinstance(failed, BaseExceptionGroup):
        return error
    return failed.exceptions[0] if len(_reasons(failed)) == 1 else failed


def _reasons(failed: BaseExceptionGroup[BaseException]) -> list[str]:
    return list(dict.fromkeys(os.strerror(getattr(each, "errno", None) or 0) for each in failed.exceptions))


def _message(error: BaseException, origin: Origin) -> str:
    """Return what failed, and what to do if the service, its host, certificate or scheme is the reason."""
    if isinstance(error, socket.gaierror):
        return (
            f"the host {origin.host.decode()} cannot be resolved ({error.strerror}): "
            "check its spelling in the URL, and the name server of this machine"
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        name = origin.server_name or origin.host.decode()
        problem = error.verify_message.rstrip(".")
        return f"the certificate of {name} is not valid ({problem}): {_advice(error.verify_code)}"
    if isinstance(error, ssl.SSLError):
        if error.reason in _NOT_TLS:
            return f"{origin.place} does not speak TLS: write http:// in the URL, or the port for https://"
        return (
            f"the TLS handshake with {origin.place} failed ({error}): "
            "check which versions of TLS it supports, and whether it needs a client certificate (cert=)"
        )
    return _reason(error)


def _advice(verify_code: int) -> str:
    if verify_code in _UNKNOWN_AUTHORITY:
        return (
            "for an authority of your own, give the path of its certificate as verify=, or set SSL_CERT_FILE and "
            "trust_env=True"
        )
    if verify_code in _OTHER_HOST:
        return "check the host in the URL"
    return "check the certificate, and the clock of this machine"


def _reason(error: BaseException) -> str:
    """Return the text of the first error in the chain that has one, and why the addresses of a host failed."""
    if isinstance(error.__cause__, BaseExceptionGroup):
        text = f"{error}: {', '.join(_reasons(error.__cause__))}"
        is_refused = all(isinstance(each, ConnectionRefusedError) for each in error.__cause__.exceptions)
        return f"{text}: start the service, or correct the host and the port in the URL" if is_refused else text
    cause: BaseException | None = error
    while cause is not None and not str(cause):
        cause = cause.__cause__
    return str(cause or type(error).__name__)
