"""HttpConversion: requests from Arrow columns, structs from their outcomes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import trio

from tests.support import PATIENCE
from tests.udfs.http.serving import refusing
from tests.udfs.http_columns.working import get, request, responding, results_of, work
from trio_asyncio_io import FixedDelay
from udfs._sent.row import Failure, Row
from udfs.http_columns import _arrow
from udfs.http_columns._options import HttpOptions
from udfs.http_columns._outcome import RetryableError
from udfs.http_columns._requests import HttpRequest


@pytest.fixture
def _long_backoffs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HttpOptions, "_retry", lambda self: FixedDelay(3, PATIENCE, retry_on=RetryableError))


# Results


@pytest.mark.parametrize("status", [200, 204, 301, 404, 501])
async def test_any_response_is_a_result(status: int) -> None:
    async with responding((status, {"X-Kind": "weather"}, b"" if status == 204 else b"windy")) as server:
        [result] = await get(f"{server.url}/a")
    assert (result["status"], result["error"]) == (status, None)
    assert result["headers"]["x-kind"] == "weather"
    assert result["body"] == ("" if status == 204 else "windy")
    assert server.paths == ["/a"]


async def test_results_are_in_the_order_of_the_rows_and_a_null_sends_no_request() -> None:
    async with responding((200, {}, b"here")) as server:
        results = await get(f"{server.url}/a", None, f"{server.url}/b")
        assert await request(None, f"{server.url}/c") is None
    assert [result and result["body"] for result in results] == ["here", None, "here"]
    assert results[1] is None
    assert sorted(server.paths) == ["/a", "/b"]


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/plain", "Zürich".encode(), "Zürich"),
        ("text/plain; charset=latin-1", "Zürich".encode("latin-1"), "Zürich"),
        ("image/png", b"\x89PNG", "\ufffdPNG"),
    ],
    ids=lambda value: str(value[:40]),
)
async def test_the_body_is_text_whatever_its_content_type(kind: str, body: bytes, text: str) -> None:
    async with responding((200, {"content-type": kind}, body)) as server:
        assert (await get(server.url))[0]["body"] == text


async def test_headers_of_one_name_are_joined() -> None:
    async def many(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\na: 1\r\nb: 2\r\nA: 3\r\ncontent-length: 0\r\n\r\n")

    async with responding(many) as server:
        [result] = await get(server.url)
    assert result["headers"] == {"a": "1, 3", "b": "2", "content-length": "0"}


@pytest.mark.parametrize("status", [200, 400, 500])
async def test_results_are_split_into_arrays_that_arrow_can_hold(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setattr(_arrow, "_CHARACTERS", 10)
    async with responding((status, {}, b"1234")) as server:
        task = work("http_get", retries=0)
        column = pa.array([f"{server.url}/{number}" for number in range(7)])
        parts = await trio.to_thread.run_sync(lambda: list(task.run(iter([column]))))
    assert sum(map(len, parts)) == 7
    assert max(map(len, parts)) <= 2


# The last outcome


async def test_after_the_last_retry_the_last_response_is_the_result() -> None:
    async with responding(500, 502, (503, {"x-reason": "tired"}, b"come back")) as server:
        [result] = await get(server.url, retries=2)
    assert (result["status"], result["body"], result["error"]) == (503, "come back", None)
    assert result["headers"]["x-reason"] == "tired"
    assert len(server.requests) == 3


@pytest.mark.slow
@pytest.mark.usefixtures("_long_backoffs")
async def test_after_a_deadline_between_two_attempts_the_last_outcome_is_the_result() -> None:
    async with responding((503, {}, b"tired")) as server:
        [result] = await get(server.url, timeout=0.5)
    assert (result["status"], result["body"], result["error"]) == (503, "tired", None)
    with refusing() as port:
        [result] = await get(f"http://127.0.0.1:{port}", timeout=0.5)
    assert (result["error"]["type"], result["error"]["attempts"]) == ("ConnectError", 1)


@pytest.mark.slow
async def test_a_deadline_during_an_attempt_is_a_timeout_whatever_happened_before() -> None:
    async def never(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with responding(503, never) as server:
        [result] = await get(server.url, timeout=1.0)
    assert result["status"] is result["headers"] is result["body"] is None
    error = result["error"]
    assert (error["type"], error["attempts"]) == ("ElementTimeoutError", 2)
    assert error["message"] == "there was no answer within the timeout of 1 s"
    assert error["seconds"] >= 1.0


# Errors


def test_messages_contain_no_url_and_are_short() -> None:
    """A server can influence what the parser, the resolver and TLS write into a message."""
    error = ValueError("not http://user:secret@host/?token=secret#secret or user:secret@host, but " + "x" * 80_000)
    row = Row((HttpRequest("GET", "http://host"),), 0, 0)
    row.failure = Failure(error, 1, 0.0)
    shown = _arrow._as_struct(row, PATIENCE)
    assert shown is not None
    assert shown["error"]["message"].startswith("not <URL> or host, but xxx")
    assert len(shown["error"]["message"]) < 2_100


@pytest.mark.parametrize(
    ("kind", "columns", "message"),
    [
        ("http_get", [["u"], ["h"]], r"headers of http_get must be a map<string, string>, and is string"),
        ("http_get", [pa.array([1])], r"url of http_get must be a string, and is int64: cast it"),
        (
            "http_get",
            [["u"], pa.array([None]), ["b"]],
            "http_get takes url, headers, of which the first 1 .* got 3",
        ),
        ("http_request", [["GET"]], "http_request takes method, url, headers, body, of which the first 2"),
        ("http_request", [["GET"], ["u"], pa.array([None]), pa.array([1])], "body .* must be a string or binary"),
    ],
)
async def test_columns_that_do_not_fit_the_parameters_fail_the_job(kind: str, columns: list[Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        await results_of(work(kind), *columns)
