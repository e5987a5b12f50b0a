"""The measured HTTP clients. Each makes the same requests with the same number of workers, on its own loop."""

from __future__ import annotations

import asyncio
import importlib
import json
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httptools
import trio

from udfs.http import client

__all__ = ["CLIENTS", "QUICK_CLIENTS", "Cost", "Workers"]

Get = Callable[[str], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a request.

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
        context: The client's side of TLS, or None.
    """

    url: str
    requests: int
    workers: int
    context: ssl.SSLContext | None = None
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


async def _on_trio(workers: Workers, gets: list[Get]) -> Cost:
    async def together() -> None:
        async with trio.open_nursery() as nursery:
            for get in gets:
                nursery.start_soon(workers.work, get)

    return await workers.measured(together)


async def _json_of(http: Any, url: str) -> Any:
    return (await http.get(url)).json()


async def _ours(workers: Workers) -> Cost:
    async with client(verify=workers.context or True) as http:
        return await _on_trio(workers, [partial(_json_of, http)] * workers.workers)


async def _own_pool(module: str, workers: Workers) -> Cost:
    """httpx, or its successor, with its own pool."""
    library = importlib.import_module(module)
    limits = library.Limits(max_connections=workers.workers, max_keepalive_connections=workers.workers)
    async with library.AsyncClient(limits=limits, trust_env=False, verify=workers.context or True) as http:
        return await _on_trio(workers, [partial(_json_of, http)] * workers.workers)


class _Bare:
    """The minimum on Trio: its streams and httptools, without timeouts, checks or retries."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._stream: trio.abc.Stream | None = None
        self._parts: list[bytes] = []
        self._parser = httptools.HttpResponseParser(self)

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        self._is_complete = True

    async def get(self, url: str) -> Any:
        parts = urlsplit(url)
        if self._stream is None:
            assert parts.hostname is not None
            assert parts.port is not None
            self._stream = await trio.open_tcp_stream(parts.hostname, parts.port)
            if self._context is not None:
                self._stream = trio.SSLStream(self._stream, self._context, server_hostname=parts.hostname)
        self._parts, self._is_complete = [], False
        await self._stream.send_all(f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        while not self._is_complete:
            self._parser.feed_data(await self._stream.receive_some())
        return json.loads(b"".join(self._parts))

    async def aclose(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()


async def _bare(workers: Workers) -> Cost:
    bare = [_Bare(workers.context) for _ in range(workers.workers)]
    try:
        return await _on_trio(workers, [each.get for each in bare])
    finally:
        for each in bare:
            await each.aclose()


async def _aiohttp(workers: Workers) -> Cost:
    aiohttp = importlib.import_module("aiohttp")

    async def get(url: str) -> Any:
        async with http.get(url) as response:
            return await response.json()

    async def together() -> None:
        await asyncio.gather(*(workers.work(get) for _ in range(workers.workers)))

    connector = aiohttp.TCPConnector(limit=workers.workers, ssl=workers.context or True)
    async with aiohttp.ClientSession(connector=connector) as http:
        return await workers.measured(together)


# By name: the package, the function, and the divisor of its number of requests, since slow clients would otherwise
# take most of the time.
CLIENTS: dict[str, tuple[str, Callable[[Workers], Cost], int]] = {
    "udfs.http.client": ("httpx", partial(trio.run, _ours), 1),
    "aiohttp on asyncio": ("aiohttp", lambda workers: asyncio.run(_aiohttp(workers)), 1),
    "bare Trio streams and httptools": ("httptools", partial(trio.run, _bare), 1),
    "httpx2, its own pool": ("httpx2", partial(trio.run, partial(_own_pool, "httpx2")), 4),
    "httpx, its own pool": ("httpx", partial(trio.run, partial(_own_pool, "httpx")), 10),
}

# Those that are fast enough for TLS, too
QUICK_CLIENTS = ("udfs.http.client", "aiohttp on asyncio", "bare Trio streams and httptools")
