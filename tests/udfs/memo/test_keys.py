"""Keys: equal for equal values in SQL, and different for all others."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs._memo.keys import idempotency_key, key_of

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
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.just("a"), inner), max_leaves=10)


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
        ([1], [1.0]),
        ([Decimal("1.5")], [Decimal("1.50")]),
    ],
    ids=["boundary", "place of null", "text", "bytes", "nesting", "date", "time", "number", "digits"],
)
def test_different_values_have_different_keys(first: list[Any], second: list[Any]) -> None:
    assert key_of("1", first) != key_of("1", second)


def test_a_key_is_the_same_in_every_release() -> None:
    """Otherwise every memo would be worthless after an update."""
    values = [None, True, -7, 1.5, Decimal("1.50"), "é", b"\0", date(2013, 1, 1), datetime(2013, 1, 1, tzinfo=UTC)]
    assert key_of("1", [*values, {"a": [1]}]).hex() == "c39f6b6115779741128577d9aa1cc438"


def test_the_idempotency_key_is_that_of_the_memo_and_never_changes() -> None:
    """Services remember it for days, also across releases."""
    assert idempotency_key("payment", 7) == key_of("1", ["payment", 7]).hex() == "4c3a70859ab07d518f224b2a528cf897"
    assert idempotency_key("payment", 7) != idempotency_key("payment", 7, version="2")
    assert idempotency_key(("a", 1)) == idempotency_key(["a", 1])


def test_a_value_without_a_stable_form_has_no_key() -> None:
    with pytest.raises(TypeError, match="a key cannot have a value of type object: make it a string"):
        idempotency_key("payment", object())
