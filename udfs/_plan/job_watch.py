"""The job watch: how many tasks a session's jobs have and have done, and what its streams did last."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from .metrics import SUMS, as_mapping, summary

__all__ = ["JobWatch", "Numbers", "watch_on"]


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a look has found.

    Attributes:
        done, total: Tasks, of the stages that have begun or will.
        running, failed: Tasks; those that failed may have been tried again.
        streams: A line for each streaming query that has done a micro-batch.
    """

    done: int = 0
    total: int = 0
    running: int = 0
    failed: int = 0
    streams: tuple[str, ...] = ()

    def __add__(self, other: Numbers) -> Numbers:
        return Numbers(
            self.done + other.done,
            self.total + other.total,
            self.running + other.running,
            self.failed + other.failed,
            self.streams + other.streams,
        )

    def tasks(self) -> list[str]:
        """Those of tasks in words; those of troubles only if there are any."""
        some = {"running": self.running, "failed": self.failed}
        return [
            f"{self.done:,} of {self.total:,} tasks",
            *(f"{count:,} {what}" for what, count in some.items() if count),
        ]


class JobWatch(Protocol):
    """Looks at a session's jobs, those that began after it was made."""

    def look(self) -> Numbers:
        """The numbers as they are now; the last ones where Spark does not answer any more."""
        ...

    def close(self) -> None:
        """Look no more."""


def watch_on(session: Any) -> JobWatch:
    """A watch on a classic or a remote session."""
    return _RemoteWatch(session) if getattr(session, "_sc", None) is None else _ClassicWatch(session)


class _ClassicWatch:
    """Asks Spark's status tracker, which knows the last thousand jobs or so."""

    def __init__(self, session: Any) -> None:
        self._tracker = session.sparkContext.statusTracker()
        self._streams = _Streams(session)
        self._seen: set[int] = set()
        self._seen = self._jobs()
        self._of_ended = Numbers()
        self._last = Numbers()

    def look(self) -> Numbers:
        with suppress(Exception):  # the session was stopped, or the JVM is gone: whoever uses it will hear of it
            self._last = self._now()
        return self._last

    def close(self) -> None:
        pass

    def _jobs(self) -> set[int]:
        """The jobs that the tracker knows, those of this session's streams too."""
        groups = [None, *self._streams.run_ids()]
        of_groups = {job for group in groups for job in self._tracker.getJobIdsForGroup(group)}
        return of_groups | set(self._tracker.getActiveJobsIds())

    def _now(self) -> Numbers:
        jobs = self._jobs()
        self._seen &= jobs
        running = Numbers()
        for job in jobs - self._seen:
            info = self._tracker.getJobInfo(job)
            if info is None or info.status == "RUNNING":
                running += self._of_job(info, has_ended=False)
            else:
                self._of_ended += self._of_job(info, has_ended=True)
                self._seen.add(job)
        return replace(self._of_ended + running, streams=self._streams.lines())

    def _of_job(self, info: Any, *, has_ended: bool) -> Numbers:
        numbers = Numbers()
        for stage in map(self._tracker.getStageInfo, [] if info is None else info.stageIds):
            # Of a job that has ended, a stage that never ran was skipped: its output was there already
            if stage is not None and not (has_ended and not stage.numCompletedTasks + stage.numFailedTasks):
                numbers += Numbers(stage.numCompletedTasks, stage.numTasks, stage.numActiveTasks, stage.numFailedTasks)
        return numbers


class _RemoteWatch:
    """Is told by the client of Spark Connect, for as long as this waits for a query."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._streams = _Streams(session)
        self._lock = threading.Lock()
        self._stages: dict[tuple[str, int], tuple[int, int]] = {}
        self._running = 0
        session.registerProgressHandler(self._on_progress)

    def look(self) -> Numbers:
        streams: tuple[str, ...] = ()
        with suppress(Exception):  # as in a classic session
            streams = self._streams.lines()
        with self._lock:
            done = sum(done for done, _ in self._stages.values())
            total = sum(total for _, total in self._stages.values())
            return Numbers(done, total, self._running, 0, streams)

    def close(self) -> None:
        self._session.removeProgressHandler(self._on_progress)

    def _on_progress(
        self,
        stages: Iterable[Any] | None,
        inflight_tasks: int,
        operation_id: str | None,
        done: bool,  # noqa: FBT001 - Spark's
    ) -> None:
        with self._lock:
            self._running = 0 if done else inflight_tasks
            for stage in stages or ():
                self._stages[operation_id or "", stage.stage_id] = (stage.num_completed_tasks, stage.num_tasks)


class _Streams:
    """The session's streaming queries, those that have ended meanwhile too."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._lines: dict[str, str] = {}

    def run_ids(self) -> list[str]:
        """Under which Spark groups their jobs."""
        return [str(query.runId) for query in self._session.streams.active]

    def lines(self) -> tuple[str, ...]:
        """A line for each that has done a micro-batch."""
        for query in self._session.streams.active:
            if line := _of_stream(query.name, query.lastProgress):
                self._lines[str(query.runId)] = line
        return tuple(self._lines.values())


def _of_stream(name: str | None, progress: Any) -> str | None:
    """The last micro-batch of a query."""
    if progress is None:
        return None
    seen = [each for each in map(as_mapping, progress["observedMetrics"].values()) if each.keys() >= SUMS]
    what = "; ".join(map(summary, seen)) if seen else f"{progress['numInputRows']:,} rows"
    return f"{name or 'stream'}, micro-batch {progress['batchId']:,}: {what}"
