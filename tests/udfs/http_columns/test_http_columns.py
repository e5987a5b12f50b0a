"""HTTP columns without a JVM: Arrow in, requests to a server on loopback, Arrow out."""

from __future__ import annotations

import gzip
import math
import os
import subprocess
import sys
import tracemalloc
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import httpx
import pyarrow as pa
import pytest
import trio
import zstandard
from trio.testing import MockClock

from tests.support import PATIENCE
from tests.udfs.http.serving import listening, refusing
from trio_asyncio_io import FixedDelay, retry_after
from udfs._row import Failure
from udfs.http_columns import _options, _task, http_get, http_request, register_http
from udfs.http_columns._options import HttpOptions
from udfs.http_columns._request import Request
from udfs.http_columns._response import Response, RetryableError
from udfs.http_columns._task import HttpWork

TEXT_BY_TEXT = pa.map_(pa.string(), pa.string())


@dataclass(frozen=True)
class Asked:
    """A request as the server got it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Site:
    """A server that gives the answers of a list, the last one again and again.

    An answer is a status, or a status with headers and a body, or None: it hangs up.
    """

    answers: list[Any]
    port: int = 0
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [each.path for each in self.asked]

    async def serve(self, stream: trio.SocketStream) -> None:
        try:
            while (asked := await _request(stream)) is not None:
                self.asked.append(asked)
                answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
                if callable(answer):
                    await answer(stream)
                    return
                if answer is None:
                    return
                await stream.send_all(_response(*(answer if isinstance(answer, tuple) else (answer,))))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass


async def _request(stream: trio.SocketStream) -> Asked | None:
    received = b""
    while b"\r\n\r\n" not in received:
        chunk = await stream.receive_some()
        if not chunk:
            return None
        received += bytes(chunk)
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += bytes(await stream.receive_some())
    method, path, _ = first.split(" ")
    return Asked(method, path, headers, body)


def _response(status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def site(*answers: Any) -> AsyncIterator[Site]:
    made = Site(list(answers))
    async with listening(made.serve) as made.port:
        yield made


async def answers_to(work: HttpWork, *columns: Any) -> list[Any]:
    """What comes out of a task for one batch of these columns."""
    arrays = tuple(each if isinstance(each, pa.Array) else pa.array(each, pa.string()) for each in columns)

    def run() -> list[Any]:
        parts = list(work.run(iter([arrays])))
        return [value for part in parts for value in part.to_pylist(maps_as_pydicts="strict")]

    return await trio.to_thread.run_sync(run)


def task(kind: str, headers: dict[str, str] | None = None, **options: Any) -> HttpWork:
    return HttpWork(HttpOptions.of(headers, {"timeout": PATIENCE, **options}).settings(), kind)


async def get(*urls: str | None, **options: Any) -> list[Any]:
    return await answers_to(task("http_get", **options), list(urls))


async def request(
    method: str, url: str, own: dict[str, str | None] | None = None, body: str | bytes | None = None, **options: Any
) -> Any:
    headers = pa.array([None if own is None else list(own.items())], TEXT_BY_TEXT)
    [answer] = await answers_to(task("http_request", **options), [method], [url], headers, pa.array([body]))
    return answer


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_options, "_FIRST_BACKOFF", 0.01)


@pytest.fixture
def _slow_to_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HttpOptions, "_retry", lambda self: FixedDelay(3, PATIENCE, retry_on=RetryableError))


# Answers


@pytest.mark.parametrize("status", [200, 201, 204, 301, 400, 401, 404, 418, 501])
async def test_any_answer_is_a_result(status: int) -> None:
    async with site((status, {"X-Kind": "weather"}, b"" if status == 204 else b"windy")) as there:
        [answer] = await get(f"{there.url}/a")
    assert (answer["status"], answer["error"]) == (status, None)
    assert answer["headers"]["x-kind"] == "weather"
    assert answer["body"] == ("" if status == 204 else "windy")
    assert there.paths == ["/a"]


async def test_rows_come_out_in_their_order_and_a_null_asks_nobody() -> None:
    async with site((200, {}, b"here")) as there:
        answers = await get(f"{there.url}/a", None, f"{there.url}/b")
        assert await request(None, f"{there.url}/c") is None  # type: ignore[arg-type]
    assert [answer and answer["body"] for answer in answers] == ["here", None, "here"]
    assert answers[1] is None
    assert sorted(there.paths) == ["/a", "/b"]


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/plain", "Zürich".encode(), "Zürich"),
        ("text/plain; charset=latin-1", "Zürich".encode("latin-1"), "Zürich"),
        ("text/plain; charset=klingon", b"Qapla'", "Qapla'"),
        ("text/plain; charset=hex", b"61", "61"),
        ("text/plain; charset=utf-7", b"+2AA-", "+2AA-"),
        ("text/plain; charset=punycode", b"a" * 100_000 + b"-" + b"a" * 100_000, "a" * 100_000 + "-" + "a" * 100_000),
        ('text/plain; charset=latin-1; a="' + ";" * 90_000, b"Z", "Z"),
        ("text/plain; charset=utf-16", "Zürich".encode("utf-16"), "Zürich"),
        ("image/png", b"\x89PNG", "\ufffdPNG"),
    ],
    ids=lambda value: str(value[:40]),
)
async def test_the_body_is_text_whatever_the_service_says_of_it(kind: str, body: bytes, text: str) -> None:
    async with site((200, {"content-type": kind}, body)) as there:
        assert (await get(there.url))[0]["body"] == text


async def test_a_task_gives_its_answers_in_parts_that_arrow_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_task, "_CHARACTERS", 10)
    async with site((200, {}, b"1234")) as there:
        work = task("http_get")
        column = pa.array([f"{there.url}/{number}" for number in range(7)])
        parts = await trio.to_thread.run_sync(lambda: list(work.run(iter([column]))))
    assert sum(map(len, parts)) == 7
    assert max(map(len, parts)) <= 2


# Retries


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_a_status_that_passes_is_retried(status: int) -> None:
    async with site(status, (status, {"retry-after": "0"}), (200, {}, b"at last")) as there:
        [answer] = await get(there.url)
    assert (answer["status"], answer["body"], len(there.asked)) == (200, "at last", 3)


async def test_when_the_retries_are_used_up_the_last_answer_stands() -> None:
    async with site(500, 502, (503, {"x-reason": "tired"}, b"come back")) as there:
        [answer] = await get(there.url, retries=2)
    assert (answer["status"], answer["body"], answer["error"]) == (503, "come back", None)
    assert answer["headers"]["x-reason"] == "tired"
    assert len(there.asked) == 3


async def test_the_statuses_that_are_retried_can_be_others() -> None:
    async with site(404, 200) as there:
        assert (await get(there.url, retry_statuses=(404,)))[0]["status"] == 200
    async with site(503) as there:
        assert (await get(there.url, retry_statuses=()))[0]["status"] == 503
        assert len(there.asked) == 1


def test_retry_after_is_waited_for() -> None:
    strategy = HttpOptions().settings().retry
    assert strategy is not None
    asked = RetryableError(Response(503, {"retry-after": "7"}, ""))
    assert retry_after(asked) == 7.0
    assert strategy.wait(1, 0.5, asked) == 7.0
    assert strategy.wait(1, 0.5, RetryableError(Response(503, {}, ""))) < 1.0


async def test_an_answer_that_wants_more_time_than_there_is_stands_at_once() -> None:
    """Nothing would come of the wait but a timeout; this test would take a minute."""
    async with site((429, {"retry-after": "60"}, b"slow down")) as there:
        [answer] = await get(there.url, timeout=60.0)
    assert (answer["status"], answer["body"], answer["error"]) == (429, "slow down", None)
    assert len(there.asked) == 1


@pytest.mark.usefixtures("_slow_to_retry")
async def test_a_deadline_between_two_attempts_leaves_the_outcome_of_the_last() -> None:
    async with site((503, {}, b"tired")) as there:
        [answer] = await get(there.url, timeout=0.5)
    assert (answer["status"], answer["body"], answer["error"]) == (503, "tired", None)
    with refusing() as port:
        [answer] = await get(f"http://127.0.0.1:{port}", timeout=0.5)
    assert (answer["error"]["type"], answer["error"]["attempts"]) == ("ConnectError", 1)


async def test_a_deadline_during_an_attempt_is_a_timeout_whatever_came_before() -> None:
    async def never(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with site(503, never) as there:
        [answer] = await get(there.url, timeout=1.0)
    assert answer["status"] is answer["headers"] is answer["body"] is None
    error = answer["error"]
    assert (error["type"], error["attempts"]) == ("ElementTimeoutError", 2)
    assert error["message"] == "there was no answer within the timeout of 1 s"
    assert error["seconds"] >= 1.0


async def test_a_connection_that_breaks_is_retried() -> None:
    async with site(None, (200, {}, b"again")) as there:
        assert (await get(there.url))[0]["body"] == "again"
    with refusing() as port:
        [answer] = await get(f"http://127.0.0.1:{port}/", retries=2)
    assert (answer["status"], answer["error"]["type"], answer["error"]["attempts"]) == (None, "ConnectError", 3)


# What is not idempotent


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "OPTIONS"])
async def test_an_idempotent_method_is_retried(method: str) -> None:
    async with site(500, None, 200) as there:
        assert (await request(method.lower(), there.url))["status"] == 200
    assert [each.method for each in there.asked] == [method] * 3


@pytest.mark.parametrize("answer", [500, 502, 504, 503])
async def test_a_post_that_may_have_been_done_is_not_sent_again(answer: int) -> None:
    async with site(answer, 200) as there:
        assert (await request("POST", there.url, body="once"))["status"] == answer
    assert len(there.asked) == 1


async def test_a_post_whose_connection_breaks_is_not_sent_again() -> None:
    async with site(None, 200) as there:
        answer = await request("POST", there.url, body="once")
    assert (answer["error"]["type"], answer["error"]["attempts"]) == ("RemoteProtocolError", 1)
    assert len(there.asked) == 1


@pytest.mark.parametrize("answer", [429, (503, {"retry-after": "0"})])
async def test_a_post_that_was_refused_is_sent_again(answer: Any) -> None:
    async with site(answer, 200) as there:
        assert (await request("POST", there.url, body="twice"))["status"] == 200
    assert [each.body for each in there.asked] == [b"twice"] * 2


async def test_a_post_that_found_nobody_is_tried_again() -> None:
    with refusing() as port:
        answer = await request("POST", f"http://127.0.0.1:{port}")
    assert answer["error"]["attempts"] == 4


async def test_a_post_with_an_idempotency_key_is_retried_like_a_get() -> None:
    async with site(500, None, 200) as there:
        answer = await request("POST", there.url, {"Idempotency-Key": "7"})
    assert answer["status"] == 200
    assert [each.headers["idempotency-key"] for each in there.asked] == ["7"] * 3


async def test_a_post_that_was_redirected_is_not_sent_again() -> None:
    """It was done; what cannot be had is the page to which it leads."""
    async with site((303, {"location": "/receipt"}), (503, {"retry-after": "0"})) as there:
        answer = await request("POST", f"{there.url}/pay", follow_redirects=True)
    assert answer["status"] == 503
    assert [(each.method, each.path) for each in there.asked] == [("POST", "/pay"), ("GET", "/receipt")]


async def test_a_post_whose_redirect_finds_nobody_is_not_sent_again() -> None:
    with refusing() as port:
        async with site((307, {"location": f"http://127.0.0.1:{port}/"})) as there:
            answer = await request("POST", there.url, body="once", follow_redirects=True)
    assert (answer["error"]["type"], answer["error"]["attempts"]) == ("ConnectError", 1)
    assert len(there.asked) == 1


# Requests


async def test_the_timeout_of_the_row_is_the_only_one() -> None:
    """httpx's own would end a slow answer after five seconds."""
    call = HttpOptions()._call()
    await call.open()
    assert call._http.timeout == httpx.Timeout(None)
    await call.close()


