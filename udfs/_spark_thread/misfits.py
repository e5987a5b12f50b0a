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

__all__ = ["MisfitError", "NullFieldError", "ResultTypeError", "advice_for", "is_missing"]

# The last bit of each integer type, and the type to declare for larger numbers
INTEGERS: Final[dict[type[DataType], tuple[int, str]]] = {
    T.ByteType: (7, "smallint"),
    T.ShortType: (15, "int"),
    T.IntegerType: (31, "bigint"),
    T.LongType: (63, "decimal(38, 0)"),
}


TIMES: Final = (T.DateType, T.TimestampType, T.TimestampNTZType, T.DayTimeIntervalType, TimeType)


class ResultTypeError(TypeError):
    """A return value of the function does not fit the declared type. The message names the row."""

    __module__ = "udfs"


class MisfitError(Exception):
    """A result, or a value inside it, does not fit.

    Attributes:
        kind: Its declared type.
        path: The names of its fields from the result on; empty for the result itself.
        value: The value.
        advice: What to return instead. It contains no value.
    """

    def __init__(self, kind: DataType, path: tuple[str, ...], value: Any, advice: str | None = None) -> None:
        super().__init__(kind, path, value)
        self.kind = kind
        self.path = path
        self.value = value
        self.advice = advice_for(kind, value) if advice is None else advice


class NullFieldError(MisfitError):
    """A value inside the result is None, but declared NOT NULL."""

    def __init__(self, kind: DataType, path: tuple[str, ...]) -> None:
        super().__init__(kind, path, None, "return a value, or declare it nullable")


def is_missing(value: Any) -> bool:
    """Whether this is a missing value of pandas or NumPy: NA or NaT. NaN is not: it is a number."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return _is_of_pandas(value, {"NaTType", "NAType"})


def _is_of_pandas(value: Any, names: set[str]) -> bool:
    """Whether its type is one of these of pandas. By name, because pandas takes long to import."""
    return type(value).__name__ in names and type(value).__module__.startswith("pandas.")


def advice_for(kind: DataType, value: Any) -> str:
    """What to return instead of a value that does not fit this type. The advice contains no part of the value."""
    if _is_of_pandas(value, {"Series", "DataFrame"}):
        return f"return one value, not a {type(value).__name__}: the function is called for each row"
    if not isinstance(kind, T.FloatType | T.DoubleType) and isinstance(value, Real) and value != value:  # noqa: PLR0124
        return "return None for a missing value, because NaN is a float"
    if isinstance(kind, T.StringType | T.VarcharType | T.CharType):
        return _text(kind, value)
    if isinstance(kind, (T.NumericType, T.BooleanType, *TIMES)):
        return _scalar(kind, value)
    return _other(kind, value)


def _text(kind: DataType, value: Any) -> str:
    length = getattr(kind, "length", None)
    what = "a str" if length is None else f"a str of at most {length} characters"
    if isinstance(value, str):
        if any("\ud800" <= each <= "\udfff" for each in value):
            return "return a str without surrogates, such as value.encode(errors='replace').decode()"
        return f"return {what}, or declare string"
    if isinstance(value, Mapping | list | tuple):
        return f"return {what}, such as json.dumps(value)"
    return f"return {what}, such as {'value.decode()' if isinstance(value, bytes) else 'str(value)'}"


def _scalar(kind: DataType, value: Any) -> str:
    if isinstance(value, Mapping):
        return "return one value, such as value['name']"
    if isinstance(value, list | tuple):
        return f"return one value, or declare array<{kind.simpleString()}>"
    return _time(kind, value) if isinstance(kind, TIMES) else _number(kind, value)


def _number(kind: DataType, value: Any) -> str:
    if isinstance(kind, T.BooleanType):
        return (
            "return a bool, such as value == 'true'" if isinstance(value, str) else "return a bool, such as bool(value)"
        )
    if isinstance(kind, T.DecimalType):
        return _decimal(kind, value)
    if isinstance(kind, T.IntegralType):
        return _integer(kind, value)
    if isinstance(kind, T.FloatType) and isinstance(value, Real):
        return "declare double, because it is too large for a float"
    return "return a float, such as float(value)"


def _integer(kind: T.IntegralType, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return "return an int, such as int(value)"
    bits, larger = INTEGERS[type(kind)]
    if value == value // 1:
        return f"return an int from -2**{bits} to 2**{bits} - 1, or declare {larger}"
    return "return an int, such as round(value), or declare double"


def _decimal(kind: T.DecimalType, value: Any) -> str:
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        whole, places = kind.precision - kind.scale, kind.scale
        digits = f"at most {whole} digits before the point and {places} behind it"
        return f"return a Decimal with {digits}, such as round(value, {places})"
    return f"return a Decimal, such as round(Decimal(str(value)), {kind.scale})"


def _time(kind: DataType, value: Any) -> str:
    if getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0):
        return "round it to microseconds, which Spark stores, such as value.round('us')"
    if isinstance(kind, T.DateType):
        return _date(value)
    if isinstance(kind, T.DayTimeIntervalType):
        return "return a timedelta, such as timedelta(seconds=value)"
    return _time_of_day(value) if isinstance(kind, TimeType) else _datetime(value)


def _date(value: Any) -> str:
    if isinstance(value, datetime):
        return "return a date, such as value.date(), or declare timestamp"
    how = "fromtimestamp" if isinstance(value, Real) else "fromisoformat"
    return f"return a date, such as date.{how}(value)"


def _time_of_day(value: Any) -> str:
    if isinstance(value, time):
        return "return a time without a time zone, such as value.replace(tzinfo=None)"
    return f"return a time, such as {'value.time()' if isinstance(value, datetime) else 'time.fromisoformat(value)'}"


def _datetime(value: Any) -> str:
    if isinstance(value, datetime):
        return "return a naive datetime, such as value.replace(tzinfo=None), or declare timestamp"
    if isinstance(value, date):
        return "return a datetime, such as datetime.combine(value, time())"
    how = "fromtimestamp(value, UTC)" if isinstance(value, Real) else "fromisoformat(value)"
    return f"return a datetime, such as datetime.{how}"


OTHERS: Final = {
    T.ArrayType: "return a list, such as [value]",
    T.MapType: "return a dict, such as dict(value)",
    T.NullType: "return None, or declare another type",
    VariantType: (
        "return what JSON has: a dict with str as keys, a list, a str, a finite number, a bool or None; or "
        "return a VariantVal"
    ),
}


def _other(kind: DataType, value: Any) -> str:
    if isinstance(kind, T.BinaryType):
        return "return bytes, such as value.encode()" if isinstance(value, str) else "return bytes"
    if isinstance(kind, T.StructType):
        return f"return a mapping, a dataclass or a named tuple with {', '.join(map(repr, kind.names))}"
    return OTHERS.get(type(kind), f"return what Spark stores as {kind.simpleString()}")
