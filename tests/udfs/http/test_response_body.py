"""ResponseBody: what it reads of a connection, and when it releases it."""

from __future__ import annotations

import math

import httpx
import pytest

from tests.udfs.http.serving import ok, serving
from udfs.http import StackTransport


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
