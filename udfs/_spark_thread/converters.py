"""Converters: return values of the user's function to values that Arrow stores exactly as the declared type."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from pyspark.sql import types as T  # noqa: N812 - the usual name
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from trio_asyncio_io.embedding import describe

from .._sent.zone import tzinfo_of
from .._spark_version import TimeType

__all__ = ["NullFieldError", "ResultTypeError", "converter", "only_field"]

# Types of most results, whose values have no fields. To find that out by checks for a mapping, a tuple and a dataclass
# takes longer than the rest of a conversion.
FIELDLESS = frozenset({type(None), bool, int, float, str, bytes, date, datetime, Decimal, list})

# The smallest double that rounds to an infinite float: halfway between the largest float and the next power of two
FLOAT_OVERFLOW = (2 - 2.0**-24) * 2.0**127

Convert = Callable[[Any], Any]


class ResultTypeError(TypeError):
    """A return value of the function does not fit the declared type. The message names the row."""

    __module__ = "udfs"


class NullFieldError(ResultTypeError):
    """A field inside the result is None, but declared NOT NULL. The message shows no values."""


def converter(kind: DataType, zone: str, path: str = "") -> Convert | None:
    """The conversion of each value before Arrow stores it; None if Arrow stores it exactly without one.

    A struct may be a mapping, a dataclass, a named tuple, a Spark row or a plain tuple; a map must be a mapping; an
    array may be any iterable, which is read once; a masked value of NumPy inside it is null. A naive datetime for a
    `timestamp` is in the time zone `zone`, as in a pandas UDF. The converter raises if Arrow would change the value,
    and if a value inside is None and its type is NOT NULL.

    Args:
        kind: The declared type.
        zone: The session's time zone.
        path: The place of the value inside the result, for error messages; empty for the result itself.
    """
    if isinstance(kind, StructType):
        return _struct_converter(kind, zone, path)
    if isinstance(kind, ArrayType):
        return _array_converter(_inner(kind.elementType, zone, f"{path}.element", nullable=kind.containsNull))
    if isinstance(kind, MapType):
        return _map_converter(kind, zone, path)
    return _scalar_converter(kind, zone)


def _inner(kind: DataType, zone: str, path: str, *, nullable: bool) -> Convert | None:
    """The converter of a value inside the result."""
    convert = converter(kind, zone, path)
    if nullable:
        return convert

    def required(value: Any) -> Any:
        if value is None:
            raise NullFieldError(f"returned None for {path[1:]}, which is NOT NULL: declare it nullable")
        return value if convert is None else convert(value)

    return required


def only_field(value: Any, name: str) -> Any:
    """The field of a value whose only field has this name; any other value itself."""
    if type(value) in FIELDLESS:
        return value
    named = _named_fields(value)
    return value if named is None or named.keys() != {name} else named[name]


def fields_of(value: Any, names: Sequence[str]) -> Mapping[str, Any]:
    """The value of a struct as a mapping with exactly these names.

    Raises:
        ResultTypeError: It has other names, or none.
    """
    found = _named_fields(value)
    if found is None and isinstance(value, tuple):
        found = _of_tuple(value, names)
    if found is None:
        raise ResultTypeError(
            f"returned {_described(value)}, but {', '.join(names)} need a mapping, a dataclass or a named tuple"
        )
    if found.keys() != set(names):
        missing = [name for name in names if name not in found]
        unknown = [str(name) for name in found if name not in names]
        fields = f"the field{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing))}"
        problems = [f"without {fields}"] if missing else []
        problems += [f"with {', '.join(unknown)}, which is not in the schema"] if unknown else []
        raise ResultTypeError(f"returned {_described(value)} {' and '.join(problems)}")
    return found


def _named_fields(value: Any) -> Mapping[str, Any] | None:
    """The fields of a mapping, a dataclass, a named tuple or a Spark row; None for any other value."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None) or getattr(value, "__fields__", None)
        return dict(zip(names, value, strict=True)) if names else None
    if is_dataclass(value) and not isinstance(value, type):
        # PySpark 3.5 sends classes in a form whose fields `dataclasses.fields` does not recognise
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    return None


def _of_tuple(value: tuple[Any, ...], names: Sequence[str]) -> Mapping[str, Any]:
    if len(value) != len(names):
        raise ResultTypeError(
            f"returned {len(value)} values, {_described(value)}, for the {len(names)} of {', '.join(names)}"
        )
    return dict(zip(names, value, strict=True))


def _struct_converter(kind: StructType, zone: str, path: str) -> Convert:
    names = kind.names
    inner = [
        (each.name, _inner(each.dataType, zone, f"{path}.{each.name}", nullable=each.nullable)) for each in kind.fields
    ]
    changing = [(name, each) for name, each in inner if each is not None]
    expected = frozenset(names)

    def convert(value: Any) -> Any:
        if value is None:
            return None
        if type(value) is dict and value.keys() == expected:  # most are: a check for a mapping takes longer
            found = value
        else:
            fields = fields_of(value, names)
            found = {name: fields[name] for name in names}
        for name, each in changing:
            before = found[name]
            if (after := each(before)) is not before:
                if found is value:  # the user's own dict, perhaps in a cache
                    found = dict(value)
                found[name] = after
        return found

    return convert


def _array_converter(each: Convert | None) -> Convert:
    def convert(value: Any) -> Any:
        if isinstance(value, str | bytes | Mapping):
            raise ResultTypeError(f"returned {_described(value)}, but an array needs a list")
        if value is None or (each is None and isinstance(value, list | tuple)):
            return value
        if hasattr(value, "__array__"):
            if isinstance(value, np.ma.MaskedArray):
                value = value.tolist()  # with None where it is masked. `__array__` has the data under the mask
            elif each is None or (each is _float and getattr(value, "dtype", None) == "float32"):
                return value  # Arrow reads a NumPy array faster than a list
        return list(value) if each is None else [each(item) for item in value]

    return convert


def _map_converter(kind: MapType, zone: str, path: str) -> Convert:
    key = _inner(kind.keyType, zone, f"{path}.key", nullable=True) or _same
    item = _inner(kind.valueType, zone, f"{path}.value", nullable=kind.valueContainsNull) or _same

    def convert(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise ResultTypeError(f"returned {_described(value)}, but a map needs a mapping")
        return [(key(each), item(value[each])) for each in value]

    return convert


def _same(value: Any) -> Any:
    return value


def _described(value: object) -> str:
    return f"{type(value).__name__} {describe(value)}"


def _scalar_converter(kind: T.DataType, zone: str) -> Convert | None:
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
        return value if value.tzinfo else value.replace(tzinfo=tzinfo_of(zone))

    return convert


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
    size = abs(float(value)) if isinstance(value, Real) else 0.0  # a float32 of NumPy cannot be compared with the limit
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
