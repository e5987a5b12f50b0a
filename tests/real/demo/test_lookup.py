"""The lookup service's ASGI application, called without a server."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from statistics import mean, median
from typing import Any

import pytest

from udfs.demo.service import LookupApp, bodies_by_path, latency

ROWS = {"/planes/N1": b'{"seats": 2}', "/weather/EWR/now": b'{"temp": 39.02}'}
MANY = 5_000


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Exchange:
    """One request and its response."""

    def __init__(self, path: str, method: str = "GET") -> None:
        self.scope = {"type": "http", "method": method, "path": path}
        self.status = 0
        self.headers: Mapping[bytes, bytes] = {}
        self.body = b""

    async def receive(self) -> Mapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(self, message: Mapping[str, Any]) -> None:
        self.status = message.get("status", self.status)
        self.headers = dict(message.get("headers", self.headers))
        self.body += message.get("body", b"")


async def exchange(app: LookupApp, path: str, method: str = "GET") -> Exchange:
    done = Exchange(path, method)
    await app(done.scope, done.receive, done.send)
    return done


def request(app: LookupApp, path: str, method: str = "GET") -> tuple[int, Any]:
    done = asyncio.run(exchange(app, path, method))
    assert done.headers[b"content-length"] == b"%d" % len(done.body)
    return done.status, json.loads(done.body)


def statuses(app: LookupApp, *paths: str) -> list[int]:
    return [request(app, path)[0] for path in paths]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def app(clock: Clock) -> LookupApp:
    return LookupApp(ROWS, faults=False, clock=clock)


def share_within(observed: int, share: float) -> bool:
    """Whether a count of `MANY` is within four standard deviations of its share."""
    return abs(observed - MANY * share) <= 4 * math.sqrt(MANY * share * (1 - share))


def test_latencies_have_a_mean_of_20_ms_and_a_long_tail() -> None:
    seconds = [latency(f"/planes/N{number}", 1, faults=False)[0] for number in range(MANY)]
    error_of_the_mean = 0.020 * math.sqrt(1 / 0.36 - 1) / math.sqrt(MANY)
    assert mean(seconds) == pytest.approx(0.020, abs=4 * error_of_the_mean)
    assert median(seconds) == pytest.approx(0.012, rel=0.05)


def test_only_with_faults_one_request_in_a_hundred_is_a_straggler_and_one_in_two_hundred_fails() -> None:
    decided = [latency(f"/planes/N{number}", 1, faults=True) for number in range(MANY)]
    assert share_within(sum(seconds >= 0.5 for seconds, _ in decided), 0.01)
    assert max(seconds for seconds, _ in decided) < 1.5
    assert share_within(sum(fails for _, fails in decided), 0.005)
    assert not any(latency(f"/planes/N{number}", 1, faults=False)[1] for number in range(MANY))


def test_latencies_are_the_same_on_every_machine() -> None:
    seconds, fails = latency("/planes/N14228", 1, faults=True)
    assert (round(seconds, 6), fails) == (0.0019, False)


def test_a_path_returns_its_row(app: LookupApp) -> None:
    assert request(app, "/planes/N1") == (200, {"seats": 2})
    assert request(app, "/weather/EWR/now") == (200, {"temp": 39.02})


def test_a_missing_row_is_a_404(app: LookupApp) -> None:
    assert request(app, "/planes/NA") == (404, {"error": "no such row: /planes/NA"})


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *[("GET", "/"), ("OPTIONS", "*"), ("POST", "/planes/N1"), ("GET", "/reset")],
        *[("GET", f"/slow/{seconds}") for seconds in ("", "abc", "nan", "inf", "-1")],
    ],
)
def test_other_routes_are_a_404_and_not_counted(app: LookupApp, method: str, path: str) -> None:
    status, body = request(app, path, method)
    assert (status, body) == (404, {"error": f"no such route: {method} {path}"})
    assert request(app, "/stats") == (200, {})


@pytest.mark.slow
def test_every_observation_and_aircraft_has_its_path() -> None:
    bodies = bodies_by_path()
    assert len(bodies) == 26_115 + 3_322
    assert json.loads(bodies["/weather/EWR/2013-01-01T10:00:00Z"])["temp"] == 39.02
    assert json.loads(bodies["/planes/N10156"])["seats"] == 55


def test_statistics_count_requests_by_result(app: LookupApp) -> None:
    statuses(app, "/planes/N1", "/planes/N1", "/planes/N2", "/weather/EWR/now")
    assert request(app, "/stats")[1] == {"requests": 4, "slow": 0, "200": 3, "404": 1}


def test_a_fault_is_a_500_or_a_slow_response_and_is_counted() -> None:
    failing = next(f"/planes/N{n}" for n in range(MANY) if latency(f"/planes/N{n}", 1, faults=True)[1])
    slow = next(f"/planes/N{n}" for n in range(MANY) if latency(f"/planes/N{n}", 1, faults=True)[0] >= 0.5)
    app = LookupApp({slow: b"{}"}, faults=True)
    assert statuses(app, failing, slow) == [500, 200]
    assert request(app, "/stats")[1] == {"requests": 2, "slow": 1, "500": 1, "200": 1}


def test_requests_in_flight_at_a_reset_are_not_counted_after_it(app: LookupApp) -> None:
    async def run() -> None:
        waiting = Exchange("/planes/N1")
        task = asyncio.create_task(app(waiting.scope, waiting.receive, waiting.send))
        await asyncio.sleep(0)
        assert (await exchange(app, "/reset", "POST")).status == 200
        await task

    asyncio.run(run())
    assert request(app, "/stats") == (200, {})


def test_flaky_fails_every_other_time_for_each_key(app: LookupApp) -> None:
    assert statuses(app, *(f"/flaky/{key}" for key in "aaba")) == [503, 200, 503, 503]
    assert request(app, "/stats") == (200, {}), "only weather and planes are counted"


def test_busy_is_a_200_only_after_retry_after(app: LookupApp, clock: Clock) -> None:
    first = asyncio.run(exchange(app, "/busy/a"))
    clock.now += 0.5
    second = asyncio.run(exchange(app, "/busy/a"))
    clock.now += 0.5
    third = asyncio.run(exchange(app, "/busy/a"))
    assert [first.status, second.status, third.status] == [429, 429, 200]
    assert [each.headers.get(b"retry-after") for each in (first, second, third)] == [b"1", b"1", None]
    assert statuses(app, "/busy/a") == [429], "it starts over after a 200"
