"""Gates per host: which outcomes they receive, and that a host that is down holds back no other one."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.support import outputs
from tests.udfs.http.serving import Peer, refusing, serving
from tests.udfs.http_columns.working import get, responding, results_of, work
from trio_asyncio_io import ordered_wait
from trio_asyncio_io.gates import CircuitBreaker, Gate, Outcome
from udfs.http_columns._options import HttpOptions
from udfs.http_columns._outcome import HostCapacity, HttpResponse, RetryableConnectionError, RetryableError
from udfs.http_columns._requests import HttpRequest

RECEIVED: list[tuple[str, float | None]] = []  # by all copies of a `Spy`
RELEASED = threading.Event()


@pytest.fixture(autouse=True)
def _fresh() -> None:
    RECEIVED.clear()
    RELEASED.clear()


class Spy(Gate):
    """Records the outcomes of all hosts."""

    def delay(self, now: float, weight: float) -> float:
        return 0.0

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        RECEIVED.append((outcome.kind, outcome.retry_after))


class ClosedByTrouble(Gate):
    """Admits no call after one was an overload or throttled, until `RELEASED` is set."""

    is_open = True

    def delay(self, now: float, weight: float) -> float:
        return 0.0 if self.is_open or RELEASED.is_set() else 0.01

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        if outcome.kind in {"overload", "throttled"}:
            self.is_open = False


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        (200, ("ok", None)),
        (302, ("ok", None)),
        (404, ("ok", None)),
        (408, ("overload", None)),
        (429, ("throttled", None)),
        ((429, {"retry-after": "7"}), ("throttled", 7.0)),
        (500, ("overload", None)),
        (501, ("overload", None)),
        (503, ("overload", None)),
        ((503, {"retry-after": "7"}), ("throttled", 7.0)),
        (None, ("overload", None)),
    ],
    ids=str,
)
@pytest.mark.parametrize("retry_statuses", [(), (429, 500, 503)], ids=["none is retried", "some are"])
async def test_the_gates_receive_the_outcome_of_the_last_attempt(
    response: Any, outcome: tuple[str, float | None], retry_statuses: tuple[int, ...]
) -> None:
    async with responding(response) as server:
        [result] = await get(server.url, per_host=Spy(), retries=0, retry_statuses=retry_statuses)
    assert [outcome] == RECEIVED
    assert result["status"] == (response[0] if isinstance(response, tuple) else response)


async def test_the_gates_receive_the_outcome_of_each_attempt() -> None:
    async with responding(None, 503, (429, {"retry-after": "0"}), 200) as server:
        [result] = await get(server.url, per_host=Spy())
    assert result["status"] == 200
    assert RECEIVED == [("overload", None), ("overload", None), ("throttled", 0.0), ("ok", None)]


async def test_a_timeout_is_an_overload() -> None:
    async def never(peer: Peer) -> None:
        await peer.ended.wait()

    async with serving(never) as server:
        [result] = await get(server.url, per_host=Spy(), timeout=0.2)
    assert result["error"]["type"] == "ElementTimeoutError"
    assert RECEIVED == [("overload", None)]


async def test_a_url_that_is_not_valid_passes_no_gate() -> None:
    results = await get("http://", "no url", None, per_host=Spy())
    assert [each and each["error"]["type"] for each in results] == ["UnsupportedProtocol", "UnsupportedProtocol", None]
    assert RECEIVED == []


@pytest.mark.parametrize("trouble", [429, 500, None], ids=["429", "500", "broken"])
async def test_a_host_in_trouble_holds_back_no_other_one(trouble: int | None) -> None:
    """There is one slot. The host in trouble gets no second request until the other one has all of its requests."""
    order: list[str] = []

    async def bad(peer: Peer) -> None:
        order.append("bad")
        if RELEASED.is_set():
            await peer.respond(b"well again")
        elif trouble is None:
            await peer.stream.aclose()
        else:
            await peer.respond(status=f"{trouble} Trouble")

    async def good(peer: Peer) -> None:
        order.append("good")
        if order.count("good") == 3:
            RELEASED.set()
        await peer.respond(b"fine")

    async with serving(bad) as down, serving(good) as up:
        urls = [f"{server.url}/{number}" for number in range(3) for server in (down, up)]
        results = await get(*urls, per_host=ClosedByTrouble(), capacity=1)
    assert [each["body"] for each in results] == ["well again", "fine"] * 3
    assert order == ["bad", "good", "good", "good", "bad", "bad", "bad"]


async def test_the_state_of_a_hosts_gates_lasts_for_the_next_task() -> None:
    async with responding(500, 500) as server:
        task = work("http_get", per_host=CircuitBreaker("fail", calls=2, open_for=600.0, max_open=600.0), retries=0)
        assert [each["status"] for each in await results_of(task, [server.url, server.url])] == [500, 500]
        [refused] = await results_of(task, [server.url])
        assert refused["error"]["type"] == "CircuitOpenError"
        assert len(server.requests) == 2


async def test_by_default_a_host_is_paused_for_its_retry_after() -> None:
    async with responding((429, {"retry-after": "1"}), 200, 200) as server:
        results = await get(f"{server.url}/a", f"{server.url}/b", capacity=1)
    assert [each["status"] for each in results] == [200, 200]
    assert len(server.requests) == 3


@pytest.mark.parametrize("gates", [5, "gate", [], [CircuitBreaker(), 5]], ids=str)
def test_gates_per_host_are_gates(gates: Any) -> None:
    with pytest.raises(TypeError, match=r"^per_host must be a Gate, a list of gates or None, got "):
        work("http_get", per_host=gates)


TROUBLE = {
    "429": RetryableError(HttpResponse(429, {}, "")),
    "503": RetryableError(HttpResponse(503, {}, "")),
    "500": RetryableError(HttpResponse(500, {}, "")),
    "no connection": RetryableConnectionError(None, ConnectionRefusedError()),
    "too late": TimeoutError(),
}


@pytest.mark.parametrize(
    ("name", "limit"), [("429", 0), ("503", 0), ("500", 20), ("no connection", 20), ("too late", 20)]
)
def test_only_429_and_503_lower_the_limit_of_a_host(name: str, limit: int) -> None:
    gate, error = HostCapacity(20, 20), TROUBLE[name]
    for _ in range(20):
        gate.started(0.0, 1.0)
    for _ in range(20):
        gate.ended(1.0, 1.0, Outcome("throttled" if name == "429" else "overload", error=error), 1.0)
    admitted = 0
    while admitted < 20 and not gate.delay(1.0, 1.0):
        gate.started(1.0, 1.0)
        admitted += 1
    assert admitted == limit


async def test_hosts_that_are_down_cost_their_own_rows_and_no_time() -> None:
    """One connection a row and retry, and no wait for the host to come back."""
    async with responding(*[200] * 40) as server:
        with refusing() as port:
            urls = [f"{server.url}/{number}" if number % 2 else f"http://127.0.0.1:{port}/" for number in range(80)]
            results = await get(*urls, retries=1)
    assert [each["status"] for each in results[1::2]] == [200] * 40
    assert [each["error"]["attempts"] for each in results[::2]] == [2] * 40


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://example.com/a?b", (b"http", b"example.com", 80)),
        (" HTTPS://user:pw@Example.com:8443/", (b"https", b"example.com", 8443)),
        ("http://", None),
        ("ftp://example.com", None),
        ("", None),
    ],
)
def test_the_host_is_the_origin_of_the_url(url: str, host: tuple[bytes, bytes, int] | None) -> None:
    origin = HttpRequest("GET", url).origin
    assert (None if origin is None else origin[:3]) == host


async def test_the_default_gate_ends_a_job_soon_whose_host_asks_to_wait_for_days(autojump_clock: MockClock) -> None:
    options = HttpOptions().settings().options
    hosts = [SimpleNamespace(origin=number % 2) for number in range(1000)]

    async def call(row: Any) -> None:
        error: Any = ConnectionError("the quota is used up")
        error.retry_after = 16 * 86_400.0
        raise error

    operator = ordered_wait(hosts, call, timeout=30.0, capacity=options.capacity, gate=options.gates, on_error="skip")
    with pytest.raises(ConnectionError, match="the quota is used up") as raised:
        await outputs(operator)
    assert 300.0 <= trio.current_time() < 400.0
    assert "asks to wait 16 days" in raised.value.__notes__[-1]
