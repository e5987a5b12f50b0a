"""Files that releases with another layout of modules have written stay readable."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from trio_asyncio_io import DeadLetter, ElementTimeoutError, LostError, SnapshotElement, StreamRecord, Watermark
from trio_asyncio_io.checkpoints import SQLiteStore

# Both hold the same durable checkpoint "job": a snapshot of six elements, and a position with seven dead letters. The
# first is of the release in which a dead letter pickled as its attributes, the second names functions of two modules
FILES = sorted(Path(__file__).with_name("flat_layout").glob("*.sqlite"), key=lambda each: each.name)
ELEMENTS = (
    SnapshotElement(0, StreamRecord(0, 1.0), [0]),
    SnapshotElement(1, Watermark(2.0)),
    SnapshotElement(2, 9, [90]),
    SnapshotElement(3, StreamRecord(20, 3.0)),
    SnapshotElement(4, Watermark(4.0)),
    SnapshotElement(5, 21),
)


@pytest.mark.parametrize("file", FILES, ids=lambda each: each.stem)
async def test_a_durable_checkpoint_of_the_flat_layout_loads(file: Path, tmp_path: Path) -> None:
    async with SQLiteStore(shutil.copy(file, tmp_path)) as store:
        checkpoint = await store.load("job")
    assert checkpoint is not None
    assert checkpoint.snapshot.elements == ELEMENTS
    assert checkpoint.snapshot.taken == 6
    letters: list[DeadLetter] = checkpoint.position["letters"]
    assert [each.element.value for each in letters] == [1, 2, 3, 4, 5, 6, 7]
    refused, late, gone, lost, *_, several = (each.error for each in letters)
    assert repr(refused) == "ValueError('no such city')"
    assert isinstance(late, ElementTimeoutError)
    assert late.timeout == 0.05
    assert repr(gone) == "OSError(5, 'gone')"
    assert isinstance(lost, LostError)
    assert str(lost) == "Local: cannot be pickled"
    assert isinstance(several, ExceptionGroup)


def test_there_is_a_file_of_each_form() -> None:
    assert [each.name for each in FILES] == ["attributes.sqlite", "reduced.sqlite"]
