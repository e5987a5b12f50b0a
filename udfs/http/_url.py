"""Plain URLs: those that httpx's parser would hand through as they are, and which need not go through it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import httpx

__all__ = ["checked_url", "plain_url"]

_MOST_BYTES: Final = 2_048
_ORIGINS: Final = 1_024

# Scheme and authority; a path; a query. What may stand in path and query, httpx's parser leaves as it is.
_PLAIN: Final = re.compile(
    r"(https?://[A-Za-z0-9.:\[\]-]+)?"
    r"(/[A-Za-z0-9._~/:,=+@-]*(?:%[0-9A-Fa-f]{2}[A-Za-z0-9._~/:,=+@-]*)*)"
    r"(?:\?([A-Za-z0-9._~/:,=+@&-]*(?:%[0-9A-Fa-f]{2}[A-Za-z0-9._~/:,=+@&-]*)*))?"
)


def plain_url(base: httpx.URL, url: httpx.URL | str) -> httpx.URL | None:
    """What httpx's client makes of its base URL and a URL; None where it would have to think.

    httpx's parser looks at each character of a URL, more than once. What it does with a path or a query is to quote
    characters that have to be, to resolve dot segments, and to check that a path begins with a slash. Here none has to
    be quoted, no segment begins with a dot, and the path begins with one slash, so that the parts are what they are.
    Scheme and authority go through the parser, once.

    Raises:
        httpx.InvalidURL: The authority is none.
    """
    found = _PLAIN.fullmatch(url) if isinstance(url, str) and len(url) <= _MOST_BYTES else None
    if found is None:
        return None
    origin, path, query = found.groups()
    if "/." in path:
        return None
    if origin is not None:
        return _with(_parsed(origin), path, query)
    reference = base._uri_reference  # noqa: SLF001 - as in `_with`
    if path.startswith("//") or not reference.host or reference.query is not None or reference.fragment is not None:
        return None
    return _with(base, (reference.path or "/") + path[1:], query)


def checked_url(url: httpx.URL) -> httpx.URL:
    """The URL, if httpx can decode its host, which it does only when somebody asks for it.

    Raises:
        httpx.InvalidURL: The host is not valid IDNA.
    """
    try:
        _ = url.host
    except UnicodeError as error:
        raise httpx.InvalidURL(f"Invalid IDNA hostname: {error}") from error
    return url


@lru_cache(_ORIGINS)
def _parsed(origin: str) -> httpx.URL:
    return checked_url(httpx.URL(origin))


def _with(base: httpx.URL, path: str, query: str | None) -> httpx.URL:
    # The only door that does not lead through the parser. The bound on httpx's version covers it, as do the tests.
    url = httpx.URL.__new__(httpx.URL)
    url._uri_reference = base._uri_reference._replace(path=path, query=query)  # noqa: SLF001
    return url
