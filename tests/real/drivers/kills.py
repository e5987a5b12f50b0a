"""Runs a job whose processes are killed while it calls a service."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from random import Random

import trio

from tests.processes import Family
from tests.service import Service
from tests.support import PATIENCE


def rows_of(service: Service) -> list[str]:
    """The rows that the service was called for, in their order."""
    return [row for call in service.calls for row in call.split(",")]


def run_and_kill(service: Service, start: Callable[[], Family], kills: list[str], rows: range, seed: int) -> None:
    """Start a job until it succeeds. The service kills one of its processes at each of a few random rows.

    Args:
        service: It answers each question with the question.
        start: Starts the job.
        kills: The kind of each process: "worker", "jvm" or "driver".
        rows: The first and the last number of a row at which a process may be killed.
        seed: Chooses these rows.
    """
    moments = sorted(Random(seed).sample(rows, len(kills)))
    remaining = list(zip(moments, kills, strict=True))
    jobs: list[Family] = []

    async def kills_one(question: str) -> str:
        if remaining and len(rows_of(service)) >= remaining[0][0]:
            pid = _victim(jobs[-1], remaining[0][1])
            if pid is not None:
                del remaining[0]
                os.kill(pid, signal.SIGKILL)
        await trio.lowlevel.checkpoint()
        return question

    service.answer = kills_one
    for _ in range(len(kills) + 1):
        jobs.append(start())
        try:
            code = jobs[-1].leader.wait(2 * PATIENCE)
        finally:
            jobs[-1].kill()
        if code == 0:
            break
    assert code == 0, jobs[-1].tail()
    assert not remaining
    assert len(jobs) > 1


def _victim(family: Family, kind: str) -> int | None:
    """The id of a process of this kind; None if there is none at the moment."""
    if kind == "driver":
        return family.leader.pid
    names = {"worker": "pyspark.daemon", "jvm": "org.apache.spark.deploy.SparkSubmit"}
    found = [each.pid for each in family.alive() if names[kind] in each.command]
    return found[-1] if found else None
