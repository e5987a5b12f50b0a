"""Merges: few files with the same answers, whatever happens meanwhile."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support import PATIENCE
from tests.udfs.memo.looking import ALL, age, log_of
from udfs import Memo
from udfs._memo import merge as module
from udfs._memo.answers import ALWAYS, Freshness, latest
from udfs._memo.directory import Directory
from udfs._memo.merge import merge, rewrite
from udfs._memo.reader import Reader
from udfs._memo.writer import Writer


@pytest.fixture
def remember(memo: Directory, answers: Any) -> Any:
    """Writes the answers of a task as a file."""

    def write(*numbers: int, **more: Any) -> str:
        return memo.put_table(answers(*numbers, **more), ALL)

    return write


def known(directory: Directory, fresh: Freshness = ALWAYS) -> dict[int, float]:
    """The latest answer for each number."""
    other = Directory(directory.path, directory.schema)
    reader = Reader(other)
    rows = [row for bucket in range(10) for row in latest(reader.bucket(bucket), fresh).to_pylist()]
    return {row["inputs"]["n"]: row["answer"] for row in rows}


def files(directory: Directory) -> int:
    return len(directory.files())


def test_compaction_keeps_every_answer_in_one_file(remember: Any, memo: Directory) -> None:
    for number in range(9):
        remember(number, answer=float(number))
    for _ in range(2):
        assert Memo(memo.path).compact() == 9
        assert files(memo) == 1
        assert known(memo) == {number: float(number) for number in range(9)}


def test_compaction_reads_a_large_memo_in_parts(
    remember: Any, memo: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PASS_BYTES", 1)
    remember(*range(9))
    assert Memo(memo.path).compact() == 9
    assert files(memo) == 9  # one for each bucket
    assert known(memo).keys() == set(range(9))


def test_the_latest_answer_counts_before_and_after_a_compaction(remember: Any, memo: Directory) -> None:
    remember(0, answer=2.0, at=1_000.0)
    remember(0, answer=1.0, at=999.0)
    assert known(memo) == {0: 2.0}
    assert Memo(memo.path).compact() == 1
    assert known(memo) == {0: 2.0}


def test_compaction_drops_what_is_too_old(remember: Any, memo: Directory) -> None:
    remember(0, at=time.time() - 100.0)
    remember(1, at=time.time())
    assert Memo(memo.path, max_age=50.0).compact() == 1
    assert known(memo).keys() == {1}


def test_compaction_without_answers_leaves_a_file_that_names_the_function(memo: Directory) -> None:
    for _ in range(2):
        assert Memo(memo.path).compact() == 0
        assert files(memo) == 1
        Reader(memo)


class KilledError(BaseException):
    """The process was killed."""


@pytest.mark.parametrize("step", ["put_table", "replace", "remove"])
def test_a_compaction_that_is_killed_changes_no_answer(
    remember: Any, memo: Directory, answers: Any, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    remember(*range(6))
    with Writer(memo, PATIENCE, ALL) as writer:
        writer.add(answers(7))
        age(memo.at(log_of(memo)), 4_000.0)  # as that of a killed task
        before = known(memo)

        def killed(*_: Any) -> None:
            raise KilledError

        with monkeypatch.context() as patched:
            patched.setattr(Directory, step, killed)
            with pytest.raises(KilledError):
                Memo(memo.path).compact()
        assert known(memo) == before
        assert Memo(memo.path).compact() == 7
    assert known(memo) == before


def test_a_file_that_appears_during_a_compaction_is_kept(
    remember: Any, memo: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(0)
    replace = Directory.replace

    def with_another(directory: Directory, *arguments: Any) -> None:
        remember(1)
        replace(directory, *arguments)

    monkeypatch.setattr(Directory, "replace", with_another)
    Memo(memo.path).compact()
    assert known(memo).keys() == {0, 1}


def test_two_compactions_at_once_beside_readers_lose_nothing_and_raise_nothing(remember: Any, memo: Directory) -> None:
    expected = dict.fromkeys(range(10), 0.5)
    with ThreadPoolExecutor(4) as threads:
        for _ in range(10):
            for number in range(10):
                remember(number)
            compactions = [threads.submit(Memo(memo.path).compact) for _ in range(2)]
            readers = [threads.submit(known, memo) for _ in range(2)]
            assert all(each.result(PATIENCE) == expected for each in readers)
            assert all(each.result(PATIENCE) >= 10 for each in compactions)
    assert Memo(memo.path).compact() == 10


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """More small files than this are merged."""
    monkeypatch.setattr(module, "MAX_SMALL_FILES", 3)
    return 3


def test_many_small_files_are_merged(remember: Any, memo: Directory, few: int) -> None:
    for number in range(few - 1):
        remember(number)
    merge(memo)
    assert files(memo) == few
    remember(few)
    merge(memo)
    assert files(memo) == 1
    assert known(memo).keys() == {*range(few - 1), few}


def test_the_files_of_many_tasks_are_merged_by_the_task_of_partition_zero(
    run: Any, batch: Any, halve: Any, memo: Directory, few: int
) -> None:
    for number in range(20):
        run(halve, batch(number))
        assert files(memo) <= few
    assert len(halve.calls) == 20
    run(halve, batch(*range(20)))
    assert len(halve.calls) == 20


@pytest.mark.usefixtures("few")
def test_files_that_are_not_small_are_not_merged(
    remember: Any, memo: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SMALL_BYTES", 1)
    for number in range(6):
        remember(number)
    merge(memo)
    assert files(memo) == 7


@pytest.mark.usefixtures("few")
def test_many_files_are_merged_a_few_at_a_time(remember: Any, memo: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MERGED", 4)
    for number in range(9):
        remember(number)
    merge(memo)
    assert files(memo) <= 3
    assert known(memo).keys() == set(range(9))


def test_a_merge_keeps_answers_of_any_age_and_the_failure_of_a_key_beside_its_answer(
    remember: Any, memo: Directory, few: int
) -> None:
    """The answer counts for a query that does not remember failures."""
    remember(0, answer=7.0, at=1.0)
    remember(0, answer=6.0, at=0.5)
    for second in range(few):
        remember(0, error=f"down {second}", at=2.0 + second)
    merge(memo)
    assert files(memo) == 1
    rows = sorted(Reader(memo).bucket(0).to_pylist(), key=lambda row: row["answered_at"])
    assert [(row["answer"], (row["error"] or {}).get("message")) for row in rows] == [(7.0, None), (None, "down 2")]


def test_a_merge_that_fails_is_a_warning_and_stops_no_later_one(
    remember: Any, memo: Directory, few: int, caplog: pytest.LogCaptureFixture
) -> None:
    name = remember(0)
    whole = Path(memo.at(name)).read_bytes()
    Path(memo.at(name)).write_bytes(b"damaged")
    for number in range(few):
        remember(number)
    merge(memo)
    assert f"the files of the memo {memo.path} could not be merged: the file {name}" in caplog.text
    assert files(memo) == few + 2
    Path(memo.at(name)).write_bytes(whole)
    merge(memo)
    assert files(memo) == 1


def test_the_log_of_a_killed_task_is_used_at_once_and_merged_an_hour_later(
    run: Any, batch: Any, halve: Any, memo: Directory
) -> None:
    run(halve, batch(*range(9)))
    [file] = [file for file in memo.files().values() if file.buckets]
    writer = Writer(memo, PATIENCE, ALL)
    writer.add(memo.open(file).read(ALL))
    memo.remove(file.name)
    run(halve, batch(*range(9)))
    assert sorted(halve.calls) == list(range(9))
    assert Memo(memo.path).compact() == 0  # it may be that of a running task
    age(memo.at(log_of(memo)), 4_000.0)
    assert Memo(memo.path).compact() == 9
    assert not list(Path(memo.path).glob("_log-*"))


def test_a_merge_whose_files_another_one_has_moved_begins_again(remember: Any, memo: Directory) -> None:
    remember(1)
    listed = [file for file in memo.files().values() if file.buckets]
    memo.remove(listed[0].name)
    with pytest.raises(FileNotFoundError):
        rewrite(memo, listed)
    assert Memo(memo.path).compact() == 0


def test_a_compaction_is_tried_again_when_its_files_were_moved(
    remember: Any, memo: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves = iter([True, False, True, True])

    def moved(*arguments: Any) -> int:
        if next(moves):
            raise FileNotFoundError
        return rewrite(*arguments)

    monkeypatch.setattr(module, "_ATTEMPTS", 2)
    monkeypatch.setattr(module, "rewrite", moved)
    remember(1)
    assert Memo(memo.path).compact() == 1
    with pytest.raises(FileNotFoundError):
        Memo(memo.path).compact()


def test_pandas_and_arrow_read_the_directory(remember: Any, memo: Directory) -> None:
    pd = pytest.importorskip("pandas")
    remember(*range(5), answer=1.0)
    remember(5, answer=2.0)
    Memo(memo.path).compact()
    remember(6, answer=3.0)
    frame = pd.read_parquet(memo.path)
    assert set(zip((each["n"] for each in frame["inputs"]), frame["answer"], strict=True)) == {
        *((n, 1.0) for n in range(5)),
        (5, 2.0),
        (6, 3.0),
    }
    assert set(pq.read_table(memo.path).column("function").to_pylist()) == {"look_up"}
