"""Proxies: mounts for the proxy that is given or that the environment names. They use httpx's own transport."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.request import getproxies

T = TypeVar("T")


def proxy_mounts(proxies: Mapping[str, Any], make: Callable[..., T]) -> dict[str, T | None]:
    """Return a transport for each pattern of URLs to which a proxy applies.

    Args:
        proxies: A proxy for each pattern; None where the proxy of a more general pattern does not apply.
        make: Makes a transport for its argument `proxy`. Patterns with equal proxies share one.
    """
    made = {proxy: make(proxy=proxy) for proxy in dict.fromkeys(proxies.values()) if proxy is not None}
    return {pattern: made.get(proxy) for pattern, proxy in proxies.items()}


def environment_proxies() -> dict[str, str | None]:
    """Return the proxy of the environment for each pattern of URLs, by httpx's rules.

    `HTTP_PROXY`, `HTTPS_PROXY` and `ALL_PROXY` name proxies; on macOS and Windows, the system's settings may, too.
    `NO_PROXY` lists hosts that are connected to directly. A name includes its subdomains. Of a network such as
    10.0.0.0/8, only the first address counts.
    """
    found = getproxies()
    excluded = [host for part in found.get("no", "").split(",") if (host := part.strip())]
    if "*" in excluded:
        return {}
    proxies: dict[str, str | None] = {
        f"{scheme}://": proxy if "://" in proxy else f"http://{proxy}"
        for scheme in ("http", "https", "all")
        if (proxy := found.get(scheme))
    }
    return proxies | {_pattern(host): None for host in excluded}


def _pattern(host: str) -> str:
    if "://" in host:
        return host
    if host.lower() == "localhost":
        return f"all://{host}"
    try:
        address = ipaddress.ip_address(host.partition("/")[0])
    except ValueError:
        return f"all://*{host}"
    return f"all://[{address}]" if isinstance(address, ipaddress.IPv6Address) else f"all://{address}"
