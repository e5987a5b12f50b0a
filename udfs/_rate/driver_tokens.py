"""Requests tokens of the thread on the driver, from a worker process."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import trio

from .lease import Answer, Request
from .lines import Lines, proof
from .tokens import Grant

__all__ = ["DriverTokens"]


@dataclass(unsafe_hash=True)
class DriverTokens:
    """Asks over one connection, which stays open.

    Args:
        host, port: The address of the server.
        secret: The server's.
        name: The name of the rate.
    """

    host: str
    port: int
    secret: str = field(repr=False)
    name: str
    _lines: Lines | None = field(default=None, init=False, repr=False, compare=False)

    async def ask(self, request: Request) -> Answer:
        """Return the server's answer.

        Raises:
            Exception: There is no answer.

        Cancellation: the connection is closed; the next call opens another one.
        """
        lines = self._lines or await self._connected()
        self._lines = None  # until the answer is complete
        try:
            sent = trio.current_time()
            await lines.send({"name": self.name, **asdict(request)})
            answer = Answer(Grant(**await lines.receive()), sent, trio.current_time())
        except BaseException:
            await lines.aclose()
            raise
        self._lines = lines
        return answer

    async def aclose(self) -> None:
        """Close the connection."""
        if self._lines is not None:
            await self._lines.aclose()
            self._lines = None

    async def _connected(self) -> Lines:
        lines = Lines(await trio.open_tcp_stream(self.host, self.port))
        try:
            await lines.send(proof(await lines.receive(), self.secret))
        except BaseException:
            await lines.aclose()
            raise
        return lines
