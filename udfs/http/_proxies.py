"""The proxies of the environment, which this client refuses instead of bypassing them silently."""

from __future__ import annotations

from typing import NoReturn

import httpx
from httpx._utils import get_environment_proxies  # noqa: PLC2701 - httpx's rules for NO_PROXY; its version is bounded

__all__ = ["environment_mounts"]


class _Refusal(httpx.AsyncBaseTransport):
    """Refuses each request that httpx would send through a proxy."""

    async def handle_async_request(self, request: httpx.Request) -> NoReturn:
        raise httpx.ProxyError(
            "a proxy of the environment applies to this URL, and this client connects to the origin itself: use "
            "httpx.AsyncClient(), name the host in NO_PROXY, or leave trust_env at False",
            request=request,
        )


def environment_mounts() -> dict[str, httpx.AsyncBaseTransport | None]:
    """Return mounts for httpx's client that refuse each request to which a proxy of the environment applies."""
    proxies = get_environment_proxies()
    return {pattern: None if proxy is None else _Refusal() for pattern, proxy in proxies.items()}
