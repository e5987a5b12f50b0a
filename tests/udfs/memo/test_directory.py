"""The directory of a memo: whose it is, which files count, and how they are read."""

from __future__ import annotations

import errno
import importlib
import resource
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

from tests.support import PATIENCE
from tests.udfs.memo.looking import ALL, age, log_of, numbers
from udfs import MemoError
from udfs._memo.answers import ALWAYS
from udfs._memo.directory import Directory
from udfs._memo.location import absolute
from udfs._memo.merge import compact, rewrite
from udfs._memo.reader import Reader
from udfs._memo.writer import Writer
from udfs._plan.memo_layout import memo_schema

NUMBER = T.StructType([T.StructField("n", T.LongType())])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            memo_schema("geocode", NUMBER, T.DoubleType(), ("n",)),
            "has function 'look_up', .* 'geocode': give each function",
        ),
        (
            memo_schema("look_up", NUMBER, T.LongType(), ("n",)),
            "has answer 'double', .* 'bigint': give the new columns these types",
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
            left = list(Path(path).iterdir())
            assert (not left) == (not any(outcomes))


def test_many_queries_of_one_function_may_begin_at_once(memo: Directory) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: Directory(memo.path, memo.schema).claim(), range(40)))
    assert Reader(memo).bucket(0).num_rows == 0


def test_the_files_name_their_function_even_in_a_copy_of_the_table(
    memo: Directory, answers: Any, tmp_path: Path
) -> None:
    """No file with a special name has to be copied."""
    memo.put_table(answers(1), ALL)
    memo.remove(*(name for name, file in memo.files().items() if not file.buckets))
    other = Directory(str(tmp_path), memo_schema("geocode", NUMBER, T.DoubleType(), ("n",)))
    for use in (other.claim, other.files, lambda: Reader(other)):
        with pytest.raises(MemoError, match="has function 'look_up'"):
            use()


def test_a_directory_with_two_memos_has_none_that_can_be_used(memo: Directory, tmp_path: Path) -> None:
    other = Directory(str(tmp_path), memo_schema("geocode", NUMBER, T.DoubleType(), ("n",)))
    other.put_table(other.schema.empty_table(), ALL)
    with pytest.raises(MemoError, match="has function"):
        Directory.existing(memo.path)


def test_a_query_on_a_memo_with_answers_adds_no_file(memo: Directory, answers: Any, tmp_path: Path) -> None:
    memo.put_table(answers(1), ALL)
    before = sorted(tmp_path.iterdir())
    memo.claim()
    assert sorted(tmp_path.iterdir()) == before


