"""The client of `udfs.http` for httpx2: the same connections, with httpx2's requests, responses and errors.

    from udfs.http.httpx2 import client

    AsyncOpenAI(http_client=client(), max_retries=0)

Packages such as openai accept only clients of httpx2. The decoding of bodies, redirects, cookies and authentication are
httpx2's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

try:
    import httpx2
except ImportError as error:
    raise ImportError("udfs.http.httpx2 needs httpx2: pip install 'trio-asyncio-io[httpx2]'") from error

from ._body_limit import check_body_limit
from ._client import check_options
from ._httpx2_limit import BodyLimit, BodyTooLargeError
from ._httpx2_transport import StackTransport
from ._proxies import chosen_proxies, proxy_mounts
from ._ssl_context import Certificate, Verify

__all__ = ["BodyTooLargeError", "StackTransport", "client"]

_TIMEOUT: Final = httpx2.Timeout(None, connect=30.0)


def client(
    *,
    verify: Verify = True,
    cert: Certificate | None = None,
    trust_env: bool = False,
    max_connections: int | None = None,
    max_idle: int = 100,
    keepalive_expiry: float = 5.0,
    retries: int = 0,
    timeout: float | httpx2.Timeout | None = _TIMEOUT,
    max_body_bytes: int | None = None,
    proxy: str | httpx2.URL | httpx2.Proxy | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
    mounts: Mapping[str, httpx2.AsyncBaseTransport | None] | None = None,
    **options: Any,
) -> httpx2.AsyncClient:
    """Return an `httpx2.AsyncClient` on a `StackTransport`, with the defaults of `udfs.http.client`.

    **Cancellation** of a request closes its connection and no other.

    Args:
        verify: True for certifi's authorities, False for no verification, or an `ssl.SSLContext`.
        cert: A client certificate, as httpx2 takes it.
        trust_env: Whether `SSL_CERT_FILE` and `SSL_CERT_DIR` are read. With True, the proxies of the environment
            (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`) are also used, as by httpx2. `.netrc` is not read:
            pass `auth=httpx2.NetRCAuth()`.
        max_connections: Upper limit of open connections, idle ones included, at least 1. Further requests wait, up to
            httpx2's pool timeout. None: no limit but the operator's capacity.
        max_idle: Upper limit of idle connections over all origins, at least 0. 0: no connection is reused.
        keepalive_expiry: Seconds after which an idle connection is closed, at least 0. `math.inf`: never.
        retries: Attempts to connect after the first, at least 0. Leave it at 0 where the operator has a retry strategy,
            which also counts its attempts.
        timeout: Seconds for each step, an `httpx2.Timeout`, or None for no limit. By default each attempt to connect
            has 30 s and the other steps have no limit.
        max_body_bytes: Upper limit of the decoded body of a response, at least 1. A larger one raises a
            `BodyTooLargeError` and closes its connection. None: no limit.
        proxy: The proxy of all requests, and not those of the environment.
        transport: Sends the requests instead of a `StackTransport`, for example an `httpx2.MockTransport` in a test.
        mounts: Transports for some URLs, by httpx2's patterns.
        options: Any other option of `httpx2.AsyncClient`: `base_url`, `headers`, `auth` and so on.

    Returns:
        A client. The caller closes it: `async with client() as http`, or `await http.aclose()`.

    Raises:
        ValueError: As for `udfs.http.client`.
        TypeError: httpx2 has no such option.

    Example:
        >>> class Embedding(AsyncFunction):
        ...     async def open(self):
        ...         self.service = AsyncOpenAI(http_client=client(), max_retries=0)
        ...     async def close(self):
        ...         await self.service.close()
    """
    check_options(options)
    check_body_limit(max_body_bytes)
    proxies = chosen_proxies(proxy, from_environment=trust_env and transport is None)
    if transport is None:
        transport = StackTransport(
            verify=verify,
            cert=cert,
            trust_env=trust_env,
            max_connections=max_connections,
            max_idle=max_idle,
            keepalive_expiry=keepalive_expiry,
            retries=retries,
        )
    limits = httpx2.Limits(
        max_connections=max_connections, max_keepalive_connections=max_idle, keepalive_expiry=keepalive_expiry
    )
    proxied = partial(httpx2.AsyncHTTPTransport, verify=verify, cert=cert, trust_env=trust_env, limits=limits)
    mounted = {**proxy_mounts(proxies, proxied), **(mounts or {})}
    if max_body_bytes is not None:
        transport = BodyLimit(transport, max_body_bytes)
        mounted = {pattern: each and BodyLimit(each, max_body_bytes) for pattern, each in mounted.items()}
    return httpx2.AsyncClient(transport=transport, mounts=mounted, trust_env=trust_env, timeout=timeout, **options)


BodyTooLargeError.__module__ = StackTransport.__module__ = __name__  # the public address
