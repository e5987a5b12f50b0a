"""The environment's proxies, which this client refuses to pass by in silence."""

from __future__ import annotations

from typing import NoReturn

import httpx
from httpx._utils import get_environment_proxies  # noqa: PLC2701 - httpx's rules, with NO_PROXY; its version is bound

__all__ = ["environment_mounts"]


class _Refusal(httpx.AsyncBaseTransport):
    """Stands where httpx would have a transport to a proxy."""

    async def handle_async_request(self, request: httpx.Request) -> NoReturn:
        raise httpx.ProxyError(
            "a proxy of the environment applies to this URL, and this client sends to the origin itself: use "
            "httpx.AsyncClient(), name the host in NO_PROXY, or leave trust_env at False",
            request=request,
        )


def environment_mounts() -> dict[str, httpx.AsyncBaseTransport | None]:
    """Mounts for httpx's client: a request to which a proxy of the environment applies is an `httpx.ProxyError`."""
    proxies = get_environment_proxies()
    return {pattern: None if proxy is None else _Refusal() for pattern, proxy in proxies.items()}
