"""Results that do not fit the declared type: what the message names, and what it advises."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import Row
from pyspark.sql import types as T  # noqa: N812 - the usual name

from tests.support import stable_id
from udfs._plan.arguments import make_settings
from udfs._spark_thread.misfits import ResultTypeError, advice_for
from udfs._spark_thread.reading import rows_of
from udfs._spark_thread.writing import ResultWriter

NOON = datetime(2013, 7, 1, 12)
DAY_TIME = T.DayTimeIntervalType()
NESTED = T.StructType(
    [
        T.StructField("a", T.ArrayType(T.IntegerType())),
        T.StructField("m", T.MapType(T.StringType(), T.DateType())),
        T.StructField("s", T.StringType()),
    ]
)
MISSING = [pd.NaT, pd.NA, np.datetime64("NaT", "ns"), np.timedelta64("NaT", "ns")]
SCALARS = [
    T.StringType(),
    T.VarcharType(3),
    T.BooleanType(),
    T.ByteType(),
    T.LongType(),
    T.FloatType(),
    T.DoubleType(),
    T.DecimalType(10, 2),
    T.BinaryType(),
    T.DateType(),
    T.TimestampType(),
    T.TimestampNTZType(),
    DAY_TIME,
    T.ArrayType(T.LongType()),
    T.MapType(T.StringType(), T.LongType()),
    NESTED,
    T.NullType(),
]


async def look_up(key: str) -> Any: ...


def written(rows: Any, kind: T.DataType, value: Any, columns: Any = (), **settings: Any) -> Any:
    writer = ResultWriter(kind, "UTC", make_settings(look_up, 5.0, settings), columns)  # type: ignore[arg-type]
    [(_, array)] = writer.write(rows("a"), [value])
    return array.to_pylist()[0]


@pytest.mark.parametrize("missing", MISSING, ids=stable_id)
@pytest.mark.parametrize("kind", SCALARS, ids=str)
def test_a_missing_value_of_pandas_is_null(rows: Any, kind: T.DataType, missing: Any) -> None:
    assert written(rows, kind, missing) is None


@pytest.mark.parametrize("missing", MISSING, ids=stable_id)
def test_a_missing_value_of_pandas_is_null_at_every_depth(rows: Any, missing: Any) -> None:
    value = {"a": [1, missing], "m": {"d": missing}, "s": missing}
    assert written(rows, NESTED, value) == {"a": [1, None], "m": [("d", None)], "s": None}


@pytest.mark.parametrize("kind", [T.LongType(), T.StringType()], ids=str)
def test_a_missing_value_of_pandas_is_not_accepted_where_the_type_is_not_null(rows: Any, kind: T.DataType) -> None:
    with pytest.raises(
        ResultTypeError, match=r"returned None for row \('a'\), but 'element' is declared NOT NULL: return"
    ):
        written(rows, T.ArrayType(kind, containsNull=False), [pd.NA])


def test_nan_is_a_number_where_the_type_has_it(rows: Any) -> None:
    assert all(math.isnan(written(rows, kind, math.nan)) for kind in (T.FloatType(), T.DoubleType()))


@pytest.mark.parametrize(
    "kind", [T.StringType(), T.VarcharType(3), T.BooleanType(), T.LongType(), T.DecimalType(), T.DateType()], ids=str
)
@pytest.mark.parametrize("nan", [math.nan, np.float32("nan")], ids=["float", "float32"])
def test_nan_is_refused_with_advice_where_the_type_has_none(rows: Any, kind: T.DataType, nan: Any) -> None:
    with pytest.raises(ResultTypeError, match=r": return None for a missing value, because NaN is a float$"):
        written(rows, kind, nan)


@pytest.mark.parametrize(
    ("kind", "value", "advice"),
    [
        (T.StringType(), 5, "return a str, such as str(value)"),
        (T.StringType(), {"a": 1}, "return a str, such as json.dumps(value)"),
        (T.StringType(), b"\xff", "return a str, such as value.decode()"),
        (T.VarcharType(3), "abcd", "return a str of at most 3 characters, or declare string"),
        (T.StringType(), "a\ud83d", "return a str without surrogates, such as value.encode(errors='replace').decode()"),
        (T.CharType(3), 5, "return a str of at most 3 characters, such as str(value)"),
        (T.BooleanType(), 1, "return a bool, such as bool(value)"),
        (T.BooleanType(), "true", "return a bool, such as value == 'true'"),
        (T.ByteType(), 200, "return an int from -2**7 to 2**7 - 1, or declare smallint"),
        (T.LongType(), 2**63, "return an int from -2**63 to 2**63 - 1, or declare decimal(38, 0)"),
        (T.IntegerType(), 1.5, "return an int, such as round(value), or declare double"),
        (T.IntegerType(), np.float32(1.5), "return an int, such as round(value), or declare double"),
        (T.IntegerType(), np.timedelta64(1, "s"), "return an int, such as int(value / np.timedelta64(1, 's'))"),
        (T.IntegerType(), True, "return an int, such as int(value)"),
        (T.IntegerType(), "5", "return an int, such as int(value)"),
        (T.FloatType(), 1e300, "declare double, because it is too large for a float"),
        (T.FloatType(), "0.5", "return a float, such as float(value)"),
        (T.DecimalType(10, 2), 12.5, "return a Decimal, such as round(Decimal(str(value)), 2)"),
        (
            T.DecimalType(5, 2),
            Decimal("1.234"),
            "return at most 3 digits before the point and 2 behind it",
        ),
        (T.BinaryType(), 5, "return bytes"),
        (T.DateType(), "2013-01-01", "return a date, such as date.fromisoformat(value)"),
        (T.DateType(), 15_706, "return a date, such as date.fromtimestamp(value)"),
        (T.DateType(), NOON, "return a date, such as value.date(), or declare timestamp"),
        (T.TimestampType(), "2013-01-01T10:00:00Z", "return a datetime, such as datetime.fromisoformat(value)"),
        (T.TimestampType(), 1.5e9, "return a datetime, such as datetime.fromtimestamp(value, UTC)"),
        (T.TimestampType(), date(2013, 7, 1), "return a datetime, such as datetime.combine(value, time())"),
        (
            T.TimestampType(),
            pd.Timestamp(1),
            "round it to microseconds, which Spark stores, such as value.round('us')",
        ),
        (DAY_TIME, pd.Timedelta(1), "round it to microseconds, which Spark stores, such as value.round('us')"),
        (
            T.TimestampNTZType(),
            NOON.replace(tzinfo=UTC),
            "return a naive datetime, such as value.replace(tzinfo=None), or declare timestamp",
        ),
        (DAY_TIME, 5, "return a timedelta, such as timedelta(seconds=value)"),
        (T.ArrayType(T.StringType()), "abc", "return a list, such as [value]"),
        (T.MapType(T.StringType(), T.LongType()), [("a", 1)], "return a dict, such as dict(value)"),
        (T.NullType(), 5, "return None, or declare another type"),
        (T.IntegerType(), [1], "return one value, or declare array<int>"),
        (T.BooleanType(), (True, False), "return one value, or declare array<boolean>"),
        (T.DoubleType(), {"a": 0.5}, "return one value, such as value['name']"),
        (T.StringType(), pd.Series(["a"]), "return one value, not a Series: the function is called for each row"),
        (T.LongType(), pd.DataFrame(), "return one value, not a DataFrame: the function is called for each row"),
    ],
    ids=stable_id,
)
def test_each_type_has_advice_of_its_own(rows: Any, kind: T.DataType, value: Any, advice: str) -> None:
    with pytest.raises(ResultTypeError) as caught:
        written(rows, kind, value)
    message = str(caught.value)
    assert message.endswith(f" for row ('a'), but its result is declared {kind.simpleString()}: {advice}")
    with pytest.raises(ResultTypeError) as caught:
        written(rows, kind, value, show_values=False)
    assert str(caught.value) == message.replace(
        message[message.index(type(value).__name__) : message.index(" for row")], type(value).__name__
    )


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (time(12, tzinfo=UTC), "return a time without a time zone, such as value.replace(tzinfo=None)"),
        (NOON, "return a time, such as value.time()"),
        ("12:00", "return a time, such as time.fromisoformat(value)"),
    ],
    ids=str,
)
def test_a_time_has_advice_of_its_own(value: Any, advice: str) -> None:
    """Spark has had the type since 4.1."""
    made = getattr(T, "TimeType", None)
    if made is not None:
        assert advice_for(made(), value) == advice


@pytest.mark.parametrize(
    ("kind", "columns", "value", "place"),
    [
        (T.LongType(), (), "x", "its result is declared bigint"),
        (T.LongType(), ["n"], "x", "column 'n' is declared bigint"),
        (NESTED, (), {"a": ["x"], "m": None, "s": None}, "'a.element' is declared int"),
        (NESTED, ["c"], {"a": ["x"], "m": None, "s": None}, "'c.a.element' is declared int"),
        (NESTED, ["a", "m", "s"], {"a": None, "m": None, "s": 5}, "column 's' is declared string"),
        (NESTED, ["a", "m", "s"], {"a": None, "m": {"k": 5}, "s": None}, "'m.value' is declared date"),
        (NESTED, ["a", "m", "s"], {"a": None, "m": {5: None}, "s": None}, "'m.key' is declared string"),
        (NESTED, ["a", "m", "s"], 5, "the new columns are declared struct<a:array<int>,m:map<string,date>,s:string>"),
    ],
    ids=str,
)
def test_the_message_names_the_place(rows: Any, kind: T.DataType, columns: Any, value: Any, place: str) -> None:
    with pytest.raises(ResultTypeError) as caught:
        written(rows, kind, value, columns)
    assert f" for row ('a'), but {place}: " in str(caught.value)


VARIANT = getattr(T, "VariantType", T.StringType)()  # new in Spark 4.0


@dataclass
class Place:
    name: str
    height: float | None


needs_variant = pytest.mark.skipif(not hasattr(T, "VariantType"), reason="Spark 3.5 has no variant")


@needs_variant
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": [1, None, {"b": True}]}, {"a": [1, None, {"b": True}]}),
        ("text", "text"),
        (1.5, Decimal("1.5")),
        (1e300, 1e300),
        (Decimal("12.50"), Decimal("12.50")),
        (-(2**63), -(2**63)),
        (False, False),
        ([], []),
        ((1, 2), [1, 2]),
        (Place("Zürich ✈", None), {"name": "Zürich ✈", "height": None}),
        (Row(a=1), {"a": 1}),
        ({"n": np.int64(3), "x": np.array([0.5]), "t": pd.NaT}, {"n": 3, "x": [Decimal("0.5")], "t": None}),
        (T.VariantVal.parseJson('{"k": 7}') if hasattr(T, "VariantVal") else None, {"k": 7}),
    ],
    ids=stable_id,
)
def test_a_variant_may_be_what_json_has(rows: Any, value: Any, expected: Any) -> None:
    found = written(rows, VARIANT, value)
    assert T.VariantVal(found["value"], found["metadata"]).toPython() == expected


@needs_variant
@pytest.mark.parametrize("value", [{1: 2}, {"a": math.nan}, math.inf, NOON, b"x", {"a": {1}}, 2**200], ids=stable_id)
def test_what_json_lacks_is_no_variant(rows: Any, value: Any) -> None:
    with pytest.raises(
        ResultTypeError, match=r"its result is declared variant: return what JSON has, such as a dict with str keys"
    ):
        written(rows, VARIANT, value)


@needs_variant
def test_a_none_or_a_missing_value_is_null_and_no_variant(rows: Any) -> None:
    assert [written(rows, VARIANT, value) for value in (None, pd.NA)] == [None, None]


@needs_variant
def test_a_variant_input_is_a_python_value(rows: Any) -> None:
    """At any depth, and beside a timestamp in the zone of the session."""
    kind = T.StructType(
        [T.StructField("v", T.ArrayType(VARIANT)), T.StructField("at", T.TimestampType()), T.StructField("w", VARIANT)]
    )
    value = {"v": [{"a": 1}, None], "at": NOON, "w": "x"}
    writer = ResultWriter(kind, "UTC", make_settings(look_up, 5.0, {}))
    [(_, array)] = writer.write(rows("a"), [value])
    [row] = rows_of([array], 0, zone="Asia/Kolkata")
    [found] = row.inputs
    assert found == {"v": [{"a": 1}, None], "at": NOON.replace(tzinfo=UTC), "w": "x"}
    assert str(found["at"].tzinfo) == "Asia/Kolkata"
