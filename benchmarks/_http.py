"""Cost of an HTTP request through `udfs.http.client` and other clients, on loopback.

Each client makes the same requests with the same number of workers, on its own loop.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import trio

from udfs.http import client

from ._contenders import NOT_INSTALLED
from ._http_server import serving
from ._report import Line, Section
from ._rounds import Rounds, alternate

CAPACITY = 100
RATIOS = ("ratio", "from", "to")
FORMATS = {"requests/s": "{:,.0f}", **dict.fromkeys(RATIOS, "{:.2f}"), "μs CPU": "{:.0f}"}

Get = Callable[[str], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a request, or of a job.

    Attributes:
        seconds: Wall time.
        cpu: CPU seconds of this process.
    """

    seconds: float
    cpu: float


@dataclass(slots=True)
class Workers:
    """Workers that share a number of requests, each with a URL of its own.

    Attributes:
        url: The start of each URL.
        requests: Their number.
        workers: The number of workers.
    """

    url: str
    requests: int
    workers: int
    _left: int = 0

    async def work(self, get: Get) -> None:
        while self._left:
            self._left -= 1
            response = await get(f"{self.url}/JFK/{self._left}")
            assert response["temp"] == 12.5

    async def measured(self, together: Callable[[], Awaitable[None]]) -> Cost:
        self._left = 2 * self.workers  # opens the connections
        await together()
        self._left = self.requests
        wall, cpu = time.perf_counter(), time.process_time()
        await together()
        return Cost((time.perf_counter() - wall) / self.requests, (time.process_time() - cpu) / self.requests)


async def _on_trio(workers: Workers, http: Any) -> Cost:
    async def together() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(workers.workers):
                nursery.start_soon(workers.work, partial(_json_of, http))

    return await workers.measured(together)


async def _json_of(http: Any, url: str) -> Any:
    return (await http.get(url)).json()


async def _ours(workers: Workers) -> Cost:
    async with client() as http:
        return await _on_trio(workers, http)


async def _own_pool(module: str, workers: Workers) -> Cost:
    """httpx, or its successor, with its own pool."""
    library = importlib.import_module(module)
    limits = library.Limits(max_connections=workers.workers, max_keepalive_connections=workers.workers)
    async with library.AsyncClient(limits=limits, trust_env=False) as http:
        return await _on_trio(workers, http)


async def _aiohttp(workers: Workers) -> Cost:
    aiohttp = importlib.import_module("aiohttp")

    async def get(url: str) -> Any:
        async with session.get(url) as response:
            return await response.json()

    async def together() -> None:
        await asyncio.gather(*(workers.work(get) for _ in range(workers.workers)))

    connector = aiohttp.TCPConnector(limit=workers.workers)
    async with aiohttp.ClientSession(connector=connector) as session:
        return await workers.measured(together)


# By name: the package, the function, and the divisor of its number of requests, since slow clients would otherwise
# take most of the time.
CLIENTS: dict[str, tuple[str, Callable[[Workers], Cost], int]] = {
    "udfs.http.client": ("httpx", lambda workers: trio.run(_ours, workers), 1),
    "aiohttp on asyncio": ("aiohttp", lambda workers: asyncio.run(_aiohttp(workers)), 1),
    "httpx2, its own pool": ("httpx2", lambda workers: trio.run(_own_pool, "httpx2", workers), 4),
    "httpx, its own pool": ("httpx", lambda workers: trio.run(_own_pool, "httpx", workers), 10),
}


def http(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """Requests per second and CPU time per request at a capacity of 100, alternating in one process."""
    requests, rounds = (1_000, 3) if quick else (6_000, 7)
    runs: dict[str, Callable[[], Cost]] = {}
    with serving() as url:
        for name, (package, run, fewer) in CLIENTS.items():
            if find_spec(package) is not None:
                runs[name] = partial(run, Workers(f"{url}/weather", requests // fewer, CAPACITY))
        found = alternate(runs, rounds, on_step)
    section = Section(
        "HTTP: a request through a client",
        f"capacity {CAPACITY}, as many workers, one client, keep-alive, 82 bytes of JSON; the server runs in its own "
        f"process. Median of {rounds} alternating rounds of up to {requests:,} requests. Ratio to the first line "
        "in the same round, with its quartiles",
        FORMATS,
        name="http",
    )
    walls = Rounds({name: [cost.seconds for cost in costs] for name, costs in found.items()})
    cpus = Rounds({name: [cost.cpu for cost in costs] for name, costs in found.items()})
    section.lines.extend(_line(name, walls, cpus) for name in CLIENTS)
    return [section]


def _line(name: str, walls: Rounds, cpus: Rounds) -> Line:
    if name not in walls.numbers:
        return Line(name, {}, note=NOT_INSTALLED)
    values = {"requests/s": 1 / walls.median(name), "μs CPU": cpus.median(name) * 1e6}
    values |= zip(RATIOS, (walls.ratio(name), *walls.spread(name)), strict=True)
    return Line(name, values)
