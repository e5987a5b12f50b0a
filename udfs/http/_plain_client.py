"""PlainClient: a StackClient that sends plain requests without making httpx's objects first."""

from __future__ import annotations

from collections.abc import Mapping
from http.cookiejar import CookieJar
from time import perf_counter
from typing import Any, cast

import httpx

from ._complete_response import MAKES_RESPONSES, CompleteResponse
from ._exchange import Exchanger
from ._plain_request import PlainRequest, PlainRequests
from ._redirects import redirect_request
from ._shortcuts import is_empty
from ._stack_client import StackClient, log_response, read
from ._transport import StackTransport

__all__ = ["PlainClient"]


class PlainClient(StackClient):
    """Behaves as `StackClient`. It sends a request in bytes, and makes no object of httpx but the response, if it can.

    It can if nothing changes or watches the request: no authentication, cookies, parameters, hooks and mounts, and no
    other transport. All other requests are the parent's.

    Args:
        transport, mounts, options: As for `StackClient`.
    """

    def __init__(
        self,
        *,
        transport: httpx.AsyncBaseTransport,
        mounts: Mapping[str, httpx.AsyncBaseTransport | None] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(transport=transport, mounts=mounts, **options)
        # Not a subclass: it may have a method of its own
        is_plain = MAKES_RESPONSES and type(transport) is StackTransport and not mounts
        self._plain_transport = cast(StackTransport, transport) if is_plain else None
        self._plain_requests = PlainRequests(self)

    async def request(
        self,
        method: str,
        url: httpx.URL | str,
        *,
        content: Any = None,
        data: Any = None,
        files: Any = None,
        json: Any = None,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = httpx.USE_CLIENT_DEFAULT,
        follow_redirects: Any = httpx.USE_CLIENT_DEFAULT,
        timeout: Any = httpx.USE_CLIENT_DEFAULT,  # noqa: ASYNC109 - httpx's
        extensions: Any = None,
    ) -> httpx.Response:
        """Build and send a request; see `httpx.AsyncClient.request`."""
        is_plain = data is files is params is cookies is extensions is None and auth is httpx.USE_CLIENT_DEFAULT
        if is_plain and (exchanger := self._exchanger_of_plain_requests()) is not None:
            seconds = (self.timeout if timeout is httpx.USE_CLIENT_DEFAULT else httpx.Timeout(timeout)).as_dict()
            plain = self._plain_requests.build(method, url, content, json, headers, timeouts=seconds)
            if plain is not None:
                return await self._exchange(exchanger, plain, follow_redirects)
        return await super().request(
            method,
            url,
            content=content,
            data=data,
            files=files,
            json=json,
            params=params,
            headers=headers,
            cookies=cookies,
            auth=auth,
            follow_redirects=follow_redirects,
            timeout=timeout,
            extensions=extensions,
        )

    def _exchanger_of_plain_requests(self) -> Exchanger | None:
        """Return what sends plain requests; None if the client now changes or watches its requests."""
        transport, hooks, jar = self._plain_transport, self.event_hooks, self.cookies.jar
        if (
            transport is None
            or transport.is_watched
            or "send" in vars(self)
            or hooks["request"]
            or hooks["response"]
            or self.auth is not None
            or self.params
            or type(jar) is not CookieJar
            or not is_empty(jar)
            or self.max_redirects < 0
            or self.is_closed
        ):
            return None
        return transport.exchanger

    async def _exchange(self, exchanger: Exchanger, plain: PlainRequest, follow_redirects: Any) -> httpx.Response:
        """Send a plain request, and make no object of httpx but its response."""
        self._was_used = True
        sent_at = perf_counter()
        try:
            whole = await exchanger.exchange(plain.origin, plain.writer, self._max_body_bytes)
        except httpx.RequestError as error:
            error.request = plain.as_httpx()
            raise
        response = CompleteResponse(whole, plain.as_httpx, sent_at, self._charset)
        if response.has_cookies:
            self.cookies.extract_cookies(response)
        log_response(response)
        if not response.has_redirect_location:
            return response
        request = redirect_request(response.request, response, self.cookies)
        if not (self.follow_redirects if follow_redirects is httpx.USE_CLIENT_DEFAULT else follow_redirects):
            response.next_request = request
            return response
        return await read(await self._send_following(request, [response], follows=True))
