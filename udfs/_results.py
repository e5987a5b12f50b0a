"""The results: from what a function returned to an Arrow array of the declared type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType

__all__ = ["ResultTypeError", "arrow_type", "converter", "to_array"]

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
    datetime for a `timestamp` is in the session's time zone, as in a pandas UDF.
    """
    if isinstance(kind, StructType):
        return _struct_converter(kind, zone)
    if isinstance(kind, ArrayType):
        each = converter(kind.elementType, zone)
        return each and (lambda value: None if value is None else [each(item) for item in value])
    if isinstance(kind, MapType):
        return _map_converter(kind, zone)
    if isinstance(kind, TimestampType):
        return _instant_converter(zone)
    return None


def to_array(values: Sequence[Any], convert: Convert | None, kind: pa.DataType) -> pa.Array:
    """The values as an Arrow array.

    Raises:
        Exception: One of them does not fit; `ResultTypeError`, or what Arrow says.
    """
    converted = values if convert is None else [convert(value) for value in values]
    return pa.array(converted, type=kind, from_pandas=False)


def as_mapping(value: Any, names: Sequence[str]) -> Mapping[str, Any]:
    """A struct's value as a mapping that has exactly these names.

    Raises:
        ResultTypeError: It has others, or is nothing of the kind.
    """
    if isinstance(value, Mapping):
        found: Mapping[str, Any] = value
    elif is_dataclass(value) and not isinstance(value, type):
        found = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, tuple):
        found = _of_tuple(value, names)
    else:
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


def _of_tuple(value: tuple[Any, ...], names: Sequence[str]) -> Mapping[str, Any]:
    own_names = getattr(value, "_fields", None) or getattr(value, "__fields__", None)
    if own_names:
        return dict(zip(own_names, value, strict=True))
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
        if isinstance(value, datetime) and value.tzinfo is None:
            return value.replace(tzinfo=ZoneInfo(zone))
        return value

    return convert


def _same(value: Any) -> Any:
    return value


def _shown(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text[:80]}{'…' if len(text) > 80 else ''}"  # noqa: PLR2004
