"""Converters: the values that a function may return for each declared type."""

from __future__ import annotations

import math
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql import types as T  # noqa: N812 - the usual name

from tests.support import stable_id
from udfs._sent.arrow_types import arrow_type, plan_type
from udfs._spark_thread.converters import STRICT, _refuse, converter
from udfs._spark_thread.misfits import MisfitError, NullFieldError
from udfs._spark_version import TimeType

ZONE = "America/New_York"
NEW_YORK = ZoneInfo(ZONE)
NOON = datetime(2013, 7, 1, 12, 0, 0, 123456)

POINT = T.StructType([T.StructField("x", T.DoubleType()), T.StructField("y", T.LongType())])
STAMPED = T.StructType([T.StructField("at", T.TimestampType()), T.StructField("points", T.ArrayType(POINT))])


class NamedPoint(NamedTuple):
    x: float
    y: int


@dataclass
class DataPoint:
    x: float
    y: int


OldPoint = namedtuple("OldPoint", "x y")  # noqa: PYI024 - untyped named tuples are accepted, too


def array(kind: T.DataType, *values: Any, zone: str = ZONE) -> Any:
    convert = converter(kind, zone) or (lambda value: value)
    return pa.array([convert(value) for value in values], arrow_type(kind), from_pandas=False)


def back(kind: T.DataType, value: Any, zone: str = ZONE) -> Any:
    """The value, converted to Arrow and back, next to a null."""
    result, null = array(kind, value, None, zone=zone).to_pylist()
    assert null is None
    return result


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (T.StringType(), "Zürich ✈"),
        (T.StringType(), ""),
        (T.BooleanType(), False),
        (T.ByteType(), -128),
        (T.ShortType(), 32767),
        (T.IntegerType(), -(2**31)),
        (T.LongType(), 2**63 - 1),
        (T.FloatType(), 0.5),
        (T.DoubleType(), 0.1),
        (T.DoubleType(), math.inf),
        (T.DecimalType(38, 18), Decimal("-12345678901234567890.123456789012345678")),
        (T.DecimalType(5, 2), Decimal("1.50")),
        (T.BinaryType(), b"\x00\xff"),
        (T.DateType(), date(1582, 10, 4)),
        (T.TimestampNTZType(), NOON),
        (T.DayTimeIntervalType(), timedelta(days=-1, microseconds=1)),
        (T.ArrayType(T.IntegerType()), [1, None, 3]),
        (T.ArrayType(T.ArrayType(T.StringType())), [["a"], [], None]),
        (T.ArrayType(T.IntegerType()), []),
        (T.ArrayType(T.DecimalType(4, 1)), [Decimal("1.5")]),
        (POINT, {"x": 1.5, "y": None}),
        (T.NullType(), None),
    ],
    ids=stable_id,
)
def test_a_value_of_the_declared_type_is_preserved(kind: T.DataType, value: Any) -> None:
    assert back(kind, value) == value


@pytest.mark.parametrize("kind", [T.DoubleType(), T.FloatType(), T.LongType()], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
def test_a_masked_value_of_an_array_is_null(kind: T.DataType, dtype: str) -> None:
    """The number under the mask is not data."""
    values = np.ma.masked_array([[1, 2], [3, 4]], [[False, True], [False, False]], dtype)
    assert back(T.ArrayType(kind), values[0]) == [1, None]
    assert back(T.ArrayType(T.ArrayType(kind)), values) == [[1, None], [3, 4]]
    with pytest.raises(NullFieldError):
        converter(T.ArrayType(kind, containsNull=False), ZONE)(values[0])


def test_nan_does_not_become_null() -> None:
    result = back(T.DoubleType(), math.nan)
    assert result is not None
    assert math.isnan(result)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (T.LongType(), np.int64(7), 7),
        (T.LongType(), 7.0, 7),
        (T.LongType(), np.float32(7.0), 7),
        (T.ShortType(), Decimal(7), 7),
        (T.DoubleType(), np.float32(0.5), 0.5),
        (T.DoubleType(), 3, 3.0),
        (T.ArrayType(T.LongType()), np.array([1, 2]), [1, 2]),
        (T.ArrayType(T.LongType()), (1, 2), [1, 2]),
        (T.DecimalType(10, 2), 3, Decimal("3.00")),
        (T.DateType(), datetime(2013, 7, 1), date(2013, 7, 1)),
        (T.DateType(), pd.Timestamp(2013, 7, 1), date(2013, 7, 1)),
        (T.TimestampNTZType(), pd.Timestamp(NOON), NOON),
        (T.BinaryType(), bytearray(b"ab"), b"ab"),
        (T.ArrayType(T.LongType()), (n for n in [1, 2]), [1, 2]),
        (T.ArrayType(T.StringType()), (text for text in "ab"), ["a", "b"]),
        (T.ArrayType(T.StringType()), {"a": 1, "b": 2}.keys(), ["a", "b"]),
        (T.ArrayType(T.DoubleType()), {"a": 1.0, "b": 2.0}.values(), [1.0, 2.0]),
        (T.ArrayType(T.ArrayType(T.DoubleType())), iter([iter([1.0]), iter([])]), [[1.0], []]),
        (T.FloatType(), math.inf, math.inf),
        (T.FloatType(), 3.4028235e38, 3.4028234663852886e38),
        (T.VarcharType(3), "abc", "abc"),
        (T.CharType(3), "ab", "ab "),
        (T.ArrayType(T.CharType(2)), ["a", None], ["a ", None]),
    ],
    ids=stable_id,
)
def test_values_that_convert_exactly_are_accepted(kind: T.DataType, value: Any, expected: Any) -> None:
    assert back(kind, value) == expected


