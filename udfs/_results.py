"""The results: from what a function returned to an Arrow array of the declared type."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from numbers import Real
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DayTimeIntervalType,
    IntegralType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ._rows import shown

__all__ = ["ResultTypeError", "arrow_type", "converter", "only_field", "to_array"]

Convert = Callable[[Any], Any]


class ResultTypeError(TypeError):
    """The function returned what does not fit the declared type, for one row."""


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of a Spark type; timestamps are instants."""
    try:
        return to_arrow_type(kind, timezone="UTC")
    except TypeError as error:
        if "timezone" not in str(error):
            raise
        return to_arrow_type(kind)  # Spark before 4.2 has no such argument, and means UTC


def converter(kind: DataType, zone: str) -> Convert | None:
    """What to do with each value before Arrow takes it, or None if Arrow takes it as it is.

    Structs may come as mappings, dataclasses, named tuples, rows or plain tuples; maps as mappings. A naive
    datetime for a `timestamp` is in the session's time zone, as in a pandas UDF. What Arrow would bend is
    refused: it takes 1.5 as the integer 1, any number as a date or a timestamp, and a string as an array.
    """
    if isinstance(kind, StructType):
        return _struct_converter(kind, zone)
    if isinstance(kind, ArrayType):
        return _array_converter(converter(kind.elementType, zone))
    if isinstance(kind, MapType):
        return _map_converter(kind, zone)
    if isinstance(kind, TimestampType):
        return _instant_converter(zone)
    return next((convert for plain, convert in STRICT.items() if isinstance(kind, plain)), None)


def to_array(values: Sequence[Any], convert: Convert | None, kind: pa.DataType) -> pa.Array:
    """The values as an Arrow array.

    Raises:
        Exception: One of them does not fit; `ResultTypeError`, or what Arrow says.
    """
    converted = values if convert is None else [convert(value) for value in values]
    return pa.array(converted, type=kind, from_pandas=False)


def only_field(value: Any, name: str) -> Any:
    """What stands under this name in a value that has named fields, and no other; any other value as it is."""
    named = _named_fields(value)
    return value if named is None or named.keys() != {name} else named[name]


def as_mapping(value: Any, names: Sequence[str]) -> Mapping[str, Any]:
    """A struct's value as a mapping that has exactly these names.

    Raises:
        ResultTypeError: It has others, or is nothing of the kind.
    """
    found = _named_fields(value)
    if found is None and isinstance(value, tuple):
        found = _of_tuple(value, names)
    if found is None:
        raise ResultTypeError(
            f"returned {_shown(value)}, and {', '.join(names)} want a mapping, a dataclass or a named tuple"
        )
    if found.keys() != set(names):
        missing = [name for name in names if name not in found]
        unknown = [str(name) for name in found if name not in names]
        what = [f"without {', '.join(missing)}"] if missing else []
        what += [f"with {', '.join(unknown)}, which is not in the schema"] if unknown else []
        raise ResultTypeError(f"returned {_shown(value)} {' and '.join(what)}")
    return found


def _named_fields(value: Any) -> Mapping[str, Any] | None:
    """The fields of a mapping, a dataclass, a named tuple or a row; None for anything else."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None) or getattr(value, "__fields__", None)
        return dict(zip(names, value, strict=True)) if names else None
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return None


def _of_tuple(value: tuple[Any, ...], names: Sequence[str]) -> Mapping[str, Any]:
    if len(value) != len(names):
        wanted = ", ".join(names)
        raise ResultTypeError(f"returned {len(value)} values, {_shown(value)}, for the {len(names)} of {wanted}")
    return dict(zip(names, value, strict=True))


def _struct_converter(kind: StructType, zone: str) -> Convert:
    names = kind.names
    inner = [(field.name, converter(field.dataType, zone)) for field in kind.fields]

    def convert(value: Any) -> Any:
        if value is None:
            return None
        found = as_mapping(value, names)
        return {name: found[name] if each is None else each(found[name]) for name, each in inner}

    return convert


def _array_converter(each: Convert | None) -> Convert:
    def convert(value: Any) -> Any:
        if isinstance(value, str | bytes | Mapping):
            raise ResultTypeError(f"returned {_shown(value)}, and an array wants a list")
        return value if value is None or each is None else [each(item) for item in value]

    return convert


def _map_converter(kind: MapType, zone: str) -> Convert:
    key = converter(kind.keyType, zone) or _same
    item = converter(kind.valueType, zone) or _same

    def convert(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise ResultTypeError(f"returned {_shown(value)}, and a map wants a mapping")
        return [(key(each), item(value[each])) for each in value]

    return convert


def _instant_converter(zone: str) -> Convert:
    def convert(value: Any) -> Any:
        if value is None:
            return None
        _expect(datetime, value)
        return value if value.tzinfo else value.replace(tzinfo=_tzinfo(zone))

    return convert


def _tzinfo(zone: str) -> tzinfo | None:
    """The session's time zone, which is a region or an offset such as "+02:00"."""
    return datetime.strptime(zone, "%z").tzinfo if re.fullmatch(r"Z|[+-]\d\d:\d\d", zone) else ZoneInfo(zone)


def _wall_clock(value: Any) -> Any:
    if value is None:
        return None
    _expect(datetime, value)
    if value.tzinfo is not None:
        raise TypeError("it has a time zone: declare a timestamp, or make it naive")
    return value


def _integer(value: Any) -> Any:
    if value is None or type(value) in {int, bool}:  # Arrow itself refuses a bool
        return value
    try:
        return operator.index(value)
    except TypeError:
        if isinstance(value, Real | Decimal) and value == math.trunc(value):
            return math.trunc(value)
        raise


def _date(value: Any) -> Any:
    return None if value is None else _expect(date, value)


def _duration(value: Any) -> Any:
    return None if value is None else _expect(timedelta, value)


def _expect(kind: type, value: Any) -> Any:
    if not isinstance(value, kind) or value != value:  # noqa: PLR0124 - pandas' NaT is a datetime
        raise TypeError(f"it must be a {kind.__name__}")
    return value


STRICT: dict[type[DataType], Convert] = {
    IntegralType: _integer,
    DateType: _date,
    DayTimeIntervalType: _duration,
    TimestampNTZType: _wall_clock,
}


def _same(value: Any) -> Any:
    return value


def _shown(value: object) -> str:
    return f"{type(value).__name__} {shown(value)}"
