"""The HTTP server of the benchmark's part `http`: a process with a port for HTTP and a port for HTTPS.

It is much faster than any client, and responds to each request at once.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httptools
import trustme

__all__ = ["Server", "serving"]

BODY = b'{"origin": "JFK", "time_hour": "2013-01-01T10:00:00", "temp": 12.5, "wind": 3.25}'
HEADERS = b"date: Tue, 01 Jan 2013 00:00:00 GMT\r\nserver: benchmark\r\ncontent-type: application/json\r\n"
RESPONSE = b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (HEADERS, len(BODY), BODY)


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server is.

    Attributes:
        url: Without TLS.
        tls_url: With TLS.
        authority: The certificate of the authority that signed its certificate, in PEM.
    """

    url: str
    tls_url: str
    authority: str


class _Connection(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._transport.write(RESPONSE)


async def _serve() -> None:
    loop, authority = asyncio.get_running_loop(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    ports = []
    for tls in (None, context):
        server = await loop.create_server(_Connection, "127.0.0.1", 0, ssl=tls)
        ports.append(server.sockets[0].getsockname()[1])
    print(json.dumps([*ports, authority.cert_pem.bytes().decode()]), flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until the parent process closes the pipe


@contextmanager
def serving() -> Iterator[Server]:
    """A server that runs during the block."""
    command = [sys.executable, "-m", "benchmarks._http_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port, tls_port, authority = json.loads(process.stdout.readline())
            yield Server(f"http://127.0.0.1:{port}", f"https://127.0.0.1:{tls_port}", authority)
        finally:
            process.stdin.close()


if __name__ == "__main__":
    asyncio.run(_serve())
