"""The search itself: it finds what it should, prunes nothing that matters, and leaves Trio as it was."""

from __future__ import annotations

import sys
from contextlib import suppress

import pytest
import trio

from tests.explored.fingerprint import Fingerprint
from tests.explored.loom import PRIVATE, Exploration, Loom, Violation, World, explore
from tests.explored.world import OperatorWorld, Setting, explore_world


class Counter(World):
    """A program of two tasks that count, with a checkpoint between reading and writing: the oldest of all races."""

    def __init__(self, loom: Loom) -> None:
        super().__init__(loom)
        self.count = 0

    async def main(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._add, name="first")
            nursery.start_soon(self._add, name="second")
        if self.count != 2:
            raise Violation(f"the count is {self.count}")

    async def _add(self) -> None:
        before = self.count
        if self.loom.choose("it is written at once", "another task runs before it is written"):
            await trio.lowlevel.checkpoint()
        self.count = before + 1
        self.loom.say(f"{trio.lowlevel.current_task().name} writes {self.count}")

    def fingerprint(self, fingerprint: Fingerprint) -> None:
        fingerprint.add(self.count)

    def outcome(self) -> object:
        return self.count


class Waiting(Counter):
    """A program that waits for what never comes."""

    async def main(self) -> None:
        await trio.sleep_forever()


class Careless(Counter):
    """A program that takes each error for one of its user."""

    async def main(self) -> None:
        with suppress(Exception):  # as an operator with `on_error="skip"`
            self._call()

    def _call(self) -> None:
        raise Violation("two calls run at once")


class Kept(Counter):
    """A program whose object stays in memory."""

    kept: list[object] = []  # noqa: RUF012 - the defect

    async def main(self) -> None:
        self.subjects.append(Counter(self.loom))
        self.kept += self.subjects


def test_a_race_is_found_with_the_shortest_trace() -> None:
    found = explore(Counter)
    assert str(found).splitlines()[1:] == [
        "   1. another task runs before it is written",
        "   2. it is written at once",
        "  -> second writes 1",
        "  -> first writes 1",
    ]
    assert found.violation == "Violation: the count is 1"


def test_a_deadlock_is_found() -> None:
    assert explore(Waiting).violation == "Violation: all tasks wait, and nothing can happen: a deadlock"


def test_a_program_that_catches_errors_does_not_hide_a_violation() -> None:
    assert explore(Careless).violation == "Violation: two calls run at once"


def test_an_object_that_stays_in_memory_is_found() -> None:
    violation = explore(Kept).violation
    Kept.kept.clear()
    assert violation == "1 of 1 operators are still in memory after their runs"


def test_numbers_that_have_changed_are_named_with_their_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXPLORED_NUMBERS", raising=False)
    monkeypatch.setattr("tests.explored.loom.NUMBERS_OF", sys.version_info[:2])
    found = Exploration(schedules=12, states=29, is_complete=True)
    found.check("two records", 12, 29)
    with pytest.raises(AssertionError, match="two records: 12 schedules and 30 states have become 12 schedules, 29 st"):
        found.check("two records", 12, 30)


def test_trio_has_the_private_names_that_the_loom_replaces() -> None:
    missing = [f"{owner.__name__}.{name}" for owner, name in PRIVATE if not hasattr(owner, name)]
    assert not missing, f"Trio {trio.__version__} has no {missing}: find out what has replaced them"


def test_trio_is_left_as_it_was() -> None:
    before = [getattr(owner, name) for owner, name in PRIVATE[:2]]
    explore(Counter)
    explore(Waiting)
    assert [getattr(owner, name) for owner, name in PRIVATE[:2]] == before
    assert trio.run(trio.sleep, 0) is None


# Pruning

SMALL = [
    Setting(is_eager=True),
    Setting(records=3),
    Setting(capacity=1, retries=1, fails=True),
    Setting(timeout=3.0, bound=1),
    Setting(records=3, walls=(0,), mode="unordered", flatten=(2, 0, 2)),
    Setting(cancel=True, bound=1),
    Setting(gate="one"),
    Setting(records=3, capacity=1, is_slow=True),
]


@pytest.mark.parametrize("setting", SMALL, ids=str)
def test_without_pruning_there_are_more_schedules_and_the_same_outcomes(setting: Setting) -> None:
    pruned, unpruned = explore_world(setting), explore_world(setting, is_pruned=False)
    assert pruned.is_complete
    assert unpruned.is_complete
    assert pruned.schedules < unpruned.schedules
    assert pruned.outcomes == unpruned.outcomes


# By class whose objects are left out: a world in which states that differ in nothing else have different futures
CLASSES = {
    ("Value", "Error"): Setting(capacity=1, retries=1, fails=True),
    ("ParkingLot",): Setting(records=3, consumers=2, is_slow=True),
    ("AsyncWaitOperator",): Setting(records=3, consumers=2, is_slow=True),
}


@pytest.mark.parametrize("names", CLASSES, ids="-".join)
def test_a_fingerprint_without_objects_that_matter_merges_states(names: tuple[str, ...]) -> None:
    setting = CLASSES[names]
    assert explore_world(setting, ignored=frozenset(names)).states < explore_world(setting).states


@pytest.mark.parametrize(("owner", "method"), [(Fingerprint, "add_task"), (OperatorWorld, "fingerprint")])
def test_a_fingerprint_without_the_tasks_or_the_world_loses_outcomes(
    owner: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = Setting(capacity=1, retries=1, fails=True)
    complete = explore_world(setting)
    monkeypatch.setattr(owner, method, lambda *_, **__: None)
    assert explore_world(setting).outcomes < complete.outcomes
