"""Origin: scheme, host, port and name in TLS. Requests to one origin share connections."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx

_PORTS: Final = {b"http": 80, b"ws": 80, b"https": 443, b"wss": 443}
_SECURE: Final = (b"https", b"wss")
_SHOWN: Final = 20  # characters of a scheme, in an error


class Origin(NamedTuple):
    """The server, or the proxy, at the other end of a connection.

    Attributes:
        scheme, host, port: Those in the URL; without a port in it, the scheme's default.
        server_name: The name to verify in TLS, if it is not the host.
    """

    scheme: bytes
    host: bytes
    port: int
    server_name: str | None = None

    @property
    def place(self) -> str:
        """Host and port, for messages."""
        host = self.host.decode()
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    @property
    def is_secure(self) -> bool:
        """Whether connections use TLS."""
        return self.scheme in _SECURE


def origin_of_url(url: Any, server_name: str | None = None) -> Origin:
    """Return the origin of a URL.

    Args:
        url: The URL, of httpx or httpx2.
        server_name: The name to verify in TLS, if it is not the host.

    Raises:
        httpx.UnsupportedProtocol: The scheme is not HTTP's, or the URL has no host.
    """
    scheme, host, port = url.raw_scheme, url.raw_host, url.port
    if scheme not in _PORTS or not host:
        # The URL is not shown: it may contain a secret, and may come from a server's redirect
        got = (
            f"got {scheme[:_SHOWN].decode()!r}" if scheme else "got none: complete the URL of the request, or base_url"
        )
        raise httpx.UnsupportedProtocol(f"the URL must start with http:// or https:// and name a host, {got}")
    server_name = server_name if scheme in _SECURE else None
    return Origin(scheme, host, _PORTS[scheme] if port is None else port, server_name)


Verify = ssl.SSLContext | str | os.PathLike[str] | bool
Certificate = str | tuple[str, str] | tuple[str, str, str]


def loaded(verify: Verify) -> ssl.SSLContext | bool:
    """Return `verify`, with a context in place of a path.

    Raises:
        TypeError, ValueError: It is not one of these, or no certificates can be loaded from the path.
    """
    rule = "verify must be True, False, the path of a file or directory of certificates, or an ssl.SSLContext"
    if isinstance(verify, bool | ssl.SSLContext):
        return verify
    if not isinstance(verify, str | os.PathLike):
        raise TypeError(f"{rule}, got {verify!r}")
    path = os.fspath(verify)
    try:
        if Path(path).is_dir():
            return ssl.create_default_context(capath=path)
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        raise ValueError(f"{rule}, got {path!r}, which cannot be loaded: {error}") from error


@dataclass
class SslContext:
    """An `ssl.SSLContext` that is made at its first use, which takes about 100 ms.

    Attributes:
        verify: A result of `loaded`.
        cert, trust_env: As for `StackTransport`.
    """

    verify: ssl.SSLContext | bool
    cert: Certificate | None
    trust_env: bool

    @cached_property
    def made(self) -> ssl.SSLContext:
        """The context.

        Raises:
            httpx.LocalProtocolError: The certificates cannot be loaded. No retry avoids that.
        """
        try:
            return httpx.create_ssl_context(verify=self.verify, cert=self.cert, trust_env=self.trust_env)
        except OSError as error:
            raise httpx.LocalProtocolError(
                f"cannot load the certificates for TLS: {error}. "
                "Check cert=, and with trust_env=True SSL_CERT_FILE and SSL_CERT_DIR"
            ) from error