@pytest.mark.parametrize(("body", "sent"), [("Zürich", "Zürich".encode()), (b"\x00\xff", b"\x00\xff"), (None, b"")])
async def test_a_request_arrives_as_the_row_says(body: Any, sent: bytes) -> None:
    own = {"Content-Type": "text/plain", "X-Left-Out": None, "X-Space": " a b "}
    async with site(200) as there:
        await request("PATCH", f"{there.url}/a?b=c", own, body)
    [asked] = there.asked
    assert (asked.method, asked.path, asked.body) == ("PATCH", "/a?b=c", sent)
    assert (asked.headers["content-type"], asked.headers["x-space"]) == ("text/plain", "a b")
    assert "x-left-out" not in asked.headers


async def test_a_rows_own_header_comes_in_place_of_that_of_all_rows() -> None:
    async with site(200) as there:
        await request("GET", there.url, {"x-b": "own"}, headers={"X-A": "all", "X-B": "all"})
    [asked] = there.asked
    assert (asked.headers["x-a"], asked.headers["x-b"]) == ("all", "own")


async def test_a_user_in_the_url_is_sent_as_basic_authentication() -> None:
    async with site(200) as there:
        await get(f"http://ann:secret@127.0.0.1:{there.port}/")
    assert there.asked[0].headers["authorization"] == "Basic YW5uOnNlY3JldA=="


