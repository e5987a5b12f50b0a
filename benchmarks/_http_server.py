"""An HTTP server in a process of its own.

It is much faster than any client, and responds at once. Paths below `/slow` have the latencies of `_latencies`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httptools

from ._latencies import seconds_of

BODY = b'{"origin": "JFK", "time_hour": "2013-01-01T10:00:00", "temp": 12.5, "wind": 3.25}'
HEADERS = b"date: Tue, 01 Jan 2013 00:00:00 GMT\r\nserver: benchmark\r\ncontent-type: application/json\r\n"
SLOW = b"/slow/"


class _Connection(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._loop = transport, asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url = url

    def on_message_complete(self) -> None:
        if self._url.startswith(SLOW):
            number = int(self._url.removeprefix(SLOW))
            self._loop.call_later(seconds_of(number), self._respond, b'{"answer": %d}' % number)
        else:
            self._respond(BODY)

    def _respond(self, body: bytes) -> None:
        self._transport.write(b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (HEADERS, len(body), body))


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0)
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


if __name__ == "__main__":
    asyncio.run(_serve())
