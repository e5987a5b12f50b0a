"""Headers from a function: when it is called, what it may return, and how its failures are retried."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest
import trio

from tests.udfs.http.serving import serving
from tests.udfs.http_columns.working import get, request, responding, results_of, work
from trio_asyncio_io import AsyncFunction
from trio_asyncio_io.policies import cached, single_flight
from udfs.http_columns._options import HttpOptions

# The functions are pickled, so that what they count is here
COUNTS: dict[str, int] = {}


@pytest.fixture(autouse=True)
def _no_counts() -> None:
    COUNTS.clear()


def counted(name: str) -> int:
    COUNTS[name] = COUNTS.get(name, 0) + 1
    return COUNTS[name]


def numbered() -> dict[str, str]:
    from tests.udfs.http_columns import test_headers  # noqa: PLC0415 - pickled by reference

    return {"Authorization": f"token {test_headers.counted('tokens')}"}


async def numbered_async() -> dict[str, str]:
    await trio.lowlevel.checkpoint()
    return numbered()


class Tokens(AsyncFunction[Any, dict[str, str]]):
    """Counts how often it is opened and closed. Equal columns share one, from test to test."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    async def open(self) -> None:
        counted("opened")

    async def invoke(self) -> dict[str, str]:
        return numbered()

    async def close(self) -> None:
        counted("closed")


@pytest.mark.parametrize("headers", [numbered, numbered_async, Tokens()], ids=["function", "async", "AsyncFunction"])
async def test_headers_are_made_anew_for_each_attempt(headers: Any) -> None:
    async with responding(503, 503, 200) as server:
        assert (await get(server.url, headers=headers))[0]["status"] == 200
    assert [each.headers["authorization"] for each in server.requests] == ["token 1", "token 2", "token 3"]


async def test_a_rows_own_header_replaces_one_of_the_function() -> None:
    async with responding(200) as server:
        await request("GET", server.url, {"authorization": "mine"}, headers=numbered)
    assert [each.headers["authorization"] for each in server.requests] == ["mine"]


async def test_an_async_function_is_opened_before_its_first_call() -> None:
    async with responding(200) as server:
        await results_of(work("http_get", headers=Tokens("opened")), [server.url] * 3)
    assert (COUNTS["opened"], COUNTS["tokens"]) == (1, 3)


async def test_an_async_function_is_closed_with_its_column() -> None:
    call = HttpOptions(Tokens("closed")).settings().function.unpack()
    await call.open()
    assert "closed" not in COUNTS
    await call.close()
    assert COUNTS["closed"] == 1


async def fetch() -> dict[str, str]:
    await trio.sleep(0.01)  # as long as the others need to come
    return numbered()


async def test_one_refresh_is_shared_by_all_calls() -> None:
    policy = cached(single_flight(fetch), ttl=60.0)
    async with serving(lambda peer: peer.respond(peer.request.headers["authorization"].encode())) as server:
        rows = await results_of(work("http_get", headers=policy), [f"{server.url}/{n}" for n in range(20)])
    assert ({row["body"] for row in rows}, COUNTS["tokens"]) == ({"token 1"}, 1)


async def test_a_row_that_is_answered_from_the_cache_needs_no_headers() -> None:
    async with responding((200, {}, b"once")) as server:
        task = work("http_get", headers=numbered, cache=60.0)
        for _ in range(2):
            assert (await results_of(task, [server.url]))[0]["body"] == "once"
    assert COUNTS["tokens"] == 1


def refused_once() -> dict[str, str]:
    if counted("calls") == 1:
        raise ConnectionRefusedError("the token service is down")
    return numbered()


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_passing_failure_of_the_function_is_retried(method: str) -> None:
    """The request was not sent, so that a POST may be retried as well."""
    async with responding(200) as server:
        assert (await request(method, server.url, headers=refused_once))["status"] == 200
    assert (COUNTS["calls"], len(server.requests)) == (2, 1)


def refused_always() -> dict[str, str]:
    raise ConnectionRefusedError("the token service is down")


async def test_the_last_failure_of_the_function_is_the_error_of_the_row() -> None:
    async with responding(200) as server:
        rows = await results_of(work("http_get", headers=refused_always, cache=60.0, retries=1), [server.url] * 2)
    for row in rows:
        assert (row["error"]["type"], row["error"]["attempts"]) == ("ConnectionRefusedError", 2)
    assert server.peers == []


def denied() -> dict[str, str]:
    counted("calls")
    raise PermissionError("wrong password")


async def test_a_lasting_failure_of_the_function_is_not_retried() -> None:
    async with responding(200) as server:
        [row] = await get(server.url, headers=denied)
    assert (row["error"]["type"], row["error"]["message"]) == ("PermissionError", "wrong password")
    assert (COUNTS["calls"], server.peers) == (1, [])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("secret", "the result of headers must be a mapping of names to values, got a str"),
        ({"a": 1}, "headers must map names to values, both of them strings"),
        ({"a": "secret\n"}, "the value of the header 'a' has a control character"),
    ],
)
async def test_another_result_is_an_error_that_shows_no_value(given: Any, message: str) -> None:
    async with responding(200) as server:
        [row] = await get(server.url, headers=lambda: given)
    assert (row["error"]["attempts"], row["error"]["message"], server.peers) == (1, message, [])


def test_a_function_that_cannot_be_sent_is_refused_on_the_driver() -> None:
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"^headers captures something \(lock: lock\) that cannot be sent"):
        HttpOptions(lambda: {"a": str(lock)})


async def test_rows_get_the_headers_of_the_time_when_they_are_sent() -> None:
    """The rate lets the second row start 0.1 s after the first one."""
    async with responding(200) as server:
        column = pa.array([f"{server.url}/{n}" for n in range(2)])
        await results_of(work("http_get", headers=clocked, rate=10.0, timeout=60.0), column)
    first, second = (float(each.headers["x-clock"]) for each in server.requests)
    assert second - first >= 0.05


def clocked() -> dict[str, str]:
    return {"x-clock": str(trio.current_time())}