async def test_a_row_does_not_send_the_cookies_of_another() -> None:
    async with site((200, {"set-cookie": "session=ann; path=/"})) as there:
        for _ in range(2):
            await get(there.url)
    assert ["cookie" in each.headers for each in there.asked] == [False, False]


async def test_a_redirect_is_a_result_unless_it_is_to_be_followed() -> None:
    async with site((301, {"location": "/new"}), (301, {"location": "/new"}), (200, {}, b"new")) as there:
        [answer] = await get(f"{there.url}/old")
        assert (answer["status"], answer["headers"]["location"]) == (301, "/new")
        [answer] = await get(f"{there.url}/old", follow_redirects=True)
    assert (answer["status"], answer["body"]) == (200, "new")
    assert there.paths == ["/old", "/old", "/new"]


UNUSABLE_LOCATIONS = [
    "http://h:secret/",
    "http://xn--/?secret",
    "ftp://h/?token=secret",
    "secret://h",
    "//user:secret@h:port/",
    "http://h/" + "secret" * 11_000,
]


@pytest.mark.parametrize("location", [*UNUSABLE_LOCATIONS, "http://[", ""], ids=lambda location: location[:20])
async def test_a_redirect_is_a_result_whatever_its_location(location: str) -> None:
    async with site((302, {"location": location}, b"moved")) as there:
        [answer] = await get(there.url)
    assert (answer["status"], answer["body"], answer["error"]) == (302, "moved", None)
    assert answer["headers"]["location"] == location
    assert len(there.asked) == 1


