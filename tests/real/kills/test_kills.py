"""A job that is killed with SIGKILL, again and again, loses no output, repeats none, and pays for no answer twice."""

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
from trio_asyncio_io import StreamRecord, Watermark
from trio_asyncio_io.checkpoints import Checkpoint, SQLiteStore

pytestmark = pytest.mark.processes

PROGRAM = Path(__file__).with_name("_job.py")
JOBS = [f"{mode}-{kind}" for mode in ("ordered", "unordered", "keyed") for kind in ("one", "several")]
FEW, MANY = 5, 100  # kills
LONGEST_LIFE = 500  # lines that the jobs log until the kill, all together: two or more for each record
RECORDS_PER_KILL = 100  # in each job, and six jobs run at once: a life ends long before its records do


@dataclass
class Life:
    """What a job did between two kills, by its log."""

    starts: list[int] = field(default_factory=list)
    in_flight: set[int] = field(default_factory=set)
    ends: set[int] = field(default_factory=set)
    begun: int | None = None
    committed: int | None = None

    @property
    def is_committing(self) -> bool:
        return self.begun != self.committed


@dataclass(repr=False)
class Story:
    """What became of the jobs of one process that was started again after each kill.

    Attributes:
        kills: How many there were.
        lives: For each job, what it did in each life; the last one ended by itself.
        committed: For each job, what stood in the store after each kill.
        outputs: For each job, the lines that it has put out in the end.
    """

    number: int
    kills: int
    lives: dict[str, list[Life]]
    committed: dict[str, list[Checkpoint | None]]
    outputs: dict[str, list[str]]


def ran(folder: Path, life: int, number: int, variant: str, lines: int = 0) -> int:
    """Run the jobs until they end, or until the kill that follows so many lines; the exit status."""
    arguments = [sys.executable, "-P", str(PROGRAM), str(folder), str(life), str(number), variant, str(lines)]
    environment = {**os.environ, "PYTHONPATH": str(Path(trio_asyncio_io.__file__).parents[1])}
    return subprocess.run(arguments, env=environment, check=False).returncode


def told(folder: Path, kills: int, variant: str) -> Story:
    """The story of a process that was killed so many times."""
    number = kills * RECORDS_PER_KILL
    committed: dict[str, list[Checkpoint | None]] = defaultdict(list)
    random = Random(kills)
    for life in range(kills):
        assert ran(folder, life, number, variant, random.randint(1, LONGEST_LIFE)) == -signal.SIGKILL
        for job, checkpoint in trio.run(stored, folder).items():
            committed[job].append(checkpoint)
    assert ran(folder, kills, number, variant) == 0
    lives = {job: lives_of(folder / f"{job}.log", kills + 1) for job in JOBS}
    outputs = {job: (folder / f"{job}.out").read_text().splitlines() for job in JOBS}
    assert ran(folder, kills + 1, number, variant) == 0
    assert outputs == {job: (folder / f"{job}.out").read_text().splitlines() for job in JOBS}, "run again at the end"
    return Story(number, kills, lives, committed, outputs)


async def stored(folder: Path) -> dict[str, Checkpoint | None]:
    async with SQLiteStore(folder / "job.sqlite") as store:
        return {job: await store.load(job) for job in JOBS}


def lives_of(log: Path, number: int) -> list[Life]:
    lives = [Life() for _ in range(number)]
    life = lives[0]
    for line in log.read_text().splitlines():
        event, _, value = line.removesuffix(";").partition(" ")
        if not line.endswith(";"):  # torn by a kill
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
            life.begun = int(value)
        else:
            life.committed = int(value)
    return lives


@cache
def elements(number: int) -> list[Any]:
    """A watermark after each twenty records."""
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


def check_outputs(story: Story) -> None:
    """Each output once, in the order of its mode."""
    for job, outputs in story.outputs.items():
        expected = [line for element in elements(story.number) for line in lines(element, job)]
        assert sorted(outputs) == sorted(expected), job
        assert [sorted(each) for each in segments(outputs)] == [sorted(each) for each in segments(expected)], job
        assert all(each[-1].startswith("until") for each in segments(outputs)[:-1])
        if job.startswith("ordered"):
            assert outputs == expected
        if job.startswith("keyed"):
            assert by_key(outputs) == by_key(expected)


def check_commits(story: Story) -> None:
    """A commit that has returned is kept; of one that was under way there is all or nothing."""
    for job in JOBS:
        before = None
        for checkpoint, life in zip(story.committed[job], story.lives[job], strict=False):
            position = None if checkpoint is None else checkpoint.position
            last = before if life.committed is None else life.committed
            assert position in ({last, life.begun} if life.is_committing else {last}), job
            before = position


def check_calls(story: Story) -> None:
    """What was in the durable checkpoint with its result, or was received, is not called again."""
    for job in JOBS:
        for checkpoint, life in zip(story.committed[job], story.lives[job][1:], strict=True):
            if checkpoint is not None:
                held = checkpoint.snapshot.elements
                unfinished = [each.element for each in held if each.results is None]
                todo = [*unfinished, *elements(story.number)[checkpoint.snapshot.taken :]]
                assert set(life.starts) <= {each.value for each in todo if isinstance(each, StreamRecord)}, job


def check_repeats(story: Story) -> None:
    """Only what was in flight at a kill is called a second time."""
    for job, lives in story.lives.items():
        starts = [value for life in lives for value in life.starts]
        repeated = len(starts) - len(set(starts))
        assert repeated <= sum(len(life.in_flight) for life in lives), job
        ended: set[int] = set()
        for before, after in pairwise(lives):
            ended |= before.ends
            assert not ended.intersection(after.starts), job


def check_kills(story: Story) -> None:
    """The kills struck where it hurts."""
    killed = [life for lives in story.lives.values() for life in lives[:-1]]
    kept = [each for checkpoints in story.committed.values() for each in checkpoints if each is not None]
    assert sum(bool(life.in_flight) for life in killed) > len(killed) / 4
    assert any(element.results for each in kept for element in each.snapshot.elements)
    assert all(len({repr(each) for each in story.committed[job]}) > story.kills / 4 for job in JOBS)
    if story.kills >= MANY:
        assert any(life.is_committing for life in killed)


def check(story: Story, variant: str) -> None:
    check_kills(story)
    check_commits(story)
    check_outputs(story)
    check_calls(story)
    if variant == "recorded":
        check_repeats(story)


@pytest.mark.parametrize("variant", ["recorded", "plain"])
def test_a_job_that_is_killed_a_few_times_loses_nothing_and_repeats_nothing(tmp_path: Path, variant: str) -> None:
    check(told(tmp_path, FEW, variant), variant)


@pytest.mark.soak
@pytest.mark.parametrize("variant", ["recorded", "plain"])
def test_a_job_that_is_killed_a_hundred_times_loses_nothing_and_repeats_nothing(tmp_path: Path, variant: str) -> None:
    check(told(tmp_path, MANY, variant), variant)
