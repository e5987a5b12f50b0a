"""URLs: the origin of one, and `PlainURL`, which httpx parses only when a part of it is needed.

Requests to one origin share connections. Most requests never need more than the origin and the target of their URL.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

import httpx

_PORTS: Final = {b"http": 80, b"ws": 80, b"https": 443, b"wss": 443}
_SECURE: Final = (b"https", b"wss")
_SHOWN: Final = 20  # characters of a scheme, in an error

_CACHED_ROOTS: Final = 1_024

# Scheme and authority, path, query. httpx's parser does not change the characters that are listed for path and query
_PLAIN: Final = re.compile(
    r"(https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?)?"
    r"(/[A-Za-z0-9._~/:,=+@-]*(?:%[0-9A-Fa-f]{2}[A-Za-z0-9._~/:,=+@-]*)*)"
    r"(\?[A-Za-z0-9._~/:,=+@&-]*(?:%[0-9A-Fa-f]{2}[A-Za-z0-9._~/:,=+@&-]*)*)?"
)
_MAX_LENGTH: Final = 2_048


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


def plain_parts(url: object) -> tuple[str | None, str] | None:
    """Return the root and the target of a plain URL: one that httpx's parser would leave as it is.

    Args:
        url: A URL in any form. Only a str can be plain.

    Returns:
        Scheme with authority, or None for a relative URL; and the path with its query. None instead of both if the URL
        is not plain: it has other characters, a user, a fragment, or a segment that starts with a dot.
    """
    found = _PLAIN.fullmatch(url) if isinstance(url, str) and len(url) <= _MAX_LENGTH else None
    return None if found is None or "/." in found[2] else (found[1], found[2] + (found[3] or ""))


@lru_cache(_CACHED_ROOTS)
def parsed_root(root: str) -> httpx.URL:
    """Return the URL of a root, as `plain_parts` returns it. The same few are used by many requests.

    Raises:
        httpx.InvalidURL: The host or the port is not valid.
    """
    return httpx.URL(root)


class PlainURL(httpx.URL):
    """A URL with a plain target.

    Parsing is a large part of the cost of a request. The parts that sending needs are known without it: they are the
    root's, and the target itself. For everything else the URL is parsed at its first use.

    Args:
        root: Has the scheme and the authority.
        target: Path and query, both plain.
    """

    def __init__(self, root: httpx.URL, target: str) -> None:
        self._plain_root, self._plain_target = root, target

    @property
    def raw_scheme(self) -> bytes:
        """The scheme."""
        return self._plain_root.raw_scheme

    @property
    def raw_host(self) -> bytes:
        """The host."""
        return self._plain_root.raw_host

    @property
    def port(self) -> int | None:
        """The port, if it is not the scheme's."""
        return self._plain_root.port

    @property
    def userinfo(self) -> bytes:
        """The user and the password."""
        return self._plain_root.userinfo

    @property
    def raw_path(self) -> bytes:
        """The path and the query."""
        return self._plain_target.encode()

    def __getattr__(self, name: str) -> Any:
        """Return an attribute that is missing because httpx's constructor has not run, after running it."""
        if name.startswith("__") or name in ("_plain_root", "_plain_target"):
            raise AttributeError(name)
        super().__init__(self._plain_root.copy_with(raw_path=self.raw_path))
        return object.__getattribute__(self, name)

    def __reduce__(self) -> Any:
        return httpx.URL, (str(self),)