@pytest.mark.parametrize("location", UNUSABLE_LOCATIONS, ids=lambda location: location[:20])
async def test_a_redirect_that_cannot_be_followed_is_an_error_without_its_location(location: str) -> None:
    async with site((302, {"location": location})) as there:
        [answer] = await get(there.url, follow_redirects=True)
    assert answer["error"]["type"] in {"InvalidURL", "UnsupportedProtocol"}
    assert answer["error"]["attempts"] == len(there.asked) == 1
    assert "secret" not in answer["error"]["message"]


async def test_redirects_without_end_are_an_error() -> None:
    async with site((302, {"location": "/round"})) as there:
        [answer] = await get(there.url, follow_redirects=True)
    assert (answer["error"]["type"], answer["error"]["attempts"]) == ("TooManyRedirects", 1)
    assert len(there.asked) == 21


# Bodies that are too large


async def test_a_body_beyond_the_limit_is_not_read_on() -> None:
    """The server would go on for ever; nobody but the client ends this."""
    hung_up = trio.Event()

    async def endless(stream: trio.SocketStream) -> None:
        try:
            await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n")
            while True:
                await stream.send_all(b"x" * 100_000)
        except trio.BrokenResourceError:
            hung_up.set()

    async with site(endless) as there:
        [answer] = await get(there.url, max_body_bytes=1_000_000)
        await hung_up.wait()
    assert (answer["status"], answer["body"]) == (None, None)
    error = answer["error"]
    assert (error["type"], error["attempts"]) == ("BodyTooLargeError", 1)
    assert "1,000,000 bytes (max_body_bytes)" in error["message"]


