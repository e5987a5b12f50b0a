"""Authentication: the `httpx.Auth` of a request, from what httpx's client accepts for it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import httpx

__all__ = ["authentication_of"]


def authentication_of(request: httpx.Request, auth: Any) -> httpx.Auth | None:
    """Return the authentication of a request; None for none.

    Args:
        request: The request. Credentials in its URL are used if there are no others.
        auth: An `httpx.Auth`, a pair of name and password, a callable that changes the request, or None.

    Raises:
        TypeError: `auth` is something else.
    """
    if auth is None:
        url = request.url
        return httpx.BasicAuth(url.username, url.password) if url.userinfo else None
    if isinstance(auth, tuple):
        return httpx.BasicAuth(*auth)
    if isinstance(auth, httpx.DigestAuth):
        return _CheckedDigest(auth)
    if isinstance(auth, httpx.Auth):
        return None if type(auth) is httpx.Auth else auth  # the base class sends the request as it is
    if callable(auth):
        return _ChangedRequest(auth)
    raise TypeError(f'Invalid "auth" argument: {auth!r}')


class _ChangedRequest(httpx.Auth):
    """Sends the request that a callable returns."""

    def __init__(self, change: Callable[..., Any]) -> None:
        self._change = change

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        yield self._change(request)


class _CheckedDigest(httpx.Auth):
    """Digest authentication that raises httpx's error for every malformed challenge."""

    def __init__(self, digest: httpx.DigestAuth) -> None:
        self._digest = digest

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        try:
            yield from self._digest.auth_flow(request)
        except (KeyError, ValueError, NotImplementedError) as error:
            raise httpx.RemoteProtocolError("Malformed Digest WWW-Authenticate header", request=request) from error
