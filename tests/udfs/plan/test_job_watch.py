"""The job watch: counts each task of later jobs once, even if the tracker forgets a job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from udfs._plan.job_watch import TaskCounts, watch_on

SEEN = {"rows": 3, "calls": 5, "retried": 2, "failed": 1, "timed_out": 0, "cached": 1, "seconds": 0.9, "slowest": 0.5}
SUMMARY = "3 rows, 5 calls, 2 retried, 1 failed, 0 timed out, 1 from a cache, mean 300 ms, slowest 500 ms"


class Job(NamedTuple):
    jobId: int  # noqa: N815 - Spark's name, as below
    stageIds: list[int]  # noqa: N815
    status: str


class Stage(NamedTuple):
    stageId: int  # noqa: N815
    numTasks: int  # noqa: N815
    numActiveTasks: int  # noqa: N815
    numCompletedTasks: int  # noqa: N815
    numFailedTasks: int  # noqa: N815


class Tracker:
    """Spark's status tracker, with jobs that the test controls."""

    def __init__(self) -> None:
        self.jobs: dict[int, tuple[str | None, Job]] = {}
        self.stages: dict[int, Stage] = {}
        self.is_gone = False

    def run(self, job: int, *stages: Stage, group: str | None = None, status: str = "RUNNING") -> None:
        self.jobs[job] = group, Job(job, [each.stageId for each in stages], status)
        self.stages |= {each.stageId: each for each in stages}

    def getJobIdsForGroup(self, group: str | None) -> list[int]:  # noqa: N802 - Spark's
        if self.is_gone:
            raise ConnectionError("the JVM is gone")
        return [number for number, (of, _) in self.jobs.items() if of == group]

    def getActiveJobsIds(self) -> list[int]:  # noqa: N802 - Spark's
        return [number for number, (_, job) in self.jobs.items() if job.status == "RUNNING"]

    def getJobInfo(self, number: int) -> Job | None:  # noqa: N802 - Spark's
        return self.jobs[number][1] if number in self.jobs else None

    def getStageInfo(self, number: int) -> Stage | None:  # noqa: N802 - Spark's
        return self.stages.get(number)


@pytest.fixture
def tracker() -> Tracker:
    return Tracker()


@pytest.fixture
def session(tracker: Tracker) -> Any:
    context = SimpleNamespace(statusTracker=lambda: tracker)
    return SimpleNamespace(_sc=context, sparkContext=context, streams=SimpleNamespace(active=[]))


def test_running_and_ended_tasks_are_counted_over_all_jobs(tracker: Tracker, session: Any) -> None:
    watch = watch_on(session)
    assert watch.counts() == TaskCounts()
    tracker.run(1, Stage(10, 8, 2, 3, 1), Stage(11, 4, 0, 0, 0))
    assert watch.counts() == TaskCounts(done=3, total=12, running=2, failed=1)
    tracker.run(1, Stage(10, 8, 0, 8, 1), Stage(11, 4, 0, 4, 0), status="SUCCEEDED")
    tracker.run(2, Stage(12, 5, 1, 0, 0), group="somebody's")
    assert watch.counts() == TaskCounts(done=12, total=17, running=1, failed=1)
    assert watch.counts() == TaskCounts(done=12, total=17, running=1, failed=1)


def test_earlier_jobs_are_not_counted(tracker: Tracker, session: Any) -> None:
    tracker.run(1, Stage(10, 8, 0, 8, 0), status="SUCCEEDED")
    tracker.run(2, Stage(11, 8, 2, 3, 0))
    watch = watch_on(session)
    assert watch.counts() == TaskCounts()


def test_a_skipped_stage_is_not_counted(tracker: Tracker, session: Any) -> None:
    watch = watch_on(session)
    tracker.run(1, Stage(10, 8, 0, 0, 0), Stage(11, 2, 0, 2, 0), status="SUCCEEDED")
    assert watch.counts() == TaskCounts(done=2, total=2)


def test_a_stage_that_a_later_one_does_not_wait_for_is_skipped(tracker: Tracker, session: Any) -> None:
    watch = watch_on(session)
    tracker.run(1, Stage(10, 1, 0, 0, 0), Stage(11, 1, 0, 0, 0), Stage(12, 1, 1, 0, 0))
    assert watch.counts() == TaskCounts(done=0, total=1, running=1)
    tracker.run(1, Stage(10, 1, 0, 0, 0), Stage(11, 1, 0, 0, 0), Stage(12, 1, 0, 1, 0), status="SUCCEEDED")
    assert watch.counts() == TaskCounts(done=1, total=1)


def test_jobs_that_the_tracker_has_forgotten_are_still_counted(tracker: Tracker, session: Any) -> None:
    watch = watch_on(session)
    tracker.run(1, Stage(10, 8, 0, 8, 0), status="SUCCEEDED")
    assert watch.counts() == TaskCounts(done=8, total=8)
    tracker.jobs.clear()
    tracker.stages.clear()
    assert watch.counts() == TaskCounts(done=8, total=8)


def test_a_stopped_session_has_its_last_numbers(tracker: Tracker, session: Any) -> None:
    watch = watch_on(session)
    tracker.run(1, Stage(10, 8, 2, 3, 0))
    before = watch.counts()
    tracker.is_gone = True
    assert watch.counts() == before == TaskCounts(done=3, total=8, running=2)


@pytest.mark.parametrize(
    ("observed", "line"),
    [
        ({}, "flights, micro-batch 1,234: 5,000 rows"),
        ({"other": {"x": 1}}, "flights, micro-batch 1,234: 5,000 rows"),
        ({"weather": SEEN}, f"flights, micro-batch 1,234: {SUMMARY}"),
    ],
)
def test_the_last_micro_batch_of_a_stream_is_shown_after_its_end_too(
    tracker: Tracker, session: Any, observed: dict[str, Any], line: str
) -> None:
    watch = watch_on(session)
    progress = {"batchId": 1234, "numInputRows": 5000, "observedMetrics": observed}
    session.streams.active = [
        SimpleNamespace(runId="a", name="flights", lastProgress=progress),
        SimpleNamespace(runId="b", name=None, lastProgress=None),
    ]
    tracker.run(1, Stage(10, 1, 0, 1, 0), group="a", status="SUCCEEDED")
    assert watch.counts() == TaskCounts(done=1, total=1, streams=(line,))
    session.streams.active = []
    assert watch.counts() == TaskCounts(done=1, total=1, streams=(line,))


def test_a_remote_session_reports_progress_until_the_watch_is_closed() -> None:
    handlers: list[Any] = []
    remote = SimpleNamespace(
        registerProgressHandler=handlers.append,
        removeProgressHandler=handlers.remove,
        streams=SimpleNamespace(active=[]),
    )
    watch = watch_on(remote)
    stage = SimpleNamespace(stage_id=1, num_tasks=8, num_completed_tasks=3)
    handlers[0](stages=[stage], inflight_tasks=2, operation_id="a", done=False)
    handlers[0](stages=[stage], inflight_tasks=2, operation_id="b", done=False)
    assert watch.counts() == TaskCounts(done=6, total=16, running=2)
    handlers[0](stages=None, inflight_tasks=0, operation_id="b", done=True)
    assert watch.counts() == TaskCounts(done=6, total=16)
    watch.close()
    assert not handlers


def test_before_the_first_task_there_are_none() -> None:
    assert TaskCounts().tasks() == ["no tasks"]
    assert TaskCounts(done=1, total=3, running=2).tasks() == ["1 of 3 tasks", "2 running"]