async def test_the_limit_is_on_the_decompressed_body_and_the_last_byte_may_be_there() -> None:
    headers = {"content-encoding": "gzip"}
    async with site((200, headers, gzip.compress(b"x" * 1000))) as there:
        assert (await get(there.url, max_body_bytes=999))[0]["error"]["type"] == "BodyTooLargeError"
        assert (await get(there.url, max_body_bytes=1000))[0]["body"] == "x" * 1000


def bomb(mebibytes: int) -> bytes:
    compressor = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    return b"".join([compressor.compress(bytes(1024 * 1024)) for _ in range(mebibytes)]) + compressor.flush()


@pytest.mark.parametrize(
    ("coding", "body", "error"),
    [
        ("gzip", bomb(128), "BodyTooLargeError"),
        ("gzip, gzip", gzip.compress(bomb(128)), "DecodingError"),
        ("zstd", zstandard.compress(bytes(128 * 1024 * 1024)), "BodyTooLargeError"),
    ],
    ids=["gzip", "gzip twice", "zstandard"],
)
@pytest.mark.parametrize("status", [200, 404])
async def test_a_bomb_is_not_decoded_beyond_the_limit(coding: str, body: bytes, error: str, status: int) -> None:
    async with site((status, {"content-encoding": coding}, body)) as there:
        tracemalloc.start()
        try:
            [answer] = await get(there.url, max_body_bytes=1_000_000)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (answer["error"]["type"], answer["error"]["attempts"]) == (error, 1)
    assert peak < 32 * 1024 * 1024


async def test_the_body_of_a_redirect_that_is_followed_is_not_decoded() -> None:
    redirect = (302, {"location": "/new", "content-encoding": "gzip"}, bomb(4))
    async with site(redirect, (200, {}, b"new")) as there:
        [answer] = await get(there.url, follow_redirects=True, max_body_bytes=1_000)
    assert answer["body"] == "new"


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_body_that_never_decodes_to_anything_is_not_read_on(coding: str) -> None:
    """Empty gzip members, or empty blocks of deflate data, without end."""
    hung_up = trio.Event()
    nothing = {"gzip": gzip.compress(b""), "deflate": b"\0\0\0\xff\xff"}[coding] * 1_000

    async def endless(stream: trio.SocketStream) -> None:
        try:
            await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-encoding: %b\r\n\r\n" % coding.encode())
            while True:
                await stream.send_all(nothing)
        except trio.BrokenResourceError:
            hung_up.set()

    async with site(endless) as there:
        [answer] = await get(there.url, max_body_bytes=100_000)
        await hung_up.wait()
    assert (answer["error"]["type"], answer["error"]["attempts"]) == ("BodyTooLargeError", 1)


async def test_a_body_that_its_coding_makes_larger_is_within_the_limit() -> None:
    noise = os.urandom(1_000)
    async with site(
        (200, {"content-encoding": "gzip", "content-type": "a/b; charset=latin-1"}, zipped(noise))
    ) as there:
        [answer] = await get(there.url, max_body_bytes=1_000)
    assert answer["body"] == noise.decode("latin-1")


def zipped(data: bytes) -> bytes:
    return b"".join(gzip.compress(data[at : at + 100]) for at in range(0, len(data), 100))


# Bodies that are damaged


