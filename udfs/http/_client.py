"""`client`, which makes an httpx client on a `StackTransport`; the transports of a client, and its proxies."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable, Mapping
from functools import partial
from http.cookiejar import Cookie, CookieJar, DefaultCookiePolicy
from typing import Any, Final, NamedTuple, TypeVar
from urllib.request import getproxies

import httpx

from ._decoding import ACCEPT_ENCODING
from ._fast_client import FastClient
from ._tls import Certificate, Verify, load_verify
from ._transport import BoundedTransport, StackTransport

T = TypeVar("T")

GivenCookies = dict[str, str] | list[tuple[str, str]] | CookieJar

_TIMEOUT: Final = httpx.Timeout(None, connect=30.0)

# Options of httpx that this client does not have, and what to do instead
_REFUSED: Final = {
    "limits": "use max_idle= and keepalive_expiry= instead",
    "http2": "it supports HTTP/1.1 only; for HTTP/2 use httpx.AsyncClient(http2=True)",
    "uds": "use transport=httpx.AsyncHTTPTransport(uds=...), or mounts= for some URLs, instead",
}


def client(
    *,
    verify: Verify = True,
    cert: Certificate | None = None,
    trust_env: bool = False,
    max_idle: int = 100,
    keepalive_expiry: float = 5.0,
    timeout: float | httpx.Timeout | None = _TIMEOUT,
    max_body_bytes: int | None = None,
    proxy: str | httpx.URL | httpx.Proxy | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
    mounts: Mapping[str, httpx.AsyncBaseTransport | None] | None = None,
    cookies: bool | GivenCookies | httpx.Cookies = False,
    **options: Any,
) -> httpx.AsyncClient:
    """Return an `httpx.AsyncClient` on a `StackTransport`: the client to open once per Python worker.

    A client belongs to the Trio run that uses it and cannot be pickled, so make it in `open`.

    **Cancellation** of a request closes its connection and no other.

    Args:
        verify: True for certifi's authorities; the path of a file, or a directory, of other authorities' certificates,
            such as those of a company; an `ssl.SSLContext`; or False for no verification.
        cert: A client certificate, as httpx takes it. None (the default): none.
        trust_env: Whether `SSL_CERT_FILE` and `SSL_CERT_DIR` replace certifi's authorities. With True, the proxies of
            the environment (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`) are also used, as by httpx. `.netrc`
            is not read: pass `auth=httpx.NetRCAuth()`.
        max_idle: Upper limit of idle connections over all origins, at least 0, 100 by default. 0: no connection is
            reused.
        keepalive_expiry: Seconds after which an idle connection is closed, at least 0, 5 by default. `math.inf`: never.
        timeout: Seconds for each step, an `httpx.Timeout`, or None for no limit. By default each attempt to connect
            has 30 s and the other steps have no limit, so the operator's `timeout` is the only deadline of a call.
            httpx's default is 5 s for each step.
        max_body_bytes: Upper limit of the decoded body of a response, at least 1. A larger one raises a
            `BodyTooLargeError` and closes its connection. Raw bytes (`aiter_raw`) are not limited. None: no limit.
        proxy: The proxy of all requests, and not those of the environment. None (the default): those of `trust_env`.
            Requests through a proxy use httpx's own transport, which is slower with many connections.
        transport: Sends the requests instead of a `StackTransport`, for example an `httpx.MockTransport` in a test. The
            options of `StackTransport` and the proxies of the environment do not apply to it.
        mounts: Transports for some URLs, by httpx's patterns: `{"https://example.org": httpx.MockTransport(...)}`. None
            (the default): none.
        cookies: False (the default): the cookies of responses are not stored, because all rows share the client, and
            one row's session would be sent with the requests of others. Send a fixed cookie as a `Cookie` header.
            True: they are stored and sent again, as by httpx. Anything else that httpx accepts, such as a mapping:
            the same, beginning with these cookies.
        options: Any other option of `httpx.AsyncClient`: `base_url`, `headers`, `auth` and so on.

    Returns:
        A client, which the caller closes with `async with client() as http` or `await http.aclose()`.

    Raises:
        ValueError: A limit is out of its range; no certificates can be loaded from `verify`; or the option is
            `limits`, `uds`, `http2` or `http1=False`, which this client does not support.
        TypeError: httpx has no such option.

    Example:
        >>> class Weather(AsyncFunction):
        ...     async def open(self):
        ...         self.http = client(base_url="http://127.0.0.1:8000")
        ...     async def invoke(self, origin):
        ...         return (await self.http.get(f"/weather/{origin}")).raise_for_status().json()
        ...     async def close(self):
        ...         await self.http.aclose()
    """
    check_options(options)
    if max_body_bytes is not None and not max_body_bytes >= 1:
        raise ValueError(f"max_body_bytes must be at least 1, got {max_body_bytes}")
    transport_options = TransportOptions(verify, cert, trust_env, max_idle, keepalive_expiry)
    made, mounted = transport_options.transports(httpx, StackTransport, transport, mounts, proxy)
    limit = math.inf if max_body_bytes is None else max_body_bytes
    http = FastClient(
        transport=BoundedTransport(made, limit),
        mounts={p: None if each is None else BoundedTransport(each, limit) for p, each in mounted.items()},
        trust_env=trust_env,
        timeout=timeout,
        cookies=jar_for(cookies),
        **options,
    )
    if "Accept-Encoding" not in httpx.Headers(options.get("headers")):
        http.headers["Accept-Encoding"] = ACCEPT_ENCODING  # what this package decodes
    return http


class TransportOptions(NamedTuple):
    """The options of a client that its transports take, of httpx or httpx2."""

    verify: Verify
    cert: Certificate | None
    trust_env: bool
    max_idle: int
    keepalive_expiry: float

    def transports(
        self, library: Any, stack_transport: Callable[..., T], transport: T | None, mounts: Any, proxy: Any
    ) -> tuple[T, dict[str, Any]]:
        """Return the transport of a client, and those for some URLs: the proxies, and then the given ones.

        Args:
            library: httpx or httpx2.
            stack_transport: Makes a `StackTransport` for it.
            transport, mounts, proxy: As for `client`.
        """
        of_environment = environment_proxies() if self.trust_env and transport is None else {}
        proxies = of_environment if proxy is None else {"all://": proxy}
        verify = load_verify(self.verify)
        limits = library.Limits(max_keepalive_connections=self.max_idle, keepalive_expiry=self.keepalive_expiry)
        proxied = partial(
            library.AsyncHTTPTransport, verify=verify, cert=self.cert, trust_env=self.trust_env, limits=limits
        )
        made = stack_transport(**self._replace(verify=verify)._asdict()) if transport is None else transport
        return made, {**proxy_mounts(proxies, proxied), **(mounts or {})}


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
    `NO_PROXY` lists hosts that are connected to directly. A name includes its subdomains. For a network such as
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


class _StoresNothing(DefaultCookiePolicy):
    """Refuses the cookies of every response. Those that the user sets are sent."""

    def set_ok(self, cookie: Cookie, request: Any) -> bool:  # noqa: ARG002 - the parameters of the base class
        return False


def jar_for(cookies: Any) -> Any:
    """Return the option `cookies` of httpx's or httpx2's client; None for a new jar of theirs, which stores cookies."""
    if cookies is True:
        return None
    return CookieJar(_StoresNothing()) if cookies is None or cookies is False else cookies


def check_options(options: dict[str, Any]) -> None:
    """Remove the options of httpx that this client refuses.

    Raises:
        ValueError: One of them is used.
    """
    for name, advice in _REFUSED.items():
        if options.pop(name, None):
            raise ValueError(f"{name}= does not fit this client: {advice}")
    if not options.pop("http1", True):
        raise ValueError("http1=False does not fit this client: it supports HTTP/1.1 only")
