"""The options of a memo, its manifest, expiry and compaction."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

import udfs._memo.compaction
from udfs import Memo, MemoError
from udfs._memo.answers import answers_of
from udfs._memo.files import MemoFiles
from udfs._memo.layout import Layout
from udfs._memo.memo import as_memo

NUMBER = T.StructType([T.StructField("n", T.LongType())])
LAYOUT = Layout("look_up", NUMBER, T.DoubleType(), ("n",))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_age": 0}, "max_age must be above 0 seconds, got 0"),
        ({"max_age": math.nan}, "max_age must be at least 0 seconds, got nan"),
        ({"remember_failures_for": -1}, "remember_failures_for must be at least 0 seconds, got -1"),
        ({"write_every": math.inf}, "write_every must be finite, got inf"),
    ],
    ids=str,
)
def test_a_value_out_of_range_is_a_value_error(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Memo("memo", **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": 5}, 'memo must be a path such as "/data/weather", or a Memo, got 5'),
        ({"path": ""}, "memo must be a path"),
        ({"path": "memo", "max_age": "1 day"}, "max_age must be a number of seconds, got '1 day'"),
        ({"path": "memo", "version": 2}, 'version must be a string such as "2", got 2'),
        ({"path": "memo", "name": ""}, "name must be the name of a function, got ''"),
    ],
    ids=str,
)
def test_a_value_of_the_wrong_type_is_a_type_error(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Memo(**arguments)


def test_a_path_is_a_memo_with_the_defaults(tmp_path: Path) -> None:
    assert as_memo(tmp_path) == as_memo(str(tmp_path)) == Memo(str(tmp_path))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Layout("geocode", NUMBER, T.DoubleType(), ("n",)), "has function 'look_up', .* 'geocode': give each function"),
        (
            Layout("look_up", NUMBER, T.LongType(), ("n",)),
            "has answer 'double', .* 'bigint': give the new columns these",
        ),
        (
            Layout("look_up", T.StructType([T.StructField("n", T.StringType())]), T.DoubleType(), ("n",)),
            "has inputs 'struct<n:bigint>', .* 'struct<n:string>': give the inputs these names and types",
        ),
        (
            Layout("look_up", NUMBER, T.DoubleType(), ("m",)),
            "has spread_by .*: use the same operator and the same key=",
        ),
    ],
    ids=["function", "answer", "inputs", "key"],
)
def test_a_memo_of_another_function_or_schema_is_refused(tmp_path: Path, other: Layout, message: str) -> None:
    files = MemoFiles(str(tmp_path))
    LAYOUT.claim(files)
    LAYOUT.claim(files)
    with pytest.raises(MemoError, match=f"the memo {tmp_path} {message}"):
        other.claim(files)


@pytest.mark.parametrize("text", ["", "not json", "[1]"], ids=repr)
def test_a_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "_memo.json").write_text(text)
    with pytest.raises(MemoError, match=f"the memo {tmp_path}|_memo.json of the memo {tmp_path} is not JSON"):
        LAYOUT.claim(MemoFiles(str(tmp_path)))


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
    monkeypatch.setattr(udfs._memo.compaction, "MIN_ROWS", 3)
    remembered(1.0, *range(9))
    assert Memo(str(tmp_path)).compact() == 9
    assert len(MemoFiles(str(tmp_path)).names()) == 3
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


def test_a_compaction_that_is_killed_before_it_removes_files_changes_no_answer(
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
        patched.setattr(MemoFiles, "remove", killed)
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

    def with_another(files: MemoFiles, tables: Any, kind: Any = "new") -> None:
        write(files, tables, kind)
        if kind == "compact":
            remembered(2.0, 1)

    monkeypatch.setattr(MemoFiles, "write", with_another)
    Memo(str(tmp_path)).compact()
    assert answers(tmp_path) == {0: [1.0], 1: [2.0], 2: []}
