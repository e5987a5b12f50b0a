"""Scalars: checks and conversions of single values for each Spark type."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from numbers import Real
from typing import Any
from zoneinfo import ZoneInfo

from pyspark.sql import types as T  # noqa: N812 - the usual name

from .._spark_version import TimeType

__all__ = ["Convert", "scalar_converter"]

Convert = Callable[[Any], Any]

# The smallest double that rounds to an infinite float: halfway between the largest float and the next power of two
FLOAT_OVERFLOW = (2 - 2.0**-24) * 2.0**127


def scalar_converter(kind: T.DataType, zone: str) -> Convert | None:
    """The conversion of one value, which leaves None alone; None for types that Arrow checks exactly by itself.

    Arrow would store 1.5 as the integer 1, 1e300 as an infinite float, any number as a date, a time or a timestamp,
    and a datetime as a date without its time of day. The converters refuse all of these.
    """
    if isinstance(kind, T.TimestampType):
        return _instant(zone)
    if isinstance(kind, T.VarcharType | T.CharType):
        return _text(kind)
    return next((convert for plain, convert in STRICT.items() if isinstance(kind, plain)), None)


def _instant(zone: str) -> Convert:
    def convert(value: Any) -> Any:
        if value is None:
            return None
        _expect(datetime, value)
        return value if value.tzinfo else value.replace(tzinfo=_tzinfo(zone))

    return convert


def _tzinfo(zone: str) -> tzinfo | None:
    """The time zone: a region, or an offset such as "+02:00"."""
    return datetime.strptime(zone, "%z").tzinfo if re.fullmatch(r"Z|[+-]\d\d:\d\d", zone) else ZoneInfo(zone)


def _text(kind: T.VarcharType | T.CharType) -> Convert:
    width = kind.length if isinstance(kind, T.CharType) else 0

    def convert(value: Any) -> Any:
        if value is None:
            return None
        _expect(str, value)
        if len(value) > kind.length:
            raise ValueError(f"it has {len(value)} characters")
        return value.ljust(width)

    return convert


def _wall_clock(value: Any) -> Any:
    if value is None:
        return None
    _expect(datetime, value)
    if value.tzinfo is not None:
        raise TypeError("it has a time zone: declare a timestamp, or make it naive")
    return value


def _integer(value: Any) -> Any:
    if value is None or type(value) in {int, bool}:  # Arrow refuses a bool
        return value
    try:
        return operator.index(value)
    except TypeError:
        if isinstance(value, Real | Decimal) and value == math.trunc(value):
            return math.trunc(value)
        raise


def _float(value: Any) -> Any:
    size: Any = abs(value) if isinstance(value, Real) else 0
    if FLOAT_OVERFLOW <= size < math.inf:
        raise OverflowError("it is too large for a float: declare a double")
    return value


def _date(value: Any) -> Any:
    if value is None:
        return None
    _expect(date, value)
    if isinstance(value, datetime) and (value.tzinfo is not None or value.time() != time()):
        raise TypeError("it has a time of day or a time zone: return value.date()")
    return value


def _time(value: Any) -> Any:
    if value is None:
        return None
    _expect(time, value)
    if value.tzinfo is not None:
        raise TypeError("it has a time zone: make it naive")
    return value


def _duration(value: Any) -> Any:
    return None if value is None else _expect(timedelta, value)


def _expect(kind: type, value: Any) -> Any:
    if type(value) is kind:
        return value
    if not isinstance(value, kind) or value != value:  # noqa: PLR0124 - pandas' NaT is a datetime, and not equal to itself
        raise TypeError(f"it must be a {kind.__name__}")
    if getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0):  # pandas has nanoseconds
        raise ValueError("it has nanoseconds, and Spark stores microseconds: round it")
    return value


STRICT: dict[type[T.DataType], Convert] = {
    T.IntegralType: _integer,
    T.FloatType: _float,
    T.DateType: _date,
    T.DayTimeIntervalType: _duration,
    T.TimestampNTZType: _wall_clock,
    TimeType: _time,
}
