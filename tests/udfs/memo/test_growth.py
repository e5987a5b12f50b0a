"""A memo whose answers get more fields: old answers remain, with null in these."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

from udfs import MemoError
from udfs._memo.answers import ALWAYS, widened
from udfs._memo.directory import Directory
from udfs._memo.keys import key_of
from udfs._memo.merge import compact
from udfs._memo.reader import Reader
from udfs._memo.writer import Writer
from udfs._plan.memo import check_answers
from udfs._plan.memo_layout import memo_schema
from udfs._spark_thread.memo_table import add_answers

NUMBER = T.StructType().add("n", "long")
WEATHER = T.StructType().add("temp", "double").add("wind", "double")
RAIN = T.StructType().add("rain", "double").add("temp", "double").add("wind", "double")


def schema(answer: T.DataType, function: str = "weather") -> pa.Schema:
    return memo_schema(function, NUMBER, answer, ("n",))


@pytest.fixture
def grown(tmp_path: Path) -> Callable[[T.DataType], Directory]:
    """Makes the memo in `tmp_path` with this type of answers."""

    def make(answer: T.DataType = WEATHER) -> Directory:
        directory = Directory(str(tmp_path), schema(answer))
        directory.claim()
        return directory

    return make


def put(directory: Directory, number: int, **answer: Any) -> None:
    row = {
        "bucket": number,
        "key": number.to_bytes(16, "big"),
        "inputs": {"n": number},
        "answer": answer,
        "answered_at": 10**15,
        "function": "weather",
        "version": "1",
    }
    directory.put_table(pa.Table.from_pylist([row], directory.schema), range(256))


def read(directory: Directory) -> dict[int, Any]:
    reader = Reader(directory)
    rows = [row for bucket in range(5) for row in reader.bucket(bucket).to_pylist()]
    return {row["inputs"]["n"]: row["answer"] for row in rows}


def test_old_answers_are_null_in_new_fields_and_merges_keep_all(grown: Any) -> None:
    put(grown(), 1, temp=1.0, wind=2.0)
    wide = grown(RAIN)
    put(wide, 2, temp=3.0, wind=4.0, rain=5.0)
    expected = {1: {"rain": None, "temp": 1.0, "wind": 2.0}, 2: {"rain": 5.0, "temp": 3.0, "wind": 4.0}}
    assert read(grown(RAIN)) == expected
    assert compact(grown(RAIN), ALWAYS) == 2
    assert read(grown(RAIN)) == expected


def test_the_log_of_a_killed_task_is_read_after_the_memo_has_grown(grown: Any) -> None:
    narrow = grown()
    put(narrow, 1, temp=1.0, wind=2.0)
    Writer(narrow, 600.0, range(256)).add(Reader(narrow).bucket(1))
    assert read(grown(RAIN)) == {1: {"rain": None, "temp": 1.0, "wind": 2.0}}


def test_the_memo_at_a_path_is_the_one_with_all_fields(grown: Any, tmp_path: Path) -> None:
    put(grown(), 1, temp=1.0, wind=2.0)
    put(grown(RAIN), 2, temp=3.0, wind=4.0, rain=5.0)
    found = Directory.existing(str(tmp_path))
    assert found.schema.equals(schema(RAIN), check_metadata=True)


def test_a_query_with_fewer_fields_is_refused_and_leaves_nothing_behind(grown: Any, tmp_path: Path) -> None:
    put(grown(RAIN), 1, temp=1.0, wind=2.0, rain=3.0)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(MemoError, match="have more fields than this query: add rain to its schema, with the types"):
        grown()
    assert sorted(tmp_path.iterdir()) == before


def test_a_query_that_is_refused_is_compared_with_the_memo_as_it_has_grown(grown: Any) -> None:
    """Not with its oldest files, or a user who follows the advice would be refused again."""
    day = T.StructType().add("day", WEATHER).add("n", "long")
    put(grown(day), 1, day={"temp": 1.0, "wind": 2.0}, n=1)
    put(grown(T.StructType().add("day", RAIN).add("n", "long").add("city", "string")), 2, n=2)
    with pytest.raises(MemoError, match=r"add city, day\.rain, day\.wind to its schema"):
        grown(T.StructType().add("day", T.StructType().add("temp", "double")).add("n", "long"))
    with pytest.raises(MemoError, match=r"has answer 'struct<.*rain:double.*city:string>', and this query has"):
        grown(T.StructType().add("day", WEATHER).add("n", "string"))


def test_of_two_queries_that_add_different_fields_only_the_first_is_accepted(grown: Any) -> None:
    """Even if it has no answers yet. Otherwise neither could read the memo after both have answers."""
    put(grown(), 1, temp=1.0, wind=2.0)
    grown(RAIN)
    with pytest.raises(MemoError, match=r"has answer .*rain.*, and this query has .*snow"):
        grown(T.StructType().add("snow", "double").add("temp", "double").add("wind", "double"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (WEATHER, T.StructType().add("temp", "string").add("wind", "double").add("rain", "double")),
        (WEATHER, T.StructType().add("temperature", "double").add("wind", "double")),
        (T.DoubleType(), WEATHER),
        (T.MapType(T.StringType(), WEATHER), T.MapType(T.StringType(), RAIN)),
    ],
    ids=["another type", "another name", "one column", "in a map"],
)
def test_answers_that_differ_in_another_way_are_refused(grown: Any, old: T.DataType, new: T.DataType) -> None:
    grown(old)
    with pytest.raises(MemoError, match=r"has answer .*: give the new columns these types; others may be"):
        grown(new)


@pytest.mark.parametrize("wrap", [T.ArrayType, lambda kind: T.StructType().add("day", kind)], ids=["list", "struct"])
def test_nested_answers_grow(grown: Any, wrap: Any) -> None:
    put_in = (lambda value: [value, None]) if wrap is T.ArrayType else (lambda value: {"day": value})
    narrow = grown(wrap(WEATHER))
    table = pa.array([put_in({"temp": 1.0, "wind": 2.0}), None], narrow.schema.field("answer").type)
    wide = widened(table, grown(wrap(RAIN)).schema.field("answer").type)
    wide.validate(full=True)
    assert wide.to_pylist() == [put_in({"rain": None, "temp": 1.0, "wind": 2.0}), None]
    assert widened(table.slice(1), wide.type).to_pylist() == [None]


def to_add(*numbers: int, at: Any = 1e9) -> pa.RecordBatch:
    """Answers as `Memo.add` passes them to a task."""
    count = len(numbers)
    return pa.RecordBatch.from_pydict(
        {
            "inputs": pa.array([{"n": number} for number in numbers]),
            "answer": pa.array([{"wind": 1.0, "temp": number / 2} for number in numbers]),
            "answered_at": pa.array([at and round(at * 1e6)] * count, pa.timestamp("us", "Europe/Berlin")),
            "bucket": pa.array(numbers, pa.int32()),
        }
    )


def test_added_answers_may_have_fewer_fields_in_another_order(grown: Any) -> None:
    memo = grown(RAIN)
    out = list(add_answers(memo.path, memo.schema, "1", 1, iter([to_add(1, 2), to_add(3)])))
    assert [batch.to_pylist() for batch in out] == [[{"answers": 2}], [{"answers": 1}]]
    assert read(memo) == {n: {"rain": None, "temp": n / 2, "wind": 1.0} for n in (1, 2, 3)}
    [row] = Reader(memo).bucket(2).to_pylist()
    assert (row["key"], row["answered_at"].timestamp()) == (key_of("1", (2,)), 1e9)
    assert (row["error"], row["function"], row["version"]) == (None, "weather", "1")


@pytest.mark.parametrize(
    ("at", "message"),
    [(None, "answered_at is null in 2 rows"), (1e12, "answered_at must not be in the future")],
    ids=["null", "future"],
)
def test_an_added_answer_needs_a_time_that_does_not_hide_later_ones(grown: Any, at: Any, message: str) -> None:
    memo = grown(RAIN)
    with pytest.raises(ValueError, match=message):
        list(add_answers(memo.path, memo.schema, "1", 1, iter([to_add(1, 2, at=at)])))
    assert read(memo) == {}


GIVEN = T.StructType().add("inputs", NUMBER).add("answer", WEATHER).add("answered_at", "timestamp")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (T.StructType(GIVEN.fields[:2]), ValueError, "must have one column 'answered_at', has inputs, answer: name"),
        (T.StructType(GIVEN.fields[:2]).add("answered_at", "date"), TypeError, "'answered_at' must be timestamp, got"),
        (
            T.StructType([GIVEN[0], GIVEN[2]]).add("answer", "double"),
            TypeError,
            "'answer' must be struct<.*got double",
        ),
        (T.StructType(GIVEN.fields[1:]).add("inputs", T.StructType()), TypeError, "'inputs' must be struct<n:bigint>"),
    ],
    ids=["missing", "date", "double", "no inputs"],
)
def test_answers_to_add_have_the_types_of_the_memo(given: T.StructType, error: type[Exception], message: str) -> None:
    types = T.StructType().add("inputs", NUMBER).add("answer", RAIN).add("answered_at", "timestamp")
    check_answers(GIVEN, types)
    with pytest.raises(error, match=message):
        check_answers(given, types)
