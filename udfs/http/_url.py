"""Plain URLs: httpx's parser would return them unchanged, so the client skips it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import httpx

from ._shortcuts import SETS_URL, url_of

__all__ = ["checked_url", "merge_plain_url", "plain_parts"]

_MAX_BYTES: Final = 2_048
_CACHED_ORIGINS: Final = 1_024

# Scheme and authority, path, query. httpx's parser does not change the characters that are listed for path and query
_PLAIN: Final = re.compile(
    r"(https?://[A-Za-z0-9.:\[\]-]+)?"
    r"(/[A-Za-z0-9._~/:,=+@-]*(?:%[0-9A-Fa-f]{2}[A-Za-z0-9._~/:,=+@-]*)*)"
    r"(?:\?([A-Za-z0-9._~/:,=+@&-]*(?:%[0-9A-Fa-f]{2}[A-Za-z0-9._~/:,=+@&-]*)*))?"
)


def merge_plain_url(base: httpx.URL, url: httpx.URL | str) -> httpx.URL | None:
    """Return what httpx's client makes of its base URL and a plain URL; None if the URL is not plain.

    httpx's parser examines each character of a URL more than once: it quotes characters in path and query, resolves dot
    segments, and checks that a path begins with a slash. A plain URL has nothing to quote, no segment that begins with
    a dot, and exactly one slash at the start of its path. Its scheme and authority are parsed once and cached.

    Raises:
        httpx.InvalidURL: The authority is not valid.
    """
    parts = plain_parts(url)
    if parts is None:
        return None
    origin, path, query = parts
    if origin is not None:
        return url_of(_parsed(origin), path, query)
    reference = base._uri_reference  # noqa: SLF001 - checked by `SETS_URL`
    if path.startswith("//") or not reference.host or reference.query is not None or reference.fragment is not None:
        return None
    return url_of(base, (reference.path or "/") + path[1:], query)


def plain_parts(url: httpx.URL | str) -> tuple[str | None, str, str | None] | None:
    """Return scheme and authority, path, and query of a plain URL; None if the URL is not plain."""
    if not (SETS_URL and isinstance(url, str) and len(url) <= _MAX_BYTES):
        return None
    found = _PLAIN.fullmatch(url)
    return None if found is None or "/." in found[2] else found.groups()  # type: ignore[return-value]


def checked_url(url: httpx.URL) -> httpx.URL:
    """Return the URL, after a check that its host can be decoded. httpx decodes it only when `host` is read.

    Raises:
        httpx.InvalidURL: The host is not valid IDNA.
    """
    try:
        _ = url.host
    except UnicodeError as error:
        raise httpx.InvalidURL(f"Invalid IDNA hostname: {error}") from error
    return url


@lru_cache(_CACHED_ORIGINS)
def _parsed(origin: str) -> httpx.URL:
    return checked_url(httpx.URL(origin))