@contextmanager
def room_for(nbytes: int) -> Iterator[None]:
    """No file grows beyond this size."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


TOO_LARGE = r"the memo .* cannot be written \(File too large\): make room"


def test_a_memo_with_answers_that_cannot_be_written_is_refused_before_the_query(memo: Directory, answers: Any) -> None:
    memo.put_table(answers(1), ALL)
    with pytest.raises(OSError, match=TOO_LARGE), room_for(0):
        memo.claim()


@pytest.mark.parametrize("name", ["README.md", "part-0.parquet", "_memo.json", "answers-1.parquet", "_SUCCESS"])
def test_files_of_others_do_no_harm(memo: Directory, answers: Any, tmp_path: Path, name: str) -> None:
    memo.put_table(answers(1), ALL)
    (tmp_path / name).write_text("hello")
    memo.claim()
    assert numbers(Reader(memo).bucket(1)) == [1]
    found = Directory.existing(str(tmp_path))
    assert found.schema.equals(memo.schema, check_metadata=True)


def test_an_old_file_of_others_is_not_taken_for_the_log_of_a_killed_task(memo: Directory, tmp_path: Path) -> None:
    (tmp_path / "_log-other").write_text("hello")
    age(tmp_path / "_log-other", 4_000.0)
    assert compact(memo, ALWAYS) == 0
    assert (tmp_path / "_log-other").exists()


def test_only_files_that_may_have_a_bucket_are_read(memo: Directory, answers: Any) -> None:
    memo.put_table(answers(2, 4), range(0, 256, 2))
    memo.put_table(answers(3), range(1, 256, 2))
    damaged = memo.put_table(answers(5), range(5, 6))
    Path(memo.at(damaged)).write_bytes(b"")
    reader = Reader(memo)
    assert [numbers(reader.bucket(n)) for n in (2, 3, 4, 6)] == [[2], [3], [4], []]
    with pytest.raises(MemoError, match=damaged):
        Reader(memo).bucket(5)


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
    name = log_of(memo) if is_log else memo.put_table(answers(1), ALL)
    (tmp_path / name).write_bytes(content)
    message = f"the file {name} of the memo {tmp_path} cannot be read .*: remove it, and only its answers are called"
    with pytest.raises(MemoError, match=message):
        Reader(Directory(str(tmp_path), memo.schema)).bucket(1)
    (tmp_path / name).unlink()
    Reader(Directory(str(tmp_path), memo.schema)).bucket(1)


def test_a_file_that_cannot_be_opened_is_not_called_damaged(memo: Directory, answers: Any, tmp_path: Path) -> None:
    name = memo.put_table(answers(1), ALL)
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(tmp_path / name)
    with pytest.raises(MemoError, match=f"the file {name} .* cannot be read .*: check its permissions"):
        memo.open(next(iter(memo.files().values()))._replace(name=name))


def test_a_file_that_a_killed_process_left_unfinished_is_not_read(memo: Directory, tmp_path: Path) -> None:
    (tmp_path / "_unfinished-1").write_bytes(b"PAR1")
    assert Reader(memo).bucket(0).num_rows == 0


def test_a_file_that_cannot_be_written_is_an_error_that_names_the_memo_and_takes_no_space(
    memo: Directory, answers: Any, tmp_path: Path
) -> None:
    before = set(tmp_path.iterdir())
    with pytest.raises(OSError, match=TOO_LARGE) as caught, room_for(100):
        memo.put_table(answers(1), ALL)
    assert caught.value.errno == errno.EFBIG
    assert str(tmp_path) in str(caught.value)
    assert set(tmp_path.iterdir()) == before


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
    assert numbers(Reader(memo).bucket(1)) == [1]


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


def test_a_reader_finds_the_answers_that_a_merge_moves_while_it_reads(memo: Directory, answers: Any) -> None:
    writer = Writer(memo, PATIENCE, ALL)
    writer.add(answers(1))
    reader = Reader(memo)
    rewrite(memo, [file for file in memo.files().values() if file.is_log])
    assert numbers(reader.bucket(1)) == [1]


def test_a_memo_whose_path_is_a_file_is_refused_by_name(memo: Directory, tmp_path: Path) -> None:
    (tmp_path / "answers").write_text("")
    memo = Directory(str(tmp_path / "answers"), memo.schema)
    for use in (memo.claim, memo.files, lambda: Directory.existing(memo.path)):
        with pytest.raises(MemoError, match=r"the memo .*/answers is a file: give the path of a directory"):
            use()


def test_a_memo_below_a_file_is_refused_by_name(memo: Directory, tmp_path: Path) -> None:
    (tmp_path / "answers").write_text("")
    memo = Directory(str(tmp_path / "answers" / "of" / "today"), memo.schema)
    with pytest.raises(MemoError, match=r"the memo .*/answers/of/today is below a file: give the path of a directory"):
        memo.claim()


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
        ("file://localhost/data/weather/", "/data/weather"),
        ("FILE://LOCALHOST/data/weather", "/data/weather"),
        ("file:///data/the%20weather%3F%C3%A9", "/data/the weather?é"),
        ("/data/the%20weather", "/data/the%20weather"),
        ("s3a://bucket/weather/", "s3a://bucket/weather"),
        ("/data/~", "/data/~"),
        ("file:///~/weather", "/~/weather"),
        ("s3://~/weather", "s3://~/weather"),
    ],
)
def test_a_path_is_absolute_or_has_a_scheme(path: str, expected: str) -> None:
    assert absolute(path) == expected


def test_a_local_path_may_begin_in_the_drivers_directory_or_at_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert absolute("weather") == absolute("~/weather") == str(tmp_path / "weather")


@pytest.mark.parametrize("uri", ["file://data/weather", "file:weather", "file:///data/why?", "file:///data/memo#2"])
def test_a_file_uri_without_an_absolute_path_on_this_machine_is_refused(uri: str) -> None:
    message = "write three slashes before a path on this machine, . as %3F, and # as %23; mount the file system"
    with pytest.raises(ValueError, match=message):
        absolute(uri)


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
    assert numbers(Reader(Directory(uri, memo.schema)).bucket(1)) == [1]
    assert [file.is_log for file in memo.files().values()] == [False, False]
    assert compact(memo, ALWAYS) == 2
    assert numbers(Reader(Directory(uri, memo.schema)).bucket(2)) == [2]


def test_a_task_lists_the_directory_once_and_opens_each_file_once(
    directory: Any, answers: Any, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted at the file system. Each file has several row groups, and the task reads all buckets."""
    monkeypatch.setattr("udfs._memo.format._GROUP_ROWS", 100)
    memo = Directory(uri, directory().schema)
    memo.claim()
    for first in range(0, 1536, 512):
        memo.put_table(answers(*range(first, first + 512)), ALL)
    writer = Writer(memo, 0.0, ALL)
    writer.add(answers(2_000))
    writer._log.flush()  # type: ignore[union-attr] # as a task that was killed
    file_system = importlib.import_module("fsspec.implementations.memory").MemoryFileSystem
    counts = Counter[str]()

    def count(name: str) -> None:
        original = getattr(file_system, name)

        def counted(self: Any, *arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            return original(self, *arguments, **options)

        monkeypatch.setattr(file_system, name, counted)

    count("find")
    count("_open")
    reader = Reader(Directory(uri, memo.schema))
    assert sum(reader.bucket(number).num_rows for number in ALL) == 1537
    assert counts == {"find": 1, "_open": 4}


def test_a_task_opens_only_files_that_may_have_its_buckets(memo: Directory, answers: Any) -> None:
    damaged = memo.put_table(answers(1), range(1, 256, 2))
    memo.put_table(answers(2), range(0, 256, 2))
    Path(memo.at(damaged)).write_bytes(b"")
    reader = Reader(memo, range(0, 256, 2))
    assert sum(reader.bucket(number).num_rows for number in range(0, 256, 2)) == 1


@pytest.mark.parametrize("most", [0, 1])
def test_files_beyond_those_that_stay_open_are_opened_again(
    memo: Directory, answers: Any, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("udfs._memo.reader.MAX_OPEN", most)
    monkeypatch.setattr("udfs._memo.reader.KEPT_BYTES", 0)
    Writer(memo, PATIENCE, ALL).add(answers(1, 2))
    for number in (1, 2):
        memo.put_table(answers(number), ALL)
    reader = Reader(memo)
    assert [numbers(reader.bucket(number)) for number in (1, 2, 3)] == [[1, 1], [2, 2], []]


@pytest.mark.parametrize("hours", [-48.0, 2.0, 48.0])
def test_the_age_of_a_file_does_not_depend_on_the_clock_of_this_machine(
    memo: Directory, answers: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hours: float
) -> None:
    """A worker whose clock is ahead of the store's would take the log of a running task for that of a killed one."""
    Writer(memo, PATIENCE, ALL).add(answers(1))
    (tmp_path / "_unfinished-1").touch()
    killed = memo.new_log(ALL)
    memo.put(killed, (tmp_path / log_of(memo)).read_bytes())
    age(tmp_path / killed, 4_000.0)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3_600.0 * hours)
    assert compact(memo, ALWAYS) == 1
    assert not (tmp_path / killed).exists()
    assert len(list(tmp_path.glob("_log-*"))) == 1
    assert [path.name for path in tmp_path.glob("_unfinished-*")] == ["_unfinished-1"]
