"""The child: a process that makes calls when it is asked to, and how much CPU time it and its processes take."""

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

__all__ = ["Answer", "Child", "ChildError", "start"]

PATIENCE = 300.0  # seconds for an answer
PROCESSES = Path("/proc")


class ChildError(Exception):
    """A child did not answer. Its text is the last that it said."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a child has done.

    Attributes:
        wall: Seconds.
        cpu: Seconds of it and of all processes that it has started, or None where there is no /proc.
        said: What it answered.
    """

    wall: float
    cpu: float | None
    said: dict[str, Any]


class Child:
    """A process, its own and its children's. See `children/serving.py` for the words."""

    def __init__(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        self._process = process
        self._errors = errors
        self._said = b""

    def get_ready(self) -> None:
        """Wait for its first line.

        Raises:
            ChildError: As `ask`.
        """
        self._read()

    def ask(self, *words: object) -> Answer:
        """Have it work.

        Raises:
            ChildError: It has ended, or is silent for too long.
        """
        assert self._process.stdin is not None
        cpu, began = _tree_seconds(self._process.pid), time.perf_counter()
        try:
            self._process.stdin.write(" ".join(map(str, words)).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._error("it has ended") from None
        said = self._read()
        wall, after = time.perf_counter() - began, _tree_seconds(self._process.pid)
        return Answer(wall, None if cpu is None or after is None else after - cpu, said)

    def stop(self) -> None:
        """End it and all that it has started."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.communicate()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        until = time.monotonic() + PATIENCE
        while b"\n" not in self._said:
            if not select.select([self._process.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
                raise self._error(f"silent for {PATIENCE:.0f} seconds")
            more = os.read(self._process.stdout.fileno(), 65536)
            if not more:
                self._process.wait(PATIENCE)  # its last words may follow the end of its answers
                raise self._error("it has ended")
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        return said

    def _error(self, what: str) -> ChildError:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return ChildError(f"{what}: {lines[-1]}" if lines else what)


@contextmanager
def start(command: Sequence[str | Path], **environment: str) -> Iterator[Child]:
    """A child that is ready. It is ended with all its processes when the block is left.

    Raises:
        ChildError: It did not get ready.
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
    """CPU seconds of a process and all below it, those that have ended and were waited for included."""
    if not PROCESSES.exists():
        return None
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for path in PROCESSES.glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        pid = int(path.parent.name)
        ticks[pid] = sum(map(int, fields[11:15]))
        children.setdefault(int(fields[1]), []).append(pid)
    found, todo = 0, [root]
    while todo:
        pid = todo.pop()
        found += ticks.get(pid, 0)
        todo += children.get(pid, [])
    return found / os.sysconf("SC_CLK_TCK")
