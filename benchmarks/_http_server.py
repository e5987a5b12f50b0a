"""The HTTP server of the part `http`, in its own process: much faster than any client, and counts the requests.

`/reset?capacity=N` starts a round. The first responses of a round wait until N requests are in flight, which shows
whether a client keeps that many in flight. After that each request gets its response at once. `/count` returns the
number of requests in this round and the peak in flight.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import urlopen

import httptools

__all__ = ["reset", "served", "serving"]

BODY = b'{"origin": "JFK", "time_hour": "2013-01-01T10:00:00", "temp": 12.5, "wind": 3.25}'
HEADERS = b"date: Tue, 01 Jan 2013 00:00:00 GMT\r\nserver: benchmark\r\ncontent-type: application/json\r\n"
PATIENCE = 2.0  # seconds for which the first requests of a round wait for each other


def _rendered(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (HEADERS, len(body), body)


RESPONSE = _rendered(BODY)


class _Round:
    """The requests since the last reset."""

    capacity = 1
    requests = peak = 0
    is_open = True

    def __init__(self) -> None:
        self.waiting: list[asyncio.Transport] = []

    def begin(self, capacity: int) -> None:
        self.capacity, self.requests, self.peak, self.is_open = capacity, 0, 0, False
        asyncio.get_running_loop().call_later(PATIENCE, self.release)

    def take(self, transport: asyncio.Transport) -> None:
        self.requests += 1
        if self.is_open:
            transport.write(RESPONSE)
            return
        self.waiting.append(transport)
        self.peak = max(self.peak, len(self.waiting))
        if len(self.waiting) == self.capacity:
            self.release()

    def release(self) -> None:
        if self.waiting:
            self.is_open = True
        for transport in self.waiting:
            transport.write(RESPONSE)
        self.waiting.clear()


class _Connection(asyncio.Protocol):
    """One connection."""

    def __init__(self, current: _Round) -> None:
        self._round = current
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url = url

    def on_message_complete(self) -> None:
        if self._url.startswith(b"/reset"):
            self._round.begin(int(self._url.partition(b"capacity=")[2]))
            self._transport.write(_rendered(b"{}"))
        elif self._url == b"/count":
            count = {"requests": self._round.requests, "peak": self._round.peak}
            self._transport.write(_rendered(json.dumps(count).encode()))
        else:
            self._round.take(self._transport)


async def _serve() -> None:
    current = _Round()
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(current), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until the parent process closes the pipe


@contextmanager
def serving() -> Iterator[str]:
    """The URL of a server that runs during the block."""
    command = [sys.executable, "-m", "benchmarks._http_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()


def reset(url: str, capacity: int) -> None:
    """Start a round: the first responses wait until `capacity` requests are in flight."""
    with urlopen(f"{url}/reset?capacity={capacity}") as response:
        response.read()


def served(url: str) -> tuple[int, int]:
    """The number of requests in this round, and the peak in flight."""
    with urlopen(f"{url}/count") as response:
        count = json.load(response)
    return count["requests"], count["peak"]


if __name__ == "__main__":
    asyncio.run(_serve())
