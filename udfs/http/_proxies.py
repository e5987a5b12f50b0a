"""The proxies of the environment, which this client refuses instead of bypassing them silently."""

from __future__ import annotations

from urllib.request import getproxies, proxy_bypass

import httpx

__all__ = ["ProxyRefusal"]


class ProxyRefusal(httpx.AsyncBaseTransport):
    """Refuses each request to which a proxy of the environment applies, and sends the others.

    Args:
        transport: Sends them.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport
        self._proxies = getproxies()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request.

        Raises:
            httpx.ProxyError: A proxy applies to its URL.
        """
        url = request.url
        if (self._proxies.get(url.scheme) or self._proxies.get("all")) and not proxy_bypass(url.host):
            raise httpx.ProxyError(
                "a proxy of the environment applies to this URL, and this client connects to the origin itself: use "
                "httpx.AsyncClient(), name the host in NO_PROXY, or leave trust_env at False",
                request=request,
            )
        return await self._transport.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the transport."""
        await self._transport.aclose()
