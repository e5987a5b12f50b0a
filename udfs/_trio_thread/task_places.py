"""Task places: how many tasks of a job run at once in an executor, and how long a place was free between two tasks.

An executor has more Python processes than tasks that run at once, as soon as one of its stages had two Python
operators, and it gives them tasks in turn. So the time between two tasks of one process says nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

MOST_JOBS = 16  # whose places are kept

Places = dict[str, list[float]]  # by job: since when each free place is free


class TaskPlaces:
    """The free places of each job, in a file that the processes of an executor share.

    Instants are those of a monotonic clock that all processes of the machine have.

    Args:
        path: The file. If it cannot be used, each task has a new place. None, as outside an executor: the same.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @classmethod
    def of_executor(cls) -> TaskPlaces:
        """The places of this executor. Spark deletes the folder of their file when the executor ends."""
        folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
        return cls(Path(folder) / "udfs-task-places.json" if folder else None)

    def take(self, job: str, began: float) -> float | None:
        """A task has begun. Returns for how long its place was free; None: there was none, so this one is new."""
        with self._opened() as places:
            free = places.setdefault(job, [])
            latest = max((since for since in free if since <= began), default=None)
            if latest is None:
                return None
            free.remove(latest)
            return began - latest

    def leave(self, job: str, ended: float) -> None:
        """A task has ended."""
        with self._opened() as places:
            places.setdefault(job, []).append(ended)

    @contextmanager
    def _opened(self) -> Iterator[Places]:
        """The places, which may be changed."""
        try:
            file = None if self._path is None else self._path.open("a+")
        except OSError:
            file = None
        if file is None:
            yield {}
            return
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed; another thread of this process waits, too
            places = _read(file)
            yield places
            for job in list(places)[:-MOST_JOBS]:
                del places[job]
            file.seek(0)
            file.truncate()
            json.dump(places, file)


def _read(file: TextIO) -> Places:
    """The places in the file. A process that was killed may have left a part of them."""
    file.seek(0)
    try:
        places: Places = json.load(file)
    except ValueError:
        return {}
    return places
