"""CompleteResponse: what is made later is the same, and is each response's own."""

from __future__ import annotations

import copy
import pickle
from datetime import timedelta

import httpx
import pytest

from udfs.http._complete_response import MAKES_RESPONSES, CompleteResponse
from udfs.http._exchange import WholeResponse
from udfs.http._response_head import ResponseHead

FIELDS = [(b"Content-Type", b"content-type", b"application/json")]
HEAD = ResponseHead(
    b"HTTP/1.1", 404, b"Nothing", FIELDS, frozenset({b"content-type"}), 2, is_chunked=False, keeps_alive=True
)


def made(head: ResponseHead = HEAD) -> CompleteResponse:
    return CompleteResponse(WholeResponse(head, b"{}", 2), lambda: httpx.Request("GET", "http://h/a"), 0.0, "utf-8")


def test_this_version_of_httpx_fits() -> None:
    assert MAKES_RESPONSES


def test_responses_with_the_same_head_share_nothing_that_can_change() -> None:
    first, second = made(), made()
    first.headers["A"] = "b"
    first.extensions["A"] = "b"
    first.history.append(first)
    first.request.headers["A"] = "b"
    assert second.headers.raw == [(b"Content-Type", b"application/json")]
    assert second.extensions == {"http_version": b"HTTP/1.1", "reason_phrase": b"Nothing"}
    assert second.history == []
    assert "A" not in second.request.headers


def test_what_was_made_stays() -> None:
    response = made()
    assert response.headers is response.headers
    assert response.request is response.request
    response.elapsed = timedelta(seconds=1)
    response.request = httpx.Request("PUT", "http://h/b")
    assert (response.elapsed, response.request.method) == (timedelta(seconds=1), "PUT")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda response: pickle.loads(pickle.dumps(response))])
def test_a_copy_has_everything(again: object) -> None:
    response = made()
    other = again(response)  # type: ignore[operator]
    assert (other.status_code, other.json(), other.url) == (404, {}, httpx.URL("http://h/a"))
    assert (other.headers, other.elapsed, other.history) == (response.headers, response.elapsed, [])
    with pytest.raises(httpx.HTTPStatusError):
        other.raise_for_status()


async def test_the_body_was_read() -> None:
    response = made()
    assert (await response.aread(), response.read(), response.num_bytes_downloaded) == (b"{}", b"{}", 2)
    assert [part async for part in response.aiter_bytes()] == [b"{}"]
    with pytest.raises(httpx.StreamConsumed):
        [part async for part in response.aiter_raw()]
    with pytest.raises(httpx.StreamClosed):
        aiter(response.stream)  # type: ignore[arg-type]
    await response.aclose()


def test_only_2xx_is_a_success() -> None:
    with pytest.raises(httpx.HTTPStatusError, match="404 Nothing"):
        made().raise_for_status()
    ok = ResponseHead(b"HTTP/1.1", 299, b"", [], frozenset(), 0, is_chunked=False, keeps_alive=True)
    response = made(ok)
    assert response.raise_for_status() is response
