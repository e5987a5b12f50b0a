"""A job that is killed with SIGKILL repeatedly loses no output and repeats none. With a cache it repeats no call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio

import trio_asyncio_io
from tests.support import thorough_except
from trio_asyncio_io import StreamRecord, Watermark
from trio_asyncio_io.checkpoints import Checkpoint, SQLiteStore

pytestmark = pytest.mark.processes

PROGRAM = Path(__file__).with_name("_job.py")
JOBS = [f"{mode}-{kind}" for mode in ("ordered", "unordered", "keyed") for kind in ("one", "several")]
FEW, MANY = 5, 100  # kills
LONGEST_LIFE = 500  # lines of all jobs until the kill: at least two per record
RECORDS_PER_KILL = 100  # in each of six concurrent jobs, so that a kill comes long before the end of the input


@dataclass
class Life:
    """The events of a job between two kills, from its log."""

    starts: list[int] = field(default_factory=list)
    in_flight: set[int] = field(default_factory=set)
    ends: set[int] = field(default_factory=set)
    commit_begun: int | None = None
    committed: int | None = None

    @property
    def is_committing(self) -> bool:
        return self.commit_begun != self.committed


@dataclass(repr=False)
class History:
    """The history of a process that was started again after each kill.

    Attributes:
        number: The number of records.
        kills: The number of kills.
        lives: The lives of each job. The last one ended without a kill.
        committed: The durable checkpoint of each job after each kill.
        outputs: The final lines of output of each job.
    """

    number: int
    kills: int
    lives: dict[str, list[Life]]
    committed: dict[str, list[Checkpoint | None]]
    outputs: dict[str, list[str]]


def run_jobs(folder: Path, life: int, number: int, variant: str, lines: int = 0) -> int:
    """Run the jobs until they end, or until the kill after this number of lines. Returns the exit status."""
    arguments = [sys.executable, "-P", str(PROGRAM), str(folder), str(life), str(number), variant, str(lines)]
    environment = {**os.environ, "PYTHONPATH": str(Path(trio_asyncio_io.__file__).parents[1])}
    return subprocess.run(arguments, env=environment, check=False).returncode


def run_with_kills(folder: Path, kills: int, variant: str) -> History:
    """Run the jobs, kill them this number of times, and let them finish."""
    number = kills * RECORDS_PER_KILL
    committed: dict[str, list[Checkpoint | None]] = defaultdict(list)
    random = Random(kills)
    for life in range(kills):
        assert run_jobs(folder, life, number, variant, random.randint(1, LONGEST_LIFE)) == -signal.SIGKILL
        for job, checkpoint in trio.run(load_all, folder).items():
            committed[job].append(checkpoint)
    assert run_jobs(folder, kills, number, variant) == 0
    lives = {job: read_lives(folder / f"{job}.log", kills + 1) for job in JOBS}
    outputs = read_outputs(folder)
    assert run_jobs(folder, kills + 1, number, variant) == 0
    assert read_outputs(folder) == outputs, "a run after the end must change nothing"
    return History(number, kills, lives, committed, outputs)


def read_outputs(folder: Path) -> dict[str, list[str]]:
    return {job: (folder / f"{job}.out").read_text().splitlines() for job in JOBS}


async def load_all(folder: Path) -> dict[str, Checkpoint | None]:
    async with SQLiteStore(folder / "job.sqlite") as store:
        return {job: await store.load(job) for job in JOBS}


def read_lives(log: Path, number: int) -> list[Life]:
    lives = [Life() for _ in range(number)]
    life = lives[0]
    for line in log.read_text().splitlines():
        event, _, value = line.removesuffix(";").partition(" ")
        if not line.endswith(";"):  # a kill tore it
            continue
        if event == "life":
            life = lives[int(value)]
        elif event == "start":
            life.starts.append(int(value))
            life.in_flight.add(int(value))
        elif event == "end":
            life.in_flight.discard(int(value))
            life.ends.add(int(value))
        elif event == "commit":
            life.commit_begun = int(value)
        else:
            life.committed = int(value)
    return lives


@cache
def elements(number: int) -> list[Any]:
    """Records, and a watermark after every twenty of them."""
    found: list[Any] = []
    for value in range(number):
        found.append(StreamRecord(value, value))
        if value % 20 == 19:
            found.append(Watermark(value))
    return found


def lines(element: Any, job: str) -> list[str]:
    if isinstance(element, Watermark):
        return [f"until {element.timestamp}"]
    return [f"{element.value}.{part}" for part in range(element.value % 4 if job.endswith("several") else 1)]


def segments(outputs: list[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for line in outputs:
        found[-1].append(line)
        if line.startswith("until"):
            found.append([])
    return found


def by_key(outputs: list[str]) -> dict[int, list[str]]:
    found = defaultdict(list)
    for line in outputs:
        if not line.startswith("until"):
            found[int(line.split(".")[0]) % 7].append(line)
    return found


def check_outputs(history: History) -> None:
    """Each output occurs once, in the order of the mode."""
    for job, outputs in history.outputs.items():
        expected = [line for element in elements(history.number) for line in lines(element, job)]
        assert sorted(outputs) == sorted(expected), job
        assert [*map(sorted, segments(outputs))] == [*map(sorted, segments(expected))], job
        assert all(segment[-1].startswith("until") for segment in segments(outputs)[:-1])
        if job.startswith("ordered"):
            assert outputs == expected
        if job.startswith("keyed"):
            assert by_key(outputs) == by_key(expected)


def check_commits(history: History) -> None:
    """A commit that has returned is in the store. One that was interrupted is there as a whole or not at all."""
    for job in JOBS:
        before = None
        for checkpoint, life in zip(history.committed[job], history.lives[job], strict=False):
            position = None if checkpoint is None else checkpoint.position
            last = before if life.committed is None else life.committed
            assert position in ({last, life.commit_begun} if life.is_committing else {last}), job
            before = position


def check_calls(history: History) -> None:
    """An element that had been received, or had a result in the durable checkpoint, is not called again."""
    for job in JOBS:
        for checkpoint, life in zip(history.committed[job], history.lives[job][1:], strict=True):
            if checkpoint is not None:
                held = checkpoint.snapshot.elements
                unfinished = [entry.element for entry in held if entry.results is None]
                remaining = [*unfinished, *elements(history.number)[checkpoint.snapshot.taken :]]
                values = {element.value for element in remaining if isinstance(element, StreamRecord)}
                assert set(life.starts) <= values, job


def check_repeats(history: History) -> None:
    """Only calls that were in flight at a kill are repeated."""
    for job, lives in history.lives.items():
        starts = [value for life in lives for value in life.starts]
        repeated = len(starts) - len(set(starts))
        assert repeated <= sum(len(life.in_flight) for life in lives), job
        ended: set[int] = set()
        for before, after in pairwise(lives):
            ended |= before.ends
            assert not ended.intersection(after.starts), job


def check_kills(history: History) -> None:
    """Many kills interrupted calls, and left different durable checkpoints, some with results."""
    killed = [life for lives in history.lives.values() for life in lives[:-1]]
    loaded = [checkpoint for found in history.committed.values() for checkpoint in found if checkpoint is not None]
    assert sum(bool(life.in_flight) for life in killed) > len(killed) / 4
    assert any(element.results for checkpoint in loaded for element in checkpoint.snapshot.elements)
    assert all(len({repr(checkpoint) for checkpoint in history.committed[job]}) > history.kills / 4 for job in JOBS)
    if history.kills >= MANY:
        assert any(life.is_committing for life in killed)


def check(history: History, variant: str) -> None:
    check_kills(history)
    check_commits(history)
    check_outputs(history)
    check_calls(history)
    if variant == "recorded":
        check_repeats(history)


@pytest.mark.parametrize("variant", thorough_except(["plain"], ["recorded", "plain"]))
def test_a_job_that_is_killed_a_few_times_loses_nothing_and_repeats_nothing(tmp_path: Path, variant: str) -> None:
    check(run_with_kills(tmp_path, FEW, variant), variant)


@pytest.mark.soak
@pytest.mark.parametrize("variant", ["recorded", "plain"])
def test_a_job_that_is_killed_a_hundred_times_loses_nothing_and_repeats_nothing(tmp_path: Path, variant: str) -> None:
    check(run_with_kills(tmp_path, MANY, variant), variant)
