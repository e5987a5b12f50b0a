"""Server: the process that serves the lookups on loopback, and never outlives its parent.

By hand: `python -m udfs.demo._server --port 8000`. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import os
import select
import socket
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

_BACKLOG: Final = 2048
_WATCH_SECONDS: Final = 0.5
# Longer than any client keeps an idle connection, so that it is never the server who closes it.
_KEEP_ALIVE_SECONDS: Final = 75


class _Server(uvicorn.Server):
    """Ends at once when it is told to. Nothing that it knows is worth the wait for the requests in flight."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        os._exit(0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM, SIGINT, or the end of the parent that asked to be watched.

    The first line on stdout is `listening on PORT`; from then on requests are answered.

    Args:
        arguments: Of the command line; None: `sys.argv`.
    """
    options = _parser().parse_args(arguments)
    app = LookupApp(options.behaviour, answers_by_path())
    if options.with_parent:
        threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    with _listener(options.port) as listener:
        print(f"{READY}{listener.getsockname()[1]}", flush=True)
        _Server(_config(app)).run(sockets=[listener])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m udfs.demo._server", description="The demo's service")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0: any that is free")
    parser.add_argument(
        "--behaviour",
        type=_behaviour,
        default=Behaviour(),
        metavar="JSON",
        help="""such as '{"mean_seconds": 0.02, "error_share": 0.005, "seed": 1}'""",
    )
    parser.add_argument("--with-parent", action="store_true", help="end when stdin closes")
    return parser


def _behaviour(text: str) -> Behaviour:
    try:
        return Behaviour.from_json(text)
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _listener(port: int) -> socket.socket:
    listener = socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)
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
