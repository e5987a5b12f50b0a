"""The ASGI application, called without a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from udfs.demo._behaviour import Behaviour
from udfs.demo._lookup import LookupApp, LookupStatistics, bodies_by_path

PROMPT = Behaviour(mean_seconds=0, straggler_share=0, error_share=0)
SLOW = Behaviour(straggler_share=1, straggler_seconds=(1000, 1000), error_share=0)
ROWS = {"/planes/N1": b'{"seats": 2}', "/weather/EWR/now": b'{"temp": 39.02}'}


class Exchange:
    """One request and its response."""

    def __init__(self, path: str, method: str = "GET", client: str = "one") -> None:
        self.scope = {"type": "http", "method": method, "path": path, "client": client}
        self.waits = asyncio.Event()
        self.hung_up = asyncio.Event()
        self.body_read = False
        self.status = 0
        self.body = b""

    async def receive(self) -> Mapping[str, Any]:
        if not self.body_read:
            self.body_read = True
            return {"type": "http.request", "body": b"", "more_body": False}
        self.waits.set()
        await self.hung_up.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Mapping[str, Any]) -> None:
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")


async def request(app: LookupApp, path: str, method: str = "GET", client: str = "one") -> tuple[int, Any]:
    exchange = Exchange(path, method, client)
    await app(exchange.scope, exchange.receive, exchange.send)
    return exchange.status, json.loads(exchange.body)


async def statistics(app: LookupApp) -> LookupStatistics:
    return LookupStatistics(**(await request(app, "/stats"))[1])


def test_a_path_returns_its_row() -> None:
    app = LookupApp(PROMPT, ROWS)
    assert asyncio.run(request(app, "/planes/N1")) == (200, {"seats": 2})
    assert asyncio.run(request(app, "/weather/EWR/now")) == (200, {"temp": 39.02})


def test_a_missing_row_is_a_404() -> None:
    assert asyncio.run(request(LookupApp(PROMPT, ROWS), "/planes/NA")) == (
        404,
        {"error": "no such row: /planes/NA"},
    )


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("OPTIONS", "*"), ("POST", "/planes/N1"), ("GET", "/reset"), ("GET", "/planes")],
)
def test_other_routes_are_a_404_and_not_counted(method: str, path: str) -> None:
    status, body = asyncio.run(request(LookupApp(PROMPT, ROWS), path, method))
    assert status == 404
    assert set(body) == {"error"}


@pytest.mark.slow
def test_every_observation_and_aircraft_has_its_path() -> None:
    answers = bodies_by_path()
    assert len(answers) == 26_115 + 3_322
    assert json.loads(answers["/weather/EWR/2013-01-01T10:00:00Z"])["temp"] == 39.02
    assert json.loads(answers["/planes/N10156"])["seats"] == 55


def test_statistics_count_requests_and_responses() -> None:
    async def run() -> LookupStatistics:
        app = LookupApp(PROMPT, ROWS)
        for path in ("/planes/N1", "/planes/N1", "/planes/N2", "/weather/EWR/now"):
            await request(app, path)
        await request(app, "/planes/N1", client="two")
        return await statistics(app)

    assert asyncio.run(run()) == LookupStatistics(
        requests=5,
        weather=1,
        planes=4,
        ok=4,
        missing=1,
        failed=0,
        cancelled=0,
        in_flight=0,
        peak_in_flight=1,
        repeats_after_failure=0,
        distinct_paths=3,
        connections=2,
        mean_seconds=0.0,
    )


def test_a_repeat_after_a_failure_is_counted_until_the_path_succeeds() -> None:
    behaviour = Behaviour(mean_seconds=0, straggler_share=0, error_share=0.5)

    async def run() -> tuple[list[int], LookupStatistics]:
        app = LookupApp(behaviour, ROWS)
        statuses = [(await request(app, "/planes/N1"))[0] for _ in range(50)]
        return statuses, await statistics(app)

    statuses, seen = asyncio.run(run())
    assert seen.failed == statuses.count(500) > 10
    assert seen.repeats_after_failure == statuses[:-1].count(500)
    assert seen.ok == statuses.count(200) > 10


def test_the_peak_is_the_highest_number_in_flight() -> None:
    async def run() -> list[LookupStatistics]:
        app = LookupApp(SLOW, ROWS)
        exchanges = [Exchange("/planes/N1") for _ in range(7)]
        tasks = [asyncio.create_task(app(each.scope, each.receive, each.send)) for each in exchanges]
        for each in exchanges:
            await each.waits.wait()
        during = await statistics(app)
        for each in exchanges:
            each.hung_up.set()
        await asyncio.gather(*tasks)
        assert all(each.status == 0 for each in exchanges)
        last = Exchange("/planes/N1")
        last.hung_up.set()
        await app(last.scope, last.receive, last.send)
        return [during, await statistics(app)]

    during, after = asyncio.run(run())
    assert (during.in_flight, during.peak_in_flight, during.cancelled) == (7, 7, 0)
    assert (after.in_flight, after.peak_in_flight, after.cancelled) == (0, 7, 8)


def test_the_mean_latency_is_that_of_the_decisions() -> None:
    behaviour = Behaviour(mean_seconds=0.001, straggler_share=0, error_share=0)

    async def run() -> LookupStatistics:
        app = LookupApp(behaviour, ROWS)
        for _ in range(3):
            await request(app, "/planes/N1")
        return await statistics(app)

    slept = [behaviour.decide("/planes/N1", number).seconds for number in (1, 2, 3)]
    assert asyncio.run(run()).mean_seconds == pytest.approx(sum(slept) / 3)


def test_requests_in_flight_at_a_reset_are_not_counted_after_it() -> None:
    async def run() -> LookupStatistics:
        app = LookupApp(SLOW, ROWS)
        waiting = Exchange("/planes/N1")
        task = asyncio.create_task(app(waiting.scope, waiting.receive, waiting.send))
        await waiting.waits.wait()
        assert (await request(app, "/reset", "POST"))[0] == 200
        waiting.hung_up.set()
        await task
        return await statistics(app)

    seen = asyncio.run(run())
    assert (seen.requests, seen.in_flight, seen.peak_in_flight, seen.cancelled) == (0, 0, 0, 0)


def test_requests_for_trouble_are_not_counted() -> None:
    async def run() -> tuple[list[int], LookupStatistics]:
        app = LookupApp(PROMPT, ROWS)
        statuses = [(await request(app, "/flaky/a"))[0] for _ in range(4)]
        statuses += [(await request(app, path))[0] for path in ("/slow/0.001", "/slow", "/busy/a")]
        return statuses, await statistics(app)

    statuses, seen = asyncio.run(run())
    assert statuses == [503, 200, 503, 200, 200, 400, 429]
    assert seen.requests == seen.connections == 0


def test_a_client_that_hangs_up_on_slow_gets_no_response() -> None:
    exchange = Exchange("/slow/1000")
    exchange.hung_up.set()
    app = LookupApp(PROMPT, ROWS)
    asyncio.run(app(exchange.scope, exchange.receive, exchange.send))
    assert exchange.status == 0


def test_a_reset_includes_trouble() -> None:
    async def run() -> list[int]:
        app = LookupApp(PROMPT, ROWS)
        return [
            (await request(app, path, method))[0]
            for method, path in (("GET", "/flaky/a"), ("POST", "/reset"), ("GET", "/flaky/a"))
        ]

    assert asyncio.run(run()) == [503, 200, 503]
