"""The service that the demo and the examples of the documentation call: weather, aircraft, and some trouble.

    python -m udfs.demo.service               on http://127.0.0.1:8000
    python -m udfs.demo.service --port 0      on any free port

It prints its URL as soon as it answers. Ctrl-C stops it.

    GET /weather/{origin}/{time_hour}    an hour's weather at EWR, JFK or LGA, or 404
    GET /planes/{tailnum}                an aircraft, or 404
    GET /flaky/{key}                     503 and 200 in turn, for each key
    GET /busy/{key}                      429 with Retry-After, then 200 for a caller that has waited that long
    GET /slow/{seconds}                  200, after so many seconds
    GET /stats, POST /reset              what it was asked for; forget that

`time_hour` is in UTC, as in `/weather/EWR/2013-01-01T10:00:00Z`; there is weather for every hour of 2013.
"""

from __future__ import annotations

import argparse
import errno
import os
import select
import socket
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Final

from ._behaviour import Behaviour
from ._lookup import LookupApp, answers_by_path

try:
    import uvicorn
except ModuleNotFoundError as error:
    message = f"the demo's lookup service needs {error.name}: pip install 'trio-asyncio-io[demo]'"
    raise ModuleNotFoundError(message, name=error.name) from None

__all__ = ["READY", "main"]

READY: Final = "listening on "
PORT: Final = 8000

_STEADY: Final = Behaviour(straggler_share=0.0, error_share=0.0)
_BACKLOG: Final = 2048
_WATCH_SECONDS: Final = 0.5
# Longer than any client keeps an idle connection, so that it is never the server who closes it.
_KEEP_ALIVE_SECONDS: Final = 75


class _Server(uvicorn.Server):
    """Ends at once when it is told to. Nothing that it knows is worth the wait for the requests in flight."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        os._exit(0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM, SIGINT, or the end of the parent process (with `--with-parent`).

    The first line on stdout is `listening on URL`. Requests that are made after it are answered.

    Args:
        arguments: The command line; None: `sys.argv`.

    Raises:
        SystemExit: The port is taken, or an argument is wrong.
    """
    options = _parser().parse_args(arguments)
    if options.with_parent:
        threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    try:
        with _listener(options.port) as listener:
            app = LookupApp(options.behaviour, answers_by_path())
            print(f"{READY}http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
            _Server(_config(app)).run(sockets=[listener])
    except KeyboardInterrupt:  # before the server handles it itself
        return


def _parser() -> argparse.ArgumentParser:
    description, _, routes = str(__doc__).partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m udfs.demo.service",
        description=description,
        epilog=routes,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=_port, default=PORT, help="on 127.0.0.1; 0: any free one (default: 8000)")
    parser.add_argument(
        "--behaviour",
        type=_behaviour,
        default=_STEADY,
        metavar="JSON",
        help="""latencies and errors of /weather and /planes, such as
            '{"mean_seconds": 0.02, "error_share": 0.005, "straggler_share": 0.01, "seed": 1}'
            (default: 20 ms on average, no errors, no stragglers)""",
    )
    parser.add_argument("--with-parent", action="store_true", help="end when stdin is closed")
    return parser


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port < 2**16:
        raise argparse.ArgumentTypeError(f"must be 0 to 65535, got {text}")
    return port


def _behaviour(text: str) -> Behaviour:
    try:
        return Behaviour.from_json(text)
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _listener(port: int) -> socket.socket:
    try:
        listener = socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)
    except OSError as error:
        if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
            raise
        problem = "is in use" if error.errno == errno.EADDRINUSE else "needs more privileges"
        sys.exit(f"error: port {port} of 127.0.0.1 {problem}. Choose another: --port N, or --port 0 for any free one")
    # Connections inherit it. asyncio sets it only on sockets made with an explicit protocol; and without it
    # every answer waits 40 ms, because uvicorn writes its head and its body apart.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _config(app: LookupApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        interface="asgi3",
        loop="asyncio",
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        backlog=_BACKLOG,
    )


def _end_with_parent(parent: int) -> None:
    # Two signs, because each has a gap: stdin stays open while a child that the parent forked still holds it;
    # and a parent that died before this began has left us with another parent already.
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], _WATCH_SECONDS)
        if readable and not os.read(0, 1024):
            break
    os._exit(0)


if __name__ == "__main__":
    main()
