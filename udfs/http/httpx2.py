"""The client of `udfs.http` for httpx2: the same connections, with httpx2's requests, responses and errors.

    from udfs.http.httpx2 import client

    AsyncOpenAI(http_client=client(), max_retries=0)

Packages such as openai accept only clients of httpx2. The decoding of bodies, redirects, cookies and authentication are
httpx2's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import httpx

from .._extras import needs_extra

with needs_extra(__name__, "httpx2"):
    import httpx2

from ._client import GivenCookies, TransportOptions, check_options, jar_for
from ._request import RequestWriter
from ._response import ResponseBody
from ._tls import Certificate, Verify
from ._transport import StackTransport as _HttpxTransport
from ._url import origin_of_url

__all__ = ["HostRefusedError", "StackTransport", "client"]

_TIMEOUT: Final = httpx2.Timeout(None, connect=30.0)


def client(
    *,
    verify: Verify = True,
    cert: Certificate | None = None,
    trust_env: bool = False,
    max_idle: int = 100,
    keepalive_expiry: float = 5.0,
    timeout: float | httpx2.Timeout | None = _TIMEOUT,
    proxy: str | httpx2.URL | httpx2.Proxy | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
    mounts: Mapping[str, httpx2.AsyncBaseTransport | None] | None = None,
    cookies: bool | GivenCookies | httpx2.Cookies = False,
    **options: Any,
) -> httpx2.AsyncClient:
    """Return an `httpx2.AsyncClient` on a `StackTransport`.

    A client belongs to the Trio run that uses it and cannot be pickled, so make it in `open`.

    **Cancellation** of a request closes its connection and no other.

    Args:
        The same as for `udfs.http.client`, except `max_body_bytes`.

    Returns:
        A client. The caller closes it.

    Raises:
        ValueError: A limit is out of its range, no certificates can be loaded from `verify`, or this client does not
            support the option.
        TypeError: httpx2 has no such option.
    """
    check_options(options)
    transport_options = TransportOptions(verify, cert, trust_env, max_idle, keepalive_expiry)
    transport, mounted = transport_options.transports(httpx2, StackTransport, transport, mounts, proxy)
    return httpx2.AsyncClient(
        transport=transport,
        mounts=mounted,
        trust_env=trust_env,
        timeout=timeout,
        cookies=jar_for(cookies),
        **options,
    )


class StackTransport(_HttpxTransport, httpx2.AsyncBaseTransport):
    """`udfs.http.StackTransport` for httpx2.

    Args:
        The same as for `udfs.http.StackTransport`.

    Raises:
        ValueError: A limit is out of its range, or no certificates can be loaded from `verify`.
    """

    async def handle_async_request(  # type: ignore[override] # httpx2's request and response
        self, request: httpx2.Request
    ) -> httpx2.Response:
        """Send a request and return its response, with the body still unread.

        Raises:
            httpx2.RequestError: The request is not valid, or the server was unreachable, too slow or broke off.
            RuntimeError: The transport is closed.
        """
        try:
            origin = origin_of_url(request.url, request.extensions.get("sni_hostname") or None)
            connection = await self.pool.send(origin, RequestWriter.of(request, httpx2.ByteStream))
        except httpx.RequestError as error:
            raise _translated(error, request) from error
        head = connection.parser.head
        return httpx2.Response(
            head.status,
            headers=[(name, value) for name, _, value in head.fields],
            stream=_ResponseBody(request, connection, self.pool),
            extensions={"http_version": head.version, "reason_phrase": head.reason},
        )


class _ResponseBody(ResponseBody, httpx2.AsyncByteStream):
    """A body whose errors are httpx2's."""

    async def read(self) -> bytes:
        """See `ResponseBody`."""
        try:
            return await super().read()
        except httpx.StreamClosed:
            raise httpx2.StreamClosed from None
        except httpx.RequestError as error:
            raise _translated(error, self._request) from error


class HostRefusedError(httpx2.RequestError):
    """Requests to this host are not allowed. No connection was opened."""


def _translated(error: httpx.RequestError, request: httpx2.Request) -> httpx2.RequestError:
    """Return httpx2's error of the same name, or this module's."""
    name = type(error).__name__
    is_ours = name == HostRefusedError.__name__
    error_type: type[httpx2.RequestError] = HostRefusedError if is_ours else getattr(httpx2, name)
    return error_type(str(error), request=request)
