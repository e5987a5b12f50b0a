"""The demo's async function: looks up the weather at a flight's origin, and its aircraft, over HTTP."""

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
    """Looks up the weather and the aircraft of a flight over HTTP.

    A 404 gives nulls. A 500 raises `httpx.HTTPStatusError`, so that the operator retries the flight.

    Args:
        url: The URL of the service.
        connections: The limit of idle connections that stay open, one per concurrent call.
        shared: Whether equal lookups share one request and its cached response. Many flights depart in the same hour
            or use the same aircraft. A retry then finds the responses of the attempt before it in the cache.
    """

    def __init__(self, url: str, connections: int, *, shared: bool = True) -> None:
        self._url = url
        self._connections = connections
        self._shared = shared

    async def open(self) -> None:
        """Open the client and the cache, once per Python worker."""
        self._http = client(base_url=self._url, max_idle=self._connections)
        self._look_up = cached(single_flight(self._get), size=100_000) if self._shared else self._get

    async def invoke(self, origin: str, time_hour: str, tailnum: str | None) -> dict[str, Any]:
        """The weather and the aircraft of one flight. Without a tail number, the aircraft is null."""
        weather = await self._look_up(f"/weather/{origin}/{time_hour}") or {}
        plane = (await self._look_up(f"/planes/{tailnum}") or {}) if tailnum is not None else {}
        return {name: weather.get(name) for name in _WEATHER} | {name: plane.get(name) for name in _PLANE}

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _get(self, path: str) -> dict[str, Any] | None:
        response = await self._http.get(path)
        if response.status_code == httpx.codes.NOT_FOUND:
            return None
        found: dict[str, Any] = response.raise_for_status().json()
        return found
