"""The lookup service's ASGI application: serves weather and aircraft, and counts the requests.

It is written in bare ASGI, because one core has to serve several thousand requests per second beside the Spark job.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any, Final

from ._behaviour import Behaviour
from ._data import plane_by_tailnum, weather_by_hour
from ._trouble import TROUBLES, Trouble

__all__ = ["LookupApp", "LookupStatistics", "bodies_by_path"]

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_KINDS: Final = ("weather", "planes")


@dataclass(frozen=True, slots=True)
class LookupStatistics:
    """The counts of lookups since the start of the service or its last reset.

    `requests` is always the sum of `ok`, `missing`, `failed`, `cancelled` and `in_flight`.

    Attributes:
        requests: All lookups.
        weather, planes: Lookups of each kind.
        ok, missing, failed: Responses with status 200, 404 and 500.
        cancelled: Requests whose client hung up before the response.
        in_flight: Requests that are waiting for their response.
        peak_in_flight: The highest value of `in_flight`.
        repeats_after_failure: Requests for a path whose last response was a 500, which are the client's retries.
        distinct_paths: Different lookups. A perfect cache would save all other requests.
        connections: Connections with at least one lookup.
        mean_seconds: Mean latency of the responses.
    """

    requests: int
    weather: int
    planes: int
    ok: int
    missing: int
    failed: int
    cancelled: int
    in_flight: int
    peak_in_flight: int
    repeats_after_failure: int
    distinct_paths: int
    connections: int
    mean_seconds: float


class _Tally:
    """The counters behind `LookupStatistics`."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.paths: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.failing_paths: set[str] = set()
        self.clients: set[object] = set()
        self.cancelled = self.in_flight = self.peak_in_flight = self.repeats = 0
        self.seconds = 0.0

    def begin(self, kind: str, path: str, client: object) -> int:
        """Count a request; the number of requests for its path, this one included."""
        self.kinds[kind] += 1
        self.paths[path] += 1
        self.clients.add(client)
        self.repeats += path in self.failing_paths
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        return self.paths[path]

    def cancel(self) -> None:
        self.in_flight -= 1
        self.cancelled += 1

    def complete(self, path: str, status: int, seconds: float) -> None:
        self.in_flight -= 1
        self.statuses[status] += 1
        self.seconds += seconds
        if status == HTTPStatus.INTERNAL_SERVER_ERROR:
            self.failing_paths.add(path)
        else:
            self.failing_paths.discard(path)

    def statistics(self) -> LookupStatistics:
        return LookupStatistics(
            requests=self.kinds.total(),
            weather=self.kinds["weather"],
            planes=self.kinds["planes"],
            ok=self.statuses[HTTPStatus.OK],
            missing=self.statuses[HTTPStatus.NOT_FOUND],
            failed=self.statuses[HTTPStatus.INTERNAL_SERVER_ERROR],
            cancelled=self.cancelled,
            in_flight=self.in_flight,
            peak_in_flight=self.peak_in_flight,
            repeats_after_failure=self.repeats,
            distinct_paths=len(self.paths),
            connections=len(self.clients),
            mean_seconds=self.seconds / max(1, self.statuses.total()),
        )


class LookupApp:
    """An ASGI application: `/weather/{origin}/{time_hour}`, `/planes/{tailnum}`, and the routes of `Trouble`.

    A lookup gets its response after a latency that the behaviour decides: a 200 with the row, a 404 if there is none,
    or a 500. If the client hangs up first, the request counts as cancelled. `GET /stats` returns the statistics and
    `POST /reset` sets them to zero; neither is delayed or counted, nor are requests to the routes of `Trouble`.
    Requests in flight at a reset are not counted after it.

    Args:
        behaviour: Latencies and errors.
        bodies: The response body for each path that exists.
    """

    def __init__(self, behaviour: Behaviour, bodies: Mapping[str, bytes]) -> None:
        self._behaviour = behaviour
        self._bodies = bodies
        self._tally = _Tally()
        self._trouble = Trouble()

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Respond to one request."""
        method, path = scope["method"], scope["path"]
        kind = path.removeprefix("/").partition("/")[0]
        if kind in _KINDS and method == "GET":
            await self._look_up(kind, path, scope["client"], receive, send)
        elif kind in TROUBLES and method == "GET":
            await self._make_trouble(kind, path, receive, send)
        elif (method, path) == ("GET", "/stats"):
            await _respond(send, HTTPStatus.OK, _as_json(asdict(self._tally.statistics())))
        elif (method, path) == ("POST", "/reset"):
            self._tally, self._trouble = _Tally(), Trouble()
            await _respond(send, HTTPStatus.OK, _as_json({}))
        else:
            await _respond(send, HTTPStatus.NOT_FOUND, _as_json({"error": f"no such route: {method} {path}"}))

    async def _look_up(self, kind: str, path: str, client: object, receive: Receive, send: Send) -> None:
        tally = self._tally
        seconds, fails = self._behaviour.decide(path, tally.begin(kind, path, client))
        if seconds and await _hangs_up(receive, seconds):
            tally.cancel()
            return
        status, body = self._result(path, fails=fails)
        # Count it before sending it: a client that has its response may send its next request immediately
        tally.complete(path, status, seconds)
        await _respond(send, status, body)

    async def _make_trouble(self, kind: str, path: str, receive: Receive, send: Send) -> None:
        response = self._trouble.response(kind, path.removeprefix(f"/{kind}").removeprefix("/"))
        if response.seconds and await _hangs_up(receive, response.seconds):
            return
        await _respond(send, response.status, _as_json(response.body), response.headers)

    def _result(self, path: str, *, fails: bool) -> tuple[int, bytes]:
        if fails:
            return HTTPStatus.INTERNAL_SERVER_ERROR, _as_json({"error": "temporary failure: try again"})
        body = self._bodies.get(path)
        if body is None:
            return HTTPStatus.NOT_FOUND, _as_json({"error": f"no such row: {path}"})
        return HTTPStatus.OK, body


def bodies_by_path() -> dict[str, bytes]:
    """The response body for each observation and each aircraft."""
    weather = {f"/weather/{origin}/{hour}": row for (origin, hour), row in weather_by_hour().items()}
    planes = {f"/planes/{tailnum}": row for tailnum, row in plane_by_tailnum().items()}
    return {path: _as_json(row) for path, row in (weather | planes).items()}


async def _hangs_up(receive: Receive, seconds: float) -> bool:
    """Wait for these seconds, or until the client hangs up; whether it did."""
    try:
        async with asyncio.timeout(seconds):
            while (await receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return False
    return True


async def _respond(send: Send, status: int, body: bytes, extra: Sequence[tuple[bytes, bytes]] = ()) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _as_json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, allow_nan=False).encode()
