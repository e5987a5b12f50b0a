"""Counts the tasks of a session's jobs, and describes the last micro-batch of its streams."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from operator import add
from typing import Any

from .._spark_version import check_reports_progress
from .metrics import SUMS, observed_sums, summary
from .session import context_of


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Counts of tasks at one moment.

    Attributes:
        done: Completed tasks.
        total: All tasks of the stages that Spark has reported so far.
        running: Running tasks.
        failed: Failed tasks. Spark may have retried them.
        streams: One line for each streaming query that has completed a micro-batch.
    """

    done: int = 0
    total: int = 0
    running: int = 0
    failed: int = 0
    streams: tuple[str, ...] = ()

    def __add__(self, other: TaskCounts) -> TaskCounts:
        return TaskCounts(*map(add, astuple(self), astuple(other)))

    def tasks(self) -> list[str]:
        """The counts in words, without running or failed tasks if there are none."""
        if not self.total:
            return ["no tasks"]
        others = {"running": self.running, "failed": self.failed}
        return [
            f"{self.done:,} of {self.total:,} tasks",
            *(f"{count:,} {state}" for state, count in others.items() if count),
        ]


def watch_on(session: Any) -> JobWatch:
    """Watches the jobs of a session, classic or remote, that start from now on."""
    return _RemoteWatch(session) if context_of(session) is None else _ClassicWatch(session)


class JobWatch:
    """The tasks of a session's jobs, and its streaming queries, including those that ended during the watch."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._tasks = TaskCounts()
        self._lines: dict[str, str] = {}

    def counts(self) -> TaskCounts:
        """The current counts, or the last ones if Spark does not respond."""
        with suppress(Exception):  # the session was stopped or the JVM has ended, which the user's own calls report
            self._count_tasks()
            for query in self._session.streams.active:
                if line := _line_of(query.name, query.lastProgress):
                    self._lines[str(query.runId)] = line
        return replace(self._tasks, streams=tuple(self._lines.values()))

    def close(self) -> None:
        """Stop watching."""

    def _count_tasks(self) -> None:
        """Update the counts of tasks."""


class _ClassicWatch(JobWatch):
    """Uses Spark's status tracker, which retains about a thousand jobs."""

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self._tracker = session.sparkContext.statusTracker()
        self._ended: set[int] = self._jobs()  # or started before the watch
        self._counts: dict[int, TaskCounts] = {}

    def _jobs(self) -> set[int]:
        """The retained jobs, including those of the session's streams, whose run IDs are the names of job groups."""
        groups = [None, *(str(query.runId) for query in self._session.streams.active)]
        grouped = {job for group in groups for job in self._tracker.getJobIdsForGroup(group)}
        return grouped | set(self._tracker.getActiveJobsIds())

    def _count_tasks(self) -> None:
        for job in self._jobs() - self._ended:
            info = self._tracker.getJobInfo(job)
            if info is not None:
                self._counts[job] = self._counts_of(info)
                if info.status != "RUNNING":
                    self._ended.add(job)
        self._tasks = sum(self._counts.values(), TaskCounts())

    def _counts_of(self, job: Any) -> TaskCounts:
        """The counts of a job, without stages that Spark skips, because their output exists already.

        Spark does not report which ones it skips. A stage reads the output of earlier ones, so one that has not begun
        when a later one has will not run.
        """
        counts, may_begin = TaskCounts(), job.status == "RUNNING"
        for number in sorted(job.stageIds, reverse=True):
            stage = self._tracker.getStageInfo(number)
            if stage is None:
                continue
            has_begun = stage.numActiveTasks + stage.numCompletedTasks + stage.numFailedTasks > 0
            if has_begun or may_begin:
                counts += TaskCounts(
                    stage.numCompletedTasks, stage.numTasks, stage.numActiveTasks, stage.numFailedTasks
                )
            may_begin = may_begin and not has_begun
        return counts


class _RemoteWatch(JobWatch):
    """Uses the progress reports of the Spark Connect client, which arrive while it waits for a query."""

    def __init__(self, session: Any) -> None:
        check_reports_progress(session)
        super().__init__(session)
        self._stages: dict[tuple[str | None, int], TaskCounts] = {}
        session.registerProgressHandler(self._on_progress)

    def close(self) -> None:
        """Stop watching."""
        self._session.removeProgressHandler(self._on_progress)

    def _on_progress(
        self,
        stages: Iterable[Any] | None,
        inflight_tasks: int,
        operation_id: str | None,
        done: bool,  # noqa: FBT001 - Spark's signature
    ) -> None:
        for stage in stages or ():
            self._stages[operation_id, stage.stage_id] = TaskCounts(stage.num_completed_tasks, stage.num_tasks)
        running = TaskCounts(running=0 if done else inflight_tasks)
        self._tasks = sum(list(self._stages.values()), running)


def _line_of(name: str | None, progress: Any) -> str | None:
    """A description of the query's last micro-batch."""
    if progress is None:
        return None
    metrics = [each for each in map(observed_sums, progress["observedMetrics"].values()) if each.keys() >= SUMS]
    counts = "; ".join(map(summary, metrics)) if metrics else f"{progress['numInputRows']:,} rows"
    return f"{name or 'stream'}, micro-batch {progress['batchId']:,}: {counts}"
