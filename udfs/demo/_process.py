"""The lookup service as a child process that ends with a `with` block."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Final
from urllib.request import ProxyHandler, Request, build_opener

from ._behaviour import Behaviour
from ._lookup import LookupStatistics
from .service import READY

__all__ = ["Behaviour", "LookupStatistics", "Service", "service"]

_START_SECONDS: Final = 60.0
_RESPONSE_SECONDS: Final = 30.0
_END_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Service:
    """A running lookup service.

    Attributes:
        url: `http://127.0.0.1:PORT`, without a trailing slash.
        pid: The process ID.
    """

    url: str
    pid: int

    def stats(self) -> LookupStatistics:
        """The statistics since the start or the last reset. This request is not counted."""
        return LookupStatistics(**self._request("GET", "/stats"))

    def reset(self) -> None:
        """Set all counters to zero, including those that determine latencies and errors."""
        self._request("POST", "/reset")

    def _request(self, method: str, path: str) -> dict[str, Any]:
        request = Request(self.url + path, method=method)
        opener = build_opener(ProxyHandler({}))  # use no proxy of the environment for loopback
        with opener.open(request, timeout=_RESPONSE_SECONDS) as response:
            body: dict[str, Any] = json.load(response)
        return body


@contextmanager
def service(behaviour: Behaviour | None = None) -> Iterator[Service]:
    """Run a lookup service for the duration of the block.

    The service is in a session of its own, so that Ctrl-C in the terminal does not reach it. It ends when the block is
    left or the calling process is killed.

    Args:
        behaviour: Latencies and errors; None: the defaults of `Behaviour`.

    Returns:
        The service, ready for requests.

    Raises:
        RuntimeError: The service did not start. The message includes its standard error.

    Example:
        >>> with service(Behaviour(seed=7)) as lookup:
        ...     urlopen(f"{lookup.url}/weather/EWR/2013-01-01T10:00:00Z").read()
    """
    chosen = behaviour or Behaviour()
    options = ["--port", "0", "--with-parent", "--behaviour", chosen.to_json()]
    command = [sys.executable, "-m", "udfs.demo.service", *options]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield _started(process, errors)
        finally:
            _end(process)


def _started(process: subprocess.Popen[str], errors: IO[str]) -> Service:
    line = _first_line(process)
    if not line.startswith(READY):
        errors.seek(0)
        raise RuntimeError(f"the lookup service did not start:\n{errors.read()}")
    started = Service(line.removeprefix(READY).strip(), process.pid)
    started.stats()
    return started


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], _START_SECONDS)
    return process.stdout.readline() if ready else ""


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
