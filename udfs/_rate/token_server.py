"""A thread on the driver that grants tokens to the processes of its application, over TCP."""

from __future__ import annotations

import atexit
import hmac
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any

import trio

from .lines import Lines, proof
from .tokens import TokenSource

__all__ = ["TokenServer"]

POLL_SECONDS = 0.2
LOGIN_SECONDS = 5.0


class TokenServer:
    """Listens on a free port until it is closed or its application is over.

    A client must know the secret: it answers a random text with the text's HMAC.

    Args:
        host: The address to listen on.
        is_over: Whether the application is over. Called in the thread, some times a second.

    Attributes:
        port: As given by the system.
        secret: For clients.

    Raises:
        OSError: It cannot listen on that address.
    """

    def __init__(self, host: str, is_over: Callable[[], bool]) -> None:
        self.secret = secrets.token_hex(32)
        self._host = host
        self._is_over = is_over
        self._sources: dict[str, TokenSource] = {}
        self._rates: dict[str, float] = {}
        self._listening = threading.Event()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=trio.run, args=(self._main,), name="udfs-cluster-rate", daemon=True)
        self._thread.start()
        self._listening.wait()
        if self._error is not None:
            raise self._error
        atexit.register(self.close)

    def add(self, name: str, rate: float, settling: float) -> None:
        """Grant tokens of this rate under this name. Nothing changes if there is such a rate.

        Raises:
            ValueError: The name has another rate.
        """
        if self._rates.setdefault(name, rate) != rate:
            raise ValueError(
                f"the cluster_rate named {name!r} is {self._rates[name]:g} calls per second in this session, got "
                f"{rate:g}: give the other rate another name"
            )
        self._sources.setdefault(name, TokenSource(rate, settling))

    @property
    def is_running(self) -> bool:
        """Whether it listens."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End the thread. Wait until it has ended."""
        atexit.unregister(self.close)
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._scope.cancel)
        self._thread.join()

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        with trio.CancelScope() as self._scope:
            async with trio.open_nursery() as nursery:
                try:
                    listeners = await nursery.start(partial(trio.serve_tcp, self._serve, 0, host=self._host))
                except OSError as error:
                    self._error = error
                    return
                else:
                    self.port: int = listeners[0].socket.getsockname()[1]
                finally:
                    self._listening.set()
                while not self._is_over():  # noqa: ASYNC110 - Spark sets no event
                    await trio.sleep(POLL_SECONDS)
                nursery.cancel_scope.cancel()

    async def _serve(self, stream: trio.SocketStream) -> None:
        lines = Lines(stream)
        with suppress(Exception):  # the client is gone, or is none of ours
            if await self._is_admitted(lines):
                while True:
                    await lines.send(self._answer(**await lines.receive()))

    async def _is_admitted(self, lines: Lines) -> bool:
        challenge = secrets.token_hex(16)
        await lines.send(challenge)
        with trio.move_on_after(LOGIN_SECONDS):
            return hmac.compare_digest(str(await lines.receive()), proof(challenge, self.secret))
        return False

    def _answer(self, name: str, **request: Any) -> dict[str, Any]:
        return asdict(self._sources[name].grant(trio.current_time(), **request))
