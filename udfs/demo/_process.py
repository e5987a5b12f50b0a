"""The process of the lookup service, as the demo starts it: it ends with the block."""

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
_ANSWER_SECONDS: Final = 30.0
_END_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Service:
    """A running lookup service.

    Attributes:
        url: `http://127.0.0.1:PORT`, without a slash at its end.
        pid: Its process.
    """

    url: str
    pid: int

    def stats(self) -> LookupStatistics:
        """What it was asked and has answered since its start or its last reset. This call is not counted."""
        return LookupStatistics(**self._ask("GET", "/stats"))

    def reset(self) -> None:
        """Set all counters to zero, the ones that decide over latencies and failures included."""
        self._ask("POST", "/reset")

    def _ask(self, method: str, path: str) -> dict[str, Any]:
        request = Request(self.url + path, method=method)
        # Without a handler of its own urllib asks the environment's proxy for what is on this machine.
        opener = build_opener(ProxyHandler({}))
        with opener.open(request, timeout=_ANSWER_SECONDS) as answer:
            asked: dict[str, Any] = json.load(answer)
        return asked


@contextmanager
def service(behaviour: Behaviour | None = None) -> Iterator[Service]:
    """A lookup service that answers for as long as the block runs.

    Its process has a session of its own, so that a Ctrl-C in the terminal reaches the caller alone, who then
    leaves the block. It ends with the block, however that ends, and by itself when the caller is killed.

    Args:
        behaviour: Latencies and failures; None: the defaults of `Behaviour`.

    Returns:
        The running service, which answers already.

    Raises:
        RuntimeError: It did not start; the message has what it said on stderr.

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
