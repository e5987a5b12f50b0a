"""Files of a memo."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from udfs._memo.errors import MemoError
from udfs._memo.files import MemoFiles, holds
from udfs._memo.location import absolute


def table(*buckets: int) -> pa.Table:
    return pa.table({"bucket": pa.array(buckets, pa.int32()), "n": [10 * bucket for bucket in buckets]})


@pytest.fixture
def files(tmp_path: Path) -> MemoFiles:
    return MemoFiles(str(tmp_path))


def test_the_name_of_a_file_shows_its_buckets(files: MemoFiles) -> None:
    files.write([table(0, 7), table(255)])
    [name] = files.names()
    assert [bucket for bucket in range(256) if holds(name, bucket)] == [0, 7, 255]


def test_a_bucket_is_read_without_the_others(files: MemoFiles) -> None:
    files.write([table(3, 5, 3), table(4)], "compact")
    [name] = files.names()
    assert files.read(name, 3).to_pylist() == [{"bucket": 3, "n": 30}, {"bucket": 3, "n": 30}]
    assert files.read(name).num_rows == 4
    assert files.read(name, 9).num_rows == 0


def test_a_file_that_a_killed_process_left_unfinished_is_not_read(files: MemoFiles, tmp_path: Path) -> None:
    (tmp_path / "_unfinished-1").write_bytes(b"PAR1")
    assert files.names() == []


def age(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


def test_unfinished_files_are_removed_after_a_day(files: MemoFiles, tmp_path: Path) -> None:
    for name, seconds in (("_unfinished-old", 90_000.0), ("_unfinished-new", 0.0)):
        (tmp_path / name).touch()
        age(tmp_path / name, seconds)
    files.remove_replaced()
    assert [path.name for path in tmp_path.iterdir()] == ["_unfinished-new"]


def test_a_file_that_is_replaced_is_not_read_and_remains_for_ten_minutes(files: MemoFiles, tmp_path: Path) -> None:
    old = [files.write([table(1)]), files.write([table(2)])]
    new = files.write([table(1, 2)], "compact")
    files.replace(old, [new])
    assert files.names() == [new]
    files.remove_replaced()
    assert all((tmp_path / name).exists() for name in old)
    [replaced] = tmp_path.glob("_replaced-*")
    age(replaced, 700.0)
    for _ in range(2):
        files.remove_replaced()
        assert [path.name for path in tmp_path.iterdir()] == [new]


def test_a_listing_without_the_new_file_keeps_those_that_it_replaces(files: MemoFiles) -> None:
    """A listing that is made while files appear may have any of them."""
    old = files.write([table(1)])
    files.replace([old], ["compact-not-listed"])
    assert files.names() == [old]


def test_only_one_compaction_has_the_claim(files: MemoFiles, tmp_path: Path) -> None:
    assert files.claim()
    assert not MemoFiles(str(tmp_path)).claim()
    files.release()
    assert files.claim()
    age(tmp_path / "_compacting", 700.0)  # its process was killed
    assert files.claim()


def test_a_journal_counts_as_settled_when_nobody_has_written_it_for_an_hour(files: MemoFiles, tmp_path: Path) -> None:
    journal = files.open_journal(table(1, 2))
    assert journal is not None
    [name] = files.names()
    assert files.settled() == []
    assert files.small() == {}
    age(tmp_path / name, 4_000.0)
    assert files.settled() == [name]
    assert list(files.small()) == [name]
    assert files.read(name, 2).to_pylist() == [{"bucket": 2, "n": 20}]


@pytest.mark.parametrize(
    "content",
    [b"", b"PAR1", b"no parquet at all", b"PAR1" + bytes(99) + b"PAR1"],
    ids=["empty", "short", "text", "zeros"],
)
def test_a_file_that_is_not_parquet_is_refused_by_name(files: MemoFiles, tmp_path: Path, content: bytes) -> None:
    files.write([table(1)])
    [name] = files.names()
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MemoError, match=f"the file {name} of the memo {tmp_path} cannot be read .*: remove it"):
        files.read(name, 1)


def test_a_directory_that_does_not_exist_has_no_files(tmp_path: Path) -> None:
    files = MemoFiles(str(tmp_path / "none"))
    assert files.names() == []
    assert files.read_text("_memo.json") is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/data/weather/", "/data/weather"),
        ("file:/data/weather", "/data/weather"),
        ("file:///data/weather", "/data/weather"),
        ("s3a://bucket/weather/", "s3a://bucket/weather"),
    ],
)
def test_a_path_is_absolute_or_has_a_scheme(path: str, expected: str) -> None:
    assert absolute(path) == expected


def test_a_relative_path_belongs_to_the_drivers_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("weather") == str(tmp_path / "weather")


def test_a_scheme_of_hadoop_is_refused() -> None:
    """It would be a directory of this name on the disk of each machine."""
    with pytest.raises(ValueError, match=r"memo must be a local path or a URI with dbfs://, got 'dbfs:/memo'"):
        absolute("dbfs:/memo")


def test_a_changed_byte_never_becomes_another_answer(tmp_path: Path) -> None:
    files = MemoFiles(str(tmp_path))
    files.write([table(*range(20))])
    [name] = files.names()
    content = (tmp_path / name).read_bytes()
    whole, refused = files.read(name), 0
    metadata = len(content) - int.from_bytes(content[-8:-4], "little") - 8
    for position in range(0, metadata, 7):
        changed = bytearray(content)
        changed[position] ^= 1
        (tmp_path / name).write_bytes(changed)
        try:
            assert MemoFiles(str(tmp_path)).read(name) == whole
        except MemoError:
            refused += 1
    assert refused > 0


@pytest.mark.parametrize("text", [b"", b'{"names"', b"\xff"], ids=["empty", "half", "bytes"])
def test_a_damaged_note_replaces_nothing(files: MemoFiles, tmp_path: Path, text: bytes) -> None:
    files.write([table(1)])
    files.replace(files.names(), [files.write([table(1)], "compact")])
    assert len(files.names()) == 1
    [note] = tmp_path.glob("_replaced-*")
    note.write_bytes(text)
    again = MemoFiles(str(tmp_path))
    assert len(again.names()) == 2
    again.remove_replaced()


def test_a_scheme_without_a_file_system_is_refused() -> None:
    with pytest.raises(ValueError, match=r"memo cannot write dbfs-old:// \(.*\): use a local path that all workers"):
        MemoFiles("dbfs-old://weather")


def test_a_path_of_fsspec_works(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    files: Any = MemoFiles(f"local://{tmp_path}/weather")
    files.write_text("_memo.json", "{}")
    files.write([table(1)])
    assert MemoFiles(str(tmp_path / "weather")).names() == files.names()
    assert files.read(files.names()[0], 1).num_rows == 1
    assert files.read_text("_memo.json") == "{}"
    assert files.read_text("none") is None
