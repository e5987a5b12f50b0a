"""Shortcuts past httpx's constructors, each checked at import: a version of httpx that differs is used the long way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import httpx

__all__ = ["SETS_CONTENT", "SETS_URL", "headers_of", "names_of", "url_of"]

_Headers = list[tuple[bytes, bytes, bytes]]  # name, name in lower case, value


def url_of(base: httpx.URL, path: str, query: str | None) -> httpx.URL:
    """Return a URL with the scheme and authority of another one, without httpx's parser. Only if `SETS_URL`."""
    url = httpx.URL.__new__(httpx.URL)
    url._uri_reference = base._uri_reference._replace(path=path, query=query)  # noqa: SLF001 - checked below
    return url


def headers_of(headers: _Headers) -> httpx.Headers:
    """Return headers, without lowering each name again."""
    if not _SETS_HEADERS:
        return httpx.Headers([(name, value) for name, _, value in headers])
    result = httpx.Headers()
    result._list = [*headers]  # noqa: SLF001 - checked below
    return result


def names_of(headers: httpx.Headers) -> list[bytes]:
    """Return the names in lower case. httpx's own methods decode all headers first."""
    if not _SETS_HEADERS:
        return [name.lower() for name, _ in headers.raw]
    return [name for _, name, _ in headers._list]  # noqa: SLF001 - checked below


def _holds(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except (AttributeError, TypeError, ValueError):
        return False


def _url_is_its_parts() -> bool:
    return vars(url_of(httpx.URL("http://h:1/x?y"), "/a", "b")) == vars(httpx.URL("http://h:1/a?b"))


def _headers_are_a_list() -> bool:
    return vars(httpx.Headers([(b"A", b"b")])) == {"_list": [(b"A", b"a", b"b")], "_encoding": None}


def _content_is_an_attribute() -> bool:
    return vars(httpx.Response(200, content=b"a")).get("_content") == b"a"


# Whether a URL can be made of its parts, as by `url_of`
SETS_URL: Final = _holds(_url_is_its_parts)
_SETS_HEADERS: Final = _holds(_headers_are_a_list)
# Whether the content of a response is its attribute `_content`
SETS_CONTENT: Final = _holds(_content_is_an_attribute)
