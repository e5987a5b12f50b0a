"""The directory of a memo: whose it is, which files count, and how they are read."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

from tests.support import PATIENCE
from udfs import MemoError
from udfs._memo.answers import ALWAYS
from udfs._memo.directory import Directory
from udfs._memo.location import absolute
from udfs._memo.merge import compact, rewrite
from udfs._memo.writer import Writer
from udfs._plan.memo import memo_schema

ALL = range(256)
NUMBER = T.StructType([T.StructField("n", T.LongType())])


def numbers(table: pa.Table) -> list[int]:
    return sorted(each["n"] for each in table.column("inputs").to_pylist())


def age(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            memo_schema("geocode", NUMBER, T.DoubleType(), ("n",)),
            "has function 'look_up', .* 'geocode': give each function",
        ),
        (
            memo_schema("look_up", NUMBER, T.LongType(), ("n",)),
            "has answer 'double', .* 'bigint': give the new columns these",
        ),
        (
            memo_schema("look_up", T.StructType([T.StructField("n", T.StringType())]), T.DoubleType(), ("n",)),
            "has inputs 'struct<n:bigint>', .* 'struct<n:string>': give the inputs these names and types",
        ),
        (
            memo_schema("look_up", NUMBER, T.DoubleType(), ("m",)),
            "has spread_by .*: use the same operator and the same key=",
        ),
    ],
    ids=["function", "answer", "inputs", "key"],
)
def test_a_memo_of_another_function_or_schema_is_refused(
    memo: Directory, tmp_path: Path, other: pa.Schema, message: str
) -> None:
    memo.claim()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(MemoError, match=f"the memo {tmp_path} {message}"):
        Directory(str(tmp_path), other).claim()
    assert sorted(tmp_path.iterdir()) == before


def test_two_functions_that_begin_at_once_never_both_get_a_new_directory(tmp_path: Path) -> None:
    names = ("weather", "price")

    def accepted(path: str, name: str, start: threading.Barrier) -> bool:
        memo = Directory(path, memo_schema(name, NUMBER, T.DoubleType(), ("n",)))
        start.wait(PATIENCE)
        try:
            memo.claim()
        except MemoError:
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        for attempt in range(300):
            path, start = str(tmp_path / str(attempt)), threading.Barrier(2)
            outcomes = list(threads.map(accepted, [path] * 2, names, [start] * 2))
            assert outcomes.count(True) <= 1
            left = Directory.existing(path)
            assert (left is None) == (not any(outcomes))


def test_many_queries_of_one_function_may_begin_at_once(memo: Directory) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: Directory(memo.path, memo.schema).claim(), range(40)))
    assert memo.bucket(0).num_rows == 0


def test_the_files_name_their_function_even_in_a_copy_of_the_table(
    memo: Directory, answers: Any, tmp_path: Path
) -> None:
    """No file with a special name has to be copied."""
    memo.put_table(answers(1), ALL)
    memo.remove(*(name for name, file in memo.files().items() if not file.buckets))
    other = Directory(str(tmp_path), memo_schema("geocode", NUMBER, T.DoubleType(), ("n",)))
    for use in (other.claim, other.check, other.files, lambda: other.bucket(1)):
        with pytest.raises(MemoError, match="has function 'look_up'"):
            use()


def test_a_file_that_was_renamed_into_another_memo_is_refused(memo: Directory, answers: Any, tmp_path: Path) -> None:
    other = Directory(str(tmp_path / "other"), memo_schema("geocode", NUMBER, T.DoubleType(), ("n",)))
    other.claim()
    name = other.put_table(answers(1).cast(other.schema), ALL)
    disguised = name.replace(other.kind, memo.kind)
    (tmp_path / "other" / name).rename(tmp_path / disguised)
    with pytest.raises(MemoError, match=f"the file {disguised} of the memo {tmp_path} belongs to another memo"):
        memo.bucket(1)


@pytest.mark.parametrize("name", ["README.md", "part-0.parquet", "_memo.json", "answers-1.parquet", "_SUCCESS"])
def test_files_of_others_do_no_harm(memo: Directory, answers: Any, tmp_path: Path, name: str) -> None:
    memo.put_table(answers(1), ALL)
    (tmp_path / name).write_text("hello")
    memo.claim()
    assert numbers(memo.bucket(1)) == [1]
    found = Directory.existing(str(tmp_path))
    assert found is not None
    assert found.schema.equals(memo.schema, check_metadata=True)


def test_only_files_that_may_have_a_bucket_are_read(memo: Directory, answers: Any) -> None:
    memo.put_table(answers(2, 4), range(0, 256, 2))
    memo.put_table(answers(3), range(1, 256, 2))
    damaged = memo.put_table(answers(5), range(5, 6))
    Path(memo.at(damaged)).write_bytes(b"")
    assert [numbers(memo.bucket(n)) for n in (2, 3, 4, 6)] == [[2], [3], [4], []]
    with pytest.raises(MemoError, match=damaged):
        memo.bucket(5)


@pytest.mark.parametrize(
    "content",
    [b"", b"PAR1", b"no parquet at all", b"PAR1" + bytes(99) + b"PAR1", bytes(100_000)],
    ids=["empty", "short", "text", "zeros", "long"],
)
@pytest.mark.parametrize("is_log", [True, False], ids=["log", "parquet"])
def test_a_damaged_file_is_refused_by_name(
    memo: Directory, answers: Any, tmp_path: Path, content: bytes, is_log: bool
) -> None:
    writer = Writer(memo, PATIENCE, ALL)
    writer.add(answers(1))
    name = str(writer.log) if is_log else memo.put_table(answers(1), ALL)
    (tmp_path / name).write_bytes(content)
    message = f"the file {name} of the memo {tmp_path} cannot be read .*: remove it, and only its answers are called"
    with pytest.raises(MemoError, match=message):
        Directory(str(tmp_path), memo.schema).bucket(1)
    (tmp_path / name).unlink()
    Directory(str(tmp_path), memo.schema).bucket(1)


def test_a_file_that_cannot_be_opened_is_not_called_damaged(memo: Directory, answers: Any, tmp_path: Path) -> None:
    name = memo.put_table(answers(1), ALL)
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(tmp_path / name)
    with pytest.raises(MemoError, match=f"the file {name} .* cannot be read .*: check its permissions"):
        memo.read(next(iter(memo.files().values()))._replace(name=name), ALL)


def test_a_file_that_a_killed_process_left_unfinished_is_not_read(memo: Directory, tmp_path: Path) -> None:
    (tmp_path / "_unfinished-1").write_bytes(b"PAR1")
    assert memo.bucket(0).num_rows == 0


def test_unfinished_files_are_removed_after_a_day(memo: Directory, tmp_path: Path) -> None:
    for name, seconds in (("_unfinished-old", 90_000.0), ("_unfinished-new", 0.0)):
        (tmp_path / name).touch()
        age(tmp_path / name, seconds)
    memo.clean()
    assert [path.name for path in tmp_path.glob("_*")] == ["_unfinished-new"]


def test_a_file_that_is_replaced_is_not_read_and_remains_for_ten_minutes(
    memo: Directory, answers: Any, tmp_path: Path
) -> None:
    old = [memo.put_table(answers(1), ALL), memo.put_table(answers(2), ALL)]
    new = memo.put_table(answers(1, 2), ALL)
    memo.replace(old, [new])
    assert new in memo.files()
    assert not memo.files().keys() & set(old)
    memo.clean()
    assert all((tmp_path / name).exists() for name in old)
    [note] = tmp_path.glob("_replaced-*")
    age(note, 700.0)
    for _ in range(2):
        memo.clean()
        assert not note.exists()
        assert not any((tmp_path / name).exists() for name in old)
    assert numbers(memo.bucket(1)) == [1]


def test_a_listing_without_the_new_file_keeps_those_that_it_replaces(memo: Directory, answers: Any) -> None:
    """A listing that is made while files appear may have any of them."""
    old = memo.put_table(answers(1), ALL)
    memo.replace([old], ["answers-not-listed"])
    assert old in memo.files()


@pytest.mark.parametrize("text", [b"", b'{"names"', b"\xff", b"[1]", b'{"names": 1, "by": [[]]}'], ids=repr)
def test_a_damaged_note_replaces_nothing(memo: Directory, answers: Any, tmp_path: Path, text: bytes) -> None:
    old = memo.put_table(answers(1), ALL)
    memo.replace([old], [memo.put_table(answers(1), ALL)])
    [note] = tmp_path.glob("_replaced-*")
    note.write_bytes(text)
    age(note, 700.0)
    assert old in memo.files()
    memo.clean()
    assert old in memo.files()


def test_a_note_removes_only_files_of_its_directory(memo: Directory, tmp_path: Path) -> None:
    outside = tmp_path.with_suffix(".outside")
    outside.touch()
    memo.replace([f"../{outside.name}"], [])
    [note] = tmp_path.glob("_replaced-*")
    age(note, 700.0)
    memo.clean()
    assert outside.exists()


def test_a_reader_finds_the_answers_that_a_merge_moves_while_it_reads(
    memo: Directory, answers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(memo, PATIENCE, ALL)
    writer.add(answers(1))
    read, merged = Directory.read, []
    cached = Directory._cached

    def merged_meanwhile(directory: Directory, *arguments: Any) -> Any:
        if not merged:
            merged.append(True)
            rewrite(memo, [file for file in memo.files().values() if file.is_log])
        return cached(directory, *arguments)

    monkeypatch.setattr(Directory, "_cached", merged_meanwhile)
    assert read is Directory.read
    assert numbers(Directory(memo.path, memo.schema).bucket(1)) == [1]
    assert merged


def test_a_directory_that_does_not_exist_has_no_memo(tmp_path: Path) -> None:
    assert Directory.existing(str(tmp_path / "none")) is None


def test_a_new_memo_is_an_empty_table_for_every_engine(memo: Directory, tmp_path: Path) -> None:
    table = pq.read_table(tmp_path)
    assert table.num_rows == 0
    assert table.schema.names == memo.schema.names


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


def test_a_scheme_without_a_file_system_is_refused(directory: Any) -> None:
    with pytest.raises(ValueError, match=r"memo cannot write dbfs-old:// \(.*\): use a local path that all workers"):
        Directory("dbfs-old://weather", directory().schema)


@pytest.fixture
def uri(tmp_path: Path) -> Iterator[str]:
    """A directory in memory, where files cannot grow."""
    fsspec = pytest.importorskip("fsspec")
    yield f"memory://{tmp_path.name}/weather"
    fsspec.filesystem("memory").store.clear()


def test_a_file_system_of_fsspec_works(directory: Any, answers: Any, uri: str) -> None:
    memo = Directory(uri, directory().schema)
    assert not memo.can_append
    memo.claim()
    with Writer(memo, PATIENCE, ALL) as writer:
        writer.add(answers(1))
        writer.add(answers(2))
    assert numbers(Directory(uri, memo.schema).bucket(1)) == [1]
    assert [file.is_log for file in memo.files().values()] == [False, False]
    assert compact(memo, ALWAYS) == 2
    assert numbers(Directory(uri, memo.schema).bucket(2)) == [2]
