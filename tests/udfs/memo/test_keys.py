"""Keys: equal for equal values in SQL, and different for all others."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as T  # noqa: N812 - the usual name

from udfs._memo.keys import check_key_type, key_of

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.text(),
    st.binary(),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.times(),
    st.timedeltas(),
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.just("a"), inner))


def plain(value: Any) -> Any:
    """The value with its types, where all NaN are equal."""
    if isinstance(value, list):
        return ["list", *map(plain, value)]
    if isinstance(value, dict):
        return ["dict", *map(plain, value.values())]
    if isinstance(value, float):
        return "float", "nan" if math.isnan(value) else value
    if isinstance(value, Decimal):
        return "decimal", format(value, "f")
    return type(value).__name__, getattr(value, "tzinfo", None), value


@given(st.lists(VALUES, max_size=3), st.lists(VALUES, max_size=3))
def test_keys_are_equal_exactly_if_the_values_are(first: list[Any], second: list[Any]) -> None:
    assert (key_of("1", first) == key_of("1", second)) == (plain(first) == plain(second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (0.0, -0.0),
        (math.nan, float("-nan")),
        (datetime(2013, 1, 1, 5, tzinfo=UTC), datetime(2013, 1, 1, tzinfo=timezone(timedelta(hours=-5)))),
        (datetime(2013, 11, 3, 6, tzinfo=UTC), datetime(2013, 11, 3, 2, tzinfo=timezone(timedelta(hours=-4)))),
    ],
    ids=["zero", "nan", "time zone", "end of summer time"],
)
def test_values_that_are_equal_in_sql_have_the_same_key(first: Any, second: Any) -> None:
    assert key_of("1", [first]) == key_of("1", [second])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["ab", "c"], ["a", "bc"]),
        ([None, 1], [1, None]),
        (["1"], [1]),
        ([b"a"], ["a"]),
        ([[1], 2], [[1, 2]]),
        ([date(2013, 1, 1)], [datetime(2013, 1, 1)]),
        ([time(1)], [timedelta(hours=1)]),
    ],
    ids=["boundary", "place of null", "text", "bytes", "nesting", "date", "time"],
)
def test_different_values_have_different_keys(first: list[Any], second: list[Any]) -> None:
    assert key_of("1", first) != key_of("1", second)


def test_a_key_is_the_same_in_every_release() -> None:
    """Otherwise every memo would be worthless after an update."""
    values = [None, True, -7, 1.5, Decimal("1.50"), "é", b"\0", date(2013, 1, 1), datetime(2013, 1, 1, tzinfo=UTC)]
    assert key_of("1", [*values, {"a": [1]}]).hex() == "c39f6b6115779741128577d9aa1cc438"


@pytest.mark.parametrize("kind", [T.LongType(), T.ArrayType(T.StructType([T.StructField("a", T.DateType())]))], ids=str)
def test_a_type_whose_values_can_be_compared_is_accepted(kind: T.DataType) -> None:
    check_key_type("ip", kind)


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
    with pytest.raises(TypeError, match="memo needs inputs whose values can be compared, and 'tags' is "):
        check_key_type("tags", kind)
