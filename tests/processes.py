"""Processes grouped by kernel session, which also finds those whose parent is dead."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import PATIENCE, wait_until


@dataclass(frozen=True)
class Process:
    """A process that is alive.

    Attributes:
        pid: Its id.
        command: Its command line.
    """

    pid: int
    command: str


class Family:
    """A process with all its descendants, in a kernel session of their own.

    Args:
        command: The program to start.
        folder: Its working directory, which also receives its log.
        environment: Its environment.
        name: Its name in errors, and that of its log.
    """

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str], name: str) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with Path.open(self.log, "ab") as log:
            self.leader = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def alive(self) -> list[Process]:
        """The processes that are alive now."""
        found = (_in_session(int(path.name), self.leader.pid) for path in Path("/proc").glob("[0-9]*"))
        return [process for process in found if process is not None]

    def kill(self) -> None:
        """Kill all processes, including those that start in the meantime."""
        self.until(self._killed)
        self.leader.wait(PATIENCE)

    def kill_one(self, pid: int) -> None:
        """Kill this process, if it exists. The others must end by themselves."""
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if pid == self.leader.pid:
            self.leader.wait(PATIENCE)

    def end(self) -> None:
        """Terminate the first process, and fail if the others do not end with it."""
        try:
            self.leader.terminate()
            self.leader.wait(PATIENCE)
            self.until(lambda: not self.alive())
        finally:
            self.kill()

    def until(self, predicate: Callable[[], bool]) -> None:
        """Return as soon as the predicate is true. Fail with the log if it never is."""
        wait_until(predicate, lambda: f"{self.alive()}\n{self.tail()}")

    def _killed(self) -> bool:
        for process in self.alive():
            self.kill_one(process.pid)
        return not self.alive()

    def tail(self) -> str:
        """The end of the log, for an error message."""
        return f"{self.name}:\n" + self.log.read_text(errors="replace")[-5000:]


def is_alive(pid: int) -> bool:
    """Whether the process runs. A zombie does not."""
    return _state(pid) is not None


def parent_of(pid: int) -> int | None:
    """The id of the parent of a process; None if the process is dead."""
    state = _state(pid)
    return None if state is None else int(state[1])


def _in_session(pid: int, leader: int) -> Process | None:
    state = _state(pid)
    if state is None or int(state[3]) != leader:
        return None
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Process(pid, command.replace("\0", " "))


def _state(pid: int) -> list[str] | None:
    """State, parent, process group, session and more; None for a dead process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields
