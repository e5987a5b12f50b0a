"""Pickling of snapshots, and the refusal of invalid ones."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

from trio_asyncio_io import Snapshot, SnapshotElement, SnapshotError, StreamRecord, Watermark, ordered_wait
from trio_asyncio_io._core.snapshot import VERSION, problem_of

SNAPSHOT = Snapshot(
    (
        SnapshotElement(3, StreamRecord("a", 1)),
        SnapshotElement(4, Watermark(1)),
        SnapshotElement(7, "b", ["B", "BB"]),
    )
)


def test_an_unpickled_snapshot_equals_the_original() -> None:
    assert pickle.loads(pickle.dumps(SNAPSHOT)) == SNAPSHOT


def test_a_snapshot_has_a_version_and_a_length() -> None:
    assert SNAPSHOT.version == VERSION == 1
    assert len(SNAPSHOT) == 3


@pytest.mark.parametrize("good", [SNAPSHOT, Snapshot(), replace(SNAPSHOT, elements=list(SNAPSHOT.elements))])
def test_a_valid_snapshot_has_no_problem(good: Snapshot) -> None:
    assert problem_of(good) is None


BAD: list[tuple[Any, str]] = [
    ([1, 2], "restore must be a Snapshot, got [1, 2]"),
    (replace(SNAPSHOT, version=99), "the snapshot has version 99, and this release reads version 1"),
    (replace(SNAPSHOT, version=None), "the snapshot has version None"),
    (replace(SNAPSHOT, elements=None), "the snapshot's elements are damaged: None is not a sequence"),
    (replace(SNAPSHOT, elements=iter(SNAPSHOT.elements)), "is not a sequence"),
    (Snapshot(("a",)), "element 0 is damaged: 'a' is not a SnapshotElement"),
    (Snapshot((SnapshotElement("0", "a"),)), "element 0 must have a whole number as its sequence, got '0'"),
    (Snapshot((SnapshotElement(0, "a", "A"),)), "the results of element 0 are damaged: 'A' is not a list"),
    (replace(SNAPSHOT, taken=-1), "the snapshot's count of elements taken is damaged: -1"),
    (replace(SNAPSHOT, taken="3"), "the snapshot's count of elements taken is damaged: '3'"),
    (Snapshot((SnapshotElement(1, "a"), SnapshotElement(1, "b"))), "must rise: 1 follows 1"),
    (Snapshot((SnapshotElement(2, "a"), SnapshotElement(1, "b"))), "must rise: 1 follows 2"),
]


@pytest.mark.parametrize(("bad", "why"), BAD, ids=[why for _, why in BAD])
def test_an_invalid_snapshot_is_refused_with_the_reason_before_anything_runs(bad: Any, why: str) -> None:
    async def never(value: str) -> str:
        raise AssertionError

    with pytest.raises(SnapshotError) as caught:
        ordered_wait([], never, timeout=1.0, restore=bad)
    assert why in str(caught.value)
    if isinstance(bad, Snapshot) and bad.version == SNAPSHOT.version:
        assert str(caught.value).endswith(". Restore a snapshot as results.snapshot() returned it")


def test_a_snapshot_without_elements_is_true_because_it_says_where_to_continue() -> None:
    assert Snapshot(taken=4)
