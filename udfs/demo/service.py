"""Serve weather and aircraft data over HTTP for the demo and for the examples in the documentation.

    python -m udfs.demo.service               listen on http://127.0.0.1:8000
    python -m udfs.demo.service --port 0      listen on any free port

The service prints its URL when it is ready. Stop it with Ctrl-C. Its routes:

    GET /weather/{origin}/{time_hour}    the weather of one hour at EWR, JFK or LGA, or 404
    GET /planes/{tailnum}                an aircraft, or 404
    GET /flaky/{key}                     503 and 200, alternating for each key
    GET /busy/{key}                      429 with Retry-After, then 200 once that time has passed
    GET /slow/{seconds}                  200 after this time
    GET /stats                           the number of requests for weather and planes, by result
    POST /reset                          forget all requests

`time_hour` is in UTC, as in `/weather/EWR/2013-01-01T10:00:00Z`. The data end on 30 December 2013, and some
hours are missing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from types import FrameType
from typing import Any, Final, NamedTuple

from .._extras import needs_extra
from ._flights import planes, weather

with needs_extra("the demo's lookup service", "demo"):
    import uvicorn

__all__ = ["LookupApp", "bodies_by_path", "latency", "main", "running"]

PORT: Final = 8000
LAST_PORT: Final = 65_535
READY: Final = "listening on "
_BACKLOG: Final = 2048
_KEEP_ALIVE_SECONDS: Final = 75  # longer than any client keeps an idle connection, so that no client finds it closed

# Latencies are lognormal, with a mean of 20 ms. The mean of a lognormal is its median times exp(sigma squared / 2)
_MEDIAN_SECONDS: Final = 0.012
_SIGMA: Final = math.sqrt(2 * math.log(0.020 / _MEDIAN_SECONDS))
_STRAGGLER_SHARE: Final = 0.01
_STRAGGLER_SECONDS: Final = (0.5, 1.5)
_ERROR_SHARE: Final = 0.005

_BUSY_SECONDS: Final = 1

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Response(NamedTuple):
    """A response with a body of JSON."""

    status: int
    body: bytes
    headers: Sequence[tuple[bytes, bytes]] = ()


def latency(path: str, number: int, *, faults: bool) -> tuple[float, bool]:
    """The seconds until the response to a request, and whether the response is an error.

    Both depend only on the path and on the number of the request among those for this path. So the same requests in any
    order get the same responses, and a path that has failed is as likely to fail again as any other.
    """
    dice = random.Random(f"{number} {path}")
    fails, straggles = dice.random() < _ERROR_SHARE, dice.random() < _STRAGGLER_SHARE
    if faults and straggles:
        return dice.uniform(*_STRAGGLER_SECONDS), fails
    return dice.lognormvariate(math.log(_MEDIAN_SECONDS), _SIGMA), faults and fails


class LookupApp:
    """An ASGI application with the routes of the service, and no framework: one core serves thousands of requests.

    Args:
        bodies: The response body for each path of `/weather` and `/planes` that exists.
        faults: Whether one in a hundred of their responses takes 0.5 to 1.5 s, and one in two hundred has status 500.
        clock: Returns seconds, for `/busy`.
    """

    def __init__(
        self, bodies: Mapping[str, bytes], *, faults: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bodies = bodies
        self._faults = faults
        self._clock = clock
        self._forget()

    def _forget(self) -> None:
        self._counts: Counter[str] = Counter()  # of requests for weather and planes
        self._requests: Counter[str] = Counter()  # the same by path
        self._flaky: set[str] = set()
        self._free_at: dict[str, float] = {}

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's
        """Respond to one request."""
        method, path = scope["method"], scope["path"]
        route, _, key = path.removeprefix("/").partition("/")
        match method, route:
            case "GET", "weather" | "planes":
                response = await self._look_up(path)
            case "GET", "flaky":
                response = self._fail_every_other_time(key)
            case "GET", "busy":
                response = self._refuse_for_a_second(key)
            case "GET", "slow" if key.replace(".", "", 1).isdecimal():
                await asyncio.sleep(float(key))
                response = _json_response(HTTPStatus.OK, {"seconds": float(key)})
            case "GET", "stats":
                response = _json_response(HTTPStatus.OK, self._counts)
            case "POST", "reset":
                self._forget()
                response = _json_response(HTTPStatus.OK, {})
            case _:
                response = _json_response(HTTPStatus.NOT_FOUND, {"error": f"no such route: {method} {path}"})
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(response.body))]
        await send({"type": "http.response.start", "status": response.status, "headers": [*headers, *response.headers]})
        await send({"type": "http.response.body", "body": response.body})

    async def _look_up(self, path: str) -> Response:
        counts = self._counts  # a reset replaces them
        self._requests[path] += 1
        seconds, fails = latency(path, self._requests[path], faults=self._faults)
        counts.update(requests=1, slow=seconds >= _STRAGGLER_SECONDS[0])
        await asyncio.sleep(seconds)
        if fails:
            response = _json_response(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "temporary failure: try again"})
        elif path in self._bodies:
            response = Response(HTTPStatus.OK, self._bodies[path])
        else:
            response = _json_response(HTTPStatus.NOT_FOUND, {"error": f"no such row: {path}"})
        counts[f"{response.status:d}"] += 1
        return response

    def _fail_every_other_time(self, key: str) -> Response:
        if key in self._flaky:
            self._flaky.remove(key)
            return _json_response(HTTPStatus.OK, {"key": key})
        self._flaky.add(key)
        return _json_response(
            HTTPStatus.SERVICE_UNAVAILABLE, {"error": f"/flaky/{key} fails every other time: try again"}
        )

    def _refuse_for_a_second(self, key: str) -> Response:
        now = self._clock()
        free_at = self._free_at.setdefault(key, now + _BUSY_SECONDS)
        if now >= free_at:
            del self._free_at[key]
            return _json_response(HTTPStatus.OK, {"key": key})
        seconds = math.ceil(free_at - now)
        error = {"error": f"too many requests for /busy/{key}: try again in {seconds} s"}
        return _json_response(HTTPStatus.TOO_MANY_REQUESTS, error, [(b"retry-after", b"%d" % seconds)])


def _json_response(status: int, value: Mapping[str, Any], headers: Sequence[tuple[bytes, bytes]] = ()) -> Response:
    """A response with this value as its body."""
    return Response(status, _encoded(value), headers)


def _encoded(value: Mapping[str, Any]) -> bytes:
    """The body of a response with this value."""
    return json.dumps(value, allow_nan=False).encode()


def bodies_by_path() -> dict[str, bytes]:
    """The response body for each observation and each aircraft."""
    rows = {f"/weather/{row['origin']}/{row['time_hour']}": row for row in weather()}
    rows |= {f"/planes/{row['tailnum']}": row for row in planes()}
    return {path: _encoded(row) for path, row in rows.items()}


@contextmanager
def running() -> Iterator[str]:
    """Run the service with faults, in a process of its own that ends with the block or with this process.

    Ctrl-C in the terminal does not reach it.

    Returns:
        Its URL, without a trailing slash.

    Raises:
        RuntimeError: It did not start. The reason is on standard error.
    """
    command = [sys.executable, "-m", "udfs.demo.service", "--port", "0", "--with-parent", "--faults"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith(READY):
                raise RuntimeError("the lookup service did not start: see its error above")
            yield line.removeprefix(READY).strip()
        finally:
            process.kill()  # it has no state to save


class _Server(uvicorn.Server):
    """Exits immediately on a signal, without waiting for requests in flight."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        os._exit(0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM, SIGINT or, with `--with-parent`, the end of standard input.

    The first line on standard output is `listening on URL`. The service is then ready for requests.

    Args:
        arguments: The command line; None: `sys.argv`.

    Raises:
        SystemExit: The port is in use, or an argument is invalid.
    """
    options = _parser().parse_args(arguments)
    if options.with_parent:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    app = LookupApp(bodies_by_path(), faults=options.faults)
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


def _parser() -> argparse.ArgumentParser:
    description, _, routes = str(__doc__).partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m udfs.demo.service",
        description=description,
        epilog=routes,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    help_of_port = f"port on 127.0.0.1; 0 means any free port (default: {PORT})"
    parser.add_argument("--port", type=_port, default=PORT, metavar="N", help=help_of_port)
    parser.add_argument("--with-parent", action="store_true", help="exit when standard input is closed")
    parser.add_argument(
        "--faults",
        action="store_true",
        help="delay one response in a hundred of /weather and /planes for 0.5 to 1.5 s, and fail one in two hundred "
        "(default: a mean latency of 20 ms, no errors)",
    )
    return parser


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) <= LAST_PORT):
        raise argparse.ArgumentTypeError(f"must be 0 to {LAST_PORT}, got {text}")
    return int(text)


if __name__ == "__main__":
    main()
