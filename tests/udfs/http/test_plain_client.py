"""PlainClient: requests that are sent and answered as by httpx's client; and when it leaves them to its parent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import httpx
import pytest

from tests.udfs.http.comparing import same
from udfs.http import StackTransport
from udfs.http._plain_client import PlainClient

USES: dict[str, Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]] = {
    "json": lambda http: http.post("/json", json={"a": [1, "é"]}),
    "bytes": lambda http: http.put("/json?a=b", content=b"weather"),
    "headers": lambda http: http.get("/json", headers={"A": "b", "accept": "*"}),
    "a redirect with a body": lambda http: http.post("/307", json={"a": 1}, follow_redirects=True),
    "a redirect without its body": lambda http: http.post("/303", json={"a": 1}, follow_redirects=True),
    "a redirect that is not followed": lambda http: http.post("/308-gzip", json={"a": 1}),
    "a loop": lambda http: http.get("/loop", follow_redirects=True),
    "a bad location": lambda http: http.get("/bad-location"),
    "a cookie and a redirect": lambda http: http.get("/cookie-and-on", follow_redirects=True),
    "no number": lambda http: http.post("/json", json=float("nan")),
    "no JSON": lambda http: http.post("/json", json=object()),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
async def test_a_plain_request_is_sent_and_answered_the_same(
    use: Callable[[httpx.AsyncClient], Awaitable[httpx.Response]],
) -> None:
    await same(use)


async def test_a_function_around_the_transport_or_around_send_sees_every_request() -> None:
    seen: list[str] = []
    transport = StackTransport()

    async def respond(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.path)
        return httpx.Response(200)

    async with PlainClient(transport=transport, trust_env=False) as http:
        transport.handle_async_request = respond  # type: ignore[method-assign]
        await http.get("http://127.0.0.1:1/a")
        del transport.handle_async_request
        http.send = lambda request, **_: respond(request)  # type: ignore[method-assign]
        await http.get("http://127.0.0.1:1/b")
    assert seen == ["/a", "/b"]
