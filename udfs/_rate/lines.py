"""JSON values over a TCP connection, one per line."""

from __future__ import annotations

import hmac
import json
from typing import Any

import trio

__all__ = ["Lines", "proof"]

MAX_BYTES = 4096  # of a line


class Lines:
    """Sends and receives values. Neither method may run twice at once.

    Args:
        stream: A connected stream.
    """

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._received = b""

    async def send(self, value: Any) -> None:
        """Send a value."""
        await self._stream.send_all(json.dumps(value).encode() + b"\n")

    async def receive(self) -> Any:
        """The next value.

        Raises:
            ConnectionError: The other side has closed the connection, or sent a line that is too long.
            ValueError: The line is not JSON.
        """
        while b"\n" not in self._received:
            data = await self._stream.receive_some(MAX_BYTES)
            self._received += data
            if not data or len(self._received) > MAX_BYTES:
                raise ConnectionError("the source of tokens has closed the connection")
        line, _, self._received = self._received.partition(b"\n")
        return json.loads(line)

    async def aclose(self) -> None:
        """Close the stream."""
        await trio.aclose_forcefully(self._stream)


def proof(challenge: str, secret: str) -> str:
    """The text that proves the knowledge of the secret, without showing it."""
    return hmac.new(secret.encode(), challenge.encode(), "sha256").hexdigest()