@pytest.mark.parametrize(
    "value",
    [
        {"x": 1.0, "y": 2},
        {"y": 2, "x": 1.0},
        OrderedDict(x=1.0, y=2),
        MappingProxyType({"x": 1.0, "y": 2}),
        NamedPoint(1.0, 2),
        NamedPoint(y=2, x=1.0),
        OldPoint(1.0, 2),
        DataPoint(1.0, 2),
        Row(x=1.0, y=2),
        Row(y=2, x=1.0),
        (1.0, 2),
    ],
    ids=stable_id,
)
def test_a_struct_may_be_returned_as_any_of_these_types(value: Any) -> None:
    assert back(POINT, value) == {"x": 1.0, "y": 2}


def test_the_users_own_dict_is_not_changed() -> None:
    """It may be in a cache."""
    kind = T.StructType([T.StructField("at", T.TimestampType()), T.StructField("n", T.IntegerType())])
    value = {"at": datetime(2024, 1, 1), "n": 1.0}
    convert = converter(kind, "UTC")
    assert convert is not None
    assert convert(value) == {"at": datetime(2024, 1, 1, tzinfo=UTC), "n": 1}
    assert value == {"at": datetime(2024, 1, 1), "n": 1.0}


def test_structs_arrays_and_maps_can_be_nested() -> None:
    kind = T.MapType(T.StringType(), STAMPED)
    aware = NOON.replace(tzinfo=NEW_YORK)
    result = back(kind, {"a": (NOON, [NamedPoint(1.0, 2), None]), "b": None, "c": {"at": aware, "points": None}})
    assert dict(result) == {
        "a": {"at": aware, "points": [{"x": 1.0, "y": 2}, None]},
        "b": None,
        "c": {"at": aware, "points": None},
    }


@pytest.mark.parametrize(
    "value",
    [
        NOON,
        pd.Timestamp(NOON),
        NOON.replace(tzinfo=NEW_YORK),
        datetime(2013, 7, 1, 16, 0, 0, 123456, tzinfo=UTC),
        datetime(2013, 7, 1, 21, 30, 0, 123456, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    ],
    ids=stable_id,
)
def test_a_naive_timestamp_is_in_the_session_time_zone(value: Any) -> None:
    assert back(T.TimestampType(), value) == NOON.replace(tzinfo=NEW_YORK)


@pytest.mark.parametrize(
    ("zone", "utc"), [("+02:00", 10), ("-08:00", 20), ("Z", 12), ("UTC", 12), ("Asia/Kolkata", 6.5)]
)
def test_the_session_time_zone_may_be_an_offset(zone: str, utc: float) -> None:
    midnight = datetime(2013, 7, 1, tzinfo=UTC)
    assert back(T.TimestampType(), datetime(2013, 7, 1, 12), zone) == midnight + timedelta(hours=utc)


def test_a_naive_timestamp_in_an_array_or_a_map_is_in_the_session_time_zone() -> None:
    noon = NOON.replace(tzinfo=NEW_YORK)
    assert back(T.ArrayType(T.TimestampType()), [NOON, None]) == [noon, None]
    assert back(T.MapType(T.TimestampType(), T.TimestampType()), {NOON: NOON}) == [(noon, noon)]


def test_fold_distinguishes_the_two_instants_of_an_ambiguous_time() -> None:
    twice = datetime(2013, 11, 3, 1, 30)
    first, second = array(T.TimestampType(), twice, twice.replace(fold=1)).to_pylist()
    assert second - first == timedelta(hours=1)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (T.LongType(), np.float32(1.5)),
        (T.DecimalType(5, 2), Decimal(10_000)),
        (T.DateType(), datetime(2013, 7, 1, 23, 59)),
        (T.DateType(), datetime(2013, 7, 1, tzinfo=UTC)),
        (T.FloatType(), -3.5e38),
        (T.FloatType(), 10**39),
        (T.FloatType(), np.float64(1e300)),
        (T.ArrayType(T.FloatType()), np.array([1e300])),
        (T.TimestampNTZType(), pd.Timestamp(1)),
        (T.VarcharType(3), b"abc"),
        (T.CharType(3), "abcd"),
        (T.ArrayType(T.VarcharType(3)), ["abc", "abcd"]),
        (T.MapType(T.CharType(1), T.LongType()), {"ab": 1}),
        (T.TimestampType(), time(12)),
        (T.TimestampNTZType(), 1_372_694_400),
        (T.ArrayType(T.LongType()), ["7"]),
        (T.ArrayType(T.LongType()), [1.5]),
        (T.ArrayType(T.LongType()), b"abc"),
        (T.ArrayType(T.StringType()), {"a": 1}),
        (T.ArrayType(T.TimestampType()), {NOON: 1}),
        (T.ArrayType(POINT), [{"x": 1.0}]),
        (T.MapType(T.StringType(), T.LongType()), {"a": "1"}),
        (T.MapType(T.StringType(), T.LongType()), {None: 1}),
        (POINT, {"x": 1.0, "y": "2"}),
    ],
    ids=stable_id,
)
def test_a_value_that_does_not_convert_exactly_is_refused(kind: T.DataType, value: Any) -> None:
    """Those that are refused with advice of their own are in test_misfits."""
    with pytest.raises(Exception, match=r".+"):
        array(kind, value)


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (1.0, "return a mapping, a dataclass or a named tuple with 'x', 'y'"),
        ("xy", "return a mapping, a dataclass or a named tuple with 'x', 'y'"),
        (NamedPoint, "return a mapping, a dataclass or a named tuple with 'x', 'y'"),
        (DataPoint, "return a mapping, a dataclass or a named tuple with 'x', 'y'"),
        ((1.0,), "return a mapping, a dataclass or a named tuple with 'x', 'y'"),
        ((1.0, 2, 3), "return a mapping, a dataclass or a named tuple with 'x', 'y'"),
        ({"x": 1.0}, "return 'y', too"),
        (Row(x=1.0), "return 'y', too"),
        ({}, "return 'x', 'y', too"),
        ({"x": 1.0, "y": 2, "z": 3}, "omit all fields but the declared ones"),
        ({"x": 1.0, "Y": 2}, "return 'y', too, and omit all fields but the declared ones"),
        ({"x": 1.0, "y": 2, 3: 4}, "omit all fields but the declared ones"),
    ],
    ids=stable_id,
)
def test_a_struct_with_other_fields_is_refused_with_advice(value: Any, advice: str) -> None:
    with pytest.raises(MisfitError) as caught:
        array(POINT, value)
    assert caught.value.advice == advice


