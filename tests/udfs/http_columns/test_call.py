"""HttpCall: which outcomes are retried, redirects, the cache and the rate."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.udfs.http.serving import refusing
from tests.udfs.http_columns.working import get, request, responding
from trio_asyncio_io import ordered_wait
from trio_asyncio_io.gates import RateLimit
from udfs.http import StackTransport
from udfs.http._response import BoundedResponse
from udfs.http_columns._options import HttpOptions
from udfs.http_columns._outcome import HttpResponse
from udfs.http_columns._requests import HttpRequest

# Retries


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_a_transient_status_is_retried(status: int) -> None:
    async with responding(status, (status, {"retry-after": "0"}), (200, {}, b"at last")) as server:
        [result] = await get(server.url)
    assert (result["status"], result["body"], len(server.requests)) == (200, "at last", 3)


async def test_a_broken_or_refused_connection_is_retried() -> None:
    async with responding(None, (200, {}, b"again")) as server:
        assert (await get(server.url))[0]["body"] == "again"
    with refusing() as port:
        [result] = await get(f"http://127.0.0.1:{port}/", retries=2)
    assert (result["status"], result["error"]["type"], result["error"]["attempts"]) == (None, "ConnectError", 3)


async def test_a_retry_after_beyond_the_deadline_ends_the_attempts_immediately() -> None:
    """Waiting would end in a timeout. This test would take a minute."""
    async with responding((429, {"retry-after": "60"}, b"slow down")) as server:
        [result] = await get(server.url, timeout=60.0)
    assert (result["status"], result["body"], result["error"]) == (429, "slow down", None)
    assert len(server.requests) == 1


# Methods that are not idempotent


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "OPTIONS"])
async def test_an_idempotent_method_is_retried(method: str) -> None:
    async with responding(500, None, 200) as server:
        assert (await request(method.lower(), server.url))["status"] == 200
    assert [each.method for each in server.requests] == [method] * 3


@pytest.mark.parametrize("status", [500, 502, 504, 503])
async def test_a_post_that_may_have_been_processed_is_not_retried(status: int) -> None:
    async with responding(status, 200) as server:
        assert (await request("POST", server.url, body="once"))["status"] == status
    assert len(server.requests) == 1


async def test_a_post_whose_connection_breaks_is_not_retried() -> None:
    async with responding(None, 200) as server:
        result = await request("POST", server.url, body="once")
    assert (result["error"]["type"], result["error"]["attempts"]) == ("RemoteProtocolError", 1)
    assert len(server.requests) == 1


@pytest.mark.parametrize("refusal", [429, (503, {"retry-after": "0"})], ids=["429", "503 with a delay"])
async def test_a_refused_post_is_retried(refusal: Any) -> None:
    async with responding(refusal, 200) as server:
        assert (await request("POST", server.url, body="twice"))["status"] == 200
    assert [each.body for each in server.requests] == [b"twice"] * 2


async def test_a_post_whose_connection_is_refused_is_retried() -> None:
    with refusing() as port:
        result = await request("POST", f"http://127.0.0.1:{port}")
    assert result["error"]["attempts"] == 4


async def test_a_post_with_an_idempotency_key_is_retried() -> None:
    async with responding(500, None, 200) as server:
        result = await request("POST", server.url, {"Idempotency-Key": "7"})
    assert result["status"] == 200
    assert [each.headers["idempotency-key"] for each in server.requests] == ["7"] * 3


async def test_a_redirected_post_is_not_retried() -> None:
    """The service has processed it. Only the page behind the redirect is missing."""
    async with responding((303, {"location": "/receipt"}), (503, {"retry-after": "0"})) as server:
        result = await request("POST", f"{server.url}/pay", follow_redirects=True)
    assert result["status"] == 503
    assert [(each.method, each.path) for each in server.requests] == [("POST", "/pay"), ("GET", "/receipt")]


async def test_a_post_whose_redirect_cannot_be_connected_is_not_retried() -> None:
    with refusing() as port:
        async with responding((307, {"location": f"http://127.0.0.1:{port}/"})) as server:
            result = await request("POST", server.url, body="once", follow_redirects=True)
    assert (result["error"]["type"], result["error"]["attempts"]) == ("ConnectError", 1)
    assert len(server.requests) == 1


# Redirects and cookies


async def test_a_redirect_is_a_result_unless_redirects_are_followed() -> None:
    async with responding((301, {"location": "/new"}), (301, {"location": "/new"}), (200, {}, b"new")) as server:
        [result] = await get(f"{server.url}/old")
        assert (result["status"], result["headers"]["location"]) == (301, "/new")
        [result] = await get(f"{server.url}/old", follow_redirects=True)
    assert (result["status"], result["body"]) == (200, "new")
    assert server.paths == ["/old", "/old", "/new"]


UNUSABLE_LOCATIONS = [
    "http://h:secret/",
    "http://xn--/?secret",
    "ftp://h/?token=secret",
    "ftp://user:secret@host/",
    "secret://h",
    "//user:secret@h:port/",
    "http://h/" + "secret" * 11_000,
]


@pytest.mark.parametrize("location", [*UNUSABLE_LOCATIONS, "http://[", ""], ids=lambda location: location[:20])
async def test_a_redirect_is_a_result_whatever_its_location(location: str) -> None:
    async with responding((302, {"location": location}, b"moved")) as server:
        [result] = await get(server.url)
    assert (result["status"], result["body"], result["error"]) == (302, "moved", None)
    assert result["headers"]["location"] == location
    assert len(server.requests) == 1


@pytest.mark.parametrize("location", UNUSABLE_LOCATIONS, ids=lambda location: location[:20])
async def test_an_unusable_redirect_is_an_error_without_its_location(location: str) -> None:
    async with responding((302, {"location": location})) as server:
        [result] = await get(server.url, follow_redirects=True)
    assert result["error"]["type"] in {"InvalidURL", "UnsupportedProtocol"}
    assert result["error"]["attempts"] == len(server.requests) == 1
    assert "secret" not in result["error"]["message"]


async def test_endless_redirects_are_an_error() -> None:
    async with responding((302, {"location": "/round"})) as server:
        [result] = await get(server.url, follow_redirects=True)
    assert (result["error"]["type"], result["error"]["attempts"]) == ("TooManyRedirects", 1)
    assert len(server.requests) == 21


async def test_rows_do_not_share_cookies() -> None:
    async with responding((200, {"set-cookie": "session=ann; path=/"})) as server:
        for _ in range(2):
            await get(server.url)
    assert ["cookie" in each.headers for each in server.requests] == [False, False]


# Cache and rate


async def test_a_cached_response_is_requested_once() -> None:
    async with responding((200, {}, b"once")) as server:
        for _ in range(2):
            results = await get(*[f"{server.url}/a"] * 3, f"{server.url}/b", cache=math.inf)
            assert [result["body"] for result in results] == ["once"] * 4
        assert Counter(server.paths) == {"/a": 1, "/b": 1}
        await get(f"{server.url}/a")
        assert Counter(server.paths) == {"/a": 2, "/b": 1}


async def test_the_cache_answers_only_plain_gets_with_equal_headers() -> None:
    async with responding((200, {}, b"x")) as server:
        for own in ({"accept": "a"}, {"accept": "b"}, {"accept": "a"}):
            await request("GET", f"{server.url}/get", own, cache=60.0)
        for _ in range(2):
            await request("POST", f"{server.url}/post", cache=60.0)
            await request("GET", f"{server.url}/body", body="query", cache=60.0)
    assert Counter(server.paths) == {"/get": 2, "/post": 2, "/body": 2}


@pytest.mark.parametrize("status", [202, 404])
async def test_a_response_that_is_retried_is_not_cached(status: int) -> None:
    async with responding(status, status, 200) as server:
        for _ in range(2):
            assert (await get(server.url, cache=60.0, retry_statuses=(status,)))[0]["status"] == 200
        assert len(server.requests) == 3


async def test_attempts_start_at_the_rate_and_cached_responses_are_free(autojump_clock: MockClock) -> None:
    call = HttpOptions(rate=2.0, cache=60.0, timeout=math.inf)._call()
    started = []

    async def exchange(request: HttpRequest) -> HttpResponse:
        started.append((request.url, trio.current_time()))
        return HttpResponse(200, {}, "")

    call._exchange = exchange  # type: ignore[method-assign]
    await call.open()
    for path in "abba":
        await call.invoke(HttpRequest("GET", f"http://host/{path}"))
    await call.invoke(HttpRequest("POST", "http://host/c"))
    await call.close()
    assert started == [("http://host/a", 0.0), ("http://host/b", 0.5), ("http://host/c", 1.0)]


async def test_a_wait_for_a_gate_leaves_time_for_the_retries(autojump_clock: MockClock) -> None:
    options = HttpOptions(timeout=2.0)
    call = options._call()
    started = []

    async def exchange(request: HttpRequest) -> HttpResponse:
        started.append(trio.current_time())
        return HttpResponse(503 if len(started) < 4 else 200, {}, request.url)

    call._exchange = exchange  # type: ignore[method-assign]
    row = HttpRequest("GET", "http://host/")
    retry = options._retry()
    async with ordered_wait([row], call, timeout=2.0, retry=retry, gate=RateLimit(0.1, burst=1)) as results:
        assert [response.status async for response in results] == [200]
    assert started == [0.0, 10.0, 20.0, 30.0]


async def test_a_request_has_no_timeouts_for_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row's timeout is the only one. httpx's default would end a slow response after five seconds."""
    timeouts = []

    async def sent(_: StackTransport, request: httpx.Request) -> BoundedResponse:
        timeouts.append(request.extensions["timeout"])
        return BoundedResponse(200, content=b"")

    monkeypatch.setattr(StackTransport, "handle_async_request", sent)
    await get("http://host/", max_body_bytes=998)  # equal columns share a client
    assert [set(each.values()) for each in timeouts] == [{None}]
