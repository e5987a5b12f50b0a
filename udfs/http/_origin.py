"""Origin: scheme, host, port and name in TLS. Requests to one origin share connections."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

import httpx

__all__ = ["Origin", "origin_of", "origin_of_url"]

_PORTS: Final = {b"http": 80, b"ws": 80, b"https": 443, b"wss": 443}
_SECURE: Final = (b"https", b"wss")
_SHOWN: Final = 20  # characters of a scheme, in an error


class Origin(NamedTuple):
    """What a connection is connected to.

    Attributes:
        scheme, host, port: Of the URL, with the scheme's default port.
        server_name: The name to verify in TLS, if it is not the host.
    """

    scheme: bytes
    host: bytes
    port: int
    server_name: str | None = None

    @property
    def is_secure(self) -> bool:
        """Whether connections use TLS."""
        return self.scheme in _SECURE


def origin_of(request: httpx.Request) -> Origin:
    """Return the origin of a request.

    Raises:
        httpx.UnsupportedProtocol: The scheme is not HTTP's, or the URL has no host.
    """
    return origin_of_url(request.url, request.extensions.get("sni_hostname") or None)


class _URL(Protocol):
    @property
    def raw_scheme(self) -> bytes: ...
    @property
    def raw_host(self) -> bytes: ...
    @property
    def port(self) -> int | None: ...


def origin_of_url(url: _URL, server_name: str | None = None) -> Origin:
    """Return the origin of a URL. Raises as `origin_of`.

    Args:
        url: The URL, of httpx or httpx2.
        server_name: The name to verify in TLS, if it is not the host.
    """
    scheme, host, port = url.raw_scheme, url.raw_host, url.port
    if scheme not in _PORTS or not host:
        # The URL is not shown: it may contain a secret, and may come from a server's redirect
        got = scheme[:_SHOWN].decode()
        raise httpx.UnsupportedProtocol(f"the URL must start with http:// or https:// and name a host, got {got!r}")
    server_name = server_name if scheme in _SECURE else None
    return Origin(scheme, host, _PORTS[scheme] if port is None else port, server_name)