@pytest.mark.parametrize("kept", [1, 100, -1])
async def test_a_coded_body_that_is_cut_off_is_an_error(kept: int) -> None:
    async with site((200, {"content-encoding": "gzip"}, gzip.compress(os.urandom(500))[:kept])) as there:
        [answer] = await get(there.url)
    assert (answer["status"], answer["body"], answer["error"]["type"]) == (None, None, "DecodingError")
    assert "cut off" in answer["error"]["message"]
    assert len(there.asked) == 1


async def test_every_member_of_a_gzip_body_is_decoded() -> None:
    async with site((200, {"content-encoding": "gzip"}, gzip.compress(b"one,") + gzip.compress(b"two"))) as there:
        assert (await get(there.url))[0]["body"] == "one,two"


async def test_the_response_to_head_has_a_coding_and_no_body() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\ncontent-encoding: gzip, gzip\r\n\r\n"

    async def answer_head(stream: trio.SocketStream) -> None:
        await stream.send_all(head)

    async with site(answer_head) as there:
        answer = await request("HEAD", there.url)
    assert (answer["status"], answer["body"], answer["error"]) == (200, "", None)


async def test_headers_of_one_name_are_joined() -> None:
    async def many(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\na: 1\r\nb: 2\r\nA: 3\r\ncontent-length: 0\r\n\r\n")

    async with site(many) as there:
        [answer] = await get(there.url)
    assert answer["headers"] == {"a": "1, 3", "b": "2", "content-length": "0"}


# Secrets, and requests that can never be sent


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
async def test_a_url_that_cannot_be_asked_is_an_error_without_its_secrets(url: str, kind: str | None) -> None:
    [answer] = await get(url, retries=0)
    error = answer["error"]
    assert kind is None or error["type"] == kind
    assert error["attempts"] == 1
    assert "user" not in error["message"]
    assert "cret" not in error["message"]


async def test_a_redirect_to_what_cannot_be_asked_shows_no_secret() -> None:
    async with site((302, {"location": "ftp://user:secret@host/"})) as there:
        [answer] = await get(there.url, follow_redirects=True)
    assert answer["error"]["type"] == "UnsupportedProtocol"
    assert "user" not in answer["error"]["message"]


def test_no_message_has_a_url_and_none_is_long() -> None:
    """Whatever a server made the parser, the resolver or TLS write into it."""
    error = ValueError("not http://user:secret@host/?token=secret#secret or user:secret@host, but " + "x" * 80_000)
    shown = _task._failure_struct(Failure(error, 1, 0.0), error, PATIENCE)["error"]
    assert shown["message"].startswith("not <URL> or host, but xxx")
    assert len(shown["message"]) < 1_100


@pytest.mark.parametrize(
    ("name", "value"), [("X-Token", "secret\r\nX-Other: secret"), ("Authorization: secret", "x"), ("", "secret")]
)
async def test_a_header_that_cannot_be_sent_is_an_error_without_its_value(name: str, value: str) -> None:
    answer = await request("GET", "http://127.0.0.1:1", {name: value})
    assert (answer["error"]["type"], answer["error"]["attempts"]) == ("ValueError", 1)
    assert "secret" not in answer["error"]["message"]
    with pytest.raises(ValueError, match="header") as caught:
        HttpOptions({name: value})
    assert "secret" not in str(caught.value)


async def test_a_method_that_is_none_is_an_error() -> None:
    answer = await request("GET / HTTP/1.1\r\n", "http://127.0.0.1:1")
    assert (answer["error"]["type"], answer["error"]["message"]) == (
        "ValueError",
        "the method must be a word such as GET",
    )


def test_the_repr_of_a_request_shows_no_secret() -> None:
    """It is what errors and logs show of a row."""
    made = Request("post", "http://user:secret@host/?key=secret", [("authorization", "secret")], "secret")
    assert repr(made) == "<POST request>"


# The cache, and the rate


async def test_a_cached_answer_is_not_asked_for_again() -> None:
    async with site((200, {}, b"once")) as there:
        for _ in range(2):
            answers = await get(*[f"{there.url}/a"] * 3, f"{there.url}/b", cache=math.inf)
            assert [answer["body"] for answer in answers] == ["once"] * 4
        assert Counter(there.paths) == {"/a": 1, "/b": 1}
        await get(f"{there.url}/a")
        assert Counter(there.paths) == {"/a": 2, "/b": 1}


async def test_only_what_is_equal_and_harmless_comes_from_the_cache() -> None:
    async with site((200, {}, b"x")) as there:
        for own in ({"accept": "a"}, {"accept": "b"}, {"accept": "a"}):
            await request("GET", f"{there.url}/get", own, cache=60.0)
        for _ in range(2):
            await request("POST", f"{there.url}/post", cache=60.0)
            await request("GET", f"{there.url}/body", body="query", cache=60.0)
    assert Counter(there.paths) == {"/get": 2, "/post": 2, "/body": 2}


@pytest.mark.parametrize(
    ("answer", "times"),
    [
        *((204, 1), (301, 1), (404, 1), (400, 2), (403, 2), (501, 2)),
        *(((200, {}, b"x" * 65_536), 1), ((200, {}, b"x" * 65_537), 2), ((200, {"x": "x" * 65_536}, b""), 2)),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_an_answer_that_may_soon_be_another_is_not_kept(answer: Any, times: int) -> None:
    async with site(answer) as there:
        first, second = await get(there.url, cache=60.0), await get(there.url, cache=60.0)
    assert first == second
    assert len(there.asked) == times


async def test_attempts_start_at_the_rate_and_what_is_cached_is_free(autojump_clock: MockClock) -> None:
    call = HttpOptions(rate=2.0, cache=60.0, timeout=math.inf)._call()
    started = []

    async def exchange(request: Request) -> Response:
        started.append((request.url, trio.current_time()))
        return Response(200, {}, "")

    call._exchange = exchange  # type: ignore[method-assign]
    await call.open()
    for path in "abba":
        await call.invoke(Request("GET", f"http://host/{path}"))
    await call.invoke(Request("POST", "http://host/c"))
    await call.close()
    assert started == [("http://host/a", 0.0), ("http://host/b", 0.5), ("http://host/c", 1.0)]


def test_no_more_calls_than_can_have_their_turns_in_time_are_made_at_once() -> None:
    """Four attempts wait for their turns for 5 s each, and 5 s of the 25 are left for the calls."""
    assert HttpOptions(rate=10.0, timeout=25.0).settings().capacity == 50
    assert HttpOptions(rate=10.0, timeout=25.0, retries=0).settings().capacity == 100
    assert HttpOptions(rate=0.1, timeout=25.0).settings().capacity == 1
    assert HttpOptions(rate=0.001, timeout=math.inf).settings().capacity == 100


# Options


def test_equal_options_share_one_client_and_others_do_not() -> None:
    def digest(**options: Any) -> str:
        return HttpOptions.of(options.pop("headers", None), options).settings().function.digest

    same = digest(headers={"a": "b", "c": "d"}, retry_statuses=[503, 429], capacity=7)
    assert digest(headers={"c": "d", "a": "b"}, retry_statuses=(429, 503, 429), capacity=9) == same
    assert digest(headers={"a": "b", "c": "other"}, retry_statuses=[503, 429]) != same
    assert digest() != digest(cache=60.0) != digest(cache=61.0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"timeout": -1.0}, ValueError, "timeout must be seconds, .* got -1"),
        ({"timeout": "30"}, TypeError, "timeout must be seconds"),
        ({"capacity": 0}, ValueError, "capacity must be at least 1, got 0"),
        ({"capacity": 100, "buffer": 10}, ValueError, "buffer must be at least the capacity, 100, got 10"),
        ({"retries": -1}, ValueError, "retries must be at least 0.* got -1"),
        ({"retries": 1.5}, TypeError, "retries must be a whole number, got 1.5"),
        ({"retries": True}, TypeError, "retries must be a whole number, got True"),
        ({"retry_statuses": 503}, TypeError, "retry_statuses must be HTTP statuses .* got 503"),
        ({"retry_statuses": "503"}, TypeError, "retry_statuses must be HTTP statuses .* got '503'"),
        ({"retry_statuses": [5, 503]}, ValueError, r"retry_statuses must be HTTP statuses .* got \(5, 503\)"),
        ({"rate": 0}, ValueError, "rate must be calls per second above 0 and finite, got 0"),
        ({"rate": math.inf}, ValueError, "rate must be .* got inf"),
        ({"rate": math.nan}, ValueError, "rate must be .* got nan"),
        ({"rate": "fast"}, TypeError, "rate must be calls per second as a number, or None, got 'fast'"),
        ({"rate": 0.05}, ValueError, "starts a call every 20 s, .* give a timeout of at least 40 s"),
        ({"cache": 0.0}, ValueError, "cache must be seconds above 0, got 0.0"),
        ({"cache": True}, TypeError, "cache must be seconds as a number, or None, got True"),
        ({"max_body_bytes": 0}, ValueError, "max_body_bytes must be at least 1 .* got 0"),
        ({"max_body_bytes": 2**40}, ValueError, "max_body_bytes must be .* at most 536,870,912"),
        ({"follow_redirects": 1}, TypeError, "follow_redirects must be True or False, got 1"),
        ({"time_out": 5.0}, TypeError, "there is no option 'time_out'; there are timeout, capacity, .*"),
    ],
)
def test_a_bad_option_is_refused_by_name(options: dict[str, Any], error: type[Exception], message: str) -> None:
    for door in (
        lambda: http_get("url", **options),
        lambda: http_request("GET", "url", **options),
        lambda: register_http(None, **options),
    ):
        with pytest.raises(error, match=message):
            door()


