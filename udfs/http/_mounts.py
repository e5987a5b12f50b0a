"""Mounts: which transport sends the requests to a URL, by httpx's patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping

import httpx

__all__ = ["Mounts"]


class Mounts:
    """Chooses the transport of a URL.

    A pattern is a scheme, or "all", and optionally a host and a port: "https://", "all://example.org",
    "http://*.example.org:8080". In a host, "*." is any subdomain, and "*" also the domain itself. The most specific
    pattern that matches applies: one with a port before one without, then the longer host, then the longer scheme.

    Args:
        default: Sends the requests that no pattern matches.
        mounts: A transport per pattern; None for the default.
    """

    def __init__(
        self, default: httpx.AsyncBaseTransport, mounts: Mapping[str, httpx.AsyncBaseTransport | None]
    ) -> None:
        self._default = default
        patterns = sorted((_Pattern(pattern), pattern) for pattern in mounts)
        self._mounts = [(pattern, mounts[text] or default) for pattern, text in patterns]

    def transport_for(self, url: httpx.URL) -> httpx.AsyncBaseTransport:
        """Return the transport for a URL."""
        for pattern, transport in self._mounts:
            if pattern.matches(url):
                return transport
        return self._default


class _Pattern:
    """One pattern. The more specific one is smaller."""

    def __init__(self, text: str) -> None:
        url = httpx.URL(text)
        self._scheme = "" if url.scheme == "all" else url.scheme
        self._host = "" if url.host == "*" else url.host
        self._port = url.port
        self._hosts = re.compile(_expression(self._host))
        self._rank = (self._port is None, -len(self._host), -len(self._scheme))

    def __lt__(self, other: _Pattern) -> bool:
        return self._rank < other._rank

    def matches(self, url: httpx.URL) -> bool:
        """Whether the URL has the pattern's scheme, host and port."""
        return (
            self._scheme in ("", url.scheme)
            and self._port in (None, url.port)
            and self._hosts.fullmatch(url.host) is not None
        )


def _expression(host: str) -> str:
    if not host:
        return ".*"
    if host.startswith("*."):
        return r".+\." + re.escape(host[2:])
    if host.startswith("*"):
        return r"(.+\.)?" + re.escape(host[1:])
    return re.escape(host)
