"""The request that follows a redirect, as httpx's client builds it."""

from __future__ import annotations

from typing import Final

import httpx

__all__ = ["redirect_request"]

_PORTS: Final = {"http": 80, "https": 443}
_MOVED, _FOUND, _SEE_OTHER = 301, 302, 303


def redirect_request(request: httpx.Request, response: httpx.Response, cookies: httpx.Cookies) -> httpx.Request:
    """Return the request to the Location of a redirect.

    Args:
        request: The request that was redirected.
        response: Its response, which has a Location.
        cookies: Of the client. They replace those of the request.

    Raises:
        httpx.RemoteProtocolError: The Location is not a URL.
    """
    try:
        url = _target(request, response)
    except (httpx.InvalidURL, ValueError) as error:  # ValueError: a host that is not valid IDNA
        raise httpx.RemoteProtocolError("Invalid URL in location header.", request=request) from error
    method = _method(request.method, response.status_code)
    loses_body = method != request.method and method == "GET"
    return httpx.Request(
        method,
        url,
        headers=_headers(request, url, loses_body=loses_body),
        cookies=httpx.Cookies(cookies),
        stream=None if loses_body else request.stream,
        extensions=_extensions(request, url),
    )


def _target(request: httpx.Request, response: httpx.Response) -> httpx.URL:
    try:
        url = httpx.URL(response.headers["Location"])
    except httpx.InvalidURL as error:
        raise httpx.RemoteProtocolError(f"Invalid URL in location header: {error}.", request=request) from None
    if url.scheme and not url.host:
        url = url.copy_with(host=request.url.host)
    if url.is_relative_url:
        url = request.url.join(url)
    if request.url.fragment and not url.fragment:  # RFC 9110, section 10.2.2
        url = url.copy_with(fragment=request.url.fragment)
    _ = url.host  # raises a ValueError if it cannot be decoded
    return url


def _method(method: str, status: int) -> str:
    """Return the method of the next request. It changes as in browsers."""
    becomes_get = (status in (_FOUND, _SEE_OTHER) and method != "HEAD") or (status == _MOVED and method == "POST")
    return "GET" if becomes_get else method


def _headers(request: httpx.Request, url: httpx.URL, *, loses_body: bool) -> httpx.Headers:
    headers = httpx.Headers(request.headers)
    if _origin(url) != _origin(request.url):
        if not _becomes_secure(request.url, url):
            headers.pop("Authorization", None)
        headers["Host"] = url.netloc.decode("ascii")
    if loses_body:
        headers.pop("Content-Length", None)
        headers.pop("Transfer-Encoding", None)
    headers.pop("Cookie", None)
    return headers


def _extensions(request: httpx.Request, url: httpx.URL) -> dict[str, object]:
    """Return the extensions, without the name for TLS if the host is another one."""
    has_same_host = url.raw_host == request.url.raw_host
    return {name: value for name, value in request.extensions.items() if has_same_host or name != "sni_hostname"}


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, _PORTS.get(url.scheme) if url.port is None else url.port


def _becomes_secure(url: httpx.URL, target: httpx.URL) -> bool:
    return _origin(url) == ("http", url.host, 80) and _origin(target) == ("https", url.host, 443)
