"""client behaves as `httpx.AsyncClient`: both send the same bytes, and the responses are the same."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Generator
from typing import Any, ClassVar

import httpx
import pytest

from tests.udfs.http.comparing import PATHS, Recorder, outcome, same, view, view_of_request
from tests.udfs.http.serving import listening
from udfs.http import StackTransport, client
from udfs.http._fast_client import FastClient
from udfs.http._transport import BoundedTransport


@pytest.fixture(autouse=True)
def _constant_nonces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client's nonces for digests are random."""
    monkeypatch.setattr(httpx.DigestAuth, "_get_client_nonce", lambda *_: b"nonce")


def guessed(body: bytes) -> str:
    return "cp1252" if body else "ascii"


def without_addresses(value: object) -> str:
    """An ID that is the same in each run."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


# Requests


@pytest.mark.parametrize("path", PATHS)
async def test_every_response_is_the_same(path: str) -> None:
    await same(lambda http: http.get(path))
    await same(lambda http: http.get(path, follow_redirects=True), max_redirects=3)


@pytest.mark.parametrize(
    "options",
    [
        {"params": {"a": "b c", "d": ["1", "2"]}},
        {"params": {}},
        {"headers": {"Accept": "text/plain", "X-Name": "1"}},
        {"headers": [("X", "1"), ("X", "2")]},
        {"headers": {"Host": "example.org"}},
        {"headers": {"Connection": "close"}},
        {"headers": {"Expect": "100-continue"}},
        {"cookies": {"a": "b"}},
        {"auth": ("user", "secret")},
        {"auth": httpx.DigestAuth("user", "secret")},
        {"auth": lambda request: request},
        {"auth": None},
        {"timeout": 3.0},
        {"timeout": None},
        {"timeout": httpx.Timeout(1.0, read=4.0)},
        {"extensions": {"mine": 1}},
        {"extensions": {"timeout": {"read": 4.0}}},
        {"extensions": {"target": b"/json?other"}},
        {"follow_redirects": True},
        {"method": "POST", "content": b"weather"},
        {"method": "PATCH", "json": {"a": [1, None, "ä"]}},
        {"method": "HEAD", "url": "/gzip"},
    ],
    ids=without_addresses,
)
@pytest.mark.filterwarnings("ignore:Setting per-request cookies:DeprecationWarning")
async def test_every_option_of_a_request_is_the_same(options: dict[str, Any]) -> None:
    await same(lambda http: http.request(**{"method": "GET", "url": "/json", **options}))


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"headers": {"X-Client": "1", "Accept": "text/plain"}}, "/json"),
        ({"params": {"a": "b"}}, "/307"),
        ({"cookies": {"a": "b"}}, "/cookie"),
        ({"auth": ("user", "secret")}, "/307"),
        ({"auth": ("user", "secret")}, "/digest"),
        ({"auth": httpx.DigestAuth("user", "secret")}, "/digest"),
        ({"timeout": None}, "/json"),
        ({"default_encoding": "latin-1"}, "/json"),
        ({"default_encoding": "latin-1"}, "/text"),
        ({"default_encoding": guessed}, "/json"),
        ({"follow_redirects": True}, "/307"),
    ],
    ids=without_addresses,
)
async def test_every_option_of_a_client_is_the_same(options: dict[str, Any], path: str) -> None:
    await same(lambda http: http.get(path), **options)


async def test_a_request_that_was_built_before_is_the_same() -> None:
    await same(lambda http: http.send(http.build_request("GET", "/json")))
    await same(lambda http: http.send(httpx.Request("GET", http.base_url.join("/json"))))


# Changes of the client between two requests


def change_headers(http: httpx.AsyncClient) -> None:
    http.headers["X-Late"] = "1"
    http.headers["Accept"] = "text/plain"
    del http.headers["User-Agent"]


def replace_headers(http: httpx.AsyncClient) -> None:
    http.headers = {"X-Late": "1", "Host": "example.org"}  # type: ignore[assignment]


def change_host(http: httpx.AsyncClient) -> None:
    http.base_url = http.base_url.copy_with(host="localhost")


def set_authentication(http: httpx.AsyncClient) -> None:
    http.auth = ("user", "secret")  # type: ignore[assignment]


class TwoRequests(httpx.Auth):
    """A flow of two requests and two responses."""

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        request.headers["X-Number"] = "1"
        yield request
        request.headers["X-Number"] = "2"
        yield request


def set_authentication_of_a_subclass(http: httpx.AsyncClient) -> None:
    http.auth = TwoRequests()


def remove_authentication(http: httpx.AsyncClient) -> None:
    http.auth = httpx.Auth()


def add_hooks(http: httpx.AsyncClient) -> None:
    async def on_request(request: httpx.Request) -> None:
        request.headers["X-Hook"] = "1"

    async def on_response(response: httpx.Response) -> None:
        response.headers["X-Seen"] = "1"

    http.event_hooks["request"].append(on_request)
    http.event_hooks["response"].append(on_response)


def follow_redirects(http: httpx.AsyncClient) -> None:
    http.follow_redirects = True


def allow_no_redirect(http: httpx.AsyncClient) -> None:
    http.max_redirects = -1


def set_cookie(http: httpx.AsyncClient) -> None:
    http.cookies.set("late", "1")


def set_parameters(http: httpx.AsyncClient) -> None:
    http.params = {"late": "1"}  # type: ignore[assignment]


def set_timeout(http: httpx.AsyncClient) -> None:
    http.timeout = 3.0  # type: ignore[assignment]


@pytest.mark.parametrize(
    "change",
    [
        change_headers,
        replace_headers,
        change_host,
        set_authentication,
        set_authentication_of_a_subclass,
        remove_authentication,
        add_hooks,
        follow_redirects,
        allow_no_redirect,
        set_cookie,
        set_parameters,
        set_timeout,
    ],
)
async def test_a_change_of_the_client_applies_to_the_next_request(change: Callable[[httpx.AsyncClient], None]) -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        first = await outcome(http, lambda http: http.get("/301"))
        change(http)
        return first, *[await outcome(http, lambda http: http.get("/301")) for _ in range(2)]

    first, second, third = await same(use)
    assert third == second
    assert (second == first) is (change is remove_authentication)


# Responses


async def test_a_change_of_a_responses_headers_does_not_reach_the_next_one() -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        first = await http.get("/twice")
        first.headers["X"] = "1"
        del first.headers["Name"]
        first.request.headers["Y"] = "1"
        second = await http.get("/twice")
        return view(first), view(second), second.headers.encoding, second.headers.get_list("NAME"), repr(second.headers)

    await same(use)


@pytest.mark.parametrize("path", ["/json", "/gzip", "/chunked", "/text", "/until-the-end", "/empty"])
async def test_a_stream_is_the_same(path: str) -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        outcomes = []
        for how in ("aiter_raw", "aiter_bytes", "aiter_text", "aiter_lines"):
            async with http.stream("GET", path) as response:
                received: list[Any] = [part async for part in getattr(response, how)()]
                again = await outcome(http, lambda _, response=response: response.aread())
                state = response.is_closed, response.is_stream_consumed, response.num_bytes_downloaded, again
            outcomes.append(((b"" if how in {"aiter_raw", "aiter_bytes"} else "").join(received), state))
        return outcomes

    await same(use)


async def test_a_closed_response_refuses_to_be_read_the_same() -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        async with http.stream("GET", "/json") as response:
            await response.aclose()
            await response.aclose()
        return await response.aread()

    assert (await same(use))[0] is httpx.StreamClosed


async def test_a_damaged_body_leaves_nothing_to_the_garbage_collector() -> None:
    async with listening(Recorder().serve) as port, client() as http:
        with pytest.raises(httpx.DecodingError) as caught:
            await http.get(f"http://127.0.0.1:{port}/not-gzip")
        assert caught.value.request.url.path == "/not-gzip"


# Hooks, subclasses and the log


async def test_hooks_see_the_same() -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        seen: list[Any] = []

        async def on_request(request: httpx.Request) -> None:
            request.headers["X-Hook"] = "1"
            seen.append(view_of_request(request))

        async def on_response(response: httpx.Response) -> None:
            seen.append((response.status_code, response.is_closed, hasattr(response, "_content")))
            if response.url.path == "/json":
                await response.aread()
            response.headers["X-Seen"] = "1"

        http.event_hooks = {"request": [on_request], "response": [on_response]}
        response = await http.get("/301", follow_redirects=True)
        return seen, view(response)

    seen, _ = await same(use)
    assert len(seen) == 4


# httpx leaves generators of its own to the garbage collector here, and Trio warns of that
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_coding_that_a_hook_declares_is_decoded_the_same() -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        async def on_response(response: httpx.Response) -> None:
            response.headers["Content-Encoding"] = "gzip"

        http.event_hooks = {"response": [on_response]}
        return await http.get("/json")

    assert (await same(use))[0] is httpx.DecodingError


class Counting(FastClient):
    steps: ClassVar[list[str]] = []

    def build_request(self, *arguments: Any, **options: Any) -> httpx.Request:
        self.steps.append("build")
        return super().build_request(*arguments, **options)

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        self.steps.append("send")
        return await super().send(request, **options)


async def test_methods_that_a_subclass_overrides_are_called() -> None:
    transport = BoundedTransport(StackTransport(), math.inf)
    async with (
        listening(Recorder().serve) as port,
        Counting(transport=transport, mounts={}, trust_env=False) as http,
    ):
        for _ in range(2):
            assert (await http.get(f"http://127.0.0.1:{port}/json")).json() == {"temp": 12.5}
        assert http.steps == ["build", "send"] * 2


async def test_the_log_is_the_same(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "httpx")
    await same(lambda http: http.get("/301", follow_redirects=True))
    messages = [record.getMessage() for record in caplog.records if record.name == "httpx"]
    assert len(messages) == 6
    assert messages[:3] == messages[3:]


# The state of a client


async def test_a_closed_client_refuses_the_same() -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        await http.aclose()
        return await http.get("/json")

    assert (await same(use))[0] is RuntimeError


async def test_an_entered_client_cannot_be_entered_again() -> None:
    async def use(http: httpx.AsyncClient) -> Any:
        await http.get("/json")
        async with http:
            pass

    assert (await same(use))[0] is RuntimeError


@pytest.mark.parametrize("make", [httpx.AsyncClient, client])
async def test_a_used_client_cannot_be_entered(make: Callable[..., httpx.AsyncClient]) -> None:
    async with listening(Recorder().serve) as port:
        http = make(trust_env=False)
        await http.get(f"http://127.0.0.1:{port}/json")
        with pytest.raises(RuntimeError, match="more than once"):
            await http.__aenter__()
        await http.aclose()


async def test_an_unknown_option_is_refused() -> None:
    async with client() as http:
        with pytest.raises(TypeError, match="colour"):
            http.build_request("GET", "http://127.0.0.1/", colour="red")
