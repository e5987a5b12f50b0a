"""ResponseBody: what it reads of a connection, and when it releases it."""

from __future__ import annotations

import math

import httpx
import pytest

from tests.udfs.http.serving import ok, serving
from udfs.http import StackTransport, client
from udfs.http._response import ResponseBody


async def test_a_plain_body_that_has_arrived_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = []
    read = ResponseBody.read

    async def counted(body: ResponseBody) -> bytes:
        parts.append(await read(body))
        return parts[-1]

    monkeypatch.setattr(ResponseBody, "read", counted)
    async with serving(ok) as server, client(base_url=server.url) as http:
        assert (await http.get("/weather")).content == b"/weather"
    assert parts == [b"/weather"]


async def test_a_body_that_is_closed_cannot_be_read_and_may_be_closed_again() -> None:
    async with serving(ok) as server, StackTransport(keepalive_expiry=math.inf) as transport:
        for _ in range(2):
            response = await transport.handle_async_request(httpx.Request("GET", f"{server.url}/a"))
            body = response.stream
            assert await body.read() == b"/a"
            body.close()
            body.close()
            with pytest.raises(httpx.StreamClosed):
                await body.read()
        assert [peer.paths for peer in server.peers] == [["/a", "/a"]]
