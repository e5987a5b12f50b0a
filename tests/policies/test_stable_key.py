"""Stable keys: the same bytes in every process, and different bytes for different values."""

from __future__ import annotations

import subprocess
import sys
from collections import namedtuple
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import IntEnum
from itertools import combinations
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import stable_id
from trio_asyncio_io.policies._persistent import stable_key

DAY = datetime(2026, 3, 1, 2, 30)
DIFFERENT = [
    None,
    False,
    True,
    0,
    1,
    -1,
    10**5000,
    1.0,
    float("inf"),
    float("nan"),
    "",
    "1",
    "None",
    "é",
    "\ud800",
    b"",
    b"1",
    Decimal(1),
    Decimal("1.0"),
    date(2026, 3, 1),
    DAY,
    DAY.replace(fold=1),
    DAY.replace(tzinfo=UTC),
    timedelta(1),
    timedelta(microseconds=1),
    UUID(int=1),
    (),
    (1,),
    (1, 1),
    ((1,), 1),
    (1, (1,)),
    ("1", "1"),
    ("11",),
    ("a", "bc"),
    ("ab", "c"),
    ((),),
    ((), ()),
]


def test_different_values_have_different_keys() -> None:
    for one, other in combinations(DIFFERENT, 2):
        assert stable_key(one) != stable_key(other), (one, other)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.uuids(),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
)


@given(PLAIN, PLAIN)
@settings(deadline=None)
def test_keys_are_equal_exactly_if_the_reprs_are(one: Any, other: Any) -> None:
    assert (stable_key(one) == stable_key(other)) == (repr(one) == repr(other))


def test_another_process_makes_the_same_key() -> None:
    """Its string hashes differ."""
    value = ("EWR", 3, 1.5, None, True, b"\x00", Decimal("1.5"), DAY, timedelta(1), UUID(int=7))
    code = """
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID
from trio_asyncio_io.policies._persistent import stable_key
DAY = datetime(2026, 3, 1, 2, 30)
print(stable_key(("EWR", 3, 1.5, None, True, b"\\x00", Decimal("1.5"), DAY, timedelta(1), UUID(int=7))))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == repr(stable_key(value))


class Color(IntEnum):
    RED = 1


@pytest.mark.parametrize(
    "value",
    [["a"], {"a": 1}, {1}, object(), Color.RED, namedtuple("Pair", "a b")(1, 2), ("a", ["b"])],  # noqa: PYI024
    ids=stable_id,
)
def test_a_value_of_another_type_is_refused_and_the_error_names_key(value: Any) -> None:
    with pytest.raises(TypeError, match=r"is not a key that other processes would find again: give persistent key="):
        stable_key(value)
