"""Compaction: few files with the same answers, whatever happens meanwhile."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

import udfs._memo.compaction
from udfs import Memo
from udfs._memo.answers import answers_of
from udfs._memo.compaction import tidy
from udfs._memo.files import MemoFiles
from udfs._memo.layout import Layout

LAYOUT = Layout("look_up", T.StructType([T.StructField("n", T.LongType())]), T.DoubleType(), ("n",))


@pytest.fixture
def remembered(run: Any, batch: Any) -> Any:
    """Remembers that the answer for each of these numbers is `answer`."""

    def remember(answer: float, *numbers: int, memo: Memo | None = None) -> None:
        async def known(n: int) -> float:
            return answer

        run(known, batch(*numbers), **({} if memo is None else {"memo": memo}))

    return remember


def answers(path: Path) -> dict[int, Any]:
    """All answers by bucket and key."""
    files = MemoFiles(str(path))
    fresh = Memo(str(path)).freshness(time.time())
    return {
        bucket: sorted(each.values[each.place].as_py() for each in answers_of(files, bucket, fresh).values())
        for bucket in range(3)
    }


def test_compaction_keeps_every_answer_in_one_file(remembered: Any, tmp_path: Path) -> None:
    for number in range(9):
        remembered(float(number), number)
    before = answers(tmp_path)
    assert len(MemoFiles(str(tmp_path)).names()) == 9
    for _ in range(2):
        assert Memo(str(tmp_path)).compact() == 9
        assert len(MemoFiles(str(tmp_path)).names()) == 1
        assert answers(tmp_path) == before == {0: [0.0, 3.0, 6.0], 1: [1.0, 4.0, 7.0], 2: [2.0, 5.0, 8.0]}


def test_compaction_divides_a_large_memo(remembered: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udfs._memo.compaction, "MAX_BYTES", 1)
    remembered(1.0, *range(9))
    assert Memo(str(tmp_path)).compact() == 9
    assert len(MemoFiles(str(tmp_path)).names()) == 3  # one for each bucket
    assert [len(each) for each in answers(tmp_path).values()] == [3, 3, 3]


def test_the_latest_answer_counts_before_and_after_a_compaction(
    remembered: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    for number, seconds in enumerate((0.0, 100.0)):
        monkeypatch.setattr(time, "time", lambda seconds=seconds: now + seconds)
        remembered(float(number), 0, memo=Memo(str(tmp_path), max_age=50.0))
    assert answers(tmp_path)[0] == [1.0]
    assert Memo(str(tmp_path)).compact() == 1
    assert answers(tmp_path)[0] == [1.0]


def test_compaction_drops_what_is_too_old(remembered: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remembered(1.0, 0)
    later = time.time() + 100.0
    monkeypatch.setattr(time, "time", lambda: later)
    remembered(2.0, 1)
    assert Memo(str(tmp_path), max_age=50.0).compact() == 1
    assert answers(tmp_path) == {0: [], 1: [2.0], 2: []}


def test_compaction_of_an_empty_memo_leaves_no_file(tmp_path: Path) -> None:
    LAYOUT.claim(MemoFiles(str(tmp_path)))
    assert Memo(str(tmp_path)).compact() == 0
    assert MemoFiles(str(tmp_path)).names() == []


def test_a_compaction_that_is_killed_before_it_replaces_files_changes_no_answer(
    remembered: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered(1.0, *range(6))
    remembered(2.0, 6)
    before = answers(tmp_path)

    class Killed(BaseException):
        pass

    def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(MemoFiles, "replace", killed)
        with pytest.raises(Killed):
            Memo(str(tmp_path)).compact()
    assert len(MemoFiles(str(tmp_path)).names()) == 3
    assert answers(tmp_path) == before
    assert Memo(str(tmp_path)).compact() == 7


def test_a_reader_finds_the_answers_that_a_compaction_moves_while_it_reads(
    remembered: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        remembered(1.0, 3 * number)
    read = MemoFiles.read
    compactions = []

    def compacted_meanwhile(files: MemoFiles, name: str, bucket: int | None = None) -> Any:
        if bucket == 0 and not compactions:
            compactions.append(0)
            compactions.append(Memo(str(tmp_path)).compact())
        return read(files, name, bucket)

    monkeypatch.setattr(MemoFiles, "read", compacted_meanwhile)
    assert answers(tmp_path)[0] == [1.0] * 4
    assert compactions == [0, 4]


def test_a_file_that_appears_during_a_compaction_is_kept(
    remembered: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered(1.0, 0)
    write = MemoFiles.write

    def with_another(files: MemoFiles, tables: Any, kind: Any = "new") -> str:
        if kind == "compact":
            remembered(2.0, 1)
        return write(files, tables, kind)

    monkeypatch.setattr(MemoFiles, "write", with_another)
    Memo(str(tmp_path)).compact()
    assert answers(tmp_path) == {0: [1.0], 1: [2.0], 2: []}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """More small files than this are merged."""
    monkeypatch.setattr(udfs._memo.compaction, "MAX_SMALL_FILES", 3)
    return 3


def test_a_memo_of_many_tasks_has_few_files_without_a_compaction_by_hand(
    remembered: Any, tmp_path: Path, few: int
) -> None:
    files = MemoFiles(str(tmp_path))
    for number in range(20):
        remembered(float(number), number)
        assert len(files.names()) <= few
    assert answers(tmp_path) == {bucket: [float(n) for n in range(bucket, 20, 3)] for bucket in range(3)}


@pytest.mark.usefixtures("few")
def test_files_that_are_not_small_are_not_merged(
    remembered: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(udfs._memo.files, "SMALL_BYTES", 1)
    for number in range(6):
        remembered(1.0, number)
    assert len(MemoFiles(str(tmp_path)).names()) == 6


def test_many_small_files_are_merged_a_few_at_a_time(
    remembered: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        remembered(1.0, number)
    files = MemoFiles(str(tmp_path))
    monkeypatch.setattr(udfs._memo.compaction, "MAX_SMALL_FILES", 1)
    monkeypatch.setattr(udfs._memo.compaction, "MAX_BYTES", 1)
    tidy(files)
    assert len(files.names()) == 1
    assert answers(tmp_path) == {bucket: [1.0] * 3 for bucket in range(3)}


def test_a_merge_keeps_answers_that_are_too_old_for_the_query_that_merges(
    remembered: Any, tmp_path: Path, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered(7.0, 0)
    later = time.time() + 100.0
    monkeypatch.setattr(time, "time", lambda: later)
    for number in range(1, few + 1):
        remembered(1.0, number, memo=Memo(str(tmp_path), max_age=50.0))
    [name] = MemoFiles(str(tmp_path)).names()
    assert name.startswith("compact-")
    assert answers(tmp_path) == {0: [1.0, 7.0], 1: [1.0], 2: [1.0]}


def test_a_merge_keeps_the_answer_and_the_failure_of_a_key(run: Any, batch: Any, tmp_path: Path, few: int) -> None:
    """The answer counts for a query that does not remember failures."""

    async def right(n: int) -> float:
        return 1.0

    async def wrong(n: int) -> float:
        raise ConnectionError("down")

    run(right, batch(0))
    failing = Memo(str(tmp_path), max_age=1e-9, remember_failures_for=3600.0)
    for number in range(few):
        run(wrong, batch(number), memo=failing, on_error="null")
    assert len(MemoFiles(str(tmp_path)).names()) == 1
    assert answers(tmp_path)[0] == [1.0]
    [row] = run(right, batch(0), memo=Memo(str(tmp_path), remember_failures_for=3600.0), on_error="column")
    assert row["error"]["message"] == "down"


def test_only_one_task_merges_at_a_time(remembered: Any, tmp_path: Path, few: int) -> None:
    files = MemoFiles(str(tmp_path))
    files.write_text("_compacting", "")
    for number in range(few + 2):
        remembered(1.0, number)
    assert len(files.names()) == few + 2
    files.release()
    remembered(1.0, 99)
    assert len(files.names()) == 1
    assert not (tmp_path / "_compacting").exists()


def test_a_merge_that_fails_does_not_fail_the_task(
    remembered: Any, tmp_path: Path, few: int, caplog: pytest.LogCaptureFixture
) -> None:
    remembered(1.0, 0)
    [name] = MemoFiles(str(tmp_path)).names()
    (tmp_path / name).write_bytes(b"damaged")
    for number in range(few):
        remembered(1.0, 3 * number + 1)
    assert f"the files of the memo {tmp_path} could not be merged: the file {name}" in caplog.text
    assert len(MemoFiles(str(tmp_path)).names()) == few + 1


def test_the_journal_of_a_killed_task_is_used_at_once_and_merged_an_hour_later(
    run: Any, batch: Any, halve: Any, tmp_path: Path
) -> None:
    run(halve, batch(*range(9)))
    files = MemoFiles(str(tmp_path))
    [name] = files.names()
    files.open_journal(files.read(name))
    (tmp_path / name).unlink()
    run(halve, batch(*range(9)))
    assert sorted(halve.calls) == list(range(9))
    [journal] = files.names()
    assert Memo(str(tmp_path)).compact() == 0  # it may be that of a running task
    os.utime(tmp_path / journal, (0.0, 0.0))
    assert Memo(str(tmp_path)).compact() == 9
    assert [each.split("-")[0] for each in files.names()] == ["compact"]


def test_pandas_and_arrow_read_the_directory(remembered: Any, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    remembered(1.0, *range(5))
    remembered(2.0, 5)
    Memo(str(tmp_path)).compact()
    remembered(3.0, 6)
    frame = pd.read_parquet(tmp_path)
    assert set(zip((each["n"] for each in frame["inputs"]), frame["answer"], strict=True)) == {
        *((n, 1.0) for n in range(5)),
        (5, 2.0),
        (6, 3.0),
    }
    assert set(pq.read_table(tmp_path).column("function").to_pylist()) == {"look_up"}
