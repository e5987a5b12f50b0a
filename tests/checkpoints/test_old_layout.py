"""Files that earlier releases wrote, with another layout of modules, stay readable."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from trio_asyncio_io import ElementTimeoutError, LostError, SnapshotElement, StreamRecord, Watermark
from trio_asyncio_io.checkpoints import SQLiteStore

# Both hold the same durable checkpoint "job": a snapshot of six elements, and a position with seven dead letters. A
# dead letter is pickled as its attributes in the first file, and as calls of private functions in the second
FILES = sorted(Path(__file__).with_name("flat_layout").glob("*.sqlite"), key=lambda file: file.name)
ELEMENTS = (
    SnapshotElement(0, StreamRecord(0, 1.0), [0]),
    SnapshotElement(1, Watermark(2.0)),
    SnapshotElement(2, 9, [90]),
    SnapshotElement(3, StreamRecord(20, 3.0)),
    SnapshotElement(4, Watermark(4.0)),
    SnapshotElement(5, 21),
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_a_durable_checkpoint_of_the_flat_layout_loads(file: Path, tmp_path: Path) -> None:
    async with SQLiteStore(shutil.copy(file, tmp_path)) as store:
        checkpoint = await store.load("job")
    assert checkpoint is not None
    assert checkpoint.snapshot.elements == ELEMENTS
    assert checkpoint.snapshot.taken == 6
    dead_letters, _ = checkpoint.position.values()
    assert [dead_letter.element.value for dead_letter in dead_letters] == [1, 2, 3, 4, 5, 6, 7]
    refused, late, gone, lost, *_, several = (dead_letter.error for dead_letter in dead_letters)
    assert repr(refused) == "ValueError('no such city')"
    assert isinstance(late, ElementTimeoutError)
    assert late.timeout == 0.05
    assert repr(gone) == "OSError(5, 'gone')"
    assert isinstance(lost, LostError)
    assert str(lost) == "Local: cannot be pickled"
    assert isinstance(several, ExceptionGroup)


def test_both_files_are_tested() -> None:
    assert [file.name for file in FILES] == ["attributes.sqlite", "reduced.sqlite"]
