"""Shortcuts past httpx's constructors. Each is checked at import, and not used with a version of httpx that differs."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.cookiejar import CookieJar
from typing import Any, Final

import httpx

__all__ = [
    "ENCODES_JSON",
    "SETS_CONTENT",
    "SETS_URL",
    "encode_json",
    "fields_of",
    "headers_of",
    "holds",
    "is_empty",
    "names_of",
    "url_of",
]

_encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

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


def fields_of(headers: httpx.Headers) -> list[Any]:
    """Return something that is equal for equal headers. Copy it to keep it."""
    return headers._list if _SETS_HEADERS else headers.raw  # noqa: SLF001 - checked below


def encode_json(value: Any) -> bytes:
    """Return a value as httpx sends it as JSON. Only if `ENCODES_JSON`."""
    return _encode(value).encode()


def is_empty(jar: CookieJar) -> bool:
    """Whether a jar certainly has no cookie. To iterate over it takes ten times as long."""
    return _FINDS_COOKIES and not jar._cookies  # type: ignore[attr-defined]  # noqa: SLF001 - checked below


def holds(check: Callable[[], bool]) -> bool:
    """Whether a check of httpx succeeds."""
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


def _json_is_compact() -> bool:
    value = {"a": [1, None, "\u00e9"], "b": 2.5}
    return httpx.Request("POST", "http://h", json=value).read() == encode_json(value)


def _cookies_are_a_dictionary() -> bool:
    cookies: Any = httpx.Cookies()
    was_empty = cookies.jar._cookies == {}  # noqa: SLF001
    cookies.set("a", "b")
    return was_empty and bool(cookies.jar._cookies)  # noqa: SLF001


# Whether a URL can be made of its parts, as by `url_of`
SETS_URL: Final = holds(_url_is_its_parts)
_SETS_HEADERS: Final = holds(_headers_are_a_list)
# Whether the content of a response is its attribute `_content`
SETS_CONTENT: Final = holds(_content_is_an_attribute)
# Whether httpx encodes JSON as `encode_json` does
ENCODES_JSON: Final = holds(_json_is_compact)
_FINDS_COOKIES: Final = holds(_cookies_are_a_dictionary)
