"""The headers of a request: a client's and its own, merged once for all requests that have the same ones."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import httpx

__all__ = ["merge_headers"]

_CACHED: Final = 64  # most requests have the same headers as an earlier one

_Pairs = tuple[tuple[Any, Any], ...]


def merge_headers(common: httpx.Headers, own: Any, host: bytes) -> httpx.Headers:
    """Return the headers of a request without a body, in httpx's order. They are shared: copy them to change them.

    Args:
        common: The client's headers.
        own: The headers of the request, in any form that httpx accepts. They replace the client's of the same name.
        host: The host and port of the URL, for the Host header if no other one is given; or empty.
    """
    try:
        return _merged(tuple(common.raw), _pairs(own), host)
    except TypeError:  # a value that cannot be hashed, or something that httpx refuses
        return _merged.__wrapped__(tuple(common.raw), httpx.Headers(own).raw, host)


@lru_cache(_CACHED)
def _merged(common: _Pairs, own: _Pairs, host: bytes) -> httpx.Headers:
    merged = httpx.Headers(common)
    merged.update(own)
    has_host = any(name.lower() == b"host" for name, _ in merged.raw)
    return merged if has_host or not host else httpx.Headers([(b"Host", host), *merged.raw])


def _pairs(own: Any) -> _Pairs:
    if own is None:
        return ()
    if isinstance(own, httpx.Headers):
        return tuple(own.raw)
    return tuple(own.items()) if hasattr(own, "items") else tuple(map(tuple, own))
