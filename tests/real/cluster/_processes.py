"""Processes by the session of whoever started them: that is how one finds those whose parent is gone."""

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
        command: Its command line, as far as it is still there to be read.
    """

    pid: int
    command: str


class Family:
    """A process and all that descend from it: a session of their own.

    Args:
        command: What to start.
        folder: Where; what it writes goes to a file there.
        environment: Its environment.
        name: What the file and errors call it.
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
        """Those that are alive now."""
        found = (_in_session(int(path.name), self.leader.pid) for path in Path("/proc").glob("[0-9]*"))
        return [process for process in found if process is not None]

    def kill(self) -> None:
        """Kill all of them, and those that they start meanwhile."""
        self.until(self._killed)
        self.leader.wait(PATIENCE)

    def kill_one(self, pid: int) -> None:
        """Kill this one, if it is there, and leave it to the others to end with it."""
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if pid == self.leader.pid:
            self.leader.wait(PATIENCE)

    def end(self) -> None:
        """Ask the first of them to end, and fail if the others do not end with it."""
        try:
            self.leader.terminate()
            self.leader.wait(PATIENCE)
            self.until(lambda: not self.alive())
        finally:
            self.kill()

    def until(self, predicate: Callable[[], bool]) -> None:
        """Return as soon as it is so; fail, with the log, when it has not come true after a long time."""
        wait_until(predicate, lambda: f"{self.alive()}\n{self.tail()}")

    def _killed(self) -> bool:
        for process in self.alive():
            self.kill_one(process.pid)
        return not self.alive()

    def tail(self) -> str:
        """The end of the log, for an error message."""
        return f"{self.name}:\n" + self.log.read_text(errors="replace")[-5000:]


def is_alive(pid: int) -> bool:
    """Whether the process is there, and not only for its parent to ask how it ended."""
    return _state(pid) is not None


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
    """State, parent, process group, session and more; None for the dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields
