"""Misfits: values that do not fit the declared type, and what the function may return instead."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from numbers import Real
from typing import Any, Final

import numpy as np
from pyspark.sql import types as T  # noqa: N812 - the usual name
from pyspark.sql.types import DataType

from .._spark_version import TimeType, VariantType

TEXTS: Final = (T.StringType, T.VarcharType, T.CharType)
TIMESTAMPS: Final = (T.TimestampType, T.TimestampNTZType)
TIMES: Final = (T.DateType, *TIMESTAMPS, T.DayTimeIntervalType, TimeType)
SCALARS: Final = (T.NumericType, T.BooleanType, *TIMES)
NUMBERS: Final = (Real, Decimal)

# The last bit of each integer type, and the type to declare for larger numbers
INTEGERS: Final[dict[type[DataType], tuple[int, str]]] = {
    T.ByteType: (7, "smallint"),
    T.ShortType: (15, "int"),
    T.IntegerType: (31, "bigint"),
    T.LongType: (63, "decimal(38, 0)"),
}

# Declared types, types of the value, and what to return instead. The first that fits counts
ADVICE: Final[tuple[tuple[Any, Any, str], ...]] = (
    (TEXTS, str, "return {text}, or declare string"),
    (TEXTS, bytes, "return {text}, such as value.decode()"),
    (TEXTS, (Mapping, list, tuple), "return {text}, such as json.dumps(value)"),
    (TEXTS, object, "return {text}, such as str(value)"),
    (SCALARS, Mapping, "return one value, such as value['name']"),
    (SCALARS, (list, tuple), "return one value, or declare array<{dtype}>"),
    (T.BooleanType, str, "return a bool, such as value == 'true'"),
    (T.BooleanType, object, "return a bool, such as bool(value)"),
    (T.IntegralType, bool, "return an int, such as int(value)"),
    (T.IntegralType, int, "return an int from -2**{bits} to 2**{bits} - 1, or declare {larger}"),
    (T.IntegralType, np.timedelta64, "return an int, such as int(value / np.timedelta64(1, 's'))"),
    (T.IntegralType, NUMBERS, "return an int, such as round(value), or declare double"),
    (T.IntegralType, object, "return an int, such as int(value)"),
    (T.DecimalType, bool, "return a Decimal, such as Decimal(value)"),
    (T.DecimalType, (int, Decimal), "return at most {digits} digits before the point and {scale} behind it"),
    (T.DecimalType, object, "return a Decimal, such as round(Decimal(str(value)), {scale})"),
    (T.FloatType, Real, "declare double, because it is too large for a float"),
    (T.FractionalType, object, "return a float, such as float(value)"),
    (T.DateType, datetime, "return a date, such as value.date(), or declare timestamp"),
    (T.DateType, Real, "return a date, such as date.fromtimestamp(value)"),
    (T.DateType, object, "return a date, such as date.fromisoformat(value)"),
    (TIMESTAMPS, datetime, "return a naive datetime, such as value.replace(tzinfo=None), or declare timestamp"),
    (TIMESTAMPS, date, "return a datetime, such as datetime.combine(value, time())"),
    (TIMESTAMPS, Real, "return a datetime, such as datetime.fromtimestamp(value, UTC)"),
    (TIMESTAMPS, object, "return a datetime, such as datetime.fromisoformat(value)"),
    (T.DayTimeIntervalType, object, "return a timedelta, such as timedelta(seconds=value)"),
    (TimeType, time, "return a time without a time zone, such as value.replace(tzinfo=None)"),
    (TimeType, datetime, "return a time, such as value.time()"),
    (TimeType, object, "return a time, such as time.fromisoformat(value)"),
    (T.BinaryType, str, "return bytes, such as value.encode()"),
    (T.BinaryType, object, "return bytes"),
    (T.StructType, object, "return a mapping, a dataclass or a named tuple with {names}"),
    (T.ArrayType, object, "return a list, such as [value]"),
    (T.MapType, object, "return a dict, such as dict(value)"),
    (T.NullType, object, "return None, or declare another type"),
    (VariantType, object, "return what JSON has, such as a dict with str keys or a finite number; or a VariantVal"),
    (DataType, object, "return what Spark stores as {dtype}"),
)


class ResultTypeError(TypeError):
    """A return value of the function does not fit the declared type. The message names the row."""

    __module__ = "udfs"


class MisfitError(Exception):
    """A result, or a value inside it, does not fit.

    Attributes:
        dtype: Its declared type.
        path: The names of its fields from the result on; empty for the result itself.
        value: The value.
        advice: What to return instead. It contains no value.
    """

    def __init__(self, dtype: DataType, path: tuple[str, ...], value: Any, advice: str | None = None) -> None:
        super().__init__(dtype, path, value)
        self.dtype = dtype
        self.path = path
        self.value = value
        self.advice = advice_for(dtype, value) if advice is None else advice


class NullFieldError(MisfitError):
    """A value inside the result is None, but declared NOT NULL."""

    def __init__(self, dtype: DataType, path: tuple[str, ...]) -> None:
        super().__init__(dtype, path, None, "return a value, or declare it nullable")


def is_missing(value: Any) -> bool:
    """Whether this is a missing value of pandas or NumPy: NA or NaT. NaN is not: it is a number."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return _is_of_pandas(value, {"NaTType", "NAType"})


def has_nanoseconds(value: Any) -> bool:
    """Whether this is a time or a duration of pandas with a part of a microsecond."""
    return bool(getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0))


def _is_of_pandas(value: Any, names: set[str]) -> bool:
    """Whether its type is one of these of pandas. By name, because pandas takes long to import."""
    return type(value).__name__ in names and type(value).__module__.startswith("pandas.")


def advice_for(dtype: DataType, value: Any) -> str:
    """What to return instead of a value that does not fit this type. The advice contains no part of the value."""
    if _is_of_pandas(value, {"Series", "DataFrame"}):
        return f"return one value, not a {type(value).__name__}: the function is called for each row"
    if not isinstance(dtype, T.FloatType | T.DoubleType) and isinstance(value, Real) and value != value:  # noqa: PLR0124
        return "return None for a missing value, because NaN is a float"
    if isinstance(dtype, TIMES) and has_nanoseconds(value):
        return "round it to microseconds, which Spark stores, such as value.round('us')"
    if isinstance(dtype, TEXTS) and isinstance(value, str) and any("\ud800" <= each <= "\udfff" for each in value):
        return "return a str without surrogates, such as value.encode(errors='replace').decode()"
    advice = next(advice for kinds, values, advice in ADVICE if isinstance(dtype, kinds) and isinstance(value, values))
    length: int | None = getattr(dtype, "length", None)
    scale: int = getattr(dtype, "scale", 0)
    bits, larger = INTEGERS.get(type(dtype), (0, ""))
    return advice.format(
        dtype=dtype.simpleString(),
        text="a str" if length is None else f"a str of at most {length} characters",
        bits=bits,
        larger=larger,
        scale=scale,
        digits=getattr(dtype, "precision", 0) - scale,
        names=", ".join(map(repr, getattr(dtype, "names", ()))),
    )
