"""Serve weather and aircraft data over HTTP for the demo and for the examples in the documentation.

    python -m udfs.demo.service               listen on http://127.0.0.1:8000
    python -m udfs.demo.service --port 0      listen on any free port

The service prints its URL when it is ready. Stop it with Ctrl-C. Its routes:

    GET /weather/{origin}/{time_hour}    the weather of one hour at EWR, JFK or LGA, or 404
    GET /planes/{tailnum}                an aircraft, or 404
    GET /flaky/{key}                     503 and 200, alternating for each key
    GET /busy/{key}                      429 with Retry-After, then 200 once that time has passed
    GET /slow/{seconds}                  200 after this time
    GET /stats                           the number of requests, by kind and result
    POST /reset                          set these numbers to zero

`time_hour` is in UTC, as in `/weather/EWR/2013-01-01T10:00:00Z`. The data end on 30 December 2013, and some
hours are missing.
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

from .._extras import needs_extra
from ._behaviour import Behaviour
from ._lookup import LookupApp, bodies_by_path

with needs_extra("the demo's lookup service", "demo"):
    import uvicorn

__all__ = ["READY", "main"]

READY: Final = "listening on "
PORT: Final = 8000

_STEADY: Final = Behaviour(straggler_share=0.0, error_share=0.0)
_BACKLOG: Final = 2048
_WATCH_SECONDS: Final = 0.5
# Longer than any client keeps an idle connection open, so that the server never closes one
_KEEP_ALIVE_SECONDS: Final = 75


class _Server(uvicorn.Server):
    """Exits immediately on a signal, without waiting for requests in flight. It has no state to save."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        os._exit(0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM, SIGINT or, with `--with-parent`, the end of the parent process.

    The first line on standard output is `listening on URL`. The service is then ready for requests.

    Args:
        arguments: The command line; None: `sys.argv`.

    Raises:
        SystemExit: The port is in use, or an argument is invalid.
    """
    options = _parser().parse_args(arguments)
    if options.with_parent:
        threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    try:
        with _listener(options.port) as listener:
            app = LookupApp(options.behaviour, bodies_by_path())
            print(f"{READY}http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
            _Server(_config(app)).run(sockets=[listener])
    except KeyboardInterrupt:  # Ctrl-C before the server has installed its handler
        return


def _parser() -> argparse.ArgumentParser:
    description, _, routes = str(__doc__).partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m udfs.demo.service",
        description=description,
        epilog=routes,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--port", type=_port, default=PORT, metavar="N", help="port on 127.0.0.1; 0 means any free port (default: 8000)"
    )
    parser.add_argument(
        "--behaviour",
        type=_behaviour,
        default=_STEADY,
        metavar="JSON",
        help="""latencies and errors of /weather and /planes, such as
            '{"mean_seconds": 0.02, "error_share": 0.005, "straggler_share": 0.01, "seed": 1}'
            (default: a mean latency of 20 ms, no errors, no stragglers)""",
    )
    parser.add_argument(
        "--with-parent",
        action="store_true",
        help="exit when the parent process has ended or standard input is closed",
    )
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
    # Connections inherit TCP_NODELAY. asyncio sets it only on sockets with an explicit protocol number. Without it each
    # response takes 40 ms longer, because uvicorn writes head and body separately.
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
    # Watch both, because either can miss the end of the parent: a forked child of the parent may hold stdin open, and
    # if the parent died before this call, `parent` is already another process.
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], _WATCH_SECONDS)
        if readable and not os.read(0, 1024):
            break
    os._exit(0)


if __name__ == "__main__":
    main()
