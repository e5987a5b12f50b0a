"""Messages between the driver and its workers: JSON values, one per line, each signed.

Both ends know a secret, which is not sent. Each sends a random number first. From the secret and both numbers follow
two keys, one for each direction. A line is signed with its direction's key and its position, so no line can be made by
anyone else, changed, repeated, reordered or left out, and none of one connection is valid in another one, or in the
other direction. The first signed line of each end proves that it knows the secret. Nothing is encrypted.
"""

from __future__ import annotations

import hmac
import json
import secrets
from typing import Any

import trio

MAX_BYTES = 4096  # of a line
HEX_DIGITS = 64  # of a random number, and of a signature
READY = "ready"


class UnsignedError(ConnectionError):
    """The other end does not know the secret, or somebody has changed what it sent."""

    advice = "Choose another port for the driver with port=, because another program uses this one"


class SignedLines:
    """One end of a connection. Call `connect` or `accept` first.

    Args:
        stream: A connected stream. The caller closes it, at the latest after an exception.
        secret: What both ends know.
    """

    def __init__(self, stream: trio.abc.Stream, secret: str) -> None:
        self._stream = stream
        self._secret = secret.encode()
        self._received = bytearray()
        self._sent_lines = self._received_lines = 0
        self._own_key = self._other_key = b""

    async def connect(self) -> None:
        """Begin as the client.

        Raises:
            UnsignedError: The server does not know the secret.
            ConnectionError: The server has closed the connection.
        """
        own = await self._send_number()
        other = await self._receive_number()
        self._own_key, self._other_key = self._keys(own, other)
        await self.receive()  # READY, which proves that the server knows the secret

    async def accept(self) -> None:
        """Begin as the server. The first line that `receive` returns proves that the client knows the secret."""
        other = await self._receive_number()
        own = await self._send_number()
        self._other_key, self._own_key = self._keys(other, own)
        await self.send(READY)

    async def send(self, value: Any) -> None:
        """Send a value. If it is longer than a line, the other end refuses it."""
        body = json.dumps(value).encode()
        line = b"%s %s\n" % (_signature(self._own_key, self._sent_lines, body), body)
        self._sent_lines += 1
        await self._stream.send_all(line)

    async def receive(self) -> Any:
        """The next value.

        Raises:
            UnsignedError: The line is not signed with the secret, or not the next one.
            ConnectionError: The connection ended before the line did, or the line is too long.
        """
        signature, _, body = (await self._receive_line()).partition(b" ")
        if not hmac.compare_digest(signature, _signature(self._other_key, self._received_lines, body)):
            raise UnsignedError("the other end does not know the secret of this application")
        self._received_lines += 1
        return json.loads(body)

    async def _send_number(self) -> bytes:
        number = secrets.token_hex(HEX_DIGITS // 2).encode()
        await self._stream.send_all(number + b"\n")
        return number

    async def _receive_number(self) -> bytes:
        number = await self._receive_line()
        if len(number) != HEX_DIGITS:
            raise UnsignedError("the other end is not a source of tokens")
        return number

    async def _receive_line(self) -> bytes:
        while (end := self._received.find(b"\n")) < 0:
            if len(self._received) >= MAX_BYTES:
                raise ConnectionError(f"a line has more than {MAX_BYTES} bytes")
            data = await self._stream.receive_some(MAX_BYTES)
            if not data:
                raise ConnectionError("the other end has closed the connection")
            self._received += data
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    def _keys(self, client: bytes, server: bytes) -> tuple[bytes, bytes]:
        """The keys for the lines of the client and of the server."""
        numbers = client + server
        return self._digest(b"client" + numbers), self._digest(b"server" + numbers)

    def _digest(self, text: bytes) -> bytes:
        return hmac.digest(self._secret, text, "sha256")


def _signature(key: bytes, position: int, body: bytes) -> bytes:
    return hmac.digest(key, position.to_bytes(8, "big") + body, "sha256").hex().encode()