@pytest.mark.parametrize(
    ("door", "error", "message"),
    [
        (lambda: http_get("https://host/"), ValueError, r"the name of a column, .* write F\.lit\(url\)"),
        (lambda: http_request("GET", "https://host/"), ValueError, r"write F\.lit\(url\)"),
        (lambda: http_request("method", "url"), ValueError, r"method must be one of .*, or a column"),
        (lambda: http_get("url", {"a": 1}), TypeError, "headers must map names to values, both of them strings"),
        (lambda: register_http(None, headers="secret"), TypeError, "headers must be a mapping .* got a str$"),
        (lambda: register_http(None, prefix="my "), ValueError, "prefix must be the beginning .* got 'my '"),
    ],
)
def test_what_cannot_be_meant_is_refused(door: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        door()


@pytest.mark.parametrize(
    ("kind", "columns", "message"),
    [
        ("http_get", [["u"], ["h"]], r"headers of http_get must be a map<string, string>, and is string"),
        ("http_get", [pa.array([1])], r"url of http_get must be a string, and is int64: cast it"),
        ("http_get", [["u"], pa.array([None]), ["b"]], "http_get takes url, headers, of which the first 1"),
        ("http_request", [["GET"]], "http_request takes method, url, headers, body, of which the first 2"),
        ("http_request", [["GET"], ["u"], pa.array([None]), pa.array([1])], "body .* must be a string or binary"),
    ],
)
async def test_columns_that_are_not_those_of_the_function_fail_the_job(
    kind: str, columns: list[Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        await answers_to(task(kind), *columns)


def test_importing_udfs_does_not_import_httpx() -> None:
    code = "import sys, udfs; sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=False).returncode == 0


async def test_a_registered_function_runs_where_there_is_no_session() -> None:
    """As in a worker, and in a user's own tests."""
    registered: dict[str, Any] = {}
    session: Any = SimpleNamespace(udf=SimpleNamespace(register=registered.__setitem__))
    register_http(session, retries=0)

    def rows(url: str) -> list[Any]:
        return [row for array in registered["http_get"].func(iter([pa.array([url])])) for row in array.to_pylist()]

    async with site((200, {}, b"hello")) as there:
        [row] = await trio.to_thread.run_sync(rows, there.url)
    assert (row["status"], row["body"], row["error"]) == (200, "hello", None)
