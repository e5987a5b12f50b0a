"""A child process that runs jobs on request, with the CPU time of its process tree."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

__all__ = ["Child", "ChildError", "Reply", "start"]

PATIENCE = 300.0  # seconds for a reply
PROCESSES = Path("/proc")


class ChildError(Exception):
    """A child did not reply. The message ends with the last line of its standard error."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of a child to one request.

    Attributes:
        wall: Wall time, in seconds.
        cpu: CPU seconds of the child and of all processes that it started, or None without /proc.
        content: The JSON of the reply.
    """

    wall: float
    cpu: float | None
    content: dict[str, Any]


class Child:
    """A running child process. `children/serving.py` defines the protocol."""

    def __init__(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        self._process = process
        self._errors = errors
        self._received = b""

    def get_ready(self) -> None:
        """Wait for its first line.

        Raises:
            ChildError: As in `request`.
        """
        self._read()

    def request(self, *words: object) -> Reply:
        """Send a request and wait for the reply.

        Raises:
            ChildError: The child has ended, or does not reply in time.
        """
        assert self._process.stdin is not None
        cpu, began = _tree_seconds(self._process.pid), time.perf_counter()
        try:
            self._process.stdin.write(" ".join(map(str, words)).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._error("the process has ended") from None
        content = self._read()
        wall, after = time.perf_counter() - began, _tree_seconds(self._process.pid)
        return Reply(wall, None if cpu is None or after is None else after - cpu, content)

    def stop(self) -> None:
        """Kill it and all processes that it started."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.communicate()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        until = time.monotonic() + PATIENCE
        while b"\n" not in self._received:
            if not select.select([self._process.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
                raise self._error(f"no reply within {PATIENCE:.0f} seconds")
            more = os.read(self._process.stdout.fileno(), 65536)
            if not more:
                self._process.wait(PATIENCE)  # its last error may arrive after its last reply
                raise self._error("the process has ended")
            self._received += more
        line, _, self._received = self._received.partition(b"\n")
        content: dict[str, Any] = json.loads(line)
        return content

    def _error(self, what: str) -> ChildError:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return ChildError(f"{what}: {lines[-1]}" if lines else what)


@contextmanager
def start(command: Sequence[str | Path], **environment: str) -> Iterator[Child]:
    """A child that is ready. Leaving the block kills it and all its processes.

    Raises:
        ChildError: It did not start.
    """
    pipe = subprocess.PIPE
    with (
        TemporaryFile() as errors,
        subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=errors,
            start_new_session=True,
            env={**os.environ, **environment},
        ) as process,
    ):
        child = Child(process, errors)
        try:
            child.get_ready()
            yield child
        finally:
            child.stop()


def _tree_seconds(root: int) -> float | None:
    """CPU seconds of a process and its descendants, including ended ones that were waited for."""
    if not PROCESSES.exists():
        return None
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for path in PROCESSES.glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # the process has just ended
        pid = int(path.parent.name)
        ticks[pid] = sum(map(int, fields[11:15]))
        children.setdefault(int(fields[1]), []).append(pid)
    found, todo = 0, [root]
    while todo:
        pid = todo.pop()
        found += ticks.get(pid, 0)
        todo += children.get(pid, [])
    return found / os.sysconf("SC_CLK_TCK")
