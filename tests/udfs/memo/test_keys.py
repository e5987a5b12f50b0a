"""Keys: equal for equal values in SQL, and different for all others."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs._memo.keys import key_of

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
