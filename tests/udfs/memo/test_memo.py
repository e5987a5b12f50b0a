"""The options of a memo, and the types that it takes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

from udfs import Memo, MemoError
from udfs._plan.memo import as_memo
from udfs._plan.memo_query import _check_input_type, _old_names


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"max_age": 0}, ValueError, "max_age must be above 0 seconds, got 0"),
        ({"max_age": math.nan}, ValueError, "max_age must be above 0 seconds, got nan"),
        ({"remember_failures_for": -1}, ValueError, "remember_failures_for must be at least 0 seconds, got -1"),
        ({"write_every": math.inf}, ValueError, "write_every must be finite and at least 0 seconds, got inf"),
        ({"path": 5}, TypeError, 'memo must be a path such as "/data/weather", or a Memo, got 5'),
        ({"path": ""}, TypeError, "memo must be a path"),
        ({"path": "memo", "max_age": "1 day"}, TypeError, "max_age must be a number of seconds, got '1 day'"),
        ({"path": "memo", "version": 2}, TypeError, 'version must be a string such as "2", got 2'),
        ({"path": "memo", "name": ""}, TypeError, "name must be the name of a function, got ''"),
        ({"path": "memo", "renamed": "city"}, TypeError, "renamed must map old to new names, such as .*, got 'city'"),
        ({"path": "memo", "renamed": {"a": "x", "b": "x"}}, TypeError, "renamed must map old to new names"),
    ],
    ids=str,
)
def test_a_bad_argument_is_refused_by_name(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Memo(**{"path": "memo", **arguments})


def test_a_path_is_a_memo_with_the_defaults(tmp_path: Path) -> None:
    assert as_memo(tmp_path) == as_memo(str(tmp_path)) == Memo(str(tmp_path))


def test_a_path_without_a_memo_has_nothing_to_compact_or_to_read(tmp_path: Path) -> None:
    memo = Memo(str(tmp_path / "none"))
    for use in (memo.compact, lambda: memo.read(None)):
        with pytest.raises(MemoError, match=r"there is no memo at .*/none: check the path, or run a query"):
            use()
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("renamed", "message"),
    [
        ({"city": "place"}, "'place' is not among town, hour: write {name in the memo: name in the query}"),
        ({"hour": "town"}, "gives two of the inputs town, hour one name: rename both"),
    ],
    ids=str,
)
def test_a_renamed_column_must_be_an_input_with_a_name_of_its_own(renamed: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _old_names(renamed, ["town", "hour"])


def test_columns_may_swap_their_names() -> None:
    assert _old_names({"a": "b", "b": "a"}, ["a", "b", "c"]) == {"a": "b", "b": "a", "c": "c"}


@pytest.mark.parametrize("kind", [T.LongType(), T.ArrayType(T.StructType([T.StructField("a", T.DateType())]))], ids=str)
def test_a_type_whose_values_can_be_compared_is_accepted(kind: T.DataType) -> None:
    _check_input_type("ip", kind)


@pytest.mark.parametrize(
    "kind",
    [
        T.MapType(T.StringType(), T.LongType()),
        T.ArrayType(T.MapType(T.StringType(), T.LongType())),
        T.StructType([T.StructField("a", T.MapType(T.StringType(), T.LongType()))]),
        T.NullType(),
    ],
    ids=["map", "in an array", "in a struct", "void"],
)
def test_a_type_that_cannot_be_compared_is_refused(kind: T.DataType) -> None:
    with pytest.raises(TypeError, match=r"memo needs inputs whose values can be compared, and 'tags' is .*: cast it"):
        _check_input_type("tags", kind)


@pytest.mark.skipif(not hasattr(T.StringType(), "collation"), reason="Spark 3.5 has no collations")
def test_a_string_that_is_not_compared_by_its_bytes_is_refused() -> None:
    """Two values that are equal in SQL would have two answers."""
    kind: Any = T.StringType
    with pytest.raises(TypeError, match="memo compares strings by their bytes, and 'ip' is array<string collate UTF8"):
        _check_input_type("ip", T.ArrayType(kind("UTF8_LCASE")))
    _check_input_type("ip", kind("UTF8_BINARY"))
