"""Lookup: the ASGI application that answers for the weather and the aircraft, and counts what it is asked.

It is written on bare ASGI because one core has to give several thousand answers a second, beside the job
that asks for them.
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

__all__ = ["LookupApp", "LookupStatistics", "answers_by_path"]

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_KINDS: Final = ("weather", "planes")


@dataclass(frozen=True, slots=True)
class LookupStatistics:
    """What the service was asked and has answered since its start or its last reset.

    `requests` is always the sum of `ok`, `missing`, `failed`, `cancelled` and `in_flight`.

    Attributes:
        requests: Lookups that came in; `weather` and `planes` are how many of each.
        ok, missing, failed: Answers with status 200, 404 and 500.
        cancelled: Requests whose client hung up before the answer.
        in_flight, peak_in_flight: Requests that wait for their answer now, and most at once.
        repeats_after_failure: Requests for a path whose last answer was a 500: the retries seen from here.
        distinct_paths: Different lookups; `requests` minus this is what a perfect cache would have saved.
        connections: Connections that carried at least one lookup.
        mean_seconds: Mean latency of the answers, as slept.
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
        self.asked: Counter[str] = Counter()
        self.answers: Counter[int] = Counter()
        self.last_failed: set[str] = set()
        self.clients: set[object] = set()
        self.cancelled = self.in_flight = self.peak_in_flight = self.repeats = 0
        self.slept = 0.0

    def begin(self, kind: str, path: str, client: object) -> int:
        """How often the path was asked, this time included."""
        self.kinds[kind] += 1
        self.asked[path] += 1
        self.clients.add(client)
        self.repeats += path in self.last_failed
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        return self.asked[path]

    def cancel(self) -> None:
        self.in_flight -= 1
        self.cancelled += 1

    def answer(self, path: str, status: int, seconds: float) -> None:
        self.in_flight -= 1
        self.answers[status] += 1
        self.slept += seconds
        failed = status == HTTPStatus.INTERNAL_SERVER_ERROR
        (self.last_failed.add if failed else self.last_failed.discard)(path)

    def statistics(self) -> LookupStatistics:
        return LookupStatistics(
            requests=self.kinds.total(),
            weather=self.kinds["weather"],
            planes=self.kinds["planes"],
            ok=self.answers[HTTPStatus.OK],
            missing=self.answers[HTTPStatus.NOT_FOUND],
            failed=self.answers[HTTPStatus.INTERNAL_SERVER_ERROR],
            cancelled=self.cancelled,
            in_flight=self.in_flight,
            peak_in_flight=self.peak_in_flight,
            repeats_after_failure=self.repeats,
            distinct_paths=len(self.asked),
            connections=len(self.clients),
            mean_seconds=self.slept / max(1, self.answers.total()),
        )


class LookupApp:
    """An ASGI application: `GET /weather/{origin}/{time_hour}`, `GET /planes/{tailnum}`, and some trouble.

    A lookup is answered after the latency that the behaviour decides: 200 with the row, 404 where there is
    none, or a 500. A client that hangs up before is counted and forgotten at once. `GET /stats` and `POST
    /reset` are neither delayed nor counted. What was in flight at a reset belongs to the time before it. Requests
    that a `Trouble` answers are not counted either.

    Args:
        behaviour: Latencies and failures.
        answers: The body for each path that exists.
    """

    def __init__(self, behaviour: Behaviour, answers: Mapping[str, bytes]) -> None:
        self._behaviour = behaviour
        self._answers = answers
        self._tally = _Tally()
        self._trouble = Trouble()

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        method, path = scope["method"], scope["path"]
        kind = path.removeprefix("/").partition("/")[0]
        if kind in _KINDS and method == "GET":
            await self._look_up(kind, path, scope["client"], receive, send)
        elif kind in TROUBLES and method == "GET":
            await self._give_trouble(kind, path, receive, send)
        elif (method, path) == ("GET", "/stats"):
            await _reply(send, HTTPStatus.OK, _as_json(asdict(self._tally.statistics())))
        elif (method, path) == ("POST", "/reset"):
            self._tally, self._trouble = _Tally(), Trouble()
            await _reply(send, HTTPStatus.OK, _as_json({}))
        else:
            await _reply(send, HTTPStatus.NOT_FOUND, _as_json({"error": f"there is no {method} {path} here"}))

    async def _look_up(self, kind: str, path: str, client: object, receive: Receive, send: Send) -> None:
        tally = self._tally
        seconds, fails = self._behaviour.decide(path, tally.begin(kind, path, client))
        if seconds and await _hangs_up(receive, seconds):
            tally.cancel()
            return
        status, body = self._answer(path, fails=fails)
        # Before it is sent: a client that has its answer may ask again at once.
        tally.answer(path, status, seconds)
        await _reply(send, status, body)

    async def _give_trouble(self, kind: str, path: str, receive: Receive, send: Send) -> None:
        answer = self._trouble.answer(kind, path.removeprefix(f"/{kind}").removeprefix("/"))
        if answer.seconds and await _hangs_up(receive, answer.seconds):
            return
        await _reply(send, answer.status, _as_json(answer.body), answer.headers)

    def _answer(self, path: str, *, fails: bool) -> tuple[int, bytes]:
        if fails:
            error = {"error": "the service has a bad moment: try again"}
            return HTTPStatus.INTERNAL_SERVER_ERROR, _as_json(error)
        body = self._answers.get(path)
        if body is None:
            return HTTPStatus.NOT_FOUND, _as_json({"error": f"no such row: {path}"})
        return HTTPStatus.OK, body


def answers_by_path() -> dict[str, bytes]:
    """The body for each observation and each aircraft, under the path that asks for it."""
    weather = {f"/weather/{origin}/{hour}": row for (origin, hour), row in weather_by_hour().items()}
    planes = {f"/planes/{tailnum}": row for tailnum, row in plane_by_tailnum().items()}
    return {path: _as_json(row) for path, row in (weather | planes).items()}


async def _hangs_up(receive: Receive, seconds: float) -> bool:
    """Whether the client hangs up within these seconds; they pass in any case if it does not."""
    try:
        async with asyncio.timeout(seconds):
            while (await receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return False
    return True


async def _reply(send: Send, status: int, body: bytes, more: Sequence[tuple[bytes, bytes]] = ()) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _as_json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, allow_nan=False).encode()
