"""The function of the demo: for one flight, the weather at its origin and its aircraft, looked up over HTTP."""

from __future__ import annotations

from typing import Any, Final

import httpx

from trio_asyncio_io import AsyncFunction
from trio_asyncio_io.policies import cached, single_flight
from udfs.http import client

__all__ = ["SCHEMA", "FlightFacts"]

SCHEMA: Final = (
    "temp double, wind_speed double, precip double, visib double, manufacturer string, model string, seats int"
)

_WEATHER: Final = ("temp", "wind_speed", "precip", "visib")
_PLANE: Final = ("manufacturer", "model", "seats")


class FlightFacts(AsyncFunction[Any, dict[str, Any]]):
    """Asks the lookup service, once for equal questions: many flights share an hour, and fly the same aircraft.

    An honest 404 is an answer, and gives nulls. A 500 raises `httpx.HTTPStatusError`, for the operator to retry;
    what was found already is in the cache then.

    Args:
        url: Where the service is.
        connections: How many are kept open for the next requests: as many as calls are in flight.
    """

    def __init__(self, url: str, connections: int) -> None:
        self._url = url
        self._connections = connections

    async def open(self) -> None:
        """Open the client and the cache: once per Python worker."""
        self._http = client(base_url=self._url, max_idle=self._connections)
        self._look_up = cached(single_flight(self._get), size=100_000)

    async def invoke(self, origin: str, time_hour: str, tailnum: str | None) -> dict[str, Any]:
        """The weather and the aircraft of one flight; a row without a tail number has none."""
        weather = await self._look_up(f"/weather/{origin}/{time_hour}") or {}
        plane = (await self._look_up(f"/planes/{tailnum}") or {}) if tailnum is not None else {}
        return {name: weather.get(name) for name in _WEATHER} | {name: plane.get(name) for name in _PLANE}

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _get(self, path: str) -> dict[str, Any] | None:
        answer = await self._http.get(path)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        found: dict[str, Any] = answer.raise_for_status().json()
        return found
