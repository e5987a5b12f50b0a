"""Cookies: by default none of one row's response is sent with the request of another row."""

from __future__ import annotations

import re
from http.cookiejar import CookieJar
from typing import Any

import pytest

from tests.udfs.http.serving import Peer, serving
from udfs.http import client
from udfs.http.httpx2 import client as httpx2_client

BOTH = pytest.mark.parametrize("make", [client, httpx2_client], ids=["httpx", "httpx2"])


async def log_in(peer: Peer) -> None:
    """Set a cookie that is named after the user of the path, and redirect /login/USER to /USER."""
    step, _, user = peer.path[1:].rpartition("/")
    moved = ("302 Found", [f"location: /{user}"]) if step else ("200 OK", [])
    await peer.respond(b"", f"set-cookie: {user}=session; Path=/", *moved[1], status=moved[0])


async def sent_by(make: Any, paths: list[str], **options: Any) -> list[str | None]:
    """The Cookie header of each request to a server that sets cookies."""
    async with serving(log_in) as server, make(base_url=server.url, **options) as http:
        for path in paths:
            await http.get(path)
    return [request.headers.get("cookie") for request in server.requests]


@BOTH
@pytest.mark.parametrize("options", [{}, {"cookies": False}, {"cookies": None}], ids=str)
async def test_a_session_is_not_sent_with_the_requests_of_other_rows(make: Any, options: dict[str, Any]) -> None:
    assert await sent_by(make, ["/ann", "/bob", "/ann"], **options) == [None, None, None]


@BOTH
async def test_a_cookie_of_a_redirect_is_not_stored(make: Any) -> None:
    assert await sent_by(make, ["/login/ann", "/bob"], follow_redirects=True) == [None, None, None]


@BOTH
async def test_with_true_cookies_are_stored_and_sent_again(make: Any) -> None:
    sent = await sent_by(make, ["/ann", "/bob", "/ann"], cookies=True)
    assert sent == [None, "ann=session", "ann=session; bob=session"]


@BOTH
@pytest.mark.parametrize("cookies", [{"carl": "1"}, [("carl", "1")]], ids=str)
async def test_given_cookies_begin_a_jar(make: Any, cookies: Any) -> None:
    sent = await sent_by(make, ["/ann", "/bob"], cookies=cookies)
    assert [sorted(re.findall(r"\w+=", each or "")) for each in sent] == [["carl="], ["ann=", "carl="]]


@BOTH
async def test_a_given_jar_is_filled(make: Any) -> None:
    jar = CookieJar()
    await sent_by(make, ["/ann"], cookies=jar)
    assert [each.name for each in jar] == ["ann"]


@BOTH
async def test_a_response_has_its_own_cookies(make: Any) -> None:
    async with serving(log_in) as server, make(base_url=server.url) as http:
        responses = [await http.get("/ann") for _ in range(2)]
    assert [dict(each.cookies) for each in responses] == [{"ann": "session"}] * 2


@BOTH
async def test_a_cookie_that_the_user_sets_is_sent_until_it_is_removed(make: Any) -> None:
    async with serving(log_in) as server, make(base_url=server.url) as http:
        http.cookies.set("mine", "1")
        await http.get("/ann")
        http.cookies.clear()
        await http.get("/ann")
    assert [request.headers.get("cookie") for request in server.requests] == ["mine=1", None]