REQUIRED = T.StructType([T.StructField("x", T.LongType(), nullable=False)])


@pytest.mark.parametrize(
    ("kind", "value", "path"),
    [
        (REQUIRED, {"x": None}, "x"),
        (T.StructType([T.StructField("inner", REQUIRED)]), {"inner": {"x": None}}, "inner.x"),
        (T.ArrayType(T.DoubleType(), containsNull=False), [1.0, None], "element"),
        (T.ArrayType(REQUIRED), [{"x": 1}, {"x": None}], "element.x"),
        (T.MapType(T.StringType(), T.LongType(), valueContainsNull=False), {"a": None}, "value"),
        (T.MapType(T.StringType(), REQUIRED), {"a": {"x": None}}, "value.x"),
    ],
    ids=stable_id,
)
def test_a_none_in_a_not_null_position_is_an_error_that_names_the_position(
    kind: T.DataType, value: Any, path: str
) -> None:
    with pytest.raises(NullFieldError) as caught:
        array(kind, value)
    assert ".".join(caught.value.path) == path
    assert array(kind, None).to_pylist() == [None]


def test_a_not_null_field_accepts_values_with_and_without_a_converter() -> None:
    kind = T.StructType([T.StructField(name, T.LongType(), nullable=False) for name in "ab"])
    assert back(kind, {"a": 1, "b": 2.0}) == {"a": 1, "b": 2}


def test_plan_type_replaces_char_and_varchar_by_string_and_nothing_else() -> None:
    def nested(text: T.DataType) -> T.DataType:
        fields = [
            T.StructField("a", T.ArrayType(text, containsNull=False)),
            T.StructField("m", T.MapType(text, T.LongType(), valueContainsNull=False), nullable=False),
            T.StructField("t", text, metadata={"comment": "text"}),
        ]
        return T.StructType(fields)

    assert plan_type(nested(T.VarcharType(3))) == nested(T.StringType())
    assert plan_type(nested(T.CharType(3))) == nested(T.StringType())


@pytest.mark.skipif(not hasattr(T, "TimeType"), reason="Spark before 4.1 has no such type")
def test_only_a_naive_time_is_accepted_as_a_time() -> None:
    convert = STRICT[TimeType](partial(_refuse, T.StringType(), ()))
    assert [convert(value) for value in (time(1, 2, 3, 4), None, pd.NaT)] == [time(1, 2, 3, 4), None, None]
    for value in (5, time(12, tzinfo=UTC), NOON, "12:00"):
        with pytest.raises(MisfitError):
            convert(value)


def test_types_that_arrow_checks_itself_have_no_converter() -> None:
    """Plain types cost nothing per row."""
    for kind in (T.StringType(), T.DoubleType(), T.BooleanType(), T.BinaryType(), T.DecimalType()):
        assert converter(kind, ZONE) is None
