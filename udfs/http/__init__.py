"""An httpx client for Trio that stays fast with a hundred requests in flight.

httpx's own pool looks at every connection for every request, so its cost grows with their number: at a
hundred connections it takes most of the time of a request. Here idle connections lie on a stack per origin
instead, and to give one out or take one back costs the same whatever their number.

Errors are httpx's own: `httpx.ConnectError`, `httpx.ReadTimeout`, `httpx.RemoteProtocolError` and so on.
"""

from __future__ import annotations

from typing import Any, Final

import httpx

from ._client import StackClient
from ._proxies import environment_mounts
from ._transport import Certificate, StackTransport, Verify

__all__ = ["StackTransport", "client"]

_TIMEOUT: Final = httpx.Timeout(None, connect=30.0)

_REFUSED: Final = {
    "proxy": "it speaks to the origin itself; for a proxy use httpx.AsyncClient(proxy=...)",
    "mounts": "it has one transport; for several use httpx.AsyncClient(mounts=...)",
    "transport": "it brings its own; for another use httpx.AsyncClient(transport=...)",
    "limits": "say max_connections=, max_idle= and keepalive_expiry= instead",
    "http2": "it speaks HTTP/1.1; for HTTP/2 use httpx.AsyncClient(http2=True)",
}


def client(
    *,
    verify: Verify = True,
    cert: Certificate | None = None,
    trust_env: bool = False,
    max_connections: int | None = None,
    max_idle: int = 100,
    keepalive_expiry: float = 5.0,
    retries: int = 0,
    timeout: float | httpx.Timeout | None = _TIMEOUT,
    **options: Any,
) -> httpx.AsyncClient:
    """An `httpx.AsyncClient` on a `StackTransport`: the client to open once per Python worker.

    It belongs to the Trio run that uses it, and cannot be pickled: make it in `open`.

    Args:
        verify, cert, trust_env, max_connections, max_idle, keepalive_expiry, retries: As for
            `StackTransport`. With `trust_env=True`, a request to which a proxy of the environment applies
            (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`) fails with an `httpx.ProxyError`. `.netrc` is
            not read: pass `auth=httpx.NetRCAuth()`.
        timeout: As httpx takes it, in seconds. By default an attempt to connect ends after 30 s, and nothing else
            does, so that the operator's `timeout` is the only deadline of a call. httpx's own default is 5 s for each
            step.
        options: Any other option of `httpx.AsyncClient`: `base_url`, `headers`, `auth`, ...

    Returns:
        A client, which the caller closes: `async with client() as http`, or `await http.aclose()`.

    Raises:
        ValueError: `proxy`, `mounts`, `transport`, `limits`, `http2` or `http1=False` is asked for; or a limit is bad.
        TypeError: httpx knows no such option.

    Example:
        >>> class Weather(AsyncFunction):
        ...     async def open(self):
        ...         self.http = client(base_url="http://127.0.0.1:8000")
        ...     async def invoke(self, origin):
        ...         return (await self.http.get(f"/weather/{origin}")).raise_for_status().json()
        ...     async def close(self):
        ...         await self.http.aclose()
    """
    for name, why in _REFUSED.items():
        if options.pop(name, None):
            raise ValueError(f"{name}= does not fit this client: {why}")
    if not options.pop("http1", True):
        raise ValueError("http1=False does not fit this client: it speaks HTTP/1.1 and nothing else")
    transport = StackTransport(
        verify=verify,
        cert=cert,
        trust_env=trust_env,
        max_connections=max_connections,
        max_idle=max_idle,
        keepalive_expiry=keepalive_expiry,
        retries=retries,
    )
    mounts = environment_mounts() if trust_env else None
    return StackClient(transport=transport, mounts=mounts, trust_env=trust_env, timeout=timeout, **options)
