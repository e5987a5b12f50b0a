"""The request of a row: how it arrives, and which requests are refused without showing a secret."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.udfs.http_columns.working import get, request, responding
from udfs.http_columns._options import HttpOptions
from udfs.http_columns._requests import HttpRequest


@pytest.mark.parametrize(("body", "sent"), [("Zürich", "Zürich".encode()), (b"\x00\xff", b"\x00\xff"), (None, b"")])
async def test_a_request_arrives_as_it_is_in_the_row(body: Any, sent: bytes) -> None:
    own = {"Content-Type": "text/plain", "X-Left-Out": None, "X-Space": " a b "}
    async with responding(200) as server:
        await request("PATCH", f"{server.url}/a?b=c", own, body)
    [received] = server.requests
    assert (received.method, received.path, received.body) == ("PATCH", "/a?b=c", sent)
    assert (received.headers["content-type"], received.headers["x-space"]) == ("text/plain", "a b")
    assert "x-left-out" not in received.headers


async def test_a_rows_own_header_replaces_the_common_one() -> None:
    async with responding(200) as server:
        await request("GET", server.url, {"x-b": "own"}, headers={"X-A": "all", "X-B": "all"})
    [received] = server.requests
    assert (received.headers["x-a"], received.headers["x-b"]) == ("all", "own")


async def test_a_user_in_the_url_is_sent_as_basic_authentication() -> None:
    async with responding(200) as server:
        await get(f"http://ann:secret@127.0.0.1:{server.port}/")
    assert server.requests[0].headers["authorization"] == "Basic YW5uOnNlY3JldA=="


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("", "UnsupportedProtocol"),
        ("user:secret@host/path", "UnsupportedProtocol"),
        ("ftp://user:secret@host/", "UnsupportedProtocol"),
        ("http://", "UnsupportedProtocol"),
        ("http://user:secret@host:port/", "InvalidURL"),
        ("http://user:se@cret@127.0.0.1:1/", "ConnectError"),
        ("http://user:secret@127.0.0.1/\nsecret", "InvalidURL"),
        (f"http://user:secret@{'a' * 70}.example/", None),
    ],
)
async def test_an_unusable_url_is_an_error_without_its_secrets(url: str, kind: str | None) -> None:
    [result] = await get(url, retries=0)
    error = result["error"]
    assert kind is None or error["type"] == kind
    assert error["attempts"] == 1
    assert "user" not in error["message"]
    assert "cret" not in error["message"]


@pytest.mark.parametrize(
    ("name", "value"), [("X-Token", "secret\r\nX-Other: secret"), ("Authorization: secret", "x"), ("", "secret")]
)
async def test_an_illegal_header_is_an_error_without_its_value(name: str, value: str) -> None:
    result = await request("GET", "http://127.0.0.1:1", {name: value})
    assert (result["error"]["type"], result["error"]["attempts"]) == ("ValueError", 1)
    assert "secret" not in result["error"]["message"]
    with pytest.raises(ValueError, match="header") as caught:
        HttpOptions({name: value})
    assert "secret" not in str(caught.value)


async def test_an_illegal_method_is_an_error() -> None:
    result = await request("GET / HTTP/1.1\r\n", "http://127.0.0.1:1")
    assert (result["error"]["type"], result["error"]["message"]) == (
        "ValueError",
        "the method must be a word such as GET",
    )


async def test_no_log_has_the_url(caplog: pytest.LogCaptureFixture) -> None:
    """httpx's client logs each URL at level INFO."""
    async with responding(200) as server:
        with caplog.at_level(logging.DEBUG):
            await get(f"{server.url}/?token=secret")
    assert "secret" not in caplog.text


def test_the_repr_of_a_request_shows_no_secret() -> None:
    """Errors and logs show the repr of a row."""
    made = HttpRequest("post", "http://user:secret@host/?key=secret", [("authorization", "secret")], "secret")
    assert repr(made) == "<POST request>"
