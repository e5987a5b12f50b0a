"""Runs an ASGI application as a process on 127.0.0.1."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from .._extras import needs_extra

with needs_extra("the demo's lookup service", "demo"):
    import uvicorn

__all__ = ["listener", "running_process", "serve"]

READY: Final = "listening on "
_BACKLOG: Final = 2048
_KEEP_ALIVE_SECONDS: Final = 75  # longer than any client keeps an idle connection, so that no client finds it closed


@contextmanager
def running_process(module: str, *options: str) -> Iterator[str]:
    """Run a service in a process of its own that ends with the block or with this process.

    Ctrl-C in the terminal does not reach it.

    Args:
        module: Its module, whose `main` calls `serve`.
        options: The options of its command line.

    Returns:
        Its URL, without a trailing slash.

    Raises:
        RuntimeError: It did not start. The reason is on standard error.
    """
    command = [sys.executable, "-m", module, "--port", "0", "--with-parent", *options]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith(READY):
                raise RuntimeError(f"{module} did not start: see its error above")
            yield line.removeprefix(READY).strip()
        finally:
            process.kill()  # it has no state to save


class _Server(uvicorn.Server):
    """Exits immediately on a signal, without waiting for requests in flight."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        os._exit(0)


def serve(app: Callable[..., Awaitable[None]], options: argparse.Namespace) -> None:
    """Serve until SIGTERM, SIGINT or, with `--with-parent`, the end of standard input.

    The first line on standard output is `listening on URL`. The service is then ready for requests.

    Args:
        app: An ASGI application.
        options: `port` and `with_parent`.

    Raises:
        SystemExit: The port is in use.
    """
    if options.with_parent:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        with listener(options.port) as listening:
            config = uvicorn.Config(
                app,
                http="httptools",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            )
            print(f"{READY}http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
            _Server(config).run(sockets=[listening])
    except KeyboardInterrupt:  # Ctrl-C before the server has installed its handler
        return


def listener(port: int) -> socket.socket:
    """A socket that listens on this port of 127.0.0.1.

    Raises:
        SystemExit: The port is in use.
    """
    try:
        listening = socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        sys.exit(f"error: port {port}: {reason}. Choose another: --port N, or --port 0 for any free one")
    # Connections inherit TCP_NODELAY. asyncio sets it only on sockets with an explicit protocol number. Without it each
    # response takes 40 ms longer, because uvicorn writes head and body separately.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _end_with_parent() -> None:
    while os.read(0, 1024):  # until the parent has closed it or has ended
        pass
    os._exit(0)
